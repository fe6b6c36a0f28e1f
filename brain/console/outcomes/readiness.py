"""From cases to the evidence with which a site lets a runbook act by itself. Pure."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Literal

from agent.contract.counted import counted, span
from brain.console import shapes
from brain.console.api.outcome_shapes import MOST_PLANNED, PlannedShape, ReadyShape
from brain.console.outcomes.cases import PlannedCase
from brain.core import wilson
from brain.core.pack.spec import Mode, Runbook

Verdict = Literal["ready", "not_yet", "needless", "too_few", "none", "limited", "taken_back"]
CASES, NODES = 5, 3  # less say nothing
MOSTLY = 0.5  # what the lower bound of a share reaches


def ready(spec: Runbook, mode: Mode, taken_back: str, cases: Sequence[PlannedCase]) -> ReadyShape:
    """Returns the evidence for one runbook. `taken_back`: why gpuward itself has set its mode; empty: it has not."""
    ends = Counter(one.how for one in cases)
    over = [one for one in cases if one.how in ("same", "people", "itself")]
    nodes = len({one.run["node"] or one.run["scope"] for one in cases})
    lower, _ = wilson.bounds(ends["same"], len(over))
    verdict = _verdict(spec, mode, taken_back, cases, over)
    stopped = Counter(gate for one in cases for gate in one.stopped)
    return ReadyShape(
        runbook=spec.name,
        mode=mode.value,
        at_most=spec.at_most.value,
        planned=len(cases),
        nodes=nodes,
        same=ends["same"],
        people=ends["people"],
        itself=ends["itself"],
        explained=ends["explained"],
        open=ends["open"],
        approved=sum(one.approved for one in cases),
        healed=sum(one.healed for one in cases),
        stopped=dict(sorted(stopped.items(), key=lambda one: (-one[1], one[0]))),
        lower=round(lower, 4) if over else 0.0,
        verdict=verdict,
        text=f"{_evidence(cases, nodes)} {_advice(spec, verdict, taken_back, lower)}",
        cases=[_planned(one) for one in cases[:MOST_PLANNED]],
    )


def _verdict(
    spec: Runbook, mode: Mode, taken_back: str, cases: Sequence[PlannedCase], over: Sequence[PlannedCase]
) -> Verdict:
    if taken_back:
        return "taken_back"
    if spec.at_most is mode:
        return "limited"
    if not cases:
        return "none"
    if len(over) < CASES or len({one.run["node"] or one.run["scope"] for one in over}) < NODES:
        return "too_few"
    ends = Counter(one.how for one in over)
    if wilson.bounds(ends["same"], len(over))[0] >= MOSTLY:
        return "ready"
    return "needless" if 2 * ends["itself"] >= len(over) else "not_yet"


def _evidence(cases: Sequence[PlannedCase], nodes: int) -> str:
    """The sentence on what it would have done, and what happened instead."""
    if not cases:
        return "It would have done nothing."
    asked = sum(bool(one.run["wanted"] or one.run["approved"]) for one in cases)
    rungs = Counter(one.rung for one in cases if one.rung)
    what = " and ".join(f"`{rung}` {counted(count, 'time')}" for rung, count in rungs.most_common(3))
    would = f"would have begun {what}" if what else f"would have told people {counted(len(cases), 'time')}"
    if asked == len(cases):
        would = f"has asked for {what or 'an approval'}"
    parts = [f"It {would}, on {counted(nodes, 'node')}"]
    same = [one for one in cases if one.how == "same"]
    agreed = sum(one.approved for one in same)
    if agreed:
        healed = sum(one.healed for one in same)
        parts.append(f"to {agreed} of them people agreed, and it healed {healed}: the same")
    if done := [one for one in same if not one.approved]:
        parts.append(f"{len(done)} of them people did themselves{_after(done)}: the same")
    if own := [one for one in cases if one.how == "itself"]:
        parts.append(
            f"{len(own)} ended by {'itself' if len(own) == 1 else 'themselves'}{_after(own)}: needless"
        )
    if other := [one for one in cases if one.how == "people"]:
        parts.append(f"{len(other)} people saw to in another way{_after(other)}")
    if wider := [one for one in cases if one.how == "explained"]:
        parts.append(f"{len(wider)} had a wider cause")
    if left := [one for one in cases if one.how == "open"]:
        parts.append(f"{len(left)} {'is' if len(left) == 1 else 'are'} open")
    if gates := Counter(gate for one in cases for gate in one.stopped):
        named = ", ".join(f"{gate} {count}" for gate, count in gates.most_common(4))
        parts.append(f"gates stood in the way ({named})")
    return f"{'; '.join(parts)}."


def _after(cases: Sequence[PlannedCase]) -> str:
    known = [one.after_s for one in cases if one.after_s is not None]
    return f" after {span(median(known))}{' at the median' if len(known) > 1 else ''}" if known else ""


def _advice(spec: Runbook, verdict: Verdict, taken_back: str, lower: float) -> str:
    match verdict:
        case "ready":
            share = f"{lower:.0%}"
            return f"Evidence for auto: people do the same in at least {share} of all cases: `gpuward mode {spec.name} auto`."
        case "needless":
            return "Not yet: most of these faults end by themselves; a longer hold-off of their rules would spare the steps."
        case "not_yet":
            return "Not yet: people often do something else. Look at the cases, and change the ladder or its rules."
        case "too_few":
            return f"Too few to say: at least {CASES} that are over, on {NODES} nodes."
        case "limited":
            return f"Its file allows no more than {spec.at_most.value}."
        case "taken_back":
            return f"gpuward has taken it back: {taken_back}. Find out why before you set its mode again."
        case "none":
            return "Nothing speaks for or against it."


def _planned(one: PlannedCase) -> PlannedShape:
    return PlannedShape(
        incident=one.incident["id"],
        run=one.run["id"],
        cause=one.incident["cause"],
        node=one.run["node"],
        at=shapes.iso(one.run["started_at"]),
        rung=one.rung,
        stopped=list(one.stopped),
        how=one.how,
        did=one.did,
        after_s=one.after_s,
    )

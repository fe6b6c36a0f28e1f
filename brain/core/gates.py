"""Gates: reasons not to act now. Each is a small function; the first that objects decides, with its reason.

Only disruptive rungs come here: collecting evidence and paging are always allowed (except in observe mode).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase

from brain.core.spec import Mode, Rung
from brain.core.state import Incident, Run, SymptomState
from brain.core.topology import CELL, WIDE, type_of
from brain.core.turn import Turn


class Say(str, Enum):
    """A gate's answer."""

    GO = "go"
    HOLD = "hold"  # not now; it is asked again
    APPROVAL = "approval"  # only if a person agrees
    STOP = "stop"  # not at all: a person must take over


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A gate's answer and its reason."""

    say: Say
    gate: str
    reason: str
    retry_s: float = 15.0  # HOLD: ask again after so long, if nothing else wakes the run


Gate = Callable[[Turn, Run, Incident, Rung], Verdict | None]
GO = Verdict(say=Say.GO, gate="", reason="no gate objects")


def check(turn: Turn, run: Run, incident: Incident, rung: Rung) -> Verdict:
    """The first objection, or GO."""
    for gate in GATES:
        verdict = gate(turn, run, incident, rung)
        if verdict is not None:
            return verdict
    return GO


def mode_of(turn: Turn, runbook: str, node: str, at_most: Mode) -> Mode:
    """The mode in force: what a person said last, else the site's setting; never looser than the runbook allows."""
    if turn.observe_all:
        return Mode.OBSERVE
    mode = Mode.OBSERVE
    for setting in turn.book.settings.modes:
        if fnmatchcase(runbook, setting.runbook) and fnmatchcase(node, setting.nodes):
            mode = setting.mode
    for said in turn.state.modes:
        if fnmatchcase(runbook, said.runbook) and fnmatchcase(node, said.nodes):
            mode = Mode(said.mode)
    order = (Mode.OBSERVE, Mode.APPROVE, Mode.AUTO)
    return min(mode, at_most, key=order.index)


def approved(turn: Turn, run: Run) -> bool:
    """Did a person agree to this very rung, and does it still hold?"""
    return run.approved_rung == run.rung and turn.now <= run.approved_until


def hold(turn: Turn, run: Run, incident: Incident, rung: Rung) -> Verdict | None:
    """Law 2: never under a person's hold."""
    for entry in turn.state.holds.values():
        if (not entry.until or turn.now < entry.until) and turn.book.topology.contains(entry.scope, run.scope):
            return Verdict(say=Say.HOLD, gate="hold", reason=f"{entry.who} holds {entry.scope}: {entry.why}", retry_s=60)
    return None


def mode(turn: Turn, run: Run, incident: Incident, rung: Rung) -> Verdict | None:
    """The runbook's mode here and now."""
    now = mode_of(turn, run.runbook.name, run.node, run.runbook.at_most)
    if now is Mode.OBSERVE:
        return Verdict(say=Say.HOLD, gate="mode", reason=f"{run.runbook.name} is in observe mode for this node", retry_s=60)
    if now is Mode.APPROVE and not approved(turn, run):
        return Verdict(say=Say.APPROVAL, gate="mode", reason=f"{run.runbook.name} is in approve mode")
    return None


def shared(turn: Turn, run: Run, incident: Incident, rung: Rung) -> Verdict | None:
    """Law 6: when many nodes show the same symptom, no per-node action."""
    for place in (*turn.book.topology.above(run.node),) if run.node else ():
        for symptom in turn.index.active.get(place, {}).values():
            if _counts_one_of(turn, symptom, incident):
                reason = f"{len(symptom.members)} nodes of {symptom.scope} show it: the cause is taken to be shared"
                return Verdict(say=Say.HOLD, gate="shared", reason=reason)
    return None


def _counts_one_of(turn: Turn, symptom: SymptomState, incident: Incident) -> bool:
    spec = turn.book.symptoms.get(symptom.name)
    return spec is not None and spec.detect == "spread" and any(key.partition("@")[0] == spec.of for key in incident.symptoms)


def young(turn: Turn, run: Run, incident: Incident, rung: Rung) -> Verdict | None:
    """A storm shows itself within moments: nothing disruptive before that."""
    left = incident.opened_at + turn.book.settings.settle_s - turn.now
    if left > 0:
        return Verdict(say=Say.HOLD, gate="young", reason="waiting whether other nodes show it too", retry_s=left)
    return None


def stale(turn: Turn, run: Run, incident: Incident, rung: Rung) -> Verdict | None:
    """A fault that was old when it arrived is not acted on without a fresh sign or a person."""
    if incident.stale and not approved(turn, run):
        reason = f"every fact was older than {turn.book.settings.stale_s:.0f} s when it arrived: a fresh one or an approval is needed"
        return Verdict(say=Say.APPROVAL, gate="stale", reason=reason)
    return None


def tries(turn: Turn, run: Run, incident: Incident, rung: Rung) -> Verdict | None:
    """Law 8: a remedy that was tried so often is not tried again."""
    if run.claimed:
        return None
    before = [at for at in turn.state.tries.get(tries_key(run, incident), ()) if at > turn.now - run.runbook.tries_within_s]
    if len(before) >= run.runbook.tries:
        hours = run.runbook.tries_within_s / 3600
        return Verdict(say=Say.STOP, gate="tries", reason=f"{run.runbook.name} was tried {len(before)} times here in {hours:.0f} h")
    return None


def tries_key(run: Run, incident: Incident) -> str:
    """What counts as the same remedy for the same fault."""
    return f"{run.runbook.name}@{incident.cause}@{run.scope}"


def one_per_node(turn: Turn, run: Run, incident: Incident, rung: Rung) -> Verdict | None:
    """Law 1: never two disruptive runs on one node."""
    for other, node in turn.index.claims.items():
        if other != run.id and run.node and node == run.node:
            return Verdict(say=Say.HOLD, gate="one_per_node", reason=f"{other} works on {run.node}")
    return None


def budget(turn: Turn, run: Run, incident: Incident, rung: Rung) -> Verdict | None:
    """Law 1: never more at once than the budgets of cell, leaf, rack, pod and runbook."""
    if run.claimed:
        return None
    settings = turn.book.settings
    if len(turn.index.claims) >= settings.disruptive_runs:
        return _over("cell", len(turn.index.claims), settings.disruptive_runs)
    same = sum(1 for other in turn.index.claims if turn.state.runs[other].runbook.name == run.runbook.name)
    if same >= settings.disruptive_runs_per_runbook:
        return _over(run.runbook.name, same, settings.disruptive_runs_per_runbook)
    for place in turn.book.topology.above(run.node) if run.node else ():
        if place != CELL and type_of(place) in WIDE and type_of(place) != "fabric":
            here = sum(1 for node in turn.index.claims.values() if place in turn.book.topology.above(node))
            if here >= settings.disruptive_runs_per_leaf:
                return _over(place, here, settings.disruptive_runs_per_leaf)
    return None


def _over(what: str, have: int, most: int) -> Verdict:
    return Verdict(say=Say.HOLD, gate="budget", reason=f"{have} disruptive runs in {what}, at most {most} at once")


GATES: tuple[Gate, ...] = (hold, shared, tries, young, mode, stale, one_per_node, budget)

"""Gates: reasons not to act now. Each is a small function; the first that objects decides, with its reason.

Only disruptive rungs come here: collecting evidence and paging are always allowed (except in observe mode).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from brain.core import approvals, paging
from brain.core.effects import AskJobs
from brain.core.spec import Mode, Rung
from brain.core.state import Incident, Run, SymptomState
from brain.core.topology import CELL, WIDE, type_of
from brain.core.turn import Turn


class Say(StrEnum):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a gate judges: may this rung of this run begin now?"""

    turn: Turn
    run: Run
    incident: Incident
    rung: Rung


Gate = Callable[[Case], Verdict | None]
SCHEDULE = "schedule"  # who asks for a run that nobody asked for
GO = Verdict(say=Say.GO, gate="", reason="no gate objects")


def check(turn: Turn, run: Run, incident: Incident, rung: Rung) -> Verdict:
    """The first objection, or GO."""
    case = Case(turn=turn, run=run, incident=incident, rung=rung)
    for gate in GATES:
        verdict = gate(case)
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


def hold(case: Case) -> Verdict | None:
    """Law 2: never under a person's hold."""
    for entry in case.turn.state.holds.values():
        if (not entry.until or case.turn.now < entry.until) and case.turn.book.topology.contains(
            entry.scope, case.run.scope
        ):
            return Verdict(
                say=Say.HOLD, gate="hold", reason=f"{entry.who} holds {entry.scope}: {entry.why}", retry_s=60
            )
    return None


def mode(case: Case) -> Verdict | None:
    """The runbook's mode here and now."""
    now = mode_of(case.turn, case.run.runbook.name, case.run.node, case.run.runbook.at_most)
    if now is Mode.OBSERVE:
        return Verdict(
            say=Say.HOLD,
            gate="mode",
            reason=f"{case.run.runbook.name} is in observe mode for this node",
            retry_s=60,
        )
    if now is Mode.APPROVE and not approvals.stands(case.turn, case.run):
        if case.run.requested_by not in ("", SCHEDULE):
            return None  # the person who started it has agreed
        void = approvals.void(case.turn, case.run)
        reason = f"{case.run.runbook.name} is in approve mode"
        return Verdict(
            say=Say.APPROVAL,
            gate="mode",
            reason=f"{reason}; the approval of {case.run.approved.who} is void: {void}"
            if void and case.run.approved
            else reason,
        )
    return None


def maintenance(case: Case) -> Verdict | None:
    """Law 2: people are at work there."""
    for window in case.turn.book.settings.maintenance:
        inside = window.since <= case.turn.now < window.until
        if (
            inside
            and case.turn.book.topology.contains(window.scope, case.run.scope)
            and not approvals.stands(case.turn, case.run)
        ):
            return Verdict(
                say=Say.APPROVAL, gate="maintenance", reason=f"{window.scope} is in maintenance: {window.why}"
            )
    return None


def protected(case: Case) -> Verdict | None:
    """Law 2: never on a node that runs a protected job, without an approval. The scheduler is asked at the moment."""
    turn, node = case.turn, case.run.node
    if not turn.book.settings.ask_jobs or not node:
        return None
    told = turn.state.jobs.get(node)
    if told is None:
        ask = AskJobs(node=node)
        if ask not in turn.effects:
            turn.effects.append(ask)
        return Verdict(
            say=Say.HOLD, gate="protected", reason="asking the scheduler what runs there", retry_s=10
        )
    if told.known and not told.protected:
        return None
    if approvals.stands(turn, case.run):
        return None
    reason = (
        f"protected job {told.protected} runs there"
        if told.known
        else f"it is not known what runs there: {told.why}"
    )
    return Verdict(say=Say.APPROVAL, gate="protected", reason=reason)


def breaker(case: Case) -> Verdict | None:
    """So many remedies in so short a time: perhaps it is we who are wrong. Only a person resets it."""
    state, settings = case.turn.state, case.turn.book.settings
    if not case.run.claimed and state.tripped:
        reason = f"{settings.breaker_runs} disruptive runs within {settings.breaker_within_s / 60:.0f} minutes: say `reset`"
        return Verdict(say=Say.HOLD, gate="breaker", reason=reason, retry_s=300)
    return None


def shared(case: Case) -> Verdict | None:
    """Law 6: when many nodes show the same symptom, no per-node action."""
    for place in (*case.turn.book.topology.above(case.run.node),) if case.run.node else ():
        for symptom in case.turn.index.active.get(place, {}).values():
            if _counts_one_of(case.turn, symptom, case.incident):
                reason = f"{len(symptom.members)} nodes of {symptom.scope} show it: the cause is taken to be shared"
                return Verdict(say=Say.HOLD, gate="shared", reason=reason)
    return None


def _counts_one_of(turn: Turn, symptom: SymptomState, incident: Incident) -> bool:
    spec = turn.book.symptoms.get(symptom.name)
    return (
        spec is not None
        and spec.detect == "spread"
        and any(key.partition("@")[0] == spec.of for key in incident.symptoms)
    )


def young(case: Case) -> Verdict | None:
    """A storm shows itself within moments: nothing disruptive before that."""
    left = case.incident.opened_at + case.turn.book.settings.settle_s - case.turn.now
    if left > 0:
        return Verdict(
            say=Say.HOLD, gate="young", reason="waiting whether other nodes show it too", retry_s=left
        )
    return None


def stale(case: Case) -> Verdict | None:
    """A fault that was old when it arrived is not acted on without a fresh sign or a person."""
    if case.incident.stale and not approvals.stands(case.turn, case.run):
        reason = f"its facts were over {case.turn.book.settings.stale_s:.0f} s old: a fresh one or an approval is needed"
        return Verdict(say=Say.APPROVAL, gate="stale", reason=reason)
    return None


def tries(case: Case) -> Verdict | None:
    """Law 8: a remedy that was tried so often is not tried again."""
    if case.run.claimed:
        return None
    before = [
        at
        for at in case.turn.state.tries.get(tries_key(case.run, case.incident), ())
        if at > case.turn.now - case.run.runbook.tries_within_s
    ]
    if len(before) >= case.run.runbook.tries:
        hours = case.run.runbook.tries_within_s / 3600
        return Verdict(
            say=Say.STOP,
            gate="tries",
            reason=f"{case.run.runbook.name} was tried {len(before)} times here in {hours:.0f} h",
        )
    return None


def claim(turn: Turn, run: Run) -> None:
    """The run begins its first disruptive rung: from here on it holds its node and counts for every budget."""
    run.claimed = run.disrupted = True
    turn.index.claims[run.id] = run.node
    told = turn.state.jobs.get(run.node)
    run.jobs = list(told.jobs) if told is not None else []
    if run.requested_by == SCHEDULE:
        return  # an inspection is no remedy, and there is one for each node
    settings = turn.book.settings
    since = turn.now - settings.breaker_within_s
    turn.state.began = [at for at in turn.state.began if at > since] + [turn.now]
    if len(turn.state.began) >= settings.breaker_runs and not turn.state.tripped:
        turn.state.tripped = turn.now
        why = f"{len(turn.state.began)} disruptive runs within {settings.breaker_within_s / 60:.0f} minutes"
        turn.note("breaker.tripped", f"{why}: no further one begins until a person says `reset`")
        paging.page(turn, turn.state.incidents[run.incident], "update", f"the breaker has tripped: {why}")


def tries_key(run: Run, incident: Incident) -> str:
    """What counts as the same remedy for the same fault."""
    return f"{run.runbook.name}@{incident.cause}@{run.scope}"


def one_per_node(case: Case) -> Verdict | None:
    """Law 1: never two disruptive runs on one node."""
    for other, node in case.turn.index.claims.items():
        if other != case.run.id and case.run.node and node == case.run.node:
            return Verdict(say=Say.HOLD, gate="one_per_node", reason=f"{other} works on {case.run.node}")
    return None


def budget(case: Case) -> Verdict | None:
    """Law 1: never more at once than the budgets of cell, leaf, rack, pod and runbook."""
    if case.run.claimed:
        return None
    settings = case.turn.book.settings
    if len(case.turn.index.claims) >= settings.disruptive_runs:
        return _over("cell", len(case.turn.index.claims), settings.disruptive_runs)
    same = sum(
        1
        for other in case.turn.index.claims
        if case.turn.state.runs[other].runbook.name == case.run.runbook.name
    )
    if same >= settings.disruptive_runs_per_runbook:
        return _over(case.run.runbook.name, same, settings.disruptive_runs_per_runbook)
    over = _over_job(case)
    if over is not None:
        return over
    for place in case.turn.book.topology.above(case.run.node) if case.run.node else ():
        if place != CELL and type_of(place) in WIDE and type_of(place) != "fabric":
            here = sum(
                1 for node in case.turn.index.claims.values() if place in case.turn.book.topology.above(node)
            )
            if here >= settings.disruptive_runs_per_leaf:
                return _over(place, here, settings.disruptive_runs_per_leaf)
    return None


def _over_job(case: Case) -> Verdict | None:
    """One job is disturbed at one place at a time, as far as the scheduler has said what runs where."""
    told = case.turn.state.jobs.get(case.run.node)
    most = case.turn.book.settings.disruptive_runs_per_job
    for job in told.jobs if told is not None else ():
        same = sum(1 for other in case.turn.index.claims if job in case.turn.state.runs[other].jobs)
        if same >= most:
            return _over(f"job {job}", same, most)
    return None


def _over(what: str, have: int, most: int) -> Verdict:
    return Verdict(
        say=Say.HOLD, gate="budget", reason=f"{have} disruptive runs in {what}, at most {most} at once"
    )


GATES: tuple[Gate, ...] = (
    hold,
    shared,
    breaker,
    tries,
    young,
    mode,
    maintenance,
    stale,
    protected,
    one_per_node,
    budget,
)

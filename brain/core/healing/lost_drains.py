"""A scheduler's record of a node may be made anew, and our drain is not there any more (decision 112).

A Node object of Kubernetes that is deleted, and whose node joins again, has none of our marks. Nobody has decided by that that
the node serves again (law 8), and its drain still has an owner (law 14): it is drained again. That our mark is not on the very
record that had it is somebody's decision, and stands (law 3).
"""

from collections.abc import Collection, Iterable

from brain.core import stops
from brain.core.context import Context
from brain.core.effects import DrainAgain
from brain.core.healing.drains import LEFT
from brain.core.healing.modes import mode_of
from brain.core.inputs import JobsAnswer
from brain.core.pack.spec import Mode
from brain.core.state import Incident, OwnedDrain, RunState, State

_UNDER_WAY = (RunState.INTENT, RunState.PERFORMING, RunState.CANCELLING)


def is_news(owners: Iterable[OwnedDrain], record: str, marks: Collection[str]) -> bool:
    """Does what stands on this record of a node say anything that its drains do not say?"""
    return any(bool(one.record) if not _stands(one, marks) else one.record != record for one in owners)


def answered(ctx: Context, given: JobsAnswer) -> None:
    """The scheduler has said which marks stand on a node, and on which record of it."""
    owners = ctx.state.drains.get(given.node, {})
    if not given.known or not given.record or not owners:
        return
    lost: list[str] = []
    for incident, drain in owners.items():
        if _stands(drain, given.marks):
            if drain.missed_on == given.record:
                _note(ctx, given, incident, "drain.renewed", "it is drained again")
            drain.record, drain.missed_on = given.record, ""
        elif drain.record == given.record:
            drain.record = ""
        elif drain.record:
            lost.append(incident)
    if lost and not _returning(ctx, given.node):
        _again(ctx, given, lost)


def missed(state: State, node: str, record: str) -> bool:
    """Is a drain of ours missed on this record of the node, since it stood on another one?"""
    return bool(record) and any(one.record not in ("", record) for one in state.drains.get(node, {}).values())


def wanted(ctx: Context, node: str, marks: Collection[str]) -> bool:
    """Is a drain with all of these marks still owned, while no step is under way that gives the node back?"""
    there = {mark for drain in ctx.state.drains.get(node, {}).values() for mark in drain.marks}
    return set(marks) <= there and not _returning(ctx, node)


def _returning(ctx: Context, node: str) -> bool:
    """Is a step under way that gives the node back?"""
    for run in ctx.state.runs.values():
        if run.node == node and run.state in _UNDER_WAY and run.steps:
            spec = ctx.actions.get(run.steps[-1].action)
            if spec is not None and spec.returns:
                return True
    return False


def _again(ctx: Context, given: JobsAnswer, lost: Collection[str]) -> None:
    marks: dict[str, str] = {}
    for id_ in lost:
        incident, drain = ctx.state.incidents.get(id_), ctx.state.drains[given.node][id_]
        stop = _stopped(ctx, given.node, incident)
        if drain.missed_on != given.record or not stop:
            says = f"not drained again, since {stop}" if stop else "to be drained again"
            _note(ctx, given, id_, "drain.lost", says)
        drain.missed_on = given.record
        if not stop:
            why = f"{incident.cause} at {incident.scope} (rule {incident.rule})" if incident else "is over"
            marks |= dict.fromkeys(drain.marks, why)
    if marks:
        ctx.effects.append(DrainAgain(node=given.node, record=given.record, marks=marks))


def _stopped(ctx: Context, node: str, incident: Incident | None) -> str:
    """Why nothing is done there now (law 2); empty: it may be."""
    scope = f"node/{node}"
    said = stops.holds_on(ctx, scope) or tuple(
        stops.text(one) for one in stops.windows(ctx) if ctx.compiled.topology.meet(one.scope, scope)
    )
    if said:
        return said[0]
    if incident is None or incident.rule == LEFT:
        return "this brain only observes" if ctx.observe_all else ""
    runbook = ctx.compiled.runbooks.get(incident.runbook)
    if runbook is not None and mode_of(ctx, runbook.name, node, runbook.at_most) is Mode.OBSERVE:
        return f"{runbook.name} is in observe mode for this node"
    return ""


def _stands(drain: OwnedDrain, marks: Collection[str]) -> bool:
    return "" in marks or any(one in marks for one in drain.marks)


def _note(ctx: Context, given: JobsAnswer, incident: str, kind: str, says: str) -> None:
    text = f"{given.node} is another object in {given.scheduler} than was drained (deleted there, and joined again): {says}"
    ctx.note(kind, text, incident=incident, scope=f"node/{given.node}")

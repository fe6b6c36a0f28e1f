"""Drains are owned: by each incident that wants a node out of service. The node goes back with the last owner (law 3).

An incident owns a drain from the moment a step that may take the node out of service is sent. It lets go when the
scheduler has taken the node back for it; when other incidents still want the node out, it leaves its mark to them and
the scheduler is not asked. So what gpuward has drained always has an owner that is open, and that people see (law 14).
"""

from brain.core.context import Context
from brain.core.effects import Step
from brain.core.state import Incident, IncidentState, OwnedDrain, Run, RunState

ALL_OWNERS = "all"  # `owners` of a step that takes every mark of ours off the node, whoever's it is
LEFT = "left-drained"  # in place of a rule's name, in the incident of a node that another one left drained
_OVER = (IncidentState.CLOSED, IncidentState.EXPLAINED)
_RUNNING = (RunState.INTENT, RunState.PERFORMING, RunState.VERIFYING, RunState.CANCELLING)


def began(ctx: Context, step: Step) -> None:
    """A step that may drain its node is sent: from now on its incident owns the drain."""
    owners = ctx.state.drains.setdefault(step.node, {})
    if step.incident not in owners:
        owners[step.incident] = OwnedDrain(since=ctx.now, marks=[step.incident])
    elif step.incident not in owners[step.incident].marks:
        owners[step.incident].marks.append(step.incident)


def done(ctx: Context, node: str, incident: str, record: str) -> None:
    """The scheduler has said that the node gets no new jobs; `record`: as of OwnedDrain."""
    if (drain := ctx.state.drains.get(node, {}).get(incident)) is not None:
        drain.sure, drain.record, drain.missed_on = True, record, ""


def doubted(ctx: Context, node: str) -> None:
    """A step that gives the node back is sent: until its result arrives, nobody knows whether the node gets new jobs."""
    for drain in ctx.state.drains.get(node, {}).values():
        drain.sure = False


def sure(ctx: Context, node: str) -> bool:
    """Whether the node gets no new jobs, as far as the scheduler has said."""
    return any(drain.sure for drain in ctx.state.drains.get(node, {}).values())


def undone(ctx: Context, node: str, incident: str) -> None:
    """A step that was to drain the node did not, or undid it: the incident owns there only what others left to it."""
    drain = ctx.state.drains.get(node, {}).get(incident)
    inherited = [mark for mark in drain.marks if mark != incident] if drain is not None else []
    if drain is not None and inherited:
        drain.marks = inherited
    else:
        _remove(ctx, node, incident)


def owned(ctx: Context, incident: Incident | str) -> list[str]:
    """The nodes that the incident keeps out of service."""
    wanted = incident if isinstance(incident, str) else incident.id
    return [node for node, owners in ctx.state.drains.items() if wanted in owners]


def marks(ctx: Context, node: str, incident: str) -> list[str]:
    """The incidents whose marks in the scheduler this incident may take off the node."""
    drain = ctx.state.drains.get(node, {}).get(incident)
    return list(drain.marks) if drain is not None else [incident]


def of_others(ctx: Context, run: Run) -> bool:
    """Whether a drain that another incident asked for stands on the run's node, or may stand."""
    owners = ctx.state.drains.get(run.node, {})
    return any(mark != run.incident for drain in owners.values() for mark in drain.marks)


def others(ctx: Context, run: Run) -> list[str]:
    """The other incidents that want the run's node out of service, owners first.

    For a run by which an operator gives the node back, an owner counts only while its fault is there or its run at work.
    """
    owners = [owner for owner in ctx.state.drains.get(run.node, {}) if owner != run.incident]
    if _gives_back_for_all(run):
        owners = [owner for owner in owners if _busy(ctx, ctx.state.incidents.get(owner))]
    for incident in ctx.state.incidents.values():
        if (
            incident.node == run.node
            and incident.id != run.incident
            and incident.id not in owners
            and _wants_out(ctx, incident)
        ):
            owners.append(incident.id)
    return owners


def hand_over(ctx: Context, node: str, incident: str, heir: str) -> None:
    """The incident's drain becomes the heir's."""
    drain = _remove(ctx, node, incident)
    if drain is None:
        return
    known = ctx.state.drains.setdefault(node, {}).setdefault(heir, OwnedDrain(since=drain.since))
    known.sure = known.sure or drain.sure
    known.record = known.record or drain.record
    known.marks += [mark for mark in drain.marks if mark not in known.marks]
    ctx.note(
        "drain.kept",
        f"{node} stays out of service: {_cause(ctx, heir)} wants it so",
        incident=heir,
        scope=f"node/{node}",
    )


def returned(ctx: Context, run: Run) -> list[Incident]:
    """The scheduler has the node back. Returns the other incidents that owned its drain as well, whose fault is over."""
    owners = ctx.state.drains.pop(run.node, {})
    former = [ctx.state.incidents.get(owner) for owner in owners if owner != run.incident]
    return [incident for incident in former if incident is not None and incident.state not in _OVER]


def _gives_back_for_all(run: Run) -> bool:
    """Whether an operator's word counts for every incident, as with `gpuward return`. Who asks for an inspection says
    nothing of what else keeps the node out of service.
    """
    rungs = (*run.runbook.rungs, *run.runbook.return_to_service)
    all_of_them = any(rung.params.get("owners") == ALL_OWNERS for rung in rungs)
    return all_of_them and run.requested_by not in ("", "schedule")


def _wants_out(ctx: Context, incident: Incident) -> bool:
    """Whether the incident's fault is there and its remedy takes the node out of service."""
    runbook = ctx.compiled.runbooks.get(incident.runbook)
    if incident.state in (*_OVER, IncidentState.RECOVERED) or not incident.matching_rules or runbook is None:
        return False
    specs = [ctx.actions.get(rung.do) for rung in runbook.rungs]
    return any(spec is not None and spec.drains for spec in specs)


def _busy(ctx: Context, incident: Incident | None) -> bool:
    if incident is None:
        return False
    run = ctx.state.runs.get(incident.runs[-1]) if incident.runs else None
    fault = any(rule != LEFT for rule in incident.matching_rules.values())
    return fault or (run is not None and run.state in _RUNNING)


def _remove(ctx: Context, node: str, incident: str) -> OwnedDrain | None:
    owners = ctx.state.drains.get(node, {})
    drain = owners.pop(incident, None)
    if not owners:
        ctx.state.drains.pop(node, None)
    return drain


def _cause(ctx: Context, incident: str) -> str:
    known = ctx.state.incidents.get(incident)
    return f"{known.cause} ({incident})" if known is not None else incident

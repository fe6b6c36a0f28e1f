"""Runs without a fault: an operator starts a runbook on a node or a fabric, or the runbook's schedule does.

Each is an incident too, so that it is shown, paged and explained like any other.
"""

import heapq

from brain.core import ids, incidents
from brain.core.context import Context
from brain.core.healing import run_states, runs
from brain.core.healing.modes import mode_of
from brain.core.incidents import IncidentTrigger
from brain.core.pack.spec import Mode, Paging, Priority, Runbook, Text
from brain.core.pack.topology import node_of, type_of
from brain.core.people import SCHEDULE
from brain.core.said import said
from brain.core.state import Incident, IncidentState, Run, RunState

REQUEST = "request"  # in place of a rule's name in such an incident
LOOK_S = 900.0  # how often a schedule looks for nodes that are due
_RESOLVE_DELAY_S = 1.0
_PAUSE_S = 10.0  # between a scheduled run and the next one


def request(ctx: Context, name: str, scope: str, who: str, why: str, *, vouched: bool = False) -> str:
    """Starts the runbook on `node/<name>` or `fabric/<name>`. Returns why it cannot be started; empty: it was.

    `who`: the operator, or SCHEDULE. `vouched`: who says that the node is healthy.
    """
    runbook = ctx.compiled.runbooks.get(name)
    if runbook is None or not runbook.request:
        known = [each.name for each in ctx.compiled.runbooks.values() if each.request]
        return said(
            "runbook {name} cannot be started by request (have: {known})",
            name=repr(name),
            known=", ".join(known) or "-",
        )
    if type_of(scope) != runbook.scope:
        return said(
            "runbook {name} is started on a {kind}, not on {scope}",
            name=repr(name),
            kind=runbook.scope,
            scope=repr(scope),
        )
    if scope not in _scopes(ctx, runbook.scope):
        return said("no such {kind}: {name}", kind=runbook.scope, name=repr(scope.partition("/")[2]))
    if (other := _under_way(ctx, name, scope)) is not None:
        return said("it is under way there: {other}", other=other)
    asked = Text(en=f"{who} asked for it: {why}", zh=f"{who} 要求这样做：{why}")
    due = Text(en=f"it is due: {why}", zh=f"按计划该做了：{why}")
    incident = _open(ctx, name, scope, asked if who != SCHEDULE else due)
    ctx.state.inspected[ids.key(name, _name(scope))] = ctx.now
    incidents.transition(ctx, incident, IncidentTrigger.RUN_STARTED, f"runbook {name}")
    runs.start(ctx, incident, requested_by=who, vouched=vouched)
    return ""


def _open(ctx: Context, runbook: str, scope: str, because: Text) -> Incident:
    incident = Incident(
        id=ids.hashed(ids.INCIDENT, ctx.cause, runbook, scope),
        cause=f"{REQUEST}-{runbook}",
        state=IncidentState.OPEN,
        severity=Priority.P3,
        scope=scope,
        node=node_of(scope),
        rule=REQUEST,
        because=because.en,
        because_zh=because.zh,
        runbook=runbook,
        pack=ctx.compiled.pack.version,
        opened_at=ctx.now,
        hold_off_until=ctx.now,
        resolve_delay_s=_RESOLVE_DELAY_S,
        page=Paging.FAILURE,
        # In place of a rule's match, until the run has ended.
        matching_rules={ids.key(REQUEST, ids.key(runbook, scope)): REQUEST},
    )
    ctx.state.incidents[incident.id] = incident
    ctx.index.add_incident(incident)
    ctx.note(
        "incident.opened",
        f"{runbook} on {_name(scope)}: {incident.because}",
        incident=incident.id,
        scope=scope,
    )
    ctx.show(incident)
    return incident


def found(run: Run) -> bool:
    """Whether a run that was requested has come to an end that is for a person: an inspection found something, a step failed."""
    return bool(run.requested_by) and run.state is RunState.EXHAUSTED


def ended(ctx: Context, run: Run) -> list[Incident]:
    """A run has ended. If it was requested, its incident has no match any more, and a schedule may start the next.

    Returns the earlier incidents of the same request there, which are over: this time it ended well.
    """
    incident = ctx.state.incidents.get(run.incident)
    if incident is not None and run.requested_by:
        for match in incident.matching_rules:
            ctx.index.by_match.pop(match, None)
        incident.matching_rules.clear()
    if run.requested_by == SCHEDULE:
        ctx.set_timer(f"schedule:{run.runbook.name}", ctx.now + _PAUSE_S)
    if incident is None or not run.requested_by or run.state is not RunState.SUCCEEDED:
        return []
    same = ctx.index.by_cause.get(incident.cause, {}).get(incident.node, {}).values()
    return [
        one
        for one in same
        if one.id != incident.id and one.scope == incident.scope and one.state is IncidentState.NEEDS_HUMAN
    ]


def plan_schedules(ctx: Context) -> None:
    """A pack was loaded: sets a timer for every runbook with a schedule and cancels those of all others."""
    scheduled = [runbook for runbook in ctx.compiled.runbooks.values() if runbook.every_s > 0]
    wanted = {f"schedule:{runbook.name}": runbook for runbook in scheduled}
    for timer in [name for name in ctx.state.timers if name.startswith("schedule:") and name not in wanted]:
        ctx.cancel_timer(timer)
    for timer, runbook in wanted.items():
        if timer not in ctx.state.timers:
            ctx.set_timer(timer, ctx.now + _look_s(runbook))
    known = [runbook.name for runbook in scheduled]
    ctx.state.inspected = {key: at for key, at in ctx.state.inspected.items() if ids.name_of(key) in known}


def due(ctx: Context, name: str) -> None:
    """The schedule's timer fired, or one of its runs ended: starts runs where the last one is longest ago.

    Not on unreachable nodes, nor where an incident is open, the runbook is in observe mode, or what it waits for (`only_while`)
    does not show. A fabric is looked at by one of its nodes: not where all of these are only observed.
    """
    runbook = ctx.compiled.runbooks.get(name)
    if runbook is None or runbook.every_s <= 0:
        return
    ctx.set_timer(f"schedule:{name}", ctx.now + _look_s(runbook))
    under_way = [run for run in ctx.state.runs.values() if run.state not in run_states.OVER]
    free = ctx.compiled.settings.disruptive_runs_per_runbook - sum(
        run.runbook.name == name for run in under_way
    )
    with_incidents = {incident.node or incident.scope for incident in ctx.state.incidents.values()}
    before = ctx.now - runbook.every_s
    ready = [
        (last, scope)
        for scope in _scopes(ctx, runbook.scope, alive=True)
        if _name(scope) not in with_incidents
        and (not runbook.only_while or _shows(ctx, runbook.only_while, scope))
        and _may_act(ctx, runbook, scope)
        and (last := ctx.state.inspected.get(ids.key(name, _name(scope)), before)) <= before
    ]
    for _, scope in heapq.nsmallest(max(0, free), ready):
        request(ctx, name, scope, SCHEDULE, f"every {runbook.every_s / 86400:g} days")


def _shows(ctx: Context, symptom: str, scope: str) -> bool:
    """Whether the symptom is active at a node."""
    here = ctx.index.active.get(node_of(scope), {}).values()
    return any(one.name == symptom and one.scope == scope for one in here)


def _may_act(ctx: Context, runbook: Runbook, scope: str) -> bool:
    """Whether the runbook does more than observe there, and on a node that can do it."""

    def acts(node: str) -> bool:
        return mode_of(ctx, runbook.name, node, runbook.at_most) is not Mode.OBSERVE

    own = node_of(scope)
    if own or not acts(own):
        return acts(own)
    here = [node.name for node in ctx.state.nodes.values() if node.alive]
    return any(
        scope in ctx.compiled.topology.all_at(node, "node", runbook.scope) and acts(node) for node in here
    )


def _scopes(ctx: Context, kind: str, *, alive: bool = False) -> set[str]:
    """What a runbook of scope `kind` can be started on: the known nodes (`alive`: the reachable ones), or their fabrics."""
    nodes = [node.name for node in ctx.state.nodes.values() if node.alive or not alive]
    return {scope for node in nodes for scope in ctx.compiled.topology.all_at(node, "node", kind)}


def _name(scope: str) -> str:
    return scope.removeprefix("node/")


def _under_way(ctx: Context, runbook: str, scope: str) -> str | None:
    for run in ctx.state.runs.values():
        if (
            run.runbook.name == runbook
            and run.scope == scope
            and run.state not in (*run_states.OVER, RunState.OBSERVED)
        ):
            return run.id
    return None


def _look_s(runbook: Runbook) -> float:
    return min(LOOK_S, runbook.every_s)

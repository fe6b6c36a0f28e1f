"""Runs that no fault led to: a person starts a runbook on a node or a fabric, or its schedule does. Each is an incident too, so
that it is seen, paged and explained like any other.
"""

import base64
import hashlib
import heapq

from brain.core import incidents, runs
from brain.core.gates import SCHEDULE, mode_of
from brain.core.incidents import Happening
from brain.core.spec import Mode, Paging, Priority, Runbook
from brain.core.state import Incident, IncidentState, Run, RunState
from brain.core.topology import node_of, type_of
from brain.core.turn import Turn

REQUEST = "request"  # stands where a rule would in the support of such an incident
LOOK_S = 900.0  # how often a schedule looks which node is due
_QUIET_S = 1.0
_PAUSE_S = 10.0  # between two nodes


def request(turn: Turn, runbook: str, scope: str, who: str, why: str) -> str:
    """Starts `runbook` on `node/<name>` or `fabric/<name>`; why it cannot be started, or empty."""
    book = turn.book.runbooks.get(runbook)
    if book is None or not book.request:
        known = [name for name, entry in turn.book.runbooks.items() if entry.request]
        return f"runbook {runbook!r} cannot be started by request (have: {', '.join(known) or 'none'})"
    if type_of(scope) != book.scope:
        return f"runbook {runbook!r} is started on a {book.scope}, not on {scope!r}"
    if scope not in _scopes(turn, book.scope):
        return f"no such {book.scope}: {scope.partition('/')[2]!r}"
    if (other := _under_way(turn, runbook, scope)) is not None:
        return f"it is under way there: {other}"
    node = node_of(scope)
    digest = hashlib.blake2b(f"{turn.cause}|{runbook}|{scope}".encode(), digest_size=5).digest()
    incident = Incident(
        id=f"inc-{base64.b32encode(digest).decode().lower()}",
        cause=f"{REQUEST}-{runbook}",
        state=IncidentState.OPEN,
        severity=Priority.P3.value,
        scope=scope,
        node=node,
        rule=REQUEST,
        because=f"{who} asked for it: {why}" if who != SCHEDULE else f"it is due: {why}",
        runbook=runbook,
        pack=turn.book.pack.version,
        opened_at=turn.now,
        settle_until=turn.now,
        quiet_s=_QUIET_S,
        page=Paging.FAILURE.value,
        support={f"{REQUEST}@{runbook}@{scope}": REQUEST},
    )
    turn.state.incidents[incident.id] = incident
    turn.index.opened(incident, ())
    turn.note(
        "incident.opened",
        f"{runbook} on {_name(scope)}: {incident.because}",
        incident=incident.id,
        scope=scope,
    )
    turn.show(incident)
    turn.state.inspected[f"{runbook}@{_name(scope)}"] = turn.now
    incidents.happen(turn, incident, Happening.RUN_BEGAN, f"runbook {runbook}")
    runs.start(turn, incident, requested_by=who)
    return ""


def ended(turn: Turn, run: Run) -> None:
    """The run is over; nothing holds its incident open any more."""
    incident = turn.state.incidents.get(run.incident)
    if incident is not None and run.requested_by:
        for support in incident.support:
            turn.index.by_support.pop(support, None)
        incident.support.clear()
    if run.requested_by == SCHEDULE:
        turn.set_timer(f"schedule:{run.runbook.name}", turn.now + _PAUSE_S)


def plan_schedules(turn: Turn) -> None:
    """The rules were loaded: every runbook with a schedule gets its timer, every other one loses it."""
    wanted = {f"schedule:{book.name}": book for book in turn.book.runbooks.values() if book.every_s > 0}
    for name in [name for name in turn.state.timers if name.startswith("schedule:") and name not in wanted]:
        turn.cancel_timer(name)
    for name, book in wanted.items():
        if name not in turn.state.timers:
            turn.set_timer(name, turn.now + _look_s(book))
    known = [book.name for book in wanted.values()]
    turn.state.inspected = {
        key: at for key, at in turn.state.inspected.items() if key.partition("@")[0] in known
    }


def due(turn: Turn, runbook: str) -> None:
    """The schedule's timer fired, or one of its runs is over: those that have waited longest get their turn."""
    book = turn.book.runbooks.get(runbook)
    if book is None or book.every_s <= 0:
        return
    turn.set_timer(f"schedule:{runbook}", turn.now + _look_s(book))
    runs_now = [run for run in turn.state.runs.values() if run.state not in runs.OVER]
    free = turn.book.settings.disruptive_runs_per_runbook - sum(
        run.runbook.name == runbook for run in runs_now
    )
    troubled = {incident.node or incident.scope for incident in turn.state.incidents.values()}
    before = turn.now - book.every_s
    ready = [
        (last, scope)
        for scope in _scopes(turn, book.scope, alive=True)
        if _name(scope) not in troubled
        and mode_of(turn, runbook, node_of(scope), book.at_most) is not Mode.OBSERVE
        and (last := turn.state.inspected.get(f"{runbook}@{_name(scope)}", before)) <= before
    ]
    for _, scope in heapq.nsmallest(max(0, free), ready):
        request(turn, runbook, scope, SCHEDULE, f"every {book.every_s / 86400:g} days")


def _scopes(turn: Turn, kind: str, *, alive: bool = False) -> set[str]:
    """What a runbook of this scope can be started on: nodes that were heard, or the fabrics that they stand in."""
    nodes = [node.name for node in turn.state.nodes.values() if node.alive or not alive]
    return {scope for node in nodes if (scope := turn.book.topology.at(node, "node", kind))}


def _name(scope: str) -> str:
    return scope.removeprefix("node/")


def _under_way(turn: Turn, runbook: str, scope: str) -> str | None:
    for run in turn.state.runs.values():
        if (
            run.runbook.name == runbook
            and run.scope == scope
            and run.state not in (*runs.OVER, RunState.OBSERVED)
        ):
            return run.id
    return None


def _look_s(book: Runbook) -> float:
    return min(LOOK_S, book.every_s)

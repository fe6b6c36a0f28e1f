"""What an operator command is about: the scopes and runbooks by which a person's limits are judged. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from brain.console.access.people import EVERY_RUNBOOK, EVERYTHING, WHOLE_CELL, Touched
from brain.console_config import Role
from brain.core.operators import scopes
from brain.core.pack.spec import Mode, Scalar
from brain.core.pack.topology import CELL
from brain.core.paging import alerts
from brain.core.state import Incident, State


def least(verb: str, args: Mapping[str, Scalar], roles: Mapping[str, Role]) -> Role:
    """Returns the weakest role that may give a command; whoever may stop things may also set mode observe."""
    if verb == "mode" and args.get("mode") == Mode.OBSERVE.value:
        return Role.OPERATOR
    return roles[verb]


def touched(verb: str, args: Mapping[str, Scalar], state: State, who: str) -> Touched:
    """Returns what it is about when `who` says it. What nobody knows is about everything: only people without limits may say it.

    What stops (a hold, and the end of one's own) is about no runbook; what lets go on is about those that may go on then.
    """
    named = {name: str(value) for name, value in args.items()}
    match verb:
        case "hold":
            return Touched(scopes=(_scope(named["scope"]),), runbooks=())
        case "release":
            holds = [hold for hold in state.holds.values() if named["scope"] in (hold.id, hold.scope)]
            wide = tuple(_scope(hold.scope) for hold in holds) or (_scope(named["scope"]),)
            own = holds and all(hold.who == who for hold in holds)
            return Touched(scopes=wide, runbooks=() if own else (EVERY_RUNBOOK,))
        case "mode":
            nodes = named.get("nodes", "*")
            return Touched(scopes=(f"node/{nodes}" if nodes else EVERYTHING,), runbooks=(named["runbook"],))
        case "return" | "forget":
            return Touched(scopes=(f"node/{named['node']}",), runbooks=(EVERY_RUNBOOK,))
        case "start":
            where = f"fabric/{named['fabric']}" if named.get("fabric") else f"node/{named.get('node', '')}"
            return Touched(scopes=(where,), runbooks=(named["runbook"],))
        case "note":  # it lets nothing go on
            return replace(_of_id(named["id"], state), runbooks=())
        case "approve" | "deny" | "close" | "ack":
            return _of_id(named["id"], state)
    return WHOLE_CELL


def _of_id(id_: str, state: State) -> Touched:
    group = state.alert_groups.get(id_)
    if group is not None:
        found = [state.incidents[one] for one in group.listed if one in state.incidents]
        gone = len(found) < len(group.listed)
        wide = (*(one.scope for one in found), *([EVERYTHING] if gone or not found else []))
        return Touched(scopes=wide, runbooks=_runbooks(found, state))
    run = state.runs.get(id_)
    if run is not None:
        return Touched(scopes=(run.scope,), runbooks=(run.runbook.name,))
    incident = alerts.holder(state, id_.partition(".r")[0])
    if incident is None:
        return WHOLE_CELL
    return Touched(scopes=(incident.scope,), runbooks=_runbooks([incident], state))


def _runbooks(incidents: Sequence[Incident], state: State) -> tuple[str, ...]:
    """Those of their runs; an incident without one waits for whichever."""
    names: list[str] = []
    for incident in incidents:
        own = [state.runs[one].runbook.name for one in incident.runs if one in state.runs]
        names += own or [EVERY_RUNBOOK]
    return tuple(dict.fromkeys(names)) or (EVERY_RUNBOOK,)


def _scope(scope: str) -> str:
    return EVERYTHING if scope in (scopes.ALL, CELL) else scope

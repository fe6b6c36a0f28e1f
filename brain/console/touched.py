"""What an operator command is about: the scopes and runbooks by which a person's limits are judged. Pure."""

from collections.abc import Mapping

from brain.console.access.people import EVERYTHING, Touched
from brain.console_config import Role
from brain.core.operators import scopes
from brain.core.pack.spec import Mode, Scalar
from brain.core.pack.topology import CELL
from brain.core.state import State


def least(verb: str, args: Mapping[str, Scalar], roles: Mapping[str, Role]) -> Role:
    """Returns the weakest role that may give a command; whoever may stop things may also set mode observe."""
    if verb == "mode" and args.get("mode") == Mode.OBSERVE.value:
        return Role.OPERATOR
    return roles[verb]


def touched(verb: str, args: Mapping[str, Scalar], state: State) -> Touched:
    """Returns what it is about. What nobody knows is about everything: only people without limits may say it."""
    named = {name: str(value) for name, value in args.items()}
    match verb:
        case "hold":
            return Touched(scopes=(_scope(named["scope"]),))
        case "release":
            holds = [hold for hold in state.holds.values() if named["scope"] in (hold.id, hold.scope)]
            return Touched(scopes=tuple(_scope(hold.scope) for hold in holds) or (_scope(named["scope"]),))
        case "mode":
            nodes = named.get("nodes", "*")
            return Touched(scopes=(f"node/{nodes}" if nodes else EVERYTHING,), runbooks=(named["runbook"],))
        case "return" | "forget":
            return Touched(scopes=(f"node/{named['node']}",))
        case "start":
            where = f"fabric/{named['fabric']}" if named.get("fabric") else f"node/{named.get('node', '')}"
            return Touched(scopes=(where,), runbooks=(named["runbook"],))
        case "approve" | "deny" | "close" | "ack":
            return _of_id(named["id"], state)
    return Touched(scopes=(EVERYTHING,))


def _of_id(id_: str, state: State) -> Touched:
    group = state.alert_groups.get(id_)
    if group is not None:
        found = [state.incidents[one] for one in group.listed if one in state.incidents]
        gone = len(found) < len(group.listed)
        return Touched(scopes=(*(one.scope for one in found), *([EVERYTHING] if gone or not found else [])))
    run = state.runs.get(id_)
    if run is not None:
        return Touched(scopes=(run.scope,), runbooks=(run.runbook.name,))
    incident = state.incidents.get(id_.partition(".r")[0])
    if incident is None:
        return Touched(scopes=(EVERYTHING,))
    names = [state.runs[one].runbook.name for one in incident.runs if one in state.runs]
    return Touched(scopes=(incident.scope,), runbooks=tuple(dict.fromkeys(names)))


def _scope(scope: str) -> str:
    return EVERYTHING if scope in (scopes.ALL, CELL) else scope

"""One fault seen from two sides: a rack and a leaf switch whose nodes are the same make one incident. Pure."""

from brain.core import ids
from brain.core.context import Context
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.spec import Rule
from brain.core.pack.topology import CELL, WIDE, node_of
from brain.core.state import Incident, IncidentState

_OVER = (IncidentState.CLOSED, IncidentState.EXPLAINED)


def same_nodes(ctx: Context, rule: Rule, scope: str) -> Incident | None:
    """The open incident of another wide scope that counts the same symptom on all nodes that show it here."""
    if rule.scope not in WIDE:
        return None
    of, here = _counted(ctx, rule, scope)
    if not here:
        return None
    for incident in ctx.state.incidents.values():
        other = ctx.compiled.rules.get(incident.rule)
        if incident.node or incident.state in _OVER or other is None or other.scope in (CELL, rule.scope):
            continue
        counted, there = _counted(ctx, other, incident.scope)
        if counted == of and here.keys() <= there.keys():
            return incident
    return None


def outgrown(ctx: Context, rule: Rule, scope: str) -> list[tuple[str, str]]:
    """(rule, scope) of wider causes of this one that have no incident: another one stood for them, and does not any more.

    A rack's incident is the leaf's as long as the same nodes show the fault. When one more node of the rack shows it,
    which has another leaf, people must hear of the rack.
    """
    node, cause = node_of(scope), rule.cause or rule.name
    found = []
    for place in ctx.compiled.topology.above(node) if node else ():
        for name in ctx.state.matched.get(place, ()):
            wider, match = ctx.compiled.rules.get(name), ids.key(name, place)
            if (
                wider is not None
                and cause in wider.inhibits
                and match not in ctx.index.by_match
                and match not in ctx.state.dismissed
                and same_nodes(ctx, wider, place) is None
            ):
                found.append((name, place))
    return found


def _counted(ctx: Context, rule: Rule, scope: str) -> tuple[str, dict[str, float]]:
    """The symptom whose nodes the rule's own symptom counts, and these nodes."""
    for name in symptoms_in(rule.when):
        spec, state = ctx.compiled.symptoms.get(name), ctx.state.symptoms.get(ids.key(name, scope))
        if spec is not None and spec.detect == "spread" and state is not None and state.active:
            return spec.of, state.members
    return "", {}

"""What fell ill by itself after the few nodes that did so at once, and is no part of their cause. Pure.

Eight nodes that lose a GPU within half a minute share a cause, though they are a small share of the cell (at_once.py). Whatever
the cell's other nodes show later has nothing to do with it; nor has another GPU of one of the eight.
"""

from collections.abc import Callable

from brain.core import ids
from brain.core.context import Context
from brain.core.faults import at_once, spread, wider
from brain.core.pack.spec import Symptom
from brain.core.pack.topology import node_of, type_of
from brain.core.state import Incident, SymptomState


def is_apart(ctx: Context, incident: Incident, scope: str, began: Callable[[], float]) -> bool:
    """Whether what is ill at the scope fell ill by itself, after the few nodes of the incident that did so at once: of a place,
    all of its nodes. Of a node that shows something else yet, or at another part, it counts when that `began`: a lost GPU is told
    by the kernel first, and one that is lost hours later is no part of it, whichever node it is in.
    """
    rule = ctx.compiled.rules.get(incident.rule) if not incident.node else None
    found = wider.counted(ctx, rule, incident.scope) if rule is not None else None
    if found is None or not found[1].at_once:
        return False
    if node := node_of(scope):
        if at_once.is_apart(found[1], node):
            return True
        counts = ctx.compiled.symptoms.get(found[0].of)
        alike = counts is not None and counts.scope != "node" and type_of(scope) == counts.scope
        if node not in found[1].members:
            return at_once.came_after(found[1], began(), found[0].at_once_s if alike else spread.GROWS_S)
        return (
            alike and _was_well(ctx, *found, scope) and at_once.came_after(found[1], began(), spread.GROWS_S)
        )
    there = (
        ctx.state.symptoms.get(ids.key(one.name, scope)) for one in ctx.compiled.spreads.get(found[0].of, ())
    )
    members = next((one.members for one in there if one is not None and one.active), {})
    return bool(members) and all(at_once.is_apart(found[1], node) for node in members)


def _was_well(ctx: Context, spec: Symptom, wide: SymptomState, scope: str) -> bool:
    """Whether a part showed nothing when others of its kind fell ill at once."""
    state = ctx.state.symptoms.get(ids.key(spec.of, scope))
    return state is None or not state.active or at_once.came_after(wide, state.since)

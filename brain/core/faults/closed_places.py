"""Places whose incident a person has closed, beside others with the same fault. Pure.

Whoever closes the incident of a rack that is dark knows of its nodes, also where a wider place counts them: what falls ill
elsewhere later is judged without them. Otherwise one more silent node of the cell, a rack's worth of which somebody has closed,
would be told as the whole cell's fault.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from brain.core import ids
from brain.core.context import Context
from brain.core.faults import places, spread, wider
from brain.core.pack.spec import Rule, Symptom
from brain.core.pack.topology import CELL, type_of
from brain.core.state import Incident, SymptomState


def explainer(ctx: Context, rule: Rule, scope: str) -> str:
    """ "<rule>@<scope>" of the match that explains this one, by the judgement of places; empty: none does. What a person has
    closed is left out, unless all that shows it here is that.
    """
    found = wider.counted(ctx, rule, scope) if ctx.state.dismissed else None
    seen = wider.reached_beside(ctx, *found) if found is not None else {}
    closed = _closed(ctx, found[0], seen) if found is not None else []
    if found is None or not closed or scope in closed:
        return wider.explainer(ctx, rule, scope)
    known = {node: None for place in closed for node in seen[place].ill}
    left = {}
    for place, one in seen.items():
        ill = {node: at for node, at in one.ill.items() if node not in known}
        if ill and place not in closed:
            left[place] = one if len(ill) == len(one.ill) else replace(one, ill=ill)
    if scope not in left:
        return wider.explainer(ctx, rule, scope)
    place = places.explaining(scope, left)
    return wider.match_at(ctx, found[0].of, place) if place != scope else ""


def explained(ctx: Context, incident: Incident) -> Iterator[Incident]:
    """The open incidents of the same family that this one explains, by the judgement of places."""
    rule = ctx.compiled.rules.get(incident.rule)
    found = wider.counted(ctx, rule, incident.scope) if rule is not None else None
    if found is None:
        return
    spec, wide = found
    for scope in wider.around(ctx, spec.of, wide):
        match = wider.match_at(ctx, spec.of, scope)
        other = ctx.state.incidents.get(ctx.index.by_match.get(match, ""))
        own = ctx.compiled.rules.get(ids.name_of(match))
        if other is None or own is None or other.id == incident.id or other.scope != scope:
            continue
        match = explainer(ctx, own, scope)
        if match and ctx.index.by_match.get(match) == incident.id:
            yield other


def holds_most(ctx: Context, rule: Rule, scope: str) -> bool:
    """Whether so many of its nodes are in places that a person has closed that the others are too few for a shared cause. Never
    where a large share of the cell or a fabric shows it: that has an incident, and no node is touched (law 6).
    """
    found = wider.counted(ctx, rule, scope) if ctx.state.dismissed else None
    if found is None:
        return False
    spec, wide = found
    seen = wider.reached_beside(ctx, spec, wide)
    known = {node: None for place in _closed(ctx, spec, seen) if place != scope for node in seen[place].ill}
    left = sum(node not in known for node in wide.members)
    if left and type_of(scope) in (CELL, "fabric") and len(wide.members) >= spread.needed(ctx, spec, wide):
        return False
    return left < spread.takes(ctx, spec, wide)


def counts_too_few(ctx: Context, wide: SymptomState, node: str) -> bool:
    """Whether a spread is no reason to leave the node alone: what counts there is mostly what a person has closed, elsewhere."""
    spec = ctx.compiled.symptoms.get(wide.name)
    match = wider.match_at(ctx, spec.of, wide.scope) if spec is not None and ctx.state.dismissed else ""
    if not match or match in ctx.state.dismissed or match in ctx.index.by_match:
        return False
    around = ctx.compiled.topology.above(node)
    closed = [ids.split(one)[1] for one in ctx.state.dismissed]
    return not any(place in around for place in closed) and holds_most(
        ctx, ctx.compiled.rules[ids.name_of(match)], wide.scope
    )


def _closed(ctx: Context, spec: Symptom, seen: Mapping[str, places.Seen]) -> list[str]:
    """Those of the places that a person has closed."""
    return [place for place in seen if wider.match_at(ctx, spec.of, place) in ctx.state.dismissed]

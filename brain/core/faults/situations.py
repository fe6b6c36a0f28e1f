"""Situations: all that is known about one scope now, as one flat record, and the rules that match it.

A component's situation has the symptoms of the component, of its node, and of the wider scopes around it. A node's
also has those of all its components. A wider scope's has only its own: `spread` symptoms count those of its nodes.
"""

from collections.abc import Iterable, Iterator
from functools import partial

from brain.core import ids
from brain.core.context import Context
from brain.core.faults import reach
from brain.core.pack.conditions import SYMPTOM_PREFIX, symptoms_in
from brain.core.pack.spec import Rule, Scalar
from brain.core.pack.topology import CELL, JOB, WIDE, component_of, node_of, type_of, whole_of
from brain.core.state import Incident, SymptomState


def active_at(ctx: Context, scope: str) -> Iterator[SymptomState]:
    """The active symptoms in the situation of a scope; those of the scope itself come last."""
    node = node_of(scope)
    if not node:
        yield from ctx.index.active.get(scope, {}).values()
        return
    for wide in ctx.compiled.topology.above(node):
        yield from ctx.index.active.get(wide, {}).values()
    own = []
    if type_of(scope) == "node":
        here = ctx.index.active.get(node, {})
    else:  # a part meets its node and what it belongs to; the other parts of the node are not even looked at
        yield from ctx.index.near.get(f"node/{node}", {}).values()
        here = ctx.index.near.get(whole_of(scope), {})
    for symptom in here.values():
        if symptom.scope == scope:
            own.append(symptom)
        elif type_of(scope) == "node" or ctx.compiled.topology.overlap(scope, symptom.scope):
            yield symptom
    yield from own


def named_by(ctx: Context, rule: Rule, scope: str) -> list[SymptomState]:
    """The active symptoms in the situation of a scope that the rule names."""
    named = set(symptoms_in(rule.when))
    return [symptom for symptom in active_at(ctx, scope) if symptom.name in named]


def began_at(ctx: Context, rule: Rule, scope: str) -> float:
    """When the first of what the rule names began at a scope, in seconds since 1970: now, if nothing is active any more."""
    return min((one.cause_at or one.since for one in named_by(ctx, rule, scope)), default=ctx.now)


def situation(ctx: Context, scope: str) -> dict[str, Scalar]:
    """The situation of a scope: `s_<symptom>` = 1 for each active symptom, the carried fields, and the base fields."""
    return _situation(ctx, scope, active_at(ctx, scope))


def _situation(ctx: Context, scope: str, active: Iterable[SymptomState]) -> dict[str, Scalar]:
    node = node_of(scope)
    record: dict[str, Scalar] = {"scope": scope, "scope_type": type_of(scope)}
    if node:
        known = ctx.state.nodes.get(node)
        record["node"] = node
        record["component"] = component = component_of(scope)
        record["name"] = component.partition("/")[2]
        record["node_alive"] = known is None or known.alive
    elif scope != CELL:
        record["name"] = scope.partition("/")[2]
    for symptom in active:
        record[SYMPTOM_PREFIX + symptom.name] = 1
        if symptom.members:
            record[symptom.name + "_nodes"] = len(symptom.members)
        record.update(symptom.carried)
    return record


def waited_s(ctx: Context, symptoms: list[str]) -> float:
    """How old the newest fact of these symptoms ("<symptom>@<scope>") must be by their own definition.

    A symptom that means "not cleared for two minutes" has no younger fact, and is no older news for that.
    """
    specs = [ctx.compiled.symptoms.get(ids.name_of(key)) for key in symptoms]
    return max((spec.for_s for spec in specs if spec is not None), default=0.0)


def scopes_to_judge(ctx: Context, changed: list[SymptomState]) -> list[str]:
    """The scopes at which other rules may match after these symptoms changed, each once."""
    scopes: dict[str, None] = {}
    for symptom in changed:
        for kind in ctx.compiled.rule_scopes.get(symptom.name, ()):
            for scope in _related(ctx, symptom.scope, kind):
                scopes[scope] = None
    return list(scopes)


def _related(ctx: Context, scope: str, kind: str) -> Iterator[str]:
    """The scopes of type `kind` whose situation has a symptom at `scope`."""
    if type_of(scope) == kind:
        yield scope
        return
    node = node_of(scope)
    if kind in WIDE or kind in (JOB, CELL):
        return  # a wide situation has its own symptoms only
    if kind == "node" and node:
        yield f"node/{node}"
        return
    if node:
        places = [node]
    else:
        places = [
            place
            for place in sorted(ctx.index.active)
            if "/" not in place and place != CELL and ctx.compiled.topology.contains(scope, f"node/{place}")
        ]
    for place in places:
        if kind == "node":
            yield f"node/{place}"
        for other in list(ctx.index.active.get(place, {}).values()):
            if type_of(other.scope) == kind and ctx.compiled.topology.overlap(scope, other.scope):
                yield other.scope
    for matched in list(ctx.index.matched.get(node, ()) if node else ctx.state.matched):
        if type_of(matched) == kind and ctx.compiled.topology.overlap(scope, matched):
            yield matched


def judge(ctx: Context, scope: str) -> tuple[list[str], list[str]]:
    """Matches the rules at a scope and remembers which match. Returns (rules that began to match, rules that ended)."""
    before = ctx.state.matched.get(scope, [])
    is_node = type_of(scope) == "node"
    # A component without a symptom of its own shows only what others around it have: no rule matches it.
    active = list(active_at(ctx, scope))
    concerned = any(is_node or symptom.scope == scope for symptom in active)
    now = ctx.compiled.match(scope, _situation(ctx, scope, active)) if concerned else []
    if now:
        ctx.state.matched[scope] = now
        if not before:
            ctx.index.add_match(scope)
    elif before:
        del ctx.state.matched[scope]
        ctx.index.remove_match(scope)
    return [rule for rule in now if rule not in before], [rule for rule in before if rule not in now]


def explained_symptoms(ctx: Context, incident: Incident) -> list[str]:
    """Keys of the active symptoms on the incident's node behind the matches that it inhibits."""
    found = []
    inhibits = incident.inhibits or incident.inhibits_on_node
    for scope in ctx.index.matched.get(incident.node, ()) if incident.node and inhibits else ():
        for name in ctx.state.matched[scope]:
            rule = ctx.compiled.rules.get(name)
            if rule is None:
                continue
            began = partial(began_at, ctx, rule, scope)
            if reach.explains(ctx, incident, rule.cause or name, scope, began):
                found += [ids.key(symptom, scope) for symptom in symptoms_in(rule.when)]
    here = ctx.index.active.get(incident.node, {})
    return [key for key in found if key in here]

"""Situations: all that is known about one scope now, as one flat record, and which rules are true of it.

The record of a component has its own symptoms, its node's, and those of the wider scopes around it; the record of a
node also has those of its components; a wider scope has its own only (spread symptoms bring the nodes' in).
"""

from collections.abc import Iterator

from brain.core.conditions import SYMPTOM_PREFIX
from brain.core.spec import Scalar
from brain.core.state import SymptomState
from brain.core.topology import CELL, WIDE, component_of, node_of, type_of
from brain.core.turn import Turn


def active_at(turn: Turn, scope: str) -> Iterator[SymptomState]:
    """The active symptoms that the situation of a scope shows, its own last."""
    node = node_of(scope)
    if not node:
        yield from turn.index.active.get(scope, {}).values()
        return
    for wide in turn.book.topology.above(node):
        yield from turn.index.active.get(wide, {}).values()
    own = []
    for symptom in turn.index.active.get(node, {}).values():
        if symptom.scope == scope:
            own.append(symptom)
        elif type_of(scope) == "node" or turn.book.topology.overlap(scope, symptom.scope):
            yield symptom
    yield from own


def situation(turn: Turn, scope: str) -> dict[str, Scalar]:
    """The record of a scope: `s_<symptom>` = 1, the carried fields, and the fields that every scope has."""
    node = node_of(scope)
    record: dict[str, Scalar] = {"scope": scope, "scope_type": type_of(scope)}
    if node:
        known = turn.state.nodes.get(node)
        record["node"] = node
        record["component"] = component_of(scope)
        record["name"] = component_of(scope).partition("/")[2]
        record["node_alive"] = known is None or known.alive
    elif scope != CELL:
        record["name"] = scope.partition("/")[2]
    for symptom in active_at(turn, scope):
        record[SYMPTOM_PREFIX + symptom.name] = 1
        if symptom.members:
            record[symptom.name + "_nodes"] = len(symptom.members)
        record.update(symptom.carried)
    return record


def scopes_to_judge(turn: Turn, changed: list[SymptomState]) -> list[str]:
    """The scopes whose rules may answer differently after these symptoms changed, each once."""
    scopes: dict[str, None] = {}
    for symptom in changed:
        for kind in turn.book.rule_scopes.get(symptom.name, ()):
            for scope in _related(turn, symptom.scope, kind):
                scopes[scope] = None
    return list(scopes)


def _related(turn: Turn, scope: str, kind: str) -> Iterator[str]:
    """The scopes of a type that see a symptom at `scope`."""
    if type_of(scope) == kind:
        yield scope
        return
    node = node_of(scope)
    if kind in WIDE or kind == CELL:
        return  # wide situations hold their own symptoms only
    if kind == "node" and node:
        yield f"node/{node}"
        return
    if node:
        places = [node]
    else:
        places = [
            place
            for place in turn.index.active
            if node_of(f"node/{place}") and turn.book.topology.contains(scope, f"node/{place}")
        ]
    for place in places:
        if kind == "node":
            yield f"node/{place}"
        for other in list(turn.index.active.get(place, {}).values()):
            if type_of(other.scope) == kind and turn.book.topology.overlap(scope, other.scope):
                yield other.scope
    for matched in list(turn.state.matched):
        if type_of(matched) == kind and turn.book.topology.overlap(scope, matched):
            yield matched


def judge(turn: Turn, scope: str) -> tuple[list[str], list[str]]:
    """(rules that are true of the scope now and were not, rules that were and are not); remembers the answer."""
    before = turn.state.matched.get(scope, [])
    known = any(
        True for symptom in active_at(turn, scope) if symptom.scope == scope or type_of(scope) == "node"
    )
    now = turn.book.match(scope, situation(turn, scope)) if known else []
    if now:
        turn.state.matched[scope] = now
    else:
        turn.state.matched.pop(scope, None)
    return [rule for rule in now if rule not in before], [rule for rule in before if rule not in now]

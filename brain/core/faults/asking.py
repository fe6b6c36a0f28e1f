"""When it is asked again which place a shared cause is: as its nodes become more, and once more when they have stopped. Pure."""

from collections.abc import Iterable

from brain.core import ids
from brain.core.context import Context
from brain.core.faults import jobs, wider
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.spec import Symptom
from brain.core.state import SymptomState

JUDGED_AGAIN_S = 60.0  # so long after more nodes have come it is asked again which place it is, at the latest


def is_due(ctx: Context, symptom: Symptom, wide: SymptomState, node: str) -> bool:
    """Whether it is asked which place it is, now that one more node shows it."""
    return (
        judged_again(ctx, symptom, wide) or was_closed(ctx, symptom) or nobody_has(ctx, symptom, wide, node)
    )


def judged_again(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """Whether it is asked again which place it is, now that one more node shows it: twice for each doubling."""
    count = len(wide.members)
    return (count & -count) * 4 >= count and len(ctx.compiled.spreads[symptom.of]) > 1


def is_unjudged(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """Whether more nodes show it than when it was asked which place it is, and the incident of another place stands for it. It is
    asked after a while, also when nothing more comes.
    """
    if not ctx.index.stood_for or not wide.active or len(wide.members) <= wide.judged:
        return False
    return wider.match_at(ctx, symptom.of, wide.scope) in ctx.index.stood_for


def judged_now(wide: SymptomState) -> SymptomState:
    """Which place it is is asked with the nodes that it has now."""
    wide.judged = len(wide.members)
    return wide


def nobody_has(ctx: Context, symptom: Symptom, wide: SymptomState, node: str) -> bool:
    """Whether one more node shows it that no incident has, while others do: not that of a place around the node, nor one that
    stands for this place or explains it by now. It is asked at once which place it is, for the gate counts the node (law 6).
    """
    match, taken = wider.match_at(ctx, symptom.of, wide.scope), ctx.index.by_match
    if not match or match in taken or match in ctx.index.stood_for or match in ctx.state.dismissed:
        return False
    if _has_incident(ctx, symptom.of, reversed(ctx.compiled.topology.above(node))):  # a storm's is wide
        return False
    if _has_incident(ctx, symptom.of, jobs.around(ctx, symptom.of, (node,))):
        return False
    counting = ctx.compiled.counting.get(symptom.of, ())
    if not any((rule.cause or rule.name) in ctx.index.by_cause for rule in counting):
        return False  # what explains it counts no nodes
    return not wider.explainer(ctx, ctx.compiled.rules[ids.name_of(match)], wide.scope)


def _has_incident(ctx: Context, of: str, places: Iterable[str]) -> bool:
    return any(wider.match_at(ctx, of, place) in ctx.index.by_match for place in places)


def was_closed(ctx: Context, symptom: Symptom) -> bool:
    """Whether an operator has closed what counts nodes of the same symptom: the next node is a newer fact. What else has been
    closed has no part in it, and in a storm each place would be judged with each node.
    """
    if not ctx.state.dismissed:
        return False
    families, rules = ctx.compiled.families, ctx.compiled.rules
    for name in dict.fromkeys(map(ids.name_of, ctx.state.dismissed)):  # of thousands of matches few rules
        rule = rules.get(name)
        if rule is None or symptom.of in families.get(name, ()) or symptom.name in symptoms_in(rule.when):
            return True
    return False

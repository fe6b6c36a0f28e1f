"""What a roll-out changes in what is true of places: the silent nodes that it explains share no other cause. Pure."""

from collections.abc import Iterator

from brain.core import ids
from brain.core.context import Context
from brain.core.faults import rollouts, spread, symptoms
from brain.core.state import SymptomState


def seen(ctx: Context) -> Iterator[SymptomState]:
    """One more node is back with a new version: the nodes that are silent like it count no more, where they did until now."""
    for key, state in _silent(ctx):
        if rollouts.of_node(ctx, state.scope.partition("/")[2]) is None:
            continue
        for symptom, place, node in spread.watchers(ctx, *ids.split(key)):
            wide_key = ids.key(symptom.name, place)
            wide = ctx.state.symptoms.get(wide_key)
            if wide is not None and wide.members.pop(node, None) is not None:
                ctx.index.recount(wide)
                yield from symptoms.recount(ctx, wide_key, symptom, wide)


def no_more(ctx: Context) -> Iterator[SymptomState]:
    """A node has been away for too long to be part of a roll-out: it counts, and so do the others that are late by now."""
    for key, state in _silent(ctx):
        if rollouts.of_node(ctx, state.scope.partition("/")[2], rollouts.LATE) is not None:
            continue
        for symptom, place, node in spread.watchers(ctx, *ids.split(key)):
            wide = ctx.state.symptoms.get(ids.key(symptom.name, place))
            if wide is None or node not in wide.members:
                yield from symptoms.count_in(ctx, symptom, place, node, state)


def _silent(ctx: Context) -> list[tuple[str, SymptomState]]:
    """The active symptoms that say that nodes are silent, in the order in which they fell silent."""
    names = [name for name in ctx.compiled.symptoms if rollouts.counts_silent(ctx, name)]
    keys = [ids.key(name, f"node/{node}") for node in ctx.state.silent for name in names]
    found = [(key, ctx.state.symptoms.get(key)) for key in keys]
    return [(key, state) for key, state in found if state is not None and state.active]

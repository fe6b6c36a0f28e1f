"""What a roll-out changes in what is true of places: silent nodes that it explains share no other cause. Pure."""

from collections.abc import Iterator

from brain.core import ids
from brain.core.context import Context
from brain.core.faults import rollouts, spread, symptoms
from brain.core.state import SymptomState


def seen(ctx: Context) -> Iterator[SymptomState]:
    """One more node is back with a new version: ends what silent nodes of a place were taken for until then."""
    for of, counters in ctx.compiled.spreads.items():
        if not rollouts.counts_silent(ctx, of):
            continue
        for symptom in counters:
            for wide in list(ctx.index.spread_at.get(symptom.name, {}).values()):
                if rollouts.explains(ctx, symptom, wide):
                    yield from symptoms.end(
                        ctx, wide, "its nodes get a new version, one after the other", keep=True
                    )
                    wide.cause_at, wide.at_once, wide.bursts = 0.0, False, []


def no_more(ctx: Context, keys: list[str]) -> Iterator[SymptomState]:
    """A node with these symptoms has been away for too long to be part of a roll-out: it counts, and so may others by now."""
    for key in keys:
        for symptom, place, _ in spread.watchers(ctx, *ids.split(key)):
            wide_key = ids.key(symptom.name, place)
            wide = ctx.state.symptoms.get(wide_key)
            if wide is not None and not wide.active and spread.reached(ctx, symptom, wide):
                spread.date(ctx, symptom, wide)
                yield from symptoms.start(ctx, wide_key, wide)

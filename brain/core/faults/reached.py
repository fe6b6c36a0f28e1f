"""The places where one symptom is spread now, kept in order while nodes come and go. Derived, never saved. Pure.

In a storm the judgement of places (places.py) is asked about hundreds of places for each node, and each node changes only those
in which it stands: so what was seen of the others is kept, sorted as the judgement wants it.
"""

from collections.abc import Sequence
from functools import partial

from agent.contract.components import NODE
from brain.core.context import Context
from brain.core.faults import passing, places, spread
from brain.core.pack.shared import GENERATED, ORDER
from brain.core.pack.spec import Symptom
from brain.core.pack.topology import CELL, JOB, type_of
from brain.core.state import SymptomState

_EACH_HAS_ONE = ("leaf", "rack")  # kinds of places of which each node has one, whether it is known or not


def kept(ctx: Context, of: str) -> "Spreads":
    """What is seen of all places where a symptom is spread, up to date."""
    known: Spreads | None = ctx.index.spreads.get(of)
    if known is None:
        known = ctx.index.spreads[of] = Spreads(ctx, of)
    known.renew(ctx)
    return known


class Spreads:
    """All places where one symptom is spread."""

    def __init__(self, ctx: Context, of: str) -> None:
        self._counting = ctx.compiled.spreads.get(of, ())
        # kind of place -> what counts the nodes there; of several, the last one speaks for a place
        self._of_kind: dict[str, list[Symptom]] = {}
        for symptom in reversed(self._counting):
            self._of_kind.setdefault(symptom.scope, []).append(symptom)
        self._ctx = ctx  # what it is asked for later, pack and state, is the same as long as the index lives
        self._nodes = -1  # number of nodes heard of when all was last seen
        self.seen: dict[str, places.Seen] = {}  # scope -> what is seen of it
        self.ranked = places.Ranked(())
        for symptom in self._counting:
            here = ctx.index.spread_at.get(symptom.name, {})
            ctx.index.recounted[symptom.name] = dict.fromkeys(here)

    def renew(self, ctx: Context) -> None:
        """Sees anew where nodes came or went since it was asked last."""
        changed: dict[str, None] = {}
        for symptom in self._counting:
            if scopes := ctx.index.recounted[symptom.name]:
                changed |= scopes
                scopes.clear()
        nodes = len(ctx.state.nodes)
        if nodes != self._nodes:  # some scopes are as large as the cell
            self._nodes, size = nodes, ctx.compiled.topology.size
            changed |= {
                scope: None
                for scope in self.seen
                if type_of(scope) in (CELL, "fabric") or size(scope, 0) != size(scope, nodes)
            }
        for scope in changed:
            self._renew(ctx, scope)

    def _renew(self, ctx: Context, scope: str) -> None:
        before = self.seen.pop(scope, None)
        if before is not None:
            self.ranked.remove(before)
        for symptom in self._of_kind.get(type_of(scope), ()):
            wide = ctx.index.spread_at.get(symptom.name, {}).get(scope)
            if wide is not None:
                self.seen[scope] = now = look(self._ctx, symptom, wide)
                self.ranked.add(now)
                return


def look(ctx: Context, spec: Symptom, wide: SymptomState) -> places.Seen:
    """The place as the judgement sees it."""
    ill = recent(wide)
    if wide.crept:
        ill = passing.with_those_that_went(ctx, wide, ill)
    size = spread.size_of(ctx, wide)
    counted = ctx.compiled.symptoms.get(spec.of)
    accuses = counted.accuses if counted is not None else ()
    return places.Seen(
        place=wide.scope,
        ill=ill,
        of=max(size, len(ill)),
        needed=partial(spread.needed, ctx, spec, wide),
        reached=wide.active,
        at_once=wide.at_once,
        order=_order(spec, accuses),
        accused=spec.scope in accuses,
        stands=partial(_stands, ctx, spec.scope) if spec.scope in _EACH_HAS_ONE else None,
    )


def _stands(ctx: Context, kind: str, node: str) -> bool:
    return bool(ctx.compiled.topology.all_at(node, NODE, kind))


def recent(wide: SymptomState) -> dict[str, float]:
    """The nodes that show it by the shared cause, where that is dated: what stood before says nothing of where it is."""
    if not wide.cause_at or next(iter(wide.members.values()), wide.cause_at) >= wide.cause_at:
        return wide.members
    found = {node: at for node, at in wide.members.items() if not spread.stood_before(wide, node)}
    return found or wide.members


def _order(spec: Symptom, accuses: Sequence[str]) -> int:
    """A rule that people wrote knows more of what nothing else tells apart; then come the kinds that such a fault accuses."""
    first = not spec.name.startswith(GENERATED)
    if spec.scope == JOB and not first:  # a job that fills a leaf is not to blame for its switch
        return len(ORDER) * 3
    return ORDER.get(spec.scope, -1) + len(ORDER) * (0 if first else 1 if spec.scope in accuses else 2)

"""What came to single nodes of a place and went again by itself. Pure.

A leaf switch that takes its ports down in turn, for a minute each, never has three that are down; a page for each would be all
that people ever hear of it. So the creeping of a place (creeping.py) counts such nodes, too, as long as those that are still ill.
What lasted for longer was a fault that somebody has mended. What went with a shared cause is no part of it, nor what ended on a
node that somebody works on: a restart takes some minutes, too. Decision 104.
"""

from collections.abc import Mapping

from brain.core import ids
from brain.core.context import Context
from brain.core.pack.spec import Symptom
from brain.core.pack.topology import CELL
from brain.core.pack.vocabulary import NODE_UNREACHABLE
from brain.core.state import SymptomState

KEPT_S = 6 * 3600.0  # so long after it began it counts
BRIEF_S = 600.0  # when it was over within so long
MOST = 200  # nodes of one place, the newest; where there are more, their number says more than their order
# Kind of place -> of which parts it is that it can be the cause; empty: of any. In the cell all are counted that are elsewhere.
PARTS: Mapping[str, tuple[str, ...]] = {
    "chassis": (),
    "leaf": ("port", "link", "nic"),
    "rack": ("node",),
    "power": (),
    "cooling": (),
    CELL: (),
}
_SUPPLIES = (
    "power",
    "cooling",
)  # of what does not accuse them they are never the cause: they reach nodes all over the cell


def can_cause(kind: str, counts: Symptom) -> bool:
    """Whether places of a kind can be the cause of what nodes show."""
    parts = PARTS.get(kind)
    if parts is None or (kind in _SUPPLIES and kind not in counts.accuses):
        return False
    return not parts or counts.scope in parts


def went(ctx: Context, symptom: Symptom, wide: SymptomState, node: str, began: float) -> None:
    """A node shows it no more that is counted at a place; there it began then, in seconds since 1970."""
    counts = ctx.compiled.symptoms.get(symptom.of)
    if counts is None or not can_cause(symptom.scope, counts):
        return
    if (wide.active and not wide.crept) or ctx.now > began + BRIEF_S:
        return
    if counts.scope == "node" and (_is_worked_on(ctx, node) or _went_in_order(ctx, counts, node, began)):
        return
    key = ids.key(wide.name, wide.scope)
    here = ctx.state.passed.setdefault(key, {})
    here.pop(node, None)  # what went last stands last
    here[node] = began
    if len(here) > MOST:
        del here[next(iter(here))]
    if f"recovered:{key}" not in ctx.state.timers:
        ctx.set_timer(f"recovered:{key}", ctx.now + KEPT_S)


def lately(ctx: Context, name: str, scope: str, since: float) -> dict[str, float]:
    """The nodes of a place that showed it for a while, with the times when that began there, after `since`. Not those that were
    silent while people who have drained them were at work.
    """
    here = ctx.state.passed.get(ids.key(name, scope), {})
    return {node: at for node, at in here.items() if at > since and node not in ctx.state.shifts}


def with_those_that_went(ctx: Context, wide: SymptomState, ill: dict[str, float]) -> dict[str, float]:
    """The nodes of a place that show it, and those that did for a while: which of two places it is all of them say together."""
    went_here = ctx.state.passed.get(ids.key(wide.name, wide.scope), {})
    since = max(ill.values(), default=0.0) - KEPT_S
    return {node: at for node, at in went_here.items() if at > since} | ill


def forget_old(ctx: Context, key: str) -> None:
    """Forgets what counts no more. The next time is a whole time later: until then nobody asks for what is too old."""
    here = ctx.state.passed.pop(key, {})
    if here:
        _seen_anew(ctx, key)
    if left := {node: at for node, at in here.items() if ctx.now < at + KEPT_S}:
        ctx.state.passed[key] = left
        ctx.set_timer(f"recovered:{key}", ctx.now + KEPT_S)


def forget_node(ctx: Context, node: str) -> None:
    """A node is gone for good."""
    for key, here in list(ctx.state.passed.items()):
        if here.pop(node, None) is not None:
            _seen_anew(ctx, key)
        if not here:
            del ctx.state.passed[key]


def in_order(ctx: Context, node: str, at: float) -> None:
    """An agent has started, at that time (s since 1970), that had been stopped in order: its node was silent since somebody had
    stopped or restarted it, which says nothing of power or of a switch.
    """
    known = ctx.state.nodes.get(node)
    if known is not None:
        known.in_order_at = max(known.in_order_at, at)
        forget_silence(ctx, node)


def forget_silence(ctx: Context, node: str) -> None:
    """That a node was silent counts for no place any more."""
    for remembered in (ctx.state.recovered, ctx.state.passed):
        for counted_as, begun in list(remembered.items()):
            spec = ctx.compiled.symptoms.get(ids.name_of(counted_as))
            of = ctx.compiled.symptoms.get(spec.of) if spec is not None else None
            if of is not None and _is_silence(of) and begun.pop(node, None) is not None:
                _seen_anew(ctx, counted_as)
                if not begun:
                    del remembered[counted_as]


def _seen_anew(ctx: Context, key: str) -> None:
    """What is seen of a place is not what was seen before."""
    wide = ctx.state.symptoms.get(key)
    if wide is not None:
        ctx.index.recount(wide)


def _went_in_order(ctx: Context, counts: Symptom, node: str, began: float) -> bool:
    known = ctx.state.nodes.get(node)
    return known is not None and known.in_order_at > began and _is_silence(counts)


def _is_silence(counts: Symptom) -> bool:
    return any(match.kind == NODE_UNREACHABLE for match in counts.on)


def _is_worked_on(ctx: Context, node: str) -> bool:
    """Whether we have drained it, or a run of ours does something to it."""
    at_work = any(run.node == node and run.counted and not run.ended_at for run in ctx.state.runs.values())
    return at_work or bool(ctx.state.drains.get(node))

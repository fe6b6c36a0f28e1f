"""Nodes that fall ill at once share a cause, however few of their place they are. Pure.

Eight nodes of ten thousand are no large share. But faults that have nothing to do with each other do not begin on eight nodes
within half a minute: of a fault that each node has once a week that is less than once in a hundred years. So they are taken for
one cause where no narrower place says more: two ports of each leaf switch are a spine's (law 6, decision 82).

An agent that has just started tells what it finds, however long that has been so: when it says that a fault began says nothing
of when it did, and a roll-out starts many agents at once.
"""

import math

from brain.core import ids
from brain.core.context import Context
from brain.core.pack.spec import Symptom
from brain.core.state import Burst, Node, SymptomState

FEWEST = 8  # nodes, whatever the site's `shared_nodes`
FIRST_LOOK_S = 120.0  # so long after it has started an agent tells what it found
MAX_BURSTS = 8  # of one spread that are remembered, the newest
BESIDE_S = 1.0  # so much longer it is waited for the last of another burst
SLACK_S = 5.0  # a first fact may be so much older than the start


def least(symptom: Symptom) -> float:
    """How many nodes it takes; infinity: it is not asked."""
    return max(FEWEST, math.ceil(symptom.at_least)) if symptom.at_once_s else math.inf


def began_together(ctx: Context, symptom: Symptom, wide: SymptomState) -> bool:
    """Whether so many nodes fell ill within `at_once_s`, the one that was counted last among them or beside them, and half as
    many of these are ill still.
    """
    return bool(_together(ctx, symptom, wide))


def grows(ctx: Context, symptom: Symptom, wide: SymptomState, at: float, soon_s: float) -> None:
    """One more node of an active spread fell ill, at that time (s since 1970): soon after a burst, or as the last of another."""
    if not symptom.at_once_s:
        return
    for burst in wide.bursts:
        if burst.since <= at <= burst.until + soon_s:
            burst.until, burst.size = max(burst.until, at), burst.size + 1
            return
    if begun := _together(ctx, symptom, wide):
        burst = Burst(since=begun[0], until=begun[-1], size=len(begun))
        wide.bursts = [*wide.bursts, burst][-MAX_BURSTS:]


def is_apart(wide: SymptomState, node: str) -> bool:
    """Whether the node fell ill by itself, after every burst that a cause of few nodes is made of: eight nodes that wait for
    their parts, or that lie, must not keep the others of a cell from being told and healed.
    """
    at = wide.members.get(node)
    return at is not None and came_after(wide, at)


def came_after(wide: SymptomState, at: float, soon_s: float = 0.0) -> bool:
    """Whether something began (s since 1970) after every burst that a cause of few nodes is made of, and not so soon after."""
    return wide.at_once and bool(wide.bursts) and all(at > burst.until + soon_s for burst in wide.bursts)


def ill_with(wide: SymptomState) -> dict[str, float]:
    """The nodes that the shared cause is about, with the times when they fell ill: without those that fell ill by themselves."""
    if not wide.at_once:
        return wide.members
    return {node: at for node, at in wide.members.items() if not is_apart(wide, node)}


def alone_in_s(ctx: Context, wide: SymptomState, node: str) -> float:
    """In so many seconds a node that fell ill by itself is no longer the first of another burst; infinity: it is no such node."""
    symptom = ctx.compiled.symptoms.get(wide.name)
    if symptom is None or not is_apart(wide, node):
        return math.inf
    return wide.members[node] + symptom.at_once_s + BESIDE_S - ctx.now


def still_ill(wide: SymptomState, burst: Burst) -> int:
    """How many of those of a burst, or that fell ill meanwhile, show it still."""
    return sum(burst.since <= at <= burst.until for at in wide.members.values())


def _together(ctx: Context, symptom: Symptom, wide: SymptomState) -> list[float]:
    """When the nodes fell ill that did so within `at_once_s`, in order; empty: so many as it takes did not."""
    count = least(symptom)
    recovered = ctx.state.recovered.get(ids.key(wide.name, wide.scope), {})
    if not wide.members or len(wide.members) + len(recovered) < count:
        return []
    newest, within_s = next(reversed(wide.members.values())), symptom.at_once_s
    begun = [
        (at, still)
        for nodes, still in ((wide.members, True), (recovered, False))
        for node, at in nodes.items()
        if abs(at - newest) <= within_s and not _had_just_started(ctx, node, at)
    ]
    begun.sort()
    step = int(count) - 1
    for last in range(step, len(begun)):
        here = begun[last - step : last + 1]
        if here[-1][0] - here[0][0] <= within_s and 2 * sum(still for _, still in here) >= count:
            return [at for at, _ in begun if here[0][0] <= at <= here[0][0] + within_s]
    return []


def agent_started(node: Node, at: float) -> None:
    """An agent has started, at that time (s since 1970). One that starts again and again is still at its first look."""
    since = node.starts_since or node.started_at
    if at > node.started_at + FIRST_LOOK_S:
        node.starts_since = at
    elif at >= since - FIRST_LOOK_S:
        node.starts_since = min(since, at)
    node.started_at = max(node.started_at, at)


def _had_just_started(ctx: Context, node: str, at: float) -> bool:
    known = ctx.state.nodes.get(node)
    if known is None or not known.started_at:
        return False
    return (known.starts_since or known.started_at) - SLACK_S <= at <= known.started_at + FIRST_LOOK_S

"""A node is gone for good: nothing of it is left, in no list and no count. If it is heard again, it is a new one."""

from brain.core import ids, incidents
from brain.core.context import Context
from brain.core.faults import cards, lemons, paths, releases, stragglers, symptoms
from brain.core.incidents import IncidentTrigger
from brain.core.pack.topology import node_of

MOST_SHUT_OUT = 10_000  # a cell has no more nodes
MOST_LEFT_BEHIND = 10_000


def shut_out(ctx: Context, node: str, at: float) -> None:
    """Nothing that the node says is taken, by no brain of the cell, until it is let in again (brain/leader/revoked_nodes.py)."""
    kept = ctx.state.shut_out
    kept[node] = max(at, kept.pop(node, 0.0))
    if len(kept) > MOST_SHUT_OUT:
        del kept[next(iter(kept))]


def void_token(ctx: Context, token: str, at: float) -> None:
    """Nobody gets in by this token, whatever a brain's files say: they may be from a backup."""
    kept = ctx.state.void_tokens
    kept[token] = max(at, kept.pop(token, 0.0))
    if len(kept) > MOST_SHUT_OUT:
        del kept[next(iter(kept))]


def forget(ctx: Context, node: str, why: str) -> None:
    """Ends its incidents, with their pages and runs, and its symptoms; forgets what is remembered of it.

    A drain of ours stays in the scheduler: the note says so, and it has an incident again when the node is heard again (law 14).
    """
    marks = [mark for drain in ctx.state.drains.pop(node, {}).values() for mark in drain.marks]
    left = (
        "; gpuward had drained it: take the drain off in the scheduler, if it is still listed there. If it is heard again, "
        f"`gpuward return {node}` gives it back"
    )
    ctx.note("node.forgotten", f"{node}: {why}{left if marks else ''}", scope=f"node/{node}")
    if marks:
        kept = ctx.state.left_behind
        kept[node] = marks
        if len(kept) > MOST_LEFT_BEHIND:
            del kept[next(iter(kept))]
    # Before their symptoms end: an incident without symptoms waits for its resolve delay.
    for incident in [one for one in ctx.state.incidents.values() if one.node == node]:
        incidents.transition(ctx, incident, IncidentTrigger.CLOSED_BY_OPERATOR, why)
    ctx.changed.extend(symptoms.forget_node(ctx, node, why))
    for hold in [one for one in ctx.state.holds.values() if node_of(one.scope) == node]:
        del ctx.state.holds[hold.id]
        ctx.cancel_timer(f"hold:{hold.id}")
    ctx.index.baselines.clear()  # built again from the peers that are left
    ctx.state.peers = {key: one for key, one in ctx.state.peers.items() if key.partition(" ")[2] != node}
    ctx.state.inspected = {key: at for key, at in ctx.state.inspected.items() if ids.split(key)[1] != node}
    for values in ctx.state.figures.values():
        values.pop(node, None)
    ctx.state.remedied.pop(node, None)
    for key in ctx.index.recurred.get(node, ()):
        ctx.state.lately_closed.pop(key, None)
    ctx.state.over.pop(node, None)
    releases.forget_node(ctx, node)
    lemons.forget_node(ctx, node)
    ctx.changed.extend(stragglers.forget_node(ctx, node))
    ctx.changed.extend(paths.forget_node(ctx, node))
    cards.forget_node(ctx, node)
    for nodes in ctx.state.aftermath.values():
        nodes.pop(node, None)
    ctx.state.jobs.pop(node, None)
    ctx.state.shifts.pop(node, None)
    ctx.cancel_timer(f"jobs:{node}")
    ctx.state.nodes.pop(node, None)

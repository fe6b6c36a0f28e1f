"""A node's share: what one node alone says takes up a bounded part of what all nodes share (law 15, decision 33). Pure.

A node may have so many symptoms of its parts, and so many incidents, open at a time. What is already open goes on to count,
and so does everything about the node as a whole. What is more is left out, and one incident of the node says so.
"""

from dataclasses import replace

from agent.contract.components import NODE
from agent.contract.messages import Event, Severity
from brain.core.context import Context
from brain.core.pack.topology import node_of, type_of
from brain.core.pack.vocabulary import NODE_CROWDED

MAX_OPEN = 200  # symptoms of the parts of one node, and incidents of one node; the largest machines have about 60 parts
MAX_RECURRED = 400  # faults of one node that are remembered after they are over
LOUD = 30  # a node whose faults came up so often
LOUD_WITHIN_S = 3600.0  # within this time is told now and then, in one page
AGAIN_S = 600.0  # how often it is told that facts of a node are left out


def has_room(ctx: Context, scope: str) -> bool:
    """Whether one more symptom at this scope is within its node's share."""
    index, node = ctx.index, node_of(scope)
    parts = index.parts.get(node)
    if parts is None or type_of(scope) == "node":
        return True
    return parts < MAX_OPEN and len(index.open_at.get(node, ())) < MAX_OPEN


def crowded(ctx: Context, event: Event) -> Event | None:
    """The fact that what a node says is left out; None: that was told a short while ago."""
    node = ctx.state.nodes.get(event.node)
    if node is None:
        return None  # only another system has spoken of it so far
    if node.crowded_at and ctx.now < node.crowded_at + AGAIN_S:
        return None
    node.crowded_at = ctx.now
    parts, incidents = ctx.index.parts.get(node.name, 0), len(ctx.index.open_at.get(node.name, ()))
    text = f"{parts} symptoms and {incidents} incidents of it are open: {event.kind} on {event.component} is left out"
    ctx.note("node.crowded", text, scope=f"node/{node.name}")
    data = {"symptoms": parts, "incidents": incidents}
    return replace(
        event,
        kind=NODE_CROWDED,
        component=NODE,
        severity=Severity.WARNING,
        age_s=0.0,
        count=1,
        data=data,
        evidence=text,
    )


def is_loud(ctx: Context, node: str) -> bool:
    """Whether so many faults of the node came up within the last hour that people hear of it now and then only."""
    count, since = 0, ctx.now - LOUD_WITHIN_S
    for key in ctx.index.recurred.get(node, ()):
        count += sum(at > since for at in ctx.state.recurred[key])
        if count > LOUD:
            return True
    return False

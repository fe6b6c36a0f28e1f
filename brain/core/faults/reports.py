"""Facts that no agent reports: unreachable nodes and their return, unreadable messages, and other systems' reports."""

from collections.abc import Mapping

from agent.contract.messages import Event, Scalar, Severity, clip
from brain.core.context import Context
from brain.core.faults import rolled_out, rollouts, symptoms
from brain.core.inputs import Malformed, NodeState, Reported
from brain.core.pack import vocabulary
from brain.core.state import Early, Node


def node_state(ctx: Context, given: NodeState) -> None:
    """A node became unreachable, or reachable again. Nothing if that was known."""
    node = ctx.state.nodes.get(given.node)
    if node is None:
        node = ctx.state.nodes[given.node] = Node(name=given.node)
    if node.alive == given.alive:
        return
    node.alive = given.alive
    if given.alive:
        node.back_at = ctx.now
        ctx.state.silent.pop(given.node, None)
        _event(ctx, given.node, vocabulary.NODE_RETURNED, Severity.INFO, {})
    else:
        node.silent_at = ctx.state.silent[given.node] = ctx.now - given.silent_s
        _event(ctx, given.node, vocabulary.NODE_UNREACHABLE, Severity.ERROR, {"silent_s": given.silent_s})
        if rollouts.too_many(ctx, given.node):
            ctx.changed.extend(rolled_out.no_more(ctx))


def malformed(ctx: Context, given: Malformed) -> None:
    """Counts a message that could not be read. If a node published it, that is a fact about the node."""
    ctx.state.malformed += 1
    ctx.note("input.malformed", f"{given.subject}: {given.why}", data={"total": ctx.state.malformed})
    if given.node:
        _event(ctx, given.node, vocabulary.CONTRACT_BROKEN, Severity.WARNING, {"why": given.why})


def foreign_result(ctx: Context, node: str, step: str) -> None:
    """A node reported the result of a step that was not sent to it: a fact about that node."""
    _event(ctx, node, vocabulary.FOREIGN_RESULT, Severity.ERROR, {"command": clip(step, 120)})


def reported(ctx: Context, given: Reported) -> None:
    """Another system's report about a node counts like an event of the node."""
    text = f"{given.source}: {given.kind} at {given.component} of {given.node}"
    ctx.note("report", text, scope=f"node/{given.node}")
    _event(ctx, given.node, given.kind, given.severity, given.data, given.component)


def _event(
    ctx: Context,
    node: str,
    kind: str,
    severity: Severity,
    data: Mapping[str, Scalar],
    component: str = "node",
) -> None:
    event = Event(
        id=ctx.cause,
        node=node,
        kind=kind,
        component=component,
        severity=severity,
        at="",
        age_s=0.0,
        boot="",
        count=1,
        data=dict(data),
    )
    if ctx.state.pack is None:
        ctx.state.early.append(Early(event=event, at=ctx.now))
    else:
        ctx.changed.extend(symptoms.feed(ctx, event))

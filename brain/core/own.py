"""Facts that no agent says: a node's silence and return, messages that nobody can read, and other systems' reports."""

from collections.abc import Mapping

from agent.contract.messages import Event, Scalar, Severity
from brain.core import symptoms, vocabulary
from brain.core.inputs import Malformed, NodeState, Reported
from brain.core.state import Node
from brain.core.turn import Turn


def node_state(turn: Turn, given: NodeState) -> None:
    """A node fell silent or is heard again."""
    node = turn.state.nodes.get(given.node)
    if node is None:
        node = turn.state.nodes[given.node] = Node(name=given.node)
    if node.alive == given.alive:
        return
    node.alive = given.alive
    if given.alive:
        _event(turn, given.node, vocabulary.NODE_RETURNED, Severity.INFO, {})
    else:
        _event(turn, given.node, vocabulary.NODE_SILENT, Severity.ERROR, {"silent_s": given.silent_s})


def malformed(turn: Turn, given: Malformed) -> None:
    """Counted; a node that says what cannot be read has a symptom of its own."""
    turn.state.malformed += 1
    turn.note("input.malformed", f"{given.subject}: {given.why}", data={"total": turn.state.malformed})
    if given.node:
        _event(turn, given.node, vocabulary.CONTRACT_BROKEN, Severity.WARNING, {"why": given.why})


def reported(turn: Turn, given: Reported) -> None:
    """Another system's word about a node counts like the node's own."""
    text = f"{given.source}: {given.kind} at {given.component} of {given.node}"
    turn.note("report", text, scope=f"node/{given.node}")
    _event(turn, given.node, given.kind, given.severity, given.data, given.component)


def _event(
    turn: Turn,
    node: str,
    kind: str,
    severity: Severity,
    data: Mapping[str, Scalar],
    component: str = "node",
) -> None:
    event = Event(
        id=turn.cause,
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
    turn.changed.extend(symptoms.feed(turn, event))

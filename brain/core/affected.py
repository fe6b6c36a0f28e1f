"""Which nodes an incident affects: each is counted once, and stays counted while it lasts. Pure."""

from collections.abc import Iterable
from itertools import islice, takewhile

from brain.core.context import Context
from brain.core.paging import escalation
from brain.core.state import Incident


def add(ctx: Context, incident: Incident, nodes: Iterable[str]) -> None:
    """Counts nodes in, each once. One of them may stand outside of a maintenance window."""
    known = incident.affected
    if isinstance(nodes, dict):  # of a place: in a storm one more with each event, at the end of thousands
        nodes = _new_ones(nodes, known)
    known |= {node: True for node in nodes if node}
    incident.nodes = max(incident.nodes, len(incident.affected))
    escalation.look_again(ctx, incident)


def _new_ones(nodes: dict[str, float], known: dict[str, bool]) -> list[str]:
    """The nodes that are not known, in their order."""
    newest = list(takewhile(lambda node: node not in known, reversed(nodes)))
    if len(nodes) - len(newest) <= len(known) and all(
        map(known.__contains__, islice(nodes, len(nodes) - len(newest)))
    ):
        return newest[::-1]
    return [node for node in nodes if node not in known]

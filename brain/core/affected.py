"""Which nodes an incident affects: each is counted once, and stays counted while it lasts. And when many more fall ill. Pure."""

from collections.abc import Iterable
from itertools import islice, takewhile

from agent.contract.counted import counted, span
from brain.core.context import Context
from brain.core.paging import escalation
from brain.core.state import Incident, SymptomState

LONG_AFTER_S = 600.0  # the next nodes of one fault come sooner
SHOWN = 12  # nodes that the page names


def add(ctx: Context, incident: Incident, nodes: Iterable[str]) -> None:
    """Counts nodes in, each once. One of them may stand outside of a maintenance window."""
    known = incident.affected
    if isinstance(nodes, dict):  # of a place: in a storm one more with each event, at the end of thousands
        nodes = _new_ones(nodes, known)
    known |= {node: True for node in nodes if node}
    incident.nodes = max(incident.nodes, len(incident.affected))
    escalation.look_again(ctx, incident)


def grows(ctx: Context, incident: Incident, symptom: SymptomState, nodes: Iterable[str]) -> None:
    """A symptom of the incident began or has new facts, on these nodes."""
    add(ctx, incident, nodes)
    _more_at_once(ctx, incident, symptom)


def _more_at_once(ctx: Context, incident: Incident, wide: SymptomState) -> None:
    """Many more nodes fell ill at once, long after the others: who was called for these hears of it, once for each time. Not
    where another incident is about the new ones, as that of a narrower place.
    """
    if len(wide.bursts) < 2 or not incident.pages.first_at:
        return
    before, last = wide.bursts[-2], wide.bursts[-1]
    if last.since - before.until <= LONG_AFTER_S or last.since <= incident.burst_told:
        return
    incident.burst_told = last.since
    new = [node for node, at in wide.members.items() if at >= last.since]
    others = [one for one in ctx.index.open_at.get("", {}).values() if one.opened_at >= last.since]
    if any(2 * sum(node in one.affected for node in new) > len(new) for one in others):
        return
    more, later, named = (
        counted(len(new), "more node"),
        span(last.since - before.until),
        ", ".join(new[:SHOWN]),
    )
    escalation.page(ctx, incident, "update", f"{more} fell ill at once, {later} after the others: {named}")


def _new_ones(nodes: dict[str, float], known: dict[str, bool]) -> list[str]:
    """The nodes that are not known, in their order."""
    newest = list(takewhile(lambda node: node not in known, reversed(nodes)))
    if len(nodes) - len(newest) <= len(known) and all(
        map(known.__contains__, islice(nodes, len(nodes) - len(newest)))
    ):
        return newest[::-1]
    return [node for node in nodes if node not in known]

"""What the engine knows of one node now: plain values that no engine changes meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass

from brain.console import held, shapes
from brain.console.api.node_shapes import IncidentBriefShape, NodeDrainShape
from brain.console.api.status_shapes import HoldShape, NodeShape
from brain.console.fleet.facts import OVER, OpenIncident, opened
from brain.core.pack.spec import Place
from brain.core.state import Incident, State


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """Of one node."""

    node: NodeShape
    place: Place | None
    # has it been heard of?
    known: bool
    booted_at: float
    # the open ones that are about it
    incidents: Sequence[IncidentBriefShape]
    opened: Sequence[OpenIncident]
    holds: Sequence[HoldShape]
    drains: Sequence[NodeDrainShape]
    # None: the scheduler was not asked, or could not be
    jobs: Sequence[str] | None
    jobs_at: float


def of(state: State, node: NodeShape) -> NodeFacts:
    """Returns them; some milliseconds with many incidents."""
    name = node.name
    places = state.pack.places if state.pack else {}
    own = state.nodes.get(name)
    here = [one for one in state.incidents.values() if one.state not in OVER and _about(one, name)]
    answer = state.jobs.get(name)
    return NodeFacts(
        node=node,
        place=places.get(name),
        known=own is not None,
        booted_at=own.booted_at if own else 0.0,
        incidents=[_brief(one) for one in sorted(here, key=lambda one: (one.severity, one.id))],
        opened=[opened(one, state) for one in here],
        holds=held.over(state, f"node/{name}", name),
        drains=[
            NodeDrainShape(incident=incident, since=shapes.iso(drain.since), sure=drain.sure)
            for incident, drain in state.drains.get(name, {}).items()
        ],
        jobs=list(answer.jobs) if answer and answer.known else None,
        jobs_at=answer.at if answer else 0.0,
    )


def _about(incident: Incident, name: str) -> bool:
    return incident.node == name or name in incident.affected


def _brief(incident: Incident) -> IncidentBriefShape:
    return IncidentBriefShape(
        id=incident.id,
        state=incident.state.value,
        severity=incident.severity.value,
        cause=incident.cause,
        scope=incident.scope,
        opened_at=shapes.iso(incident.opened_at),
        closed_at=None,
        closed_why="",
    )

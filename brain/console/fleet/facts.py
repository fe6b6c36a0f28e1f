"""What a map of the fleet is made from, of now or of a past time: plain values that no engine changes meanwhile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from brain.console.brain_view import BrainView
from brain.core.pack.spec import Place
from brain.core.state import Incident, IncidentState, RunState, State

OVER = (IncidentState.CLOSED, IncidentState.EXPLAINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIncident:
    """An incident that is open, or was."""

    id: str
    severity: str
    state: str
    cause: str
    scope: str
    # the nodes that it is about
    nodes: Sequence[str]
    # a run of it waits for an approval
    asks: bool
    # its evidence is that nodes are not heard
    silence: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The fleet at one time."""

    # seconds since 1970; None: now
    at: float | None
    # node -> is it heard? None: it never was
    nodes: Mapping[str, bool | None]
    incidents: Sequence[OpenIncident]
    # that gpuward keeps out of service
    drained: frozenset[str]
    # scopes on which operators' holds stand
    held: Sequence[str]
    places: Mapping[str, Place] = field(default_factory=dict)
    # node -> what it told of itself last, as JSON
    told: Mapping[str, str] = field(default_factory=dict)
    # node -> version of its agent
    agents: Mapping[str, str] = field(default_factory=dict)
    # node -> the first job on it
    jobs: Mapping[str, str] = field(default_factory=dict)


INVENTORY = "node.inventory "


def now(brain: BrainView) -> Facts:
    """Returns those of now. It only copies: the event loop waits for it, some milliseconds for 10,000 nodes."""
    state = brain.live.state
    nodes: dict[str, bool | None] = dict.fromkeys(state.pack.places if state.pack else ())
    nodes |= {name: node.alive for name, node in state.nodes.items()}
    return Facts(
        at=None,
        nodes=nodes,
        incidents=_open(state),
        drained=frozenset(state.drains),
        held=[hold.scope for hold in state.holds.values()],
        places=state.pack.places if state.pack else {},
        told={
            key.removeprefix(INVENTORY): told
            for key, told in state.peers.items()
            if key.startswith(INVENTORY)
        },
        agents=brain.agent_versions(),
        jobs={name: one.jobs[0] for name, one in state.jobs.items() if one.jobs},
    )


def _open(state: State) -> list[OpenIncident]:
    asking = {run.incident for run in state.runs.values() if run.state is RunState.APPROVAL}
    return [_plain(one, asks=one.id in asking) for one in state.incidents.values() if one.state not in OVER]


def opened(incident: Incident, state: State) -> OpenIncident:
    """Returns one incident that is open."""
    runs = [state.runs[run] for run in incident.runs if run in state.runs]
    return _plain(incident, asks=any(run.state is RunState.APPROVAL for run in runs))


def _plain(one: Incident, *, asks: bool) -> OpenIncident:
    return OpenIncident(
        id=one.id,
        severity=one.severity.value,
        state=one.state.value,
        cause=one.cause,
        scope=one.scope,
        nodes=(one.node,) if one.node else tuple(one.affected),
        asks=asks,
    )

"""What the engine is told: everything that decides comes in as one of these, in the order of the log.

Each input has an `id` that names it for ever; the same one delivered again changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.contract.commands import Outcome
from agent.contract.messages import Event, Severity
from brain.core.spec import Pack, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSeen:
    """A node's event."""

    event: Event

    @property
    def id(self) -> str:
        """The event's own."""
        return self.event.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """A message that could not be read. `node` is who published it; empty when it was not a node."""

    id: str
    subject: str
    node: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerFired:
    """A timer that the engine had set is due. Ignored when it was set anew or cancelled meanwhile."""

    id: str
    name: str
    due: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A leader says that it will perform this step now. Counts only with the present leader's epoch."""

    id: str
    step: str
    epoch: int
    brain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """How a step ended. (A node's result comes as an event `command.result`; the engine reads it as this.)"""

    id: str
    step: str
    outcome: Outcome
    why: str
    data: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgress:
    """A long step is still under way. (A node says it by an event `command.progress`.)"""

    id: str
    step: str
    elapsed_s: float
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """What a step would do, as the one who would do it says; it was not done. Not `ok`: it would be refused."""

    id: str
    step: str
    ok: bool
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsTold:
    """What the scheduler says that runs on a node. `protected` names a job that must not be disturbed."""

    id: str
    node: str
    known: bool  # False: the scheduler could not be asked; `why` says it
    jobs: tuple[str, ...] = ()
    protected: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A fact about a node that another system reports (a fabric manager's event, say), not the node itself."""

    id: str  # derived from the other system's own id, so that the same report counts once
    source: str  # e.g. ufm
    node: str
    kind: str  # one of agent/contract/kinds
    component: str
    severity: Severity
    data: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A person's word. Verbs and their args:

    hold {scope, why, for_s?} · release {scope} · approve {id} · deny {id, why?} · ack {id} · close {id, why?} ·
    mode {runbook, mode, nodes?} · return {node} · start {runbook, node, why?} · reset {} (the breaker).
    `id` is a run's or an incident's; `scope` is a scope as in incidents (`node/n1`, `leaf/l3`) or `all`.
    """

    id: str
    who: str
    verb: str
    args: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """A node fell silent (no beat) or is heard again."""

    id: str
    node: str
    alive: bool
    silent_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """A brain leads from here on; every intent of an older epoch that comes later is void."""

    id: str
    epoch: int
    brain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PackLoaded:
    """These rules are in force from here on."""

    id: str
    pack: Pack


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What became of a page (`page` is SendPage.id)."""

    id: str
    page: str
    ok: bool
    channel: str
    why: str = ""


Input = (
    EventSeen
    | Malformed
    | TimerFired
    | Intent
    | StepResult
    | StepProgress
    | StepPlan
    | JobsTold
    | Reported
    | Said
    | NodeState
    | Leader
    | PackLoaded
    | Delivery
)

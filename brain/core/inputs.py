"""The engine's inputs: everything that its decisions depend on comes as one of these, in the order of the log.

Each input has an `id`. An input that is delivered again, with the same id, changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.contract.commands import Outcome
from agent.contract.messages import Event, Severity, clip
from brain.core.jobs_seen import JobSeen
from brain.core.pack.spec import Pack, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSeen:
    """A node's event."""

    event: Event

    @property
    def id(self) -> str:
        """The event's id."""
        return self.event.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """A message on the log that could not be read."""

    id: str
    subject: str
    # that published it; empty: not a node
    node: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerFired:
    """A timer that the engine set is due. Ignored if it was cancelled or set to another time since, or is not due yet."""

    id: str
    name: str
    due: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A leader is about to perform this step. Counts only with the present leader's epoch."""

    id: str
    step: str
    epoch: int
    brain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """How a step ended: an action of the brain, or a command that its node did not accept.

    A node reports the result of its own action as an event, `command.result`; `result_of_node` reads it as this.
    """

    id: str
    step: str
    outcome: Outcome
    why: str
    data: Mapping[str, Scalar] = field(default_factory=dict)
    # the node that reports it; empty: the brain does
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgress:
    """A long action of the brain is still under way.

    A node reports the progress of its own action as an event, `command.progress`; `progress_of_node` reads it as this.
    """

    id: str
    step: str
    elapsed_s: float
    # what it is doing; empty: not known
    text: str = ""
    # the node that reports it; empty: the brain does
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """The plan of a step: what the node or the brain would do. Nothing was done."""

    id: str
    step: str
    # False: the step would be refused; `lines` say why
    ok: bool
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsAnswer:
    """The scheduler's answer to AskJobs: which jobs run on a node."""

    id: str
    node: str
    # False: the scheduler could not be queried
    known: bool
    jobs: tuple[str, ...] = ()
    # a job among them that must not be disturbed; empty: none
    protected: str = ""
    # why it is protected, or why nothing is known
    why: str = ""
    # why the node takes no new jobs; empty: it takes them
    drained: str = ""
    # whether that is a drain of ours; None: this was not asked
    ours: bool | None = None
    # the incidents whose marks that drain has; "": a mark of ours that does not say
    marks: tuple[str, ...] = ()
    # which of the scheduler's records of the node it is about (Kubernetes: the Node object's uid); empty: it keeps one for ever
    record: str = ""
    # AskJobs.people: nothing is decided by this answer
    people: bool = False
    # the jobs as people know them, of many the first ones; earlier versions wrote none
    seen: tuple[JobSeen, ...] = ()
    # how many more there are
    unlisted: int = 0
    # name of the scheduler that was asked; empty: none has the node. None: an earlier version did not say
    scheduler: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A fact about a node that another system reports, for example a fabric manager."""

    # derived from the other system's own id, so that the same report counts once
    id: str
    # e.g. ufm
    source: str
    node: str
    # one of agent/contract/kinds
    kind: str
    component: str
    severity: Severity
    data: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCommand:
    """What an operator wants done. Verbs and their args:

    hold {scope, why, for_s?} · release {scope, or a hold's id} ·
    approve {id, rung?} · deny {id, why?} · ack {id} · close {id, why?} ·
    mode {runbook, mode, nodes?} · return {node} · forget {node, why?} · start {runbook, node, why?} · reset {} (the breaker).
    The brains themselves say forget {node, revoked, at} and admit {node} (brain/leader/revoked_nodes.py).
    `id` is a run's or an incident's; `scope` is a scope as in incidents (`node/n1`, `leaf/l3`) or `all`.
    """

    id: str
    who: str
    verb: str
    args: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """A node became unreachable, because no beat came for a while, or is reachable again."""

    id: str
    node: str
    alive: bool
    # since its last beat, when it became unreachable
    silent_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """A brain leads from here on. An intent of an older epoch that comes later is void."""

    id: str
    epoch: int
    brain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """The leader lives and the log takes what it writes: by this every brain knows. Nothing is decided by it."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PackLoaded:
    """These rules are in force from here on."""

    id: str
    pack: Pack


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The outcome of a page."""

    id: str
    # SendPage.id
    page: str
    ok: bool
    # that accepted it
    channel: str
    # not ok: why no channel accepted it
    why: str = ""
    # channel -> by what its receiver knows the alert, such as the key of a ticket
    tickets: Mapping[str, str] = field(default_factory=dict)


Input = (
    EventSeen
    | Malformed
    | TimerFired
    | Intent
    | StepResult
    | StepProgress
    | StepPlan
    | JobsAnswer
    | Reported
    | OperatorCommand
    | NodeState
    | Leader
    | Pulse
    | PackLoaded
    | Delivery
)


def result_of_brain(
    step: str, epoch: int, outcome: Outcome, why: str, data: Mapping[str, Scalar] | None = None
) -> StepResult:
    """The result of a step as a brain publishes it: with one id for each epoch, so that it counts once."""
    return StepResult(id=f"r:{step}:{epoch}", step=step, outcome=outcome, why=clip(why), data=data or {})


def result_of_node(event: Event) -> StepResult | None:
    """The result in a node's event; None: it has none. An outcome that this version does not know is UNKNOWN."""
    if event.kind != "command.result":
        return None
    data = dict(event.data)
    step, outcome, why = (str(data.pop(key, "")) for key in ("command", "outcome", "why"))
    known = Outcome(outcome) if outcome in set(Outcome) else Outcome.UNKNOWN
    return StepResult(id=event.id, step=step, outcome=known, why=why, data=data, node=event.node)


def progress_of_node(event: Event) -> StepProgress | None:
    """The progress report in a node's event; None: it has none."""
    if event.kind != "command.progress":
        return None
    elapsed_s = event.data.get("elapsed_s", 0.0)
    return StepProgress(
        id=event.id,
        step=str(event.data.get("command", "")),
        elapsed_s=float(elapsed_s) if isinstance(elapsed_s, (int, float)) else 0.0,
        text=str(event.data.get("text", "")),
        node=event.node,
    )

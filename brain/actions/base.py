"""The interface of the brain's own actions, and the ports that they use.

An action is declared in `brain/core/pack/actions.py` and built by `brain.actions.build` from the site's configuration.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar, Protocol, runtime_checkable

from agent.contract.errors import ActionError, Refused
from agent.contract.messages import Scalar
from brain.actions.marks import Mark
from brain.config import BrainConfig
from brain.core.inputs import Reported, StepResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One attempt of one step, as an action sees it."""

    # Of the step; after a crash the same id may come again, for a step of class `safe`
    id: str
    incident: str
    # Empty for a scope wider than a node
    node: str
    # Checked against the declaration of the action
    params: Mapping[str, Scalar]
    # The action is cancelled after this time
    timeout_s: float
    # Cause, scope and rule
    why: str
    # Takes one sentence about what the action is doing now, for operators who watch a long step
    progress: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an action did."""

    # One sentence for operators
    text: str
    # Readings, for the note and the evidence
    data: Mapping[str, Scalar] = field(default_factory=dict)


class Unwell(ActionError):
    """What an action looked at is not well: the step has failed, and keeps what was read."""

    def __init__(self, text: str, data: Mapping[str, Scalar]) -> None:
        """As in Done."""
        super().__init__(text)
        self.data = data


class NoRecord(Refused):
    """The scheduler has no such node."""


class Action(Protocol):
    """One thing that the brain can do. Errors as for a node's action (agent/contract/errors.py).

    It may be cancelled at any await: at its deadline, by an operator, or when this brain no longer leads. What it has
    not requested by then must not be done.
    """

    name: ClassVar[str]

    async def plan(self, order: Order) -> list[str]:
        """Returns what `run` would do, one line per step. It only reads. Refused where `run` would be refused."""
        ...

    async def run(self, order: Order) -> Done:
        """Performs the action and verifies that it took effect."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job (Slurm) or pod (Kubernetes) on a node."""

    # Slurm job id, or namespace/pod
    id: str
    user: str = ""
    state: str = ""
    # Indices or UUIDs as the scheduler knows them; empty: unknown
    gpus: tuple[str, ...] = ()
    name: str = ""
    # How many it has there; a scheduler may know the number but not which
    gpu_count: int = 0
    # The setting that forbids to stop it, e.g. "user alice"; empty: it is not protected
    protected: str = ""
    # Why it cannot be stopped here and start again elsewhere, e.g. "was submitted with --no-requeue"; empty: it can, or unknown
    fixed: str = ""
    # Tells this run of the job from the next one (start time or uid); empty: unknown
    run: str = ""
    # How many nodes it has in all; 0: unknown
    nodes: int = 0
    # Of a pod: the name of its workload, or of its controller; empty: none
    owner: str = ""
    # Of a pod: the label that all pods of its workload have, key=value; empty: none is known
    workload: str = ""


# Asked right before a request that nobody can take back. Refused: it is not wanted any more.
Wanted = Callable[[], Awaitable[None]]


async def always() -> None:
    """It is wanted in any case."""


class NodeWitness(Protocol):
    """Publishes what another system, as the BMCs, says of nodes."""

    async def run(self) -> None:
        """Until cancelled; it asks only while this brain leads."""
        ...

    def mark_published(self, given: Reported) -> None:
        """Takes a report from the log, of whichever brain leads and from whichever system."""
        ...

    async def close(self) -> None:
        """Closes connections."""
        ...


class Scheduler(Protocol):
    """A workload manager. Each method reads back what it changed. Errors as in `Action`.

    Every method but `reboot` may be repeated when its outcome is unknown: it changes only what is still missing.
    """

    @property
    def name(self) -> str:
        """Its name in the configuration."""
        ...

    async def drained(self, node: str) -> str:
        """Returns the reason why the node takes no new jobs; empty when it does. Ours is that of `marks.written`."""
        ...

    async def marks(self, node: str) -> tuple[Mark, ...]:
        """Returns the marks of our drain: the incidents that want it. None where the drain is not ours."""
        ...

    async def drain(self, node: str, mark: Mark) -> None:
        """Stops new jobs on the node, or adds `mark` to our drain. A drain that is not ours is left as it is."""
        ...

    async def resume(self, node: str, owners: Collection[str] | None) -> bool:
        """Removes the marks of these incidents (None: all of ours), and with the last mark our drain.

        False: there was none of these marks, and nothing was changed.
        """
        ...

    async def jobs(self, node: str) -> list[Job]:
        """Returns the jobs on the node now, without daemons of the system."""
        ...

    async def requeue(self, job: Job, *, within_s: float = inf, wanted: Wanted = always) -> None:
        """Stops this run of the job and lets it start again elsewhere. A run that is over is left alone.

        ActionError says why it still runs after `within_s`, or after what the scheduler is configured to wait. What `wanted`
        raises ends it before the job is stopped.
        """
        ...

    async def reboot(self, node: str, mark: Mark) -> None:
        """Reboots the node when it is idle and waits until it is back; it stays drained by us. Refused where the
        scheduler cannot do that, and under a drain that is not ours.
        """
        ...


@runtime_checkable
class Sizes(Protocol):
    """A scheduler that does not say with each job how many nodes it has, and can be asked."""

    async def sized(self, jobs: Sequence[Job]) -> list[Job]:
        """Returns the same jobs with `nodes`, where it can tell. Errors as in `Action`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingDrain:
    """What stands on a node in its scheduler, seen at one moment."""

    # As of Scheduler.drained
    drained: str = ""
    # As of Scheduler.marks
    marks: tuple[Mark, ...] = ()
    # Tells the scheduler's record of the node from a later one of the same name; empty: it keeps one for ever
    record: str = ""


@runtime_checkable
class Renewing(Protocol):
    """A scheduler whose record of a node may be deleted and made anew, without our drain: which is nobody's decision."""

    @property
    def name(self) -> str:
        """As in Scheduler."""
        ...

    async def standing(self, node: str) -> StandingDrain:
        """Returns what stands there. NoRecord: nothing, for now. Other errors as in `Action`."""
        ...

    async def renew(self, node: str, marks: Sequence[Mark], record: str, wanted: Wanted = always) -> None:
        """Drains the node again under these marks, also beside a drain of somebody else, if this is still its record. Errors as
        in `standing`; it may be repeated. What `wanted` raises ends it; no `resume` of the node runs meanwhile.
        """
        ...


@runtime_checkable
class Fencing(Protocol):
    """A scheduler that keeps what ran on a silent node until somebody tells it that the node is off."""

    @property
    def name(self) -> str:
        """As in Scheduler."""
        ...

    async def say_off(self, node: str, incident: str) -> bool:
        """Says that the node is off, which the caller has seen: what ran there may start elsewhere. `resume` takes it back.

        False: nothing was said, as the node is not drained for this incident. Errors as in `Action`; it may be repeated.
        """
        ...


@runtime_checkable
class Telling(Protocol):
    """A scheduler that can show people, beside a drain, which incidents want it. By default it shows nothing."""

    @property
    def name(self) -> str:
        """As in Scheduler."""
        ...

    async def tell(self, node: str, incidents: Collection[str], before: Sequence[Mark] = ()) -> None:
        """Shows whether the marks of these incidents stand now. `before`: marks that were seen before they may have gone.

        Errors as in `Action`; it may be repeated.
        """
        ...

    async def tell_anew(self, forgotten: Collection[str] = ()) -> list[str]:
        """Sets right what stands there, on whichever node, and is not what the marks say now. Returns which nodes, as they are
        called there. `forgotten`: nodes of which a mark may stand, and at whose fault nobody looks any more. Errors as in
        `Action`; it may be repeated.
        """
        ...


class NodeCommands(Protocol):
    """Sends commands to nodes, for actions whose remedy is on another machine than the fault."""

    async def perform(
        self, node: str, action: str, params: Mapping[str, Scalar], *, of: Order, part: str
    ) -> StepResult:
        """Has `node` perform a node action under the id `<of.id>.<part>`; returns how it ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What an area is built from."""

    config: BrainConfig
    node_commands: NodeCommands
    # node -> the scheduler that has it
    schedulers: Callable[[str], Scheduler | None]
    # Closes connections at the end
    on_close: Callable[[Callable[[], Awaitable[object]]], object]


class ActionGroup(Protocol):
    """A group of actions that share their configuration."""

    def __call__(self, site: Site) -> list[Action]:
        """Returns its actions; none when the site configures nothing for them. ConfigError names the key."""
        ...


def text(params: Mapping[str, Scalar], name: str, default: str, known: tuple[str, ...] = ()) -> str:
    """Returns a text parameter; Refused when it is none of `known`."""
    value = str(params.get(name, default))
    if known and value not in known:
        raise Refused(f"{name} must be one of {', '.join(known)}, not {value!r}")
    return value


def number(params: Mapping[str, Scalar], name: str, default: float, least: float, most: float) -> float:
    """Returns a number within its limits; Refused when it is outside of them."""
    value = params.get(name, default)
    if isinstance(value, (bool, str)) or not least <= value <= most:  # refuses nan too
        raise Refused(f"{name} must be {least:g} to {most:g}, not {value!r}")
    return float(value)

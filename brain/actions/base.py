"""The shape of what the brain does itself, and the ports between its actions.

An action is declared in `brain/core/actions.py` and built in `brain.actions.build` from the site's configuration.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from agent.contract.commands import Outcome
from agent.contract.errors import Refused
from agent.contract.messages import Scalar
from brain.config import BrainConfig

MARK = "gpuward"  # stands in every reason, label and annotation that we write: only what carries it is undone by us


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One attempt of one step, as an action sees it."""

    id: str  # the step's; the same id may come again after a crash, for a step of class `safe`
    incident: str
    node: str  # what it is about; empty for a scope wider than a node
    params: Mapping[str, Scalar]  # checked against the table of actions
    timeout_s: float  # the action is cancelled after so long
    why: str  # cause, scope and rule
    say: Callable[[str], None] = lambda _: None  # what it is doing now, for people who watch a long step


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an action did."""

    text: str  # one sentence for people
    data: Mapping[str, Scalar] = field(default_factory=dict)  # readings, for the audit line and the evidence


class Action(Protocol):
    """What the brain can do under one name. Errors as for a node's action (agent/contract/errors.py).

    It may be cancelled at any await: at its deadline, by a person, or when this brain leads no more; what it has
    not yet asked for must then not be done.
    """

    name: ClassVar[str]

    async def plan(self, order: Order) -> list[str]:
        """What `run` would do, one line a step; reads, changes nothing. Refused where `run` would be refused."""
        ...

    async def run(self, order: Order) -> Done:
        """Does it, and sees that it is done."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job (Slurm) or pod (Kubernetes) on a node."""

    id: str  # Slurm job id, or namespace/pod
    user: str = ""
    state: str = ""
    gpus: tuple[str, ...] = ()  # indices or UUIDs as the scheduler knows them; empty: not known
    name: str = ""
    gpu_count: int = 0  # how many it has there; the scheduler may know the number but not which
    protected: str = (
        ""  # the setting by which nobody may stop it, e.g. "user alice"; empty: it is not protected
    )


class Scheduler(Protocol):
    """What has jobs on nodes. Each method reads back what it changed. Errors as in `Action`."""

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        ...

    async def drained(self, node: str) -> str:
        """Why the node takes no new jobs: the reason text; empty when it does. Ours begins with MARK."""
        ...

    async def drain(self, node: str, why: str) -> None:
        """No new jobs there, with MARK and `why` as the reason; somebody else's drain is left as it is."""
        ...

    async def resume(self, node: str) -> bool:
        """Takes our drain off. False: there was none of ours, nothing was changed."""
        ...

    async def jobs(self, node: str) -> list[Job]:
        """What runs there now (not: daemons of the system)."""
        ...

    async def requeue(self, job: str) -> None:
        """Stops the job and lets it begin anew elsewhere."""
        ...

    async def reboot(self, node: str, why: str) -> None:
        """Reboots the node when it is idle and waits until it is back; it stays drained by us. Refused where the
        scheduler has no such thing, and under somebody else's drain.
        """
        ...


class Fleet(Protocol):
    """Commands to nodes, for actions whose remedy lies on another machine than the fault."""

    async def order(
        self, node: str, action: str, params: Mapping[str, Scalar], *, of: Order, part: str
    ) -> tuple[Outcome, str]:
        """Lets `node` perform a node action under the id `<of.id>.<part>`; how it ended, and its text."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What an area is built from."""

    config: BrainConfig
    fleet: Fleet
    schedulers: Callable[[str], Scheduler | None]  # node -> the scheduler that has it
    on_close: Callable[[Callable[[], Awaitable[object]]], object]  # closes connections at the end


class Area(Protocol):
    """A group of actions that share their configuration."""

    def __call__(self, site: Site) -> list[Action]:
        """Its actions; empty when the site configures nothing for them. ConfigError names the key."""
        ...


def text(params: Mapping[str, Scalar], name: str, default: str, known: tuple[str, ...] = ()) -> str:
    """A text parameter; Refused when it is none of `known`."""
    value = str(params.get(name, default))
    if known and value not in known:
        raise Refused(f"{name} must be one of {', '.join(known)}, not {value!r}")
    return value


def number(params: Mapping[str, Scalar], name: str, default: float, least: float, most: float) -> float:
    """A parameter within its limits; Refused when it is not."""
    value = params.get(name, default)
    if isinstance(value, (bool, str)) or not least <= value <= most:  # refuses nan too
        raise Refused(f"{name} must be {least:g} to {most:g}, not {value!r}")
    return float(value)

"""The shape of an action: one class in one file, listed in `agent/actions/__init__.py`. An argument list or a call,
never a shell.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, runtime_checkable

from agent.contract.errors import ActionError, Refused
from agent.contract.figures import Figure
from agent.contract.messages import Scalar

if TYPE_CHECKING:
    from agent.actions.action_setup import ActionSetup

Params = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an action did."""

    # One sentence for people.
    text: str
    # File name of the evidence bundle that it made; empty: none.
    evidence: str = ""
    evidence_bytes: int = 0
    # agent.look: sources of kinds that could not look, comma separated; empty: none, or another action.
    blind: str = ""
    # What it measured.
    figures: tuple[Figure, ...] = ()
    # Equal on nodes whose figures may be compared; empty: they may not be.
    alike: str = ""
    # What it could not test, and why, one sentence each: a tool that is not installed is no fault of the node.
    untested: tuple[str, ...] = ()


class NotPassed(ActionError):
    """The machine was tested and did not pass. `done` has the text, and what there is of evidence and figures."""

    def __init__(self, done: Done) -> None:
        super().__init__(done.text)
        self.done = done


class StillRunning(ActionError):
    """What was begun continues without the agent, which may end now; how it ended is known after the next start
    (`Resumable.resume`). Raised by `run` when it is cancelled, and by `resume`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCommand:
    """The command for which an action runs."""

    id: str
    report_progress: Callable[[str], None]


RUNNING_COMMAND: ContextVar[RunningCommand | None] = ContextVar("RUNNING_COMMAND", default=None)


def report_progress(text: str) -> None:
    """What the action is doing now; it is sent when the command takes long. From any thread; does nothing outside of a
    command.
    """
    if (command := RUNNING_COMMAND.get()) is not None:
        command.report_progress(text)


class Action(Protocol):
    """What a node can do under one name of `agent.contract.actions.ACTIONS`.

    `params` match that declaration; limits, and what this machine allows, are checked here. Errors: Refused (nothing was
    done, and another attempt will not help), Unreachable (nothing was done), TimedOut (the outcome is unknown),
    ActionError (it was done and did not help).
    """

    name: ClassVar[str]

    async def plan(self, params: Params) -> list[str]:
        """What `run` would do, one line per step; changes nothing. Refused where `run` would be refused."""
        ...

    async def run(self, params: Params) -> Done:
        """Does it. May be cancelled at its time limit: then it leaves nothing half done."""
        ...

    async def recover(self, params: Params) -> None:
        """Repairs what must not stay as it is, after the agent died during `run` and was started again."""
        ...


class NodeAction(Action, Protocol):
    """An action of a real node."""

    @classmethod
    def of(cls, setup: "ActionSetup") -> Self:
        """One for this machine and configuration."""
        ...


@runtime_checkable
class Resumable(Action, Protocol):
    """An action that continues when the agent ends, or ends the agent itself: at the next start `resume` is called
    instead of `recover`.
    """

    async def resume(self, params: Params, *, rebooted: bool) -> Done:
        """How it ended. `rebooted`: the node has another boot id now than when the command was accepted.

        Errors as of `run`, and StillRunning: then it is called again until the command's time is over.
        """
        ...


def number(params: Params, name: str, default: float, least: float, most: float) -> float:
    """A parameter within its limits; Refused when it is not."""
    value = float(params.get(name, default))
    if not least <= value <= most:  # refuses nan too
        raise Refused(f"{name} must be {least:g} to {most:g}, not {value:g}")
    return value

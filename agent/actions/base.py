"""The shape of an action: one file, listed in `agent.actions.actions`. An argument list or a call, never a
shell.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from agent.contract.errors import ActionError, Refused
from agent.contract.messages import Scalar

Params = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an action did."""

    text: str  # one sentence for people
    evidence: str = ""  # file name of the bundle that it made, to be sent up
    evidence_bytes: int = 0  # its size


class Underway(ActionError):
    """What was begun goes on without the agent, which may end now: how it ended is known after its next start
    (`Outliving.resume`). Raised by `run` when it is cancelled, and by `resume`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The command for which an action runs, for what the action has no parameter for."""

    command: str  # its id
    say: Callable[[str], None]


CALL: ContextVar[Call | None] = ContextVar("CALL", default=None)


def say(text: str) -> None:
    """What the action is doing now; goes up when it takes long. From any thread; nothing outside of a command."""
    if (call := CALL.get()) is not None:
        call.say(text)


class Action(Protocol):
    """What this node can do under one name of `agent.contract.commands.ACTIONS`.

    `params` have passed that table; limits and what this machine allows are checked here. Errors: Refused
    (nothing was done, asking again will not help), Unreachable (nothing was done), TimedOut (nobody
    knows), ActionError (done and did not help).
    """

    name: ClassVar[str]

    async def plan(self, params: Params) -> list[str]:
        """What `run` would do, one line a step; changes nothing. Refused where `run` would be refused."""
        ...

    async def run(self, params: Params) -> Done:
        """Does it. May be cancelled at its time limit: then it leaves nothing half done."""
        ...

    async def recover(self, params: Params) -> None:
        """The agent died while `run` was under way and has started again: puts right what must not stay
        so.
        """
        ...


@runtime_checkable
class Outliving(Action, Protocol):
    """An action that the agent does not survive: what became of it is asked at the next start, instead of
    `recover`.
    """

    async def resume(self, params: Params, *, rebooted: bool) -> Done:
        """It was under way when the agent ended; `rebooted`: by now the node has another boot id.

        Errors as of `run`, and Underway: it goes on. It is asked again then, until the command's time is over.
        """
        ...


def number(params: Params, name: str, default: float, least: float, most: float) -> float:
    """A parameter within its limits; Refused when it is not."""
    value = float(params.get(name, default))
    if not least <= value <= most:  # refuses nan too
        raise Refused(f"{name} must be {least:g} to {most:g}, not {value:g}")
    return value

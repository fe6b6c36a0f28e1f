"""The shape of an action: one file, listed in `agent.actions.actions`. An argument list or a call, never a
shell.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from agent.contract.errors import Refused
from agent.contract.messages import Scalar

Params = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an action did."""

    text: str  # one sentence for people
    evidence: str = ""  # name of the bundle that it made


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


def number(params: Params, name: str, default: float, least: float, most: float) -> float:
    """A parameter within its limits; Refused when it is not."""
    value = float(params.get(name, default))
    if not least <= value <= most:  # refuses nan too
        raise Refused(f"{name} must be {least:g} to {most:g}, not {value:g}")
    return value

"""What the brain needs of a BMC, whatever it speaks: the port of the back ends `redfish` and `ipmi`."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol

from pydantic import Field

from agent.contract.errors import ActionError, Refused, TimedOut
from agent.contract.messages import Scalar

Seconds = Annotated[float, Field(gt=0, le=600)]


class Power(StrEnum):
    """The power state of a node, as its BMC tells it."""

    ON = "on"
    OFF = "off"  # verified: the BMC says so now
    CHANGING = "changing"  # on its way up or down
    UNKNOWN = "unknown"  # the BMC answers and does not know


class Wish(StrEnum):
    """What a BMC can be asked for."""

    ON = "on"
    OFF = "off"  # at once, without the operating system
    SHUTDOWN = "orderly shutdown"  # the operating system goes down first, if it can
    CYCLE = "power cycle"  # power off and on by the BMC itself
    RESTART = "orderly restart"  # the operating system goes down first, if it can
    RESET = "hard restart"  # without the operating system, power stays
    NMI = "non-maskable interrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What a BMC can tell of its node. Bounded: the worst sensors and the newest events come first."""

    facts: Mapping[str, Scalar] = field(default_factory=dict)  # health, model, serial number, ...
    sensors: Mapping[str, str] = field(default_factory=dict)  # name -> reading with unit and state
    bad: tuple[str, ...] = ()  # names of the sensors that are not well
    events: tuple[str, ...] = ()  # one line each, newest first
    lacks: tuple[str, ...] = ()  # what could not be read, and why


class Bmc(Protocol):
    """One BMC, logged in. Its methods are asked one at a time.

    Errors: Unreachable when a reading got no answer. For `ask` see there.
    """

    @property
    def where(self) -> str:
        """Protocol and address, for people."""
        ...

    @property
    def pace(self) -> "Pace":
        """How long it may take."""
        ...

    async def power(self) -> Power:
        """The power state now."""
        ...

    async def offers(self) -> frozenset[Wish]:
        """What it says it can do."""
        ...

    async def last_reset(self) -> str:
        """When the node was last reset, in the BMC's own words; empty when it does not tell."""
        ...

    async def ask(self, wish: Wish) -> None:
        """Sends the request once; back when the BMC has accepted it, which does not mean that it did it.

        Refused: the BMC says no. Unreachable: the request was not sent, or the BMC said "not now".
        TimedOut: it was sent and nobody knows what became of it.
        """
        ...

    async def readings(self, within_s: float) -> Readings:
        """Sensors and event log, what can be had in so long."""
        ...


class Backend(Protocol):
    """One protocol with the options of one table."""

    def open(self, node: str) -> AbstractAsyncContextManager[Bmc]:
        """Logs in to the node's BMC (once: BMCs lock accounts), and out at the end.

        Refused: wrong password, certificate or configuration. Unreachable: it does not answer.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long a BMC may take."""

    poll_s: float = 1.0
    settle_s: float = 120.0
    unseen_s: float = 45.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcOptions:
    """What every table `[bmc.<name>]` holds beside its `type`."""

    address: str = ""  # with {node}: redfish "https://{node}-bmc.example", ipmi "{node}-bmc.example[:port]"
    addresses: Path | None = (
        None  # TOML or YAML file, node -> address; a node that is not in it has no BMC here
    )
    nodes: str = "*"  # glob of node names
    user: str
    password_file: Path
    fallback: str = ""  # name of the table that is used when this one does not answer; empty: none
    answer_s: Seconds = 20.0  # one answer of the BMC
    connect_s: Seconds = 5.0  # until the BMC takes a connection
    poll_s: Seconds = 1.0  # between two looks at the power state
    settle_s: Seconds = 120.0  # how long it may take from "accepted" to on or off
    unseen_s: Seconds = 45.0  # a cycle that is never seen off for so long is not taken as done
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    @property
    def pace(self) -> Pace:
        """The part that actions need."""
        return Pace(poll_s=self.poll_s, settle_s=self.settle_s, unseen_s=self.unseen_s)


async def settled(bmc: Bmc, want: Power, within_s: float) -> bool:
    """Waits until the power state is `want`. False: it is another one at the end. TimedOut: it cannot be read."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + within_s
    while True:
        trouble: ActionError | None = None
        try:
            if await bmc.power() is want:
                return True
        except ActionError as error:
            trouble = error  # a BMC that has just been asked for something is often busy, or restarts
        if loop.time() >= ends:
            break
        await asyncio.sleep(min(bmc.pace.poll_s, max(ends - loop.time(), 0.01)))
    if trouble is not None:
        raise TimedOut(f"the power state cannot be read: {trouble}") from trouble
    return False


async def switch(bmc: Bmc, wish: Wish, want: Power, within_s: float) -> None:
    """Asks for a power state and sees that it is so; an answer that got lost is replaced by looking.

    ActionError: the BMC accepted it and did not do it.
    """
    lost: TimedOut | None = None
    try:
        await bmc.ask(wish)
    except TimedOut as error:
        lost = error
    except Refused:
        if await bmc.power() is want:
            return  # somebody else was quicker; most BMCs refuse what is so already
        raise
    if await settled(bmc, want, min(within_s, bmc.pace.settle_s)):
        return
    if lost is not None:
        raise TimedOut(f"{lost}; the node is not {want} yet") from lost
    raise ActionError(
        f"{bmc.where} accepted {wish!s} and the node is still not {want}: the BMC does not do what it says"
    )

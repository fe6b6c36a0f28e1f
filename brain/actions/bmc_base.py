"""The port of the BMC backends `redfish` and `ipmi`: what the brain needs of a BMC, whatever its protocol."""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

from pydantic import Field

from agent.contract.errors import ActionError, Refused, TimedOut
from agent.contract.messages import Scalar
from brain.actions.bmc_health import BmcHealth

Seconds = Annotated[float, Field(gt=0, le=600)]


class Power(StrEnum):
    """The power state of a node, as its BMC reports it."""

    ON = "on"
    OFF = "off"  # verified: the BMC reports it now
    CHANGING = "changing"  # on its way up or down
    UNKNOWN = "unknown"  # the BMC answers but does not know


class BmcRequest(StrEnum):
    """What a BMC can be asked to do."""

    ON = "on"
    OFF = "off"  # immediately, without the operating system
    SHUTDOWN = "orderly shutdown"  # the operating system shuts down first, if it can
    CYCLE = "power cycle"  # power off and on by the BMC itself
    RESTART = "orderly restart"  # the operating system shuts down first, if it can
    RESET = "hard restart"  # without the operating system; power stays on
    NMI = "non-maskable interrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What a BMC reports about its node. Bounded: the worst sensors and the newest events come first."""

    # Health, model, serial number, ...
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    # name -> reading with unit and state
    sensors: Mapping[str, str] = field(default_factory=dict)
    # Names of the unhealthy sensors
    bad: tuple[str, ...] = ()
    # One line each, newest first
    events: tuple[str, ...] = ()
    # What could not be read, and why
    missing: tuple[str, ...] = ()


class Bmc(Protocol):
    """One BMC after login. Its methods are called one at a time.

    Unreachable: a read got no answer. For `request` see there.
    """

    @property
    def where(self) -> str:
        """Protocol and address, for messages."""
        ...

    @property
    def timing(self) -> "BmcTiming":
        """How long it may take."""
        ...

    async def power(self) -> Power:
        """Returns the power state now."""
        ...

    async def offers(self) -> frozenset[BmcRequest]:
        """Returns the requests that it says it supports."""
        ...

    async def last_reset(self) -> str:
        """Returns the time of the node's last reset as the BMC writes it; empty when it does not report one."""
        ...

    async def request(self, wanted: BmcRequest) -> None:
        """Sends the request once and returns when the BMC has accepted it, which does not mean that it did it.

        Refused: the BMC rejected it. Unreachable: it was not sent, or the BMC is busy. TimedOut: it was sent, and its
        outcome is unknown.
        """
        ...

    async def readings(self, within_s: float) -> Readings:
        """Returns what can be read of sensors and event log within this time."""
        ...

    async def health(self, within_s: float, turn: int) -> BmcHealth:
        """Returns how the node's parts are, as far as it can be read within this time. `turn`: the number of this look."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSource:
    """Where a BMC tells its events as they come, and how it is asked for them."""

    where: str
    url: str
    user: str
    word: str = field(repr=False)
    # None: it is http
    tls: ssl.SSLContext | None
    connect_s: float
    answer_s: float


@runtime_checkable
class Announcing(Protocol):
    """A BMC that may have a stream of events."""

    async def events(self) -> EventSource | None:
        """Returns where it is; None: it has none. Errors as of `Bmc.power`."""
        ...


class Backend(Protocol):
    """One protocol with the options of one table."""

    def open(self, node: str) -> AbstractAsyncContextManager[Bmc]:
        """Logs in to the node's BMC, and out at the end. Only one attempt: BMCs lock accounts.

        Refused: wrong password, certificate or configuration. Unreachable: it does not answer.
        """
        ...

    async def reach(self, node: str) -> str:
        """Looks whether the node's BMC answers, without logging in. Returns its address. Errors as of `open`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcTiming:
    """How long a BMC may take."""

    poll_s: float = 1.0
    settle_s: float = 120.0
    unseen_s: float = 45.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcOptions:
    """The keys that every table `[bmc.<name>]` can have besides `type`."""

    # With {node}: redfish "https://{node}-bmc.example", ipmi "{node}-bmc.example[:port]"
    address: str = ""
    # TOML or YAML file, node -> address; a node that it does not list has no BMC here
    addresses: Path | None = None
    # Glob of node names
    nodes: str = "*"
    # User name on the BMC
    user: str
    # File with the password; it is read at each login
    password_file: Path
    # Name of the table that is used when this BMC does not answer; empty: none
    fallback: str = ""
    # Timeout of one answer of the BMC
    answer_s: Seconds = 20.0
    # Timeout of connecting to the BMC
    connect_s: Seconds = 5.0
    # Interval of reading the power state
    poll_s: Seconds = 1.0
    # How long it may take from "accepted" to on or off
    settle_s: Seconds = 120.0
    # A power cycle during which the node is not seen off for so long does not count as done
    unseen_s: Seconds = 45.0
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    @property
    def timing(self) -> BmcTiming:
        """The part that the actions need."""
        return BmcTiming(poll_s=self.poll_s, settle_s=self.settle_s, unseen_s=self.unseen_s)


async def wait_for(bmc: Bmc, want: Power, within_s: float) -> bool:
    """Waits until the power state is `want`. False: it is another one when the time is up. TimedOut: it cannot be read."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + within_s
    while True:
        trouble: ActionError | None = None
        try:
            if await bmc.power() is want:
                return True
        except ActionError as error:
            trouble = error  # after a request a BMC is often busy, or restarts
        if loop.time() >= ends:
            break
        await asyncio.sleep(min(bmc.timing.poll_s, max(ends - loop.time(), 0.01)))
    if trouble is not None:
        raise TimedOut(f"the power state cannot be read: {trouble}") from trouble
    return False


async def set_power(bmc: Bmc, wanted: BmcRequest, want: Power, within_s: float) -> None:
    """Requests a power state and waits for it; when the answer is lost the power state counts.

    ActionError: the BMC accepted the request and did not carry it out.
    """
    lost: TimedOut | None = None
    try:
        await bmc.request(wanted)
    except TimedOut as error:
        lost = error
    except Refused:
        if await bmc.power() is want:
            return  # someone else was quicker; most BMCs refuse a state that the node already has
        raise
    if await wait_for(bmc, want, min(within_s, bmc.timing.settle_s)):
        return
    if lost is not None:
        raise TimedOut(f"{lost}; the node is not {want} yet") from lost
    raise ActionError(
        f"{bmc.where} accepted {wanted!s} and the node is still not {want}: the BMC did not carry it out"
    )

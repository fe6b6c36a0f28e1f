"""The system bus, and the few calls of systemd that sources and actions need.

    async with connected(address) as bus:
        state = await unit_state(bus, "sshd.service")

Errors are OSErrors by what they mean for the caller: `NoBus` (nothing was requested), `NoAnswer` (requested; the outcome
is unknown), `ErrorReply` (refused, with its D-Bus error name).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

SYSTEM_BUS = "unix:path=/run/dbus/system_bus_socket"
SYSTEMD, MANAGER_PATH = "org.freedesktop.systemd1", "/org/freedesktop/systemd1"
MANAGER = "org.freedesktop.systemd1.Manager"
PROPERTIES = "org.freedesktop.DBus.Properties"
ANSWER_S = 5.0  # systemd answers in milliseconds, or it is itself in trouble
_BUS, _BUS_PATH = "org.freedesktop.DBus", "/org/freedesktop/DBus"
_LOOK_S = 1.0  # between looks whether the connection still exists
# The bus itself answers in place of a program that got the call and left, or is late: it may have done it.
_UNANSWERED = tuple(f"org.freedesktop.DBus.Error.{name}" for name in ("NoReply", "Timeout", "TimedOut"))


class NoBus(OSError):
    """There is no bus at the address; nothing was requested."""


class NoAnswer(OSError):
    """No answer in time, or the connection broke: it may or may not have been done."""


class ErrorReply(OSError):
    """The call was refused. `name`: the D-Bus error name, e.g. org.freedesktop.systemd1.NoSuchUnit."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name

    @property
    def short_name(self) -> str:
        """The last part of the name, e.g. NoSuchUnit."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitState:
    """A unit as systemd sees it now."""

    # active, reloading, inactive, failed, activating, deactivating
    active: str
    sub: str
    result: str
    # False: there is no such unit.
    found: bool
    # Changes with every start.
    invocation: bytes

    @property
    def text(self) -> str:
        """For people: `active (running)`, `failed (failed, exit-code)`."""
        return f"{self.active} ({self.sub}{'' if self.result in ('', 'success') else f', {self.result}'})"


def _words(error: Exception) -> str:
    """What an error says, in words that people read: the system's, else the error's own, else its kind."""
    said = (error.strerror or "") if isinstance(error, OSError) else ""
    return said or str(error) or type(error).__name__


@contextlib.asynccontextmanager
async def connected(address: str) -> AsyncIterator["MessageBus"]:
    """A connection to the bus, closed at the end; NoBus when there is none."""
    from dbus_fast.aio import MessageBus  # here, since 8 MB are loaded only on nodes that need it
    from dbus_fast.errors import AuthError, InvalidAddressError

    try:
        bus = MessageBus(bus_address=address)
        async with asyncio.timeout(ANSWER_S):
            await bus.connect()
    except (OSError, EOFError, AuthError, InvalidAddressError, TimeoutError) as error:
        raise NoBus(f"D-Bus at {address} does not answer: {_words(error)}") from error
    try:
        yield bus
    finally:
        bus.disconnect()


async def call(
    bus: "MessageBus",
    path: str,
    interface: str,
    member: str,
    signature: str = "",
    body: list[Any] | None = None,
    *,
    destination: str = SYSTEMD,
    timeout_s: float = ANSWER_S,
) -> list[Any]:
    """The answer's values; NoAnswer, or ErrorReply."""
    from dbus_fast import DBusError, Message, MessageType

    message = Message(
        destination=destination,
        path=path,
        interface=interface,
        member=member,
        signature=signature,
        body=body or [],
    )
    who = destination.rpartition(".")[2].rstrip("1")  # systemd1, login1
    try:
        async with asyncio.timeout(timeout_s):
            reply = await bus.call(message)
    except TimeoutError:
        raise NoAnswer(f"{who} did not answer {member} within {timeout_s:g} s") from None
    except (OSError, EOFError, DBusError) as error:
        raise NoAnswer(f"the connection to {who} broke at {member}: {_words(error)}") from error
    if reply is None:
        raise NoAnswer(f"{who} gave no answer to {member}")
    if reply.message_type is MessageType.ERROR:
        name = str(reply.error_name)
        if name in _UNANSWERED:
            raise NoAnswer(f"{who} gave no answer to {member}: {reply.body[0] if reply.body else name}")
        raise ErrorReply(name, f"{who} says: {reply.body[0] if reply.body else name}")
    return list(reply.body)


async def has_owner(bus: "MessageBus", name: str) -> bool:
    """Does a program own this name on the bus now?"""
    (owned,) = await call(bus, _BUS_PATH, _BUS, "NameHasOwner", "s", [name], destination=_BUS)
    return bool(owned)


async def add_match(bus: "MessageBus", rule: str) -> None:
    """Subscribes to the signals that fit a match rule; systemd sends its own only after `Subscribe`."""
    await call(bus, _BUS_PATH, _BUS, "AddMatch", "s", [rule], destination=_BUS)


async def properties(
    bus: "MessageBus", path: str, *, interface: str = "", destination: str = SYSTEMD
) -> dict[str, Any]:
    """Property → value of one interface; of all of the object's when none is named."""
    (raw,) = await call(bus, path, PROPERTIES, "GetAll", "s", [interface], destination=destination)
    return {name: variant.value for name, variant in raw.items()}


async def unit_path(bus: "MessageBus", unit: str) -> str:
    """The object path of a unit. A unit that does not exist has one too."""
    (path,) = await call(bus, MANAGER_PATH, MANAGER, "LoadUnit", "s", [unit])
    return str(path)


async def unit_state(bus: "MessageBus", unit: str) -> UnitState:
    """The unit's state now."""
    values = await properties(bus, await unit_path(bus, unit))
    return UnitState(
        active=str(values.get("ActiveState", "")),
        sub=str(values.get("SubState", "")),
        result=str(values.get("Result", "")),
        found=values.get("LoadState") != "not-found",
        invocation=bytes(values.get("InvocationID", b"")),
    )


async def unit_job(bus: "MessageBus", member: str, unit: str, mode: str = "replace") -> str:
    """Has systemd do a job (StartUnit, StopUnit, RestartUnit) and waits for its result: `done`, `failed`, `canceled`,
    `timeout`, `dependency`, `skipped`. The answer to the call alone only means that it is queued.

    Waits without a limit: the caller has the deadline. A wait that is cancelled leaves the job to systemd.
    """
    ended: dict[str, str] = {}
    news = asyncio.Event()

    def on_message(message: "Message") -> None:
        if message.member == "JobRemoved" and message.interface == MANAGER:
            _, job, _, result = message.body
            ended[str(job)] = str(result)
            news.set()

    bus.add_message_handler(on_message)
    try:
        await add_match(bus, f"type='signal',sender='{SYSTEMD}',interface='{MANAGER}',member='JobRemoved'")
        await call(bus, MANAGER_PATH, MANAGER, "Subscribe")
        (job,) = await call(bus, MANAGER_PATH, MANAGER, member, "ss", [unit, mode])
        while str(job) not in ended:
            news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await news.wait()
            if not bus.connected:
                raise NoAnswer(f"D-Bus closed the connection during {member} of {unit}")
    finally:
        bus.remove_message_handler(on_message)
    return ended[str(job)]

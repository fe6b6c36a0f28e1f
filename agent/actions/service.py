"""service.restart: one listed systemd unit, over D-Bus; done when the job is done and the unit stays
active.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from agent.actions.base import Done, Params, number
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

_SYSTEMD, _MANAGER_PATH = "org.freedesktop.systemd1", "/org/freedesktop/systemd1"
_MANAGER = "org.freedesktop.systemd1.Manager"
_BUS = "org.freedesktop.DBus"
# What systemd or D-Bus answers when asking again would not help.
_NO = ("NoSuchUnit", "UnitMasked", "AccessDenied", "LoadFailed", "BadUnitSetting", "OnlyByDependency")
_ANSWER_S = 5.0  # systemd answers in milliseconds, or it is itself in trouble
_LOOK_S = 0.1  # between looks while the unit must stay active
MAX_STAY_S = 60.0


class ServiceRestart:
    """See the module's docstring."""

    name: ClassVar[str] = "service.restart"

    def __init__(self, bus_address: str, units: tuple[str, ...]) -> None:
        self._address = bus_address
        self._units = units

    async def plan(self, params: Params) -> list[str]:
        """One line for the restart, with the unit's state now, and one for the wait."""
        unit, stay_s = self._checked(params)
        async with self._bus() as bus:
            state = await _state(bus, unit)
        return [f"restart {unit} (now {state.text})", f"wait until it has been active for {stay_s:g} s"]

    async def run(self, params: Params) -> Done:
        """Restarts it and waits."""
        unit, stay_s = self._checked(params)
        async with self._bus() as bus:
            await self._restart(bus, unit)
            await _stays_active(bus, unit, stay_s)
        return Done(text=f"{unit} restarted, active for {stay_s:g} s")

    async def recover(self, params: Params) -> None:
        """Nothing: systemd finishes a job by itself."""

    def _checked(self, params: Params) -> tuple[str, float]:
        unit = str(params["unit"])
        if unit not in self._units:
            raise Refused(f"{unit} is not among this node's `services` ({', '.join(self._units) or 'none'})")
        return unit, number(params, "stay_s", 2.0, 0.0, MAX_STAY_S)

    async def _restart(self, bus: "MessageBus", unit: str) -> None:
        """Asks for the job and waits for its end: the answer to RestartUnit only says that it is queued."""
        ended: dict[str, str] = {}
        news = asyncio.Event()

        def hear(message: "Message") -> None:
            if message.member == "JobRemoved" and message.interface == _MANAGER:
                _, job, _, result = message.body
                ended[str(job)] = str(result)
                news.set()

        bus.add_message_handler(hear)
        try:
            rule = f"type='signal',sender='{_SYSTEMD}',interface='{_MANAGER}',member='JobRemoved'"
            await _call(bus, "/org/freedesktop/DBus", _BUS, "AddMatch", "s", [rule], destination=_BUS)
            await _call(bus, _MANAGER_PATH, _MANAGER, "Subscribe")
            (job,) = await _call(bus, _MANAGER_PATH, _MANAGER, "RestartUnit", "ss", [unit, "replace"])
            while str(job) not in ended:
                news.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await news.wait()
                if not bus.connected:
                    raise TimedOut(f"D-Bus closed the connection while {unit} was being restarted")
        finally:
            bus.remove_message_handler(hear)
        if (result := ended[str(job)]) != "done":
            state = await _state(bus, unit)
            raise ActionError(f"restarting {unit} ended with {result!r}; it is {state.text}")

    @contextlib.asynccontextmanager
    async def _bus(self) -> AsyncIterator["MessageBus"]:
        """A connection to the system bus, closed at the end."""
        from dbus_fast.aio import MessageBus  # here, since 8 MB are loaded only on nodes that need it
        from dbus_fast.errors import AuthError, InvalidAddressError

        try:
            bus = MessageBus(bus_address=self._address)
            async with asyncio.timeout(_ANSWER_S):
                await bus.connect()
        except (OSError, EOFError, AuthError, InvalidAddressError, TimeoutError) as error:
            raise Unreachable(f"D-Bus at {self._address} does not answer: {error!r}") from error
        try:
            yield bus
        finally:
            bus.disconnect()


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    active: str
    sub: str
    result: str
    invocation: bytes  # another one means that it was started anew

    @property
    def text(self) -> str:
        return f"{self.active} ({self.sub}{'' if self.result in ('', 'success') else f', {self.result}'})"


async def _stays_active(bus: "MessageBus", unit: str, stay_s: float) -> None:
    """Returns when the unit has been active for `stay_s` seconds in one go; ActionError when it was not."""
    loop = asyncio.get_running_loop()
    first = await _state(bus, unit)
    end_s = loop.time() + stay_s
    while True:
        state = await _state(bus, unit)
        if state.active not in ("active", "reloading"):
            raise ActionError(f"{unit} did not stay active: it is {state.text}")
        if state.invocation != first.invocation:
            raise ActionError(f"{unit} did not stay active: it ended and was started again")
        left_s = end_s - loop.time()
        if left_s <= 0:
            return
        await asyncio.sleep(min(_LOOK_S, left_s))


async def _state(bus: "MessageBus", unit: str) -> _State:
    (path,) = await _call(bus, _MANAGER_PATH, _MANAGER, "LoadUnit", "s", [unit])
    (raw,) = await _call(bus, str(path), "org.freedesktop.DBus.Properties", "GetAll", "s", [""])
    values: dict[str, Any] = {name: variant.value for name, variant in raw.items()}
    if values.get("LoadState") == "not-found":
        raise Refused(f"systemd has no unit {unit}")
    return _State(
        active=str(values.get("ActiveState", "")),
        sub=str(values.get("SubState", "")),
        result=str(values.get("Result", "")),
        invocation=bytes(values.get("InvocationID", b"")),
    )


async def _call(
    bus: "MessageBus",
    path: str,
    interface: str,
    member: str,
    signature: str = "",
    body: list[Any] | None = None,
    *,
    destination: str = _SYSTEMD,
) -> list[Any]:
    from dbus_fast import DBusError, Message, MessageType

    message = Message(
        destination=destination,
        path=path,
        interface=interface,
        member=member,
        signature=signature,
        body=body or [],
    )
    try:
        async with asyncio.timeout(_ANSWER_S):
            reply = await bus.call(message)
    except TimeoutError:
        raise TimedOut(f"systemd did not answer {member} within {_ANSWER_S:g} s") from None
    except (OSError, EOFError, DBusError) as error:
        raise TimedOut(f"the connection to systemd broke at {member}: {error!r}") from error
    if reply is None:
        raise TimedOut(f"systemd gave no answer to {member}")
    if reply.message_type is MessageType.ERROR:
        name, text = str(reply.error_name), str(reply.body[0] if reply.body else reply.error_name)
        raise (Refused if name.rpartition(".")[2] in _NO else ActionError)(f"systemd says: {text}")
    return list(reply.body)

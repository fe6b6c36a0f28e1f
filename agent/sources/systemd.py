"""States of listed systemd units, as systemd's D-Bus signals tell them."""

import asyncio
from contextlib import suppress
from typing import Any, ClassVar

from dbus_fast import BusType, Message, MessageType
from dbus_fast.aio import MessageBus
from dbus_fast.errors import AuthError, DBusError, InvalidAddressError

from agent.collectors.readings import Unit
from agent.host import Host
from agent.sources.base import Emit

SYSTEM_BUS = "unix:path=/run/dbus/system_bus_socket"
_SYSTEMD = "org.freedesktop.systemd1"
_MANAGER = "org.freedesktop.systemd1.Manager"
_PROPERTIES = "org.freedesktop.DBus.Properties"
_CALL_TIMEOUT_S = 25.0  # D-Bus' own default


class SystemdSource:
    """Emits Unit: for each of `units` its state at start (`first`), then every change.

    OSError says why the states cannot be had: no bus, or systemd is not the one that runs this machine.
    """

    name: ClassVar[str] = "systemd"
    needs: ClassVar[str] = "systemd as PID 1 and the D-Bus system bus"

    def __init__(self, host: Host, *, units: tuple[str, ...], bus_address: str = SYSTEM_BUS) -> None:
        self._host = host
        self._units = tuple(unit if "." in unit else f"{unit}.service" for unit in units)  # as systemctl does
        self._address = bus_address
        self._states: dict[str, tuple[str, str, str]] = {}  # unit -> active, sub, result

    async def run(self, emit: Emit) -> None:
        """Follow the units until cancelled."""
        bus = await self._connect()
        try:
            paths: dict[str, str] = {}

            def on_message(message: Message) -> None:
                if message.member == "PropertiesChanged" and (unit := paths.get(message.path or "")):
                    self._changed(unit, message.body[1], emit)

            bus.add_message_handler(on_message)
            await _call(bus, "/org/freedesktop/systemd1", _MANAGER, "Subscribe")
            for unit in self._units:
                path = await self._watch(bus, unit)
                paths[path] = unit
                # Asked after the match: a change in between comes as a signal, none is missed.
                self._tell(unit, await self._ask(bus, path), emit)
            with suppress(EOFError):  # how dbus-fast tells that the other side went away
                await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]  # dbus-fast has no type there
            raise OSError(f"systemd: {self._address} closed the connection")
        finally:
            bus.disconnect()

    async def once(self, emit: Emit) -> None:
        """The units' states as they are now."""
        if not self._host.live:
            return
        bus = await self._connect()
        try:
            for unit in self._units:
                (path,) = await _call(bus, "/org/freedesktop/systemd1", _MANAGER, "LoadUnit", "s", [unit])
                self._tell(unit, await self._ask(bus, path), emit)
        finally:
            bus.disconnect()

    async def _connect(self) -> MessageBus:
        if not self._host.live:
            raise OSError("systemd: a recorded machine has no bus")
        try:
            bus = await MessageBus(bus_type=BusType.SYSTEM, bus_address=self._address).connect()
        except (AuthError, InvalidAddressError, EOFError, OSError) as error:
            raise OSError(
                f"systemd: no D-Bus at {self._address} ({error}); unit states are not watched"
            ) from error
        asked = Message(
            destination="org.freedesktop.DBus",
            path="/org/freedesktop/DBus",
            interface="org.freedesktop.DBus",
            member="NameHasOwner",
            signature="s",
            body=[_SYSTEMD],
        )
        reply = await bus.call(asked)
        if reply is None or reply.message_type is MessageType.ERROR or not reply.body[0]:
            bus.disconnect()
            raise OSError(f"systemd: not on {self._address}: this machine is run by another init")
        return bus

    async def _watch(self, bus: MessageBus, unit: str) -> str:
        """Object path of `unit`, whose signals now come in. A unit that does not exist has one too."""
        (path,) = await _call(bus, "/org/freedesktop/systemd1", _MANAGER, "LoadUnit", "s", [unit])
        rule = f"type='signal',sender='{_SYSTEMD}',interface='{_PROPERTIES}',path='{path}'"
        await _call(
            bus,
            "/org/freedesktop/DBus",
            "org.freedesktop.DBus",
            "AddMatch",
            "s",
            [rule],
            "org.freedesktop.DBus",
        )
        return str(path)

    async def _ask(self, bus: MessageBus, path: str) -> dict[str, Any]:
        (properties,) = await _call(bus, path, _PROPERTIES, "GetAll", "s", [""])  # of all its interfaces
        return dict(properties)

    def _tell(self, unit: str, properties: dict[str, Any], emit: Emit) -> None:
        """The state at start; after a lost connection a change like any other."""
        first = unit not in self._states
        self._changed(unit, properties, emit, first=first)

    def _changed(self, unit: str, properties: dict[str, Any], emit: Emit, *, first: bool = False) -> None:
        before = self._states.get(unit, ("", "", ""))
        active, sub, result = (
            str(properties[name].value) if name in properties else old
            for name, old in zip(("ActiveState", "SubState", "Result"), before, strict=True)
        )
        self._states[unit] = (active, sub, result)
        # systemd says the result in a signal of its own, before the one with the states.
        if (active, sub) != before[:2]:
            emit(
                Unit(
                    name=unit, active=active, sub=sub, result=result, first=first, mono_s=self._host.mono_s()
                )
            )


async def _call(
    bus: MessageBus,
    path: str,
    interface: str,
    member: str,
    signature: str = "",
    body: list[Any] | None = None,
    destination: str = _SYSTEMD,
) -> list[Any]:
    message = Message(
        destination=destination,
        path=path,
        interface=interface,
        member=member,
        signature=signature,
        body=body or [],
    )
    try:
        async with asyncio.timeout(_CALL_TIMEOUT_S):
            reply = await bus.call(message)
    except (EOFError, DBusError) as error:
        raise OSError(f"systemd: {member}: {error}") from error
    except TimeoutError:
        raise OSError(f"systemd: {member} was not answered within {_CALL_TIMEOUT_S:.0f} s") from None
    if reply is None or reply.message_type is MessageType.ERROR:
        why = reply.body[0] if reply is not None and reply.body else "no reply"
        raise OSError(f"systemd: {member}: {why}")
    return list(reply.body)

"""States of listed systemd units, from systemd's D-Bus signals."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from agent import dbus
from agent.collectors.samples import Unit
from agent.host import Host
from agent.options import option
from agent.sources.base import Emit, Source, SourceSetup

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus


_UNIT_FOLDERS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemdSourceOptions:
    """What an operator can set, besides `services`."""

    watch_services: tuple[str, ...] = option(
        (
            *("nvidia-persistenced", "nvidia-fabricmanager", "nvidia-imex", "nvidia-dcgm"),
            *("slurmd", "kubelet", "containerd", "docker", "opensm"),
            *("chronyd", "ntpd", "systemd-timesyncd"),
        ),
        "systemd units that are watched where they are installed; service.restart may not touch them",
    )


class SystemdSource(Source):
    """Emits Unit: for each of `units` its state at start (`first`), then every change.

    OSError names the reason why there are no states: no bus, or another init than systemd runs this machine.
    """

    name: ClassVar[str] = "systemd"
    needs: ClassVar[str] = "systemd as PID 1 and the D-Bus system bus"
    options: ClassVar[tuple[type[Any], ...]] = (SystemdSourceOptions,)

    def __init__(self, host: Host, *, units: tuple[str, ...], bus_address: str = dbus.SYSTEM_BUS) -> None:
        self._host = host
        self._units = tuple(unit if "." in unit else f"{unit}.service" for unit in units)  # as systemctl does
        self._address = bus_address
        # Unit → active, sub, result.
        self._states: dict[str, tuple[str, str, str]] = {}
        # The bus and the units' paths while it is followed.
        self._followed: tuple[MessageBus, dict[str, str]] | None = None

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """None where no unit is to be watched."""
        config = setup.config
        watched = installed(setup.host, setup.options(SystemdSourceOptions).watch_services)
        units = tuple(dict.fromkeys((*config.services, *watched)))
        return cls(setup.host, units=units, bus_address=config.dbus_address) if units else None

    async def run(self, emit: Emit) -> None:
        """Follow the units until cancelled."""
        async with self._bus() as bus:
            paths: dict[str, str] = {}

            def on_message(message: "Message") -> None:
                if message.member == "PropertiesChanged" and (unit := paths.get(message.path or "")):
                    changed = {name: variant.value for name, variant in message.body[1].items()}
                    self._changed(unit, changed, emit)

            bus.add_message_handler(on_message)
            await dbus.call(bus, dbus.MANAGER_PATH, dbus.MANAGER, "Subscribe")
            for unit in self._units:
                path = await dbus.unit_path(bus, unit)
                await dbus.add_match(
                    bus,
                    f"type='signal',sender='{dbus.SYSTEMD}',interface='{dbus.PROPERTIES}',path='{path}'",
                )
                paths[path] = unit
                # Queried after the match was added: a change in between comes as a signal, none is missed.
                self._initial(unit, await dbus.properties(bus, path), emit)
            self._followed = bus, paths
            try:
                with suppress(EOFError):  # how dbus-fast reports that the other side went away
                    await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]  # dbus-fast has no type there
            finally:
                self._followed = None
            raise OSError(f"systemd: {self._address} closed the connection")

    async def look(self, emit: Emit) -> None:
        """See Source."""
        if self._followed is None:
            raise OSError("systemd: the units are not followed yet")
        bus, paths = self._followed
        try:
            for path, unit in paths.items():
                self._changed(unit, await dbus.properties(bus, path), emit)
        except (dbus.NoAnswer, dbus.ErrorReply) as error:
            raise OSError(f"systemd: {error}") from error
        # All at once, as they are now: those that were read first may have changed again.
        mono_s = self._host.mono_s()
        for unit in paths.values():
            active, sub, result = self._states[unit]
            emit(Unit(name=unit, active=active, sub=sub, result=result, mono_s=mono_s))

    async def once(self, emit: Emit) -> None:
        """The units' states as they are now."""
        if not self._host.live:
            return
        async with self._bus() as bus:
            for unit in self._units:
                self._initial(unit, await dbus.properties(bus, await dbus.unit_path(bus, unit)), emit)

    @asynccontextmanager
    async def _bus(self) -> AsyncIterator["MessageBus"]:
        if not self._host.live:
            raise OSError("systemd: a recorded machine has no bus")
        try:
            async with dbus.connected(self._address) as bus:
                if not await dbus.has_owner(bus, dbus.SYSTEMD):
                    raise OSError(f"systemd: not on {self._address}: this machine is run by another init")
                yield bus
        except dbus.NoBus as error:
            raise OSError(
                f"systemd: no D-Bus at {self._address} ({error}); unit states are not watched"
            ) from error
        except (dbus.NoAnswer, dbus.ErrorReply) as error:
            raise OSError(f"systemd: {error}") from error

    def _initial(self, unit: str, properties: dict[str, Any], emit: Emit) -> None:
        """Emits the state at start; after a lost connection it is a change like any other."""
        first = unit not in self._states
        self._changed(unit, properties, emit, first=first)

    def _changed(self, unit: str, properties: dict[str, Any], emit: Emit, *, first: bool = False) -> None:
        before = self._states.get(unit, ("", "", ""))
        active, sub, result = (
            str(properties[name]) if name in properties else old
            for name, old in zip(("ActiveState", "SubState", "Result"), before, strict=True)
        )
        self._states[unit] = (active, sub, result)
        # systemd sends the result in a signal of its own, before the one with the states.
        if (active, sub) != before[:2]:
            emit(
                Unit(
                    name=unit, active=active, sub=sub, result=result, first=first, mono_s=self._host.mono_s()
                )
            )


def installed(host: Host, units: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `units` that this machine has, if systemd runs it: the others cannot fail."""
    if not host.live or not host.path("/run/systemd/system").is_dir():  # as sd_booted(3)
        return ()
    full = (unit if "." in unit else f"{unit}.service" for unit in units)
    return tuple(
        unit for unit in full if any(host.path(f"{folder}/{unit}").exists() for folder in _UNIT_FOLDERS)
    )

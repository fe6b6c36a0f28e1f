"""service.restart, service.start and service.stop: one listed systemd unit, over D-Bus; done when systemd's job is
done and the unit is, and stays, what it should be.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, ClassVar

from agent import dbus
from agent.actions.base import Done, Params, number, say
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable

if TYPE_CHECKING:
    from dbus_fast.aio import MessageBus

# What systemd or D-Bus answers when asking again would not help.
_NO = ("NoSuchUnit", "UnitMasked", "AccessDenied", "LoadFailed", "BadUnitSetting", "OnlyByDependency")
_LOOK_S = 0.1  # between looks while the unit must stay active
MAX_STAY_S = 60.0


class _Service:
    """What the three share. `units`: those that may be touched."""

    name: ClassVar[str]

    def __init__(self, bus_address: str, units: tuple[str, ...]) -> None:
        self._address = bus_address
        self._units = units

    async def recover(self, params: Params) -> None:
        """Nothing: systemd finishes a job by itself."""

    def _unit(self, params: Params) -> str:
        unit = str(params["unit"])
        if unit not in self._units:
            raise Refused(f"{unit} is not among this node's `services` ({', '.join(self._units) or 'none'})")
        return unit


class ServiceRestart(_Service):
    """See the module's docstring."""

    name: ClassVar[str] = "service.restart"

    async def plan(self, params: Params) -> list[str]:
        """One line for the restart, with the unit's state now, and one for the wait."""
        unit, stay_s = self._unit(params), _stay_s(params)
        async with systemd(self._address) as bus:
            state = await found(bus, unit)
        return [f"restart {unit} (now {state.text})", _wait_line(stay_s)]

    async def run(self, params: Params) -> Done:
        """Restarts it and waits."""
        unit, stay_s = self._unit(params), _stay_s(params)
        async with systemd(self._address) as bus:
            await found(bus, unit)
            await job(bus, "RestartUnit", unit)
            await stays_active(bus, unit, stay_s)
        return Done(text=f"{unit} restarted, active for {stay_s:g} s")


class ServiceStart(_Service):
    """See the module's docstring. One that is active is left alone, and still has to stay so."""

    name: ClassVar[str] = "service.start"

    async def plan(self, params: Params) -> list[str]:
        """What it is now, what would be done, and the wait."""
        unit, stay_s = self._unit(params), _stay_s(params)
        async with systemd(self._address) as bus:
            state = await found(bus, unit)
        first = "leave" if state.active == "active" else "start"
        return [f"{first} {unit} (now {state.text})", _wait_line(stay_s)]

    async def run(self, params: Params) -> Done:
        """Starts it unless it is active, and waits."""
        unit, stay_s = self._unit(params), _stay_s(params)
        async with systemd(self._address) as bus:
            state = await found(bus, unit)
            if state.active != "active":
                await job(bus, "StartUnit", unit)
            await stays_active(bus, unit, stay_s)
        what = "was active already" if state.active == "active" else f"started (was {state.text})"
        return Done(text=f"{unit} {what}, active for {stay_s:g} s")


class ServiceStop(_Service):
    """See the module's docstring."""

    name: ClassVar[str] = "service.stop"

    async def plan(self, params: Params) -> list[str]:
        """One line, with the unit's state now."""
        unit = self._unit(params)
        async with systemd(self._address) as bus:
            state = await found(bus, unit)
        return [f"stop {unit} (now {state.text})"]

    async def run(self, params: Params) -> Done:
        """Stops it, and sees that it has stopped."""
        unit = self._unit(params)
        async with systemd(self._address) as bus:
            before = await found(bus, unit)
            await job(bus, "StopUnit", unit)
            state = await found(bus, unit)
        # `failed`: it did not go by itself and was killed; it does not run, which is what was asked.
        if state.active not in ("inactive", "failed"):
            raise ActionError(f"{unit} did not stop: it is {state.text}")
        return Done(text=f"{unit} stopped: it is {state.text} (was {before.text})")


@contextlib.asynccontextmanager
async def systemd(address: str) -> AsyncIterator["MessageBus"]:
    """A connection to the system bus, whose errors become those of actions, also for what is asked over it."""
    try:
        async with dbus.connected(address) as bus:
            yield bus
    except dbus.NoBus as error:
        raise Unreachable(str(error)) from error
    except dbus.NoAnswer as error:
        raise TimedOut(str(error)) from error
    except dbus.ErrorReply as error:
        raise (Refused if error.word in _NO else ActionError)(str(error)) from error


async def found(bus: "MessageBus", unit: str) -> dbus.UnitState:
    """The unit's state now; Refused when systemd has no such unit."""
    state = await dbus.unit_state(bus, unit)
    if not state.found:
        raise Refused(f"systemd has no unit {unit}")
    return state


async def job(bus: "MessageBus", member: str, unit: str) -> None:
    """StartUnit, StopUnit or RestartUnit, to its end; ActionError when that is not `done`."""
    verb = {"StartUnit": "starting", "StopUnit": "stopping"}.get(member, "restarting")
    say(f"{verb} {unit}")
    result = await dbus.unit_job(bus, member, unit)
    if result != "done":
        state = await found(bus, unit)
        raise ActionError(f"{verb} {unit} ended with {result!r}; it is {state.text}")


async def stays_active(bus: "MessageBus", unit: str, stay_s: float) -> None:
    """Returns when the unit has been active for `stay_s` seconds in one go; ActionError when it was not."""
    loop = asyncio.get_running_loop()
    first = await found(bus, unit)
    end_s = loop.time() + stay_s
    say(f"waiting until {unit} has been active for {stay_s:g} s")
    while True:
        state = await found(bus, unit)
        if state.active not in ("active", "reloading"):
            raise ActionError(f"{unit} did not stay active: it is {state.text}")
        if state.invocation != first.invocation:
            raise ActionError(f"{unit} did not stay active: it ended and was started again")
        left_s = end_s - loop.time()
        if left_s <= 0:
            return
        await asyncio.sleep(min(_LOOK_S, left_s))


def _stay_s(params: Params) -> float:
    return number(params, "stay_s", 2.0, 0.0, MAX_STAY_S)


def _wait_line(stay_s: float) -> str:
    return f"wait until it has been active for {stay_s:g} s"

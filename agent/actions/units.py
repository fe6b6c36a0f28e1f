"""systemd for the actions that need it: a connection, its jobs, and units that are looked at, stopped and started."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Protocol

from agent import dbus
from agent.actions.base import report_progress
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable

if TYPE_CHECKING:
    from dbus_fast.aio import MessageBus

JOB_S = 60.0  # fabric manager trains the fabric while it starts; OCI's reset script waits as long
_RUNS = ("active", "activating", "reloading")
# Answers of systemd or D-Bus after which another attempt would not help.
_REFUSALS = ("NoSuchUnit", "UnitMasked", "AccessDenied", "LoadFailed", "BadUnitSetting", "OnlyByDependency")


class Units(Protocol):
    """A machine's units. Errors: Unreachable when systemd cannot be asked."""

    async def active(self, unit: str) -> bool:
        """Does it run? A unit that this machine does not have counts as stopped."""
        ...

    async def stop(self, unit: str) -> None:
        """Returns when it is inactive; ActionError or TimedOut when it does not become so."""
        ...

    async def start(self, unit: str) -> None:
        """Returns when it is active; ActionError or TimedOut when it does not become so. A running unit is left alone."""
        ...


class SystemdUnits:
    """Units over D-Bus."""

    def __init__(self, bus_address: str, *, job_s: float = JOB_S) -> None:
        """`job_s`: how long a unit may take to start or stop."""
        self._address = bus_address
        self._job_s = job_s

    async def active(self, unit: str) -> bool:
        """See Units."""
        async with systemd(self._address) as bus:
            state = await dbus.unit_state(bus, unit)
            return state.found and state.active in _RUNS

    async def stop(self, unit: str) -> None:
        """See Units."""
        state = await self._job(unit, "StopUnit")
        if state.active not in ("inactive", "failed"):
            raise ActionError(f"{unit} did not stop: it is {state.text}")

    async def start(self, unit: str) -> None:
        """See Units."""
        state = await self._job(unit, "StartUnit")
        # A service of type oneshot is inactive again after its work.
        if state.active not in ("active", "reloading") and state.result != "success":
            raise ActionError(f"{unit} did not start: it is {state.text}")

    async def _job(self, unit: str, member: str) -> dbus.UnitState:
        """Runs the job and returns the unit's state afterwards. Refused when there is no such unit."""
        async with systemd(self._address) as bus:
            await found(bus, unit)
            try:
                async with asyncio.timeout(self._job_s):
                    await job(bus, member, unit)
            except TimeoutError:
                raise TimedOut(f"{member} of {unit} was not done within {self._job_s:g} s") from None
            return await found(bus, unit)


@contextlib.asynccontextmanager
async def systemd(address: str) -> AsyncIterator["MessageBus"]:
    """A connection to the system bus; its errors, and those of calls over it, are raised as those of actions."""
    try:
        async with dbus.connected(address) as bus:
            yield bus
    except dbus.NoBus as error:
        raise Unreachable(str(error)) from error
    except dbus.NoAnswer as error:
        raise TimedOut(str(error)) from error
    except dbus.ErrorReply as error:
        raise (Refused if error.short_name in _REFUSALS else ActionError)(str(error)) from error


async def found(bus: "MessageBus", unit: str) -> dbus.UnitState:
    """The unit's state now; Refused when systemd has no such unit."""
    state = await dbus.unit_state(bus, unit)
    if not state.found:
        raise Refused(f"systemd has no unit {unit}")
    return state


async def job(bus: "MessageBus", member: str, unit: str) -> None:
    """Runs StartUnit, StopUnit or RestartUnit to its end; ActionError when the result is not `done`."""
    verb = {"StartUnit": "starting", "StopUnit": "stopping"}.get(member, "restarting")
    report_progress(f"{verb} {unit}")
    result = await dbus.unit_job(bus, member, unit)
    if result != "done":
        state = await found(bus, unit)
        raise ActionError(f"{verb} {unit} ended with {result!r}; it is {state.text}")

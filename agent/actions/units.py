"""systemd units as other actions need them: is it running, stop it, start it."""

import asyncio
from typing import TYPE_CHECKING, Protocol

from agent.actions.service import ServiceRestart, _call, _state
from agent.contract.errors import ActionError, Refused, TimedOut

if TYPE_CHECKING:
    from dbus_fast.aio import MessageBus

JOB_S = 60.0  # fabric manager trains the fabric while it starts; OCI's reset script waits as long
_LOOK_S = 0.1
_MANAGER_PATH, _MANAGER = "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"
_UNIT, _PROPERTIES = "org.freedesktop.systemd1.Unit", "org.freedesktop.DBus.Properties"
_RUNS = ("active", "activating", "reloading")


class Units(Protocol):
    """A machine's units. Errors: Unreachable when systemd cannot be asked."""

    async def active(self, unit: str) -> bool:
        """Does it run? A unit that this machine does not have does not."""
        ...

    async def stop(self, unit: str) -> None:
        """Returns when it is inactive; ActionError or TimedOut when it does not become so."""
        ...

    async def start(self, unit: str) -> None:
        """Returns when it is active; ActionError or TimedOut when it does not become so. One that runs is left alone."""
        ...


class SystemdUnits:
    """Units over D-Bus."""

    def __init__(self, bus_address: str, *, job_s: float = JOB_S) -> None:
        """`job_s`: how long a unit may take to start or stop."""
        self._bus = ServiceRestart(bus_address, ())._bus
        self._job_s = job_s

    async def active(self, unit: str) -> bool:
        """See Units."""
        async with self._bus() as bus:
            try:
                return (await _state(bus, unit)).active in _RUNS
            except Refused:  # systemd has no such unit
                return False

    async def stop(self, unit: str) -> None:
        """See Units."""
        await self._job(unit, "StopUnit", ("inactive", "failed"))

    async def start(self, unit: str) -> None:
        """See Units."""
        await self._job(unit, "StartUnit", ("active", "reloading"))

    async def _job(self, unit: str, method: str, wanted: tuple[str, ...]) -> None:
        async with self._bus() as bus:
            await _call(bus, _MANAGER_PATH, _MANAGER, method, "ss", [unit, "replace"])
            try:
                async with asyncio.timeout(self._job_s):
                    await _until_no_job(bus, unit)
            except TimeoutError:
                raise TimedOut(f"{method} of {unit} was not done within {self._job_s:g} s") from None
            state = await _state(bus, unit)
        # A service of type oneshot is inactive again when it has done its work.
        if state.active not in wanted and not (method == "StartUnit" and state.result == "success"):
            raise ActionError(f"{method} of {unit}: it is {state.text}")


async def _until_no_job(bus: "MessageBus", unit: str) -> None:
    (path,) = await _call(bus, _MANAGER_PATH, _MANAGER, "LoadUnit", "s", [unit])
    while True:
        (job,) = await _call(bus, str(path), _PROPERTIES, "Get", "ss", [_UNIT, "Job"])
        if not job.value[0]:
            return
        await asyncio.sleep(_LOOK_S)

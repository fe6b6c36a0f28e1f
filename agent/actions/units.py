"""systemd units as other actions need them: is it running, stop it, start it."""

import asyncio
from typing import Protocol

from agent import dbus
from agent.actions.service import found, job, systemd
from agent.contract.errors import ActionError, TimedOut

JOB_S = 60.0  # fabric manager trains the fabric while it starts; OCI's reset script waits as long
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
        # A service of type oneshot is inactive again when it has done its work.
        if state.active not in ("active", "reloading") and state.result != "success":
            raise ActionError(f"{unit} did not start: it is {state.text}")

    async def _job(self, unit: str, member: str) -> dbus.UnitState:
        """Has it done; the unit's state afterwards. Refused when there is no such unit."""
        async with systemd(self._address) as bus:
            await found(bus, unit)
            try:
                async with asyncio.timeout(self._job_s):
                    await job(bus, member, unit)
            except TimeoutError:
                raise TimedOut(f"{member} of {unit} was not done within {self._job_s:g} s") from None
            return await found(bus, unit)

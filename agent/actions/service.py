"""service.restart, service.start and service.stop: one listed systemd unit, over D-Bus; done when systemd's job is done
and the unit is, and stays, in the wanted state.
"""

import asyncio
from typing import TYPE_CHECKING, ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params, number, report_progress
from agent.actions.units import found, job, systemd
from agent.contract.errors import ActionError, Refused

if TYPE_CHECKING:
    from dbus_fast.aio import MessageBus

_LOOK_S = 0.1  # between checks while the unit must stay active
MAX_STAY_S = 60.0


class _Service(NodeAction):
    """What the three share."""

    def __init__(self, bus_address: str, units: tuple[str, ...]) -> None:
        """`units`: those that may be touched."""
        self._address = bus_address
        self._units = units

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.config.dbus_address, setup.config.services)

    async def recover(self, params: Params) -> None:
        """Nothing to repair: systemd finishes a job by itself."""

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
        """Restarts the unit and waits."""
        unit, stay_s = self._unit(params), _stay_s(params)
        async with systemd(self._address) as bus:
            await found(bus, unit)
            await job(bus, "RestartUnit", unit)
            await stays_active(bus, unit, stay_s)
        return Done(text=f"{unit} restarted, active for {stay_s:g} s")


class ServiceStart(_Service):
    """See the module's docstring. A unit that is active is left alone, but has to stay active like one that was started."""

    name: ClassVar[str] = "service.start"

    async def plan(self, params: Params) -> list[str]:
        """The unit's state now, what would be done, and the wait."""
        unit, stay_s = self._unit(params), _stay_s(params)
        async with systemd(self._address) as bus:
            state = await found(bus, unit)
        first = "leave" if state.active == "active" else "start"
        return [f"{first} {unit} (now {state.text})", _wait_line(stay_s)]

    async def run(self, params: Params) -> Done:
        """Starts the unit unless it is active, and waits."""
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
        """Stops the unit and checks that it has stopped."""
        unit = self._unit(params)
        async with systemd(self._address) as bus:
            before = await found(bus, unit)
            await job(bus, "StopUnit", unit)
            state = await found(bus, unit)
        # `failed`: it did not end by itself and was killed; it does not run, which is what was wanted.
        if state.active not in ("inactive", "failed"):
            raise ActionError(f"{unit} did not stop: it is {state.text}")
        return Done(text=f"{unit} stopped: it is {state.text} (was {before.text})")


async def stays_active(bus: "MessageBus", unit: str, stay_s: float) -> None:
    """Returns when the unit has been active for `stay_s` seconds without a break; ActionError when it has not."""
    loop = asyncio.get_running_loop()
    first = await found(bus, unit)
    end_s = loop.time() + stay_s
    report_progress(f"waiting until {unit} has been active for {stay_s:g} s")
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

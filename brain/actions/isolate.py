"""node.isolate (fencing): switches off a node that must no longer touch shared data, and verifies that it is off.

Drain, orderly shutdown, power off. Only the last one matters, so a failure of the others does not stop it. When the node is seen
to be off its scheduler is told so, where it needs that to end what ran there (`Fencing`).
"""

import asyncio
from collections.abc import Callable
from typing import ClassVar

from agent.contract.errors import ActionError, Refused, Unreachable
from agent.contract.messages import clip
from brain.actions import off
from brain.actions.base import Done, Order, Scheduler, number
from brain.actions.bmc_base import Bmc, BmcRequest, Power, set_power, wait_for
from brain.actions.bmc_tables import Bmcs
from brain.actions.marks import Mark
from brain.actions.patience import Patient
from brain.actions.telling import told

SHUTDOWN_S = 120.0
_MAX_SHUTDOWN_S = 600.0
_DRAIN_S = 30.0  # a scheduler that hangs must not keep a node on
_DRAIN_AGAIN_S = 10.0  # how long one that is away is asked again
_OFF_S = 150.0  # part of the order's time that is kept for switching off


class Isolate:
    """It leaves the node off, as bmc.power_off does, which only switches. Performing it twice is the same as once."""

    name: ClassVar[str] = "node.isolate"

    def __init__(self, bmcs: Bmcs, schedulers: Callable[[str], Scheduler | None]) -> None:
        self._bmcs, self._schedulers = bmcs, schedulers

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        shutdown_s = _shutdown_s(order)
        scheduler = self._schedulers(order.node)
        drain = (
            f"drain it in {scheduler.name}" if scheduler else "no scheduler is configured for it: no drain"
        )
        async with self._bmcs.open(order.node) as bmc:
            power, offers = await bmc.power(), await bmc.offers()
            if BmcRequest.OFF not in offers:
                raise Refused(f"{bmc.where} offers no {BmcRequest.OFF!s}")
            lines = [f"{bmc.where}: {order.node} is {power!s}", drain]
            if BmcRequest.SHUTDOWN in offers and shutdown_s:
                lines.append(f"ask for an orderly shutdown, wait {shutdown_s:g} s at most")
            lines.append("switch it off by the BMC unless it is off; see that it is off")
            return [*lines, *off.planned(scheduler)]

    async def run(self, order: Order) -> Done:
        """As in Action. Refused before anything is done when no BMC could switch it off."""
        shutdown_s = _shutdown_s(order)
        self._bmcs.tables_of(order.node)
        drained = await self._drain(order)
        order.progress(drained)
        try:
            async with self._bmcs.open(order.node, order.progress) as bmc:
                how = await self._off(bmc, order, shutdown_s)
        except Refused as error:
            raise Refused(f"{drained}; NOT isolated: {error}") from error
        except Unreachable as error:
            raise Unreachable(f"{drained}; NOT isolated: {error}") from error
        scheduler = self._schedulers(order.node)
        said, shown = await asyncio.gather(
            off.told(scheduler, order, off.TELL_S), told(scheduler, order.node, {order.incident})
        )
        return Done(
            text=f"{drained}; {how}: {order.node} is off, says {bmc.where}{said}{shown}",
            data={"power": Power.OFF.value},
        )

    async def _drain(self, order: Order) -> str:
        scheduler = self._schedulers(order.node)
        if scheduler is None:
            return "no scheduler is configured for it, so nothing was drained"
        try:
            async with asyncio.timeout(_DRAIN_S):
                mark = Mark(incident=order.incident, why=clip(order.why, 150))
                await Patient(scheduler, order, within_s=_DRAIN_AGAIN_S).drain(order.node, mark)
        except TimeoutError:
            return f"not drained, {scheduler.name} did not answer within {_DRAIN_S:g} s"
        except (ActionError, OSError) as error:  # fencing is for safety: the node is switched off anyway
            return f"not drained, {clip(f'{scheduler.name} failed: {error}', 200)}"
        return f"drained in {scheduler.name}"

    async def _off(self, bmc: Bmc, order: Order, shutdown_s: float) -> str:
        if await bmc.power() is Power.OFF:
            return "it was off already"
        shutdown_s = min(shutdown_s, order.timeout_s - _DRAIN_S - _OFF_S - off.TELL_S)
        if shutdown_s > 0 and await self._shut_down(bmc, order, shutdown_s):
            return "its operating system shut down"
        order.progress(f"switching {order.node} off by {bmc.where}")
        await set_power(bmc, BmcRequest.OFF, Power.OFF, _OFF_S)
        return "switched off by its BMC"

    async def _shut_down(self, bmc: Bmc, order: Order, within_s: float) -> bool:
        """Did the operating system shut down? If not, for whatever reason, the power is switched off next."""
        try:
            if BmcRequest.SHUTDOWN not in await bmc.offers():
                return False
            order.progress(f"waiting {within_s:g} s for the operating system of {order.node} to shut down")
            await bmc.request(BmcRequest.SHUTDOWN)
        except ActionError as error:
            order.progress(f"no orderly shutdown: {error}")
            return False
        try:
            return await wait_for(bmc, Power.OFF, within_s)
        except ActionError:
            return False


def _shutdown_s(order: Order) -> float:
    return number(order.params, "shutdown_s", SHUTDOWN_S, 0, _MAX_SHUTDOWN_S)

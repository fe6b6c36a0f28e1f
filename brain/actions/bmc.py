"""Actions through the BMC of a node: evidence, power, and the non-maskable interrupt.

    [bmc.racks]
    type = "redfish"                                   # or "ipmi"
    address = "https://{node}-bmc.example"             # or addresses = "/etc/gpuward/bmcs.toml"
    user = "gpuward"
    password_file = "/etc/gpuward/bmc.password"

Every action that changes something reads the power state before and after. A request that the BMC accepted but did not
carry out is a failure. When that cannot be known the outcome is unknown, and the repeat class of the action decides.
"""

import asyncio
from collections.abc import Callable
from typing import ClassVar

from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from agent.contract.messages import Scalar, clip
from brain.actions import bmc_tables, off
from brain.actions.base import Action, Done, Order, Scheduler, Site, Unwell
from brain.actions.bmc_base import Bmc, BmcRequest, Power, set_power, wait_for
from brain.actions.bmc_tables import Bmcs
from brain.actions.isolate import Isolate

_SPARE_S = 5.0  # kept before the deadline of the order, to report what was seen
_SENSORS = 24  # readings in one note; unhealthy sensors come first
_EVENTS = 10


class _BmcAction:
    """What the actions share."""

    def __init__(self, bmcs: Bmcs) -> None:
        self._bmcs = bmcs

    async def _plan(
        self, order: Order, *lines: str, needs: tuple[BmcRequest, ...] = (), not_off: str = ""
    ) -> list[str]:
        """Returns `lines` after the state of the BMC. Refused when it offers none of `needs`, or when the node is off;
        `not_off` says why that is wrong, and is empty when it is not.
        """
        async with self._bmcs.open(order.node) as bmc:
            power, offers = await bmc.power(), await bmc.offers()
            if needs and offers.isdisjoint(needs):
                raise Refused(f"{bmc.where} offers no {needs[0]!s}")
            if not_off and power is Power.OFF:
                raise Refused(f"{order.node} is off: {not_off}")
            has = ", ".join(sorted(wanted.value for wanted in offers))
            return [f"{bmc.where}: {order.node} is {power!s}; the BMC offers {has}", *lines]


class BmcEvidence(_BmcAction):
    """bmc.evidence"""

    name: ClassVar[str] = "bmc.evidence"

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        return await self._plan(order, "read power state, sensors and event log")

    async def run(self, order: Order) -> Done:
        """As in Action. Unwell when the BMC says so of a sensor."""
        async with self._bmcs.open(order.node, order.progress) as bmc:
            power = await bmc.power()
            found = await bmc.readings(max(order.timeout_s / 2, 1.0))
        data: dict[str, Scalar] = {"power": power.value, "bmc": bmc.where, **found.facts}
        first = [*found.bad, *(name for name in found.sensors if name not in found.bad)]
        data |= {f"sensor {clip(name, 60)}": found.sensors[name] for name in first[:_SENSORS]}
        data |= {f"event {n}": text for n, text in enumerate(found.events[:_EVENTS], 1)}
        if found.missing:
            data["not read"] = clip("; ".join(found.missing), 400)
        bad = f"unhealthy: {', '.join(found.bad[:5])}" if found.bad else "all of them healthy"
        newest = f"; newest event: {found.events[0]}" if found.events else ""
        text = f"{order.node} is {power!s}; {len(found.sensors)} sensors, {bad}{newest}"
        if found.bad:
            raise Unwell(text, data)
        return Done(text=text, data=data)


class PowerOn(_BmcAction):
    """bmc.power_on"""

    name: ClassVar[str] = "bmc.power_on"

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        return await self._plan(
            order, "switch it on, unless it is; wait until it is on", needs=(BmcRequest.ON,)
        )

    async def run(self, order: Order) -> Done:
        """As in Action."""
        async with self._bmcs.open(order.node, order.progress) as bmc:
            if await bmc.power() is Power.ON:
                return Done(text=f"{order.node} was on already")
            await set_power(bmc, BmcRequest.ON, Power.ON, order.timeout_s - _SPARE_S)
            return Done(text=f"{order.node} is on, says {bmc.where}")


class PowerOff(_BmcAction):
    """bmc.power_off"""

    name: ClassVar[str] = "bmc.power_off"

    def __init__(self, bmcs: Bmcs, schedulers: Callable[[str], Scheduler | None]) -> None:
        super().__init__(bmcs)
        self._schedulers = schedulers

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        lines = (
            "switch it off at once, unless it is; wait until it is off",
            *off.planned(self._schedulers(order.node)),
        )
        return await self._plan(order, *lines, needs=(BmcRequest.OFF,))

    async def run(self, order: Order) -> Done:
        """As in Action. A scheduler that wants to know that it is off is told so, where this incident has drained the node."""
        ends_s = asyncio.get_running_loop().time() + order.timeout_s - _SPARE_S
        async with self._bmcs.open(order.node, order.progress) as bmc:
            was_off = await bmc.power() is Power.OFF
            if not was_off:
                await set_power(bmc, BmcRequest.OFF, Power.OFF, _left(ends_s))
        within_s = min(off.TELL_S, max(_left(ends_s), _SPARE_S / 2))
        said = await off.told(self._schedulers(order.node), order, within_s)
        if was_off:
            return Done(text=f"{order.node} was off already{said}")
        return Done(text=f"{order.node} is off, says {bmc.where}{said}")


class PowerCycle(_BmcAction):
    """bmc.power_cycle"""

    name: ClassVar[str] = "bmc.power_cycle"

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        lines = ("cut its power, see it off, give it back, see it on",)
        return await self._plan(order, *lines, needs=(BmcRequest.CYCLE, BmcRequest.OFF))

    async def run(self, order: Order) -> Done:
        """As in Action. Uses the BMC's own power cycle where it has one, otherwise off, a check that it is off, and on."""
        ends_s = asyncio.get_running_loop().time() + order.timeout_s - _SPARE_S
        async with self._bmcs.open(order.node, order.progress) as bmc:
            power, offers = await bmc.power(), await bmc.offers()
            if power is Power.OFF:  # only the second half is left: a BMC refuses to cycle a node that is off
                await set_power(bmc, BmcRequest.ON, Power.ON, _left(ends_s))
                return Done(text=f"{order.node} was off; it is on now, says {bmc.where}")
            if BmcRequest.CYCLE in offers:
                proof = await _restarted(bmc, BmcRequest.CYCLE, ends_s)
                return Done(text=f"{order.node} was power cycled ({proof}) and is on, says {bmc.where}")
            if not offers >= {BmcRequest.OFF, BmcRequest.ON}:
                raise Refused(f"{bmc.where} offers neither a power cycle nor off and on")
            await set_power(bmc, BmcRequest.OFF, Power.OFF, _left(ends_s))
            order.progress(f"{order.node} is off; giving its power back")
            await _back_on(bmc, ends_s)
            return Done(text=f"{order.node} was seen off and is on, says {bmc.where}")


class Restart(_BmcAction):
    """bmc.restart"""

    name: ClassVar[str] = "bmc.restart"
    _WAYS = (BmcRequest.RESTART, BmcRequest.RESET)

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        lines = ("restart it, in an orderly way where the BMC can; see it on",)
        return await self._plan(order, *lines, needs=self._WAYS, not_off="bmc.power_on switches it on")

    async def run(self, order: Order) -> Done:
        """As in Action. Power mostly stays on during a restart: the rung verifies that the system came up again."""
        ends_s = asyncio.get_running_loop().time() + order.timeout_s - _SPARE_S
        async with self._bmcs.open(order.node, order.progress) as bmc:
            if await bmc.power() is Power.OFF:
                raise Refused(f"{order.node} is off: bmc.power_on switches it on")
            offers = await bmc.offers()
            way = next((wanted for wanted in self._WAYS if wanted in offers), None)
            if way is None:
                raise Refused(f"{bmc.where} offers no restart")
            await bmc.request(way)
            order.progress(f"{bmc.where} accepted the {way!s}")
            if not await wait_for(bmc, Power.ON, min(_left(ends_s), bmc.timing.settle_s)):
                raise ActionError(f"{bmc.where} accepted the {way!s} and {order.node} is not on")
            return Done(text=f"{bmc.where} accepted the {way!s}; {order.node} is on")


class Nmi(_BmcAction):
    """bmc.nmi"""

    name: ClassVar[str] = "bmc.nmi"

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        lines = ("send a non-maskable interrupt: the kernel writes its crash dump if it is set up to",)
        return await self._plan(
            order, *lines, needs=(BmcRequest.NMI,), not_off="nothing would handle the interrupt"
        )

    async def run(self, order: Order) -> Done:
        """As in Action. Only the node itself could confirm that the interrupt arrived."""
        async with self._bmcs.open(order.node, order.progress) as bmc:
            if await bmc.power() is Power.OFF:
                raise Refused(f"{order.node} is off: nothing would handle the interrupt")
            await bmc.request(BmcRequest.NMI)
            return Done(text=f"{bmc.where} accepted the non-maskable interrupt for {order.node}")


async def _restarted(bmc: Bmc, wanted: BmcRequest, ends_s: float) -> str:
    """Sends the request once and waits for a proof that it was carried out (seen off, or a new time of the last reset),
    and then until the node is on. Returns the proof.

    ActionError: by the BMC's own clock nothing was done. TimedOut: nothing is proven.
    """
    before = await bmc.last_reset()
    lost: TimedOut | None = None
    try:
        await bmc.request(wanted)
    except TimedOut as error:
        lost = error
    proof = await _proof(bmc, before, min(_left(ends_s), bmc.timing.unseen_s))
    if not proof:
        if lost is not None:
            raise lost
        if before:
            raise ActionError(
                f"{bmc.where} accepted the {wanted!s} and did not do it: last reset still {before}"
            )
        raise TimedOut(f"{bmc.where} accepted the {wanted!s}, and the node was never seen off")
    if not await wait_for(bmc, Power.ON, min(_left(ends_s), bmc.timing.settle_s)):
        raise ActionError(f"the {wanted!s} of {bmc.where} left the node without power")
    return proof


async def _proof(bmc: Bmc, before: str, within_s: float) -> str:
    loop = asyncio.get_running_loop()
    ends = loop.time() + within_s
    while True:
        try:
            if await bmc.power() in (Power.OFF, Power.CHANGING):
                return "seen off"
            if before and await bmc.last_reset() != before:
                return "the time of its last reset is new"
        except ActionError:
            pass  # the BMC is busy with it, or shares the node's power; it is polled until the time is up
        if loop.time() >= ends:
            return ""
        await asyncio.sleep(min(bmc.timing.poll_s, max(ends - loop.time(), 0.01)))


async def _back_on(bmc: Bmc, ends_s: float) -> None:
    """Restores the power that we cut: retried while time is left, since `on` twice does no harm."""
    while True:
        try:
            await set_power(bmc, BmcRequest.ON, Power.ON, _left(ends_s))
        except (Unreachable, TimedOut) as error:
            if _left(ends_s) <= bmc.timing.poll_s:
                raise TimedOut(f"the node was switched off, and may still be: {error}") from error
            await asyncio.sleep(bmc.timing.poll_s)
        except Refused as error:
            raise ActionError(
                f"the node was switched off, and the BMC refuses to switch it on: {error}"
            ) from error
        else:
            return


def _left(ends_s: float) -> float:
    return max(ends_s - asyncio.get_running_loop().time(), 0.0)


def area(site: Site) -> list[Action]:
    """As in Area: no actions without a table `[bmc.<name>]`."""
    if not site.config.bmc:
        return []
    bmcs = bmc_tables.build(site.config.bmc)
    simple = [kind(bmcs) for kind in (BmcEvidence, PowerOn, PowerCycle, Restart, Nmi)]
    return [*simple, PowerOff(bmcs, site.schedulers), Isolate(bmcs, site.schedulers)]

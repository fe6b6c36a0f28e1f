"""Actions by the BMC of a node: evidence, power and the non-maskable interrupt.

    [bmc.racks]
    type = "redfish"                                   # or "ipmi"
    address = "https://{node}-bmc.example"             # or addresses = "/etc/gpuward/bmcs.toml"
    user = "gpuward"
    password_file = "/etc/gpuward/bmc.password"

Every action that changes something looks at the power state first and afterwards. What a BMC accepted and did not do
is a failure; what nobody can know is unknown, and the repeat class decides.
"""

import asyncio
from typing import ClassVar

from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from agent.contract.messages import Scalar, clip
from brain.actions import bmc_tables
from brain.actions.base import Action, Done, Order, Site
from brain.actions.bmc_base import Bmc, Power, Wish, settled, switch
from brain.actions.bmc_tables import Bmcs
from brain.actions.isolate import Isolate

_SPARE_S = 5.0  # before the order's deadline: what was seen must still be said
_SENSORS = 24  # of the readings that an audit line carries; those that are not well come first
_EVENTS = 10


class _OfBmc:
    """What the actions have in common."""

    def __init__(self, bmcs: Bmcs) -> None:
        self._bmcs = bmcs

    async def _plan(
        self, order: Order, *lines: str, needs: tuple[Wish, ...] = (), off: str = ""
    ) -> list[str]:
        """`lines` after a look at the BMC; Refused when it offers none of `needs`, or the node is off and `off` says
        why that is wrong."""
        async with self._bmcs.open(order.node) as bmc:
            power, offers = await bmc.power(), await bmc.offers()
            if needs and offers.isdisjoint(needs):
                raise Refused(f"{bmc.where} offers no {needs[0]!s}")
            if off and power is Power.OFF:
                raise Refused(f"{order.node} is off: {off}")
            has = ", ".join(sorted(wish.value for wish in offers))
            return [f"{bmc.where}: {order.node} is {power!s}; the BMC offers {has}", *lines]


class Evidence(_OfBmc):
    """bmc.evidence"""

    name: ClassVar[str] = "bmc.evidence"

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        return await self._plan(order, "read power state, sensors and event log")

    async def run(self, order: Order) -> Done:
        """As in Action."""
        async with self._bmcs.open(order.node, order.say) as bmc:
            power = await bmc.power()
            found = await bmc.readings(max(order.timeout_s / 2, 1.0))
        data: dict[str, Scalar] = {"power": power.value, "bmc": bmc.where, **found.facts}
        first = [*found.bad, *(name for name in found.sensors if name not in found.bad)]
        data |= {f"sensor {clip(name, 60)}": found.sensors[name] for name in first[:_SENSORS]}
        data |= {f"event {n}": text for n, text in enumerate(found.events[:_EVENTS], 1)}
        if found.lacks:
            data["not read"] = clip("; ".join(found.lacks), 400)
        bad = f"not well: {', '.join(found.bad[:5])}" if found.bad else "none of them unwell"
        newest = f"; newest event: {found.events[0]}" if found.events else ""
        return Done(text=f"{order.node} is {power!s}; {len(found.sensors)} sensors, {bad}{newest}", data=data)


class PowerOn(_OfBmc):
    """bmc.power_on"""

    name: ClassVar[str] = "bmc.power_on"

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        return await self._plan(order, "switch it on, unless it is; wait until it is on", needs=(Wish.ON,))

    async def run(self, order: Order) -> Done:
        """As in Action."""
        async with self._bmcs.open(order.node, order.say) as bmc:
            if await bmc.power() is Power.ON:
                return Done(text=f"{order.node} was on already")
            await switch(bmc, Wish.ON, Power.ON, order.timeout_s - _SPARE_S)
            return Done(text=f"{order.node} is on, says {bmc.where}")


class PowerOff(_OfBmc):
    """bmc.power_off"""

    name: ClassVar[str] = "bmc.power_off"

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        return await self._plan(
            order, "switch it off at once, unless it is; wait until it is off", needs=(Wish.OFF,)
        )

    async def run(self, order: Order) -> Done:
        """As in Action."""
        async with self._bmcs.open(order.node, order.say) as bmc:
            if await bmc.power() is Power.OFF:
                return Done(text=f"{order.node} was off already")
            await switch(bmc, Wish.OFF, Power.OFF, order.timeout_s - _SPARE_S)
            return Done(text=f"{order.node} is off, says {bmc.where}")


class PowerCycle(_OfBmc):
    """bmc.power_cycle"""

    name: ClassVar[str] = "bmc.power_cycle"

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        lines = ("cut its power, see it off, give it back, see it on",)
        return await self._plan(order, *lines, needs=(Wish.CYCLE, Wish.OFF))

    async def run(self, order: Order) -> Done:
        """As in Action. By the BMC's own cycle where it has one; else off, seen off, on."""
        ends_s = asyncio.get_running_loop().time() + order.timeout_s - _SPARE_S
        async with self._bmcs.open(order.node, order.say) as bmc:
            power, offers = await bmc.power(), await bmc.offers()
            if power is Power.OFF:  # the second half is what is left; a BMC refuses to cycle what is off
                await switch(bmc, Wish.ON, Power.ON, _left(ends_s))
                return Done(text=f"{order.node} was off; it is on now, says {bmc.where}")
            if Wish.CYCLE in offers:
                proof = await _restarted(bmc, Wish.CYCLE, ends_s)
                return Done(text=f"{order.node} was power cycled ({proof}) and is on, says {bmc.where}")
            if not offers >= {Wish.OFF, Wish.ON}:
                raise Refused(f"{bmc.where} offers neither a power cycle nor off and on")
            await switch(bmc, Wish.OFF, Power.OFF, _left(ends_s))
            order.say(f"{order.node} is off; giving its power back")
            await _back_on(bmc, ends_s)
            return Done(text=f"{order.node} was seen off and is on, says {bmc.where}")


class Restart(_OfBmc):
    """bmc.restart"""

    name: ClassVar[str] = "bmc.restart"
    _WAYS = (Wish.RESTART, Wish.RESET)

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        lines = ("restart it, in an orderly way where the BMC can; see it on",)
        return await self._plan(order, *lines, needs=self._WAYS, off="bmc.power_on switches it on")

    async def run(self, order: Order) -> Done:
        """As in Action. Power mostly stays during a restart: that the system came up anew is the rung's to verify."""
        ends_s = asyncio.get_running_loop().time() + order.timeout_s - _SPARE_S
        async with self._bmcs.open(order.node, order.say) as bmc:
            if await bmc.power() is Power.OFF:
                raise Refused(f"{order.node} is off: bmc.power_on switches it on")
            offers = await bmc.offers()
            way = next((wish for wish in self._WAYS if wish in offers), None)
            if way is None:
                raise Refused(f"{bmc.where} offers no restart")
            await bmc.ask(way)
            order.say(f"{bmc.where} accepted the {way!s}")
            if not await settled(bmc, Power.ON, min(_left(ends_s), bmc.pace.settle_s)):
                raise ActionError(f"{bmc.where} accepted the {way!s} and {order.node} is not on")
            return Done(text=f"{bmc.where} accepted the {way!s}; {order.node} is on")


class Nmi(_OfBmc):
    """bmc.nmi"""

    name: ClassVar[str] = "bmc.nmi"

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        lines = ("send a non-maskable interrupt: the kernel writes its crash dump if it is set up to",)
        return await self._plan(order, *lines, needs=(Wish.NMI,), off="nobody would take the interrupt")

    async def run(self, order: Order) -> Done:
        """As in Action. Only the node itself could tell that it came through."""
        async with self._bmcs.open(order.node, order.say) as bmc:
            if await bmc.power() is Power.OFF:
                raise Refused(f"{order.node} is off: nobody would take the interrupt")
            await bmc.ask(Wish.NMI)
            return Done(text=f"{bmc.where} accepted the non-maskable interrupt for {order.node}")


async def _restarted(bmc: Bmc, wish: Wish, ends_s: float) -> str:
    """Asks once, and waits for a proof that it was done: seen off, or a new time of the last reset; then for on.

    ActionError: the BMC's own clock says that nothing was done. TimedOut: there is no proof of either.
    """
    before = await bmc.last_reset()
    lost: TimedOut | None = None
    try:
        await bmc.ask(wish)
    except TimedOut as error:
        lost = error
    proof = await _proof(bmc, before, min(_left(ends_s), bmc.pace.unseen_s))
    if not proof:
        if lost is not None:
            raise lost
        if before:
            raise ActionError(
                f"{bmc.where} accepted the {wish!s} and did not do it: last reset still {before}"
            )
        raise TimedOut(f"{bmc.where} accepted the {wish!s}, and the node was never seen off")
    if not await settled(bmc, Power.ON, min(_left(ends_s), bmc.pace.settle_s)):
        raise ActionError(f"the {wish!s} of {bmc.where} left the node without power")
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
            pass  # the BMC is busy with it, or shares the node's power; it is asked until the time is over
        if loop.time() >= ends:
            return ""
        await asyncio.sleep(min(bmc.pace.poll_s, max(ends - loop.time(), 0.01)))


async def _back_on(bmc: Bmc, ends_s: float) -> None:
    """A node whose power we cut gets it back: asked again while time is left, since `on` twice does no harm."""
    while True:
        try:
            await switch(bmc, Wish.ON, Power.ON, _left(ends_s))
        except (Unreachable, TimedOut) as error:
            if _left(ends_s) <= bmc.pace.poll_s:
                raise TimedOut(f"the node was switched off, and may still be: {error}") from error
            await asyncio.sleep(bmc.pace.poll_s)
        except Refused as error:
            raise ActionError(
                f"the node was switched off, and the BMC refuses to switch it on: {error}"
            ) from error
        else:
            return


def _left(ends_s: float) -> float:
    return max(ends_s - asyncio.get_running_loop().time(), 0.0)


def area(site: Site) -> list[Action]:
    """As in Area: nothing without a table `[bmc.<name>]`."""
    if not site.config.bmc:
        return []
    from brain.actions import ipmi, redfish  # sushy costs 0.1 s and 20 MB: only where BMCs are configured

    bmcs = bmc_tables.build(site.config.bmc, {"redfish": redfish.build, "ipmi": ipmi.build})
    simple = [kind(bmcs) for kind in (Evidence, PowerOn, PowerOff, PowerCycle, Restart, Nmi)]
    return [*simple, Isolate(bmcs, site.schedulers)]

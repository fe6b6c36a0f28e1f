"""nic.reset: resets a network card from the gentlest way to the hardest, with a look after each whether it is healthy;
never the card that carries the control path.

link    every interface of the PCI function that is up goes down and up
health  `devlink health recover` for each reporter that is in error
reload  `devlink dev reload`: the driver gives the function up and takes it anew
driver  the driver's modules are unloaded and loaded: all cards of that driver

However it ends, interfaces that were up are up again, in their bond and with their MTU; addresses are the business of the
node's network configuration, and one that does not come back is a failure.
"""

import asyncio
import contextlib
import threading
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from agent.actions.base import Done, Params
from agent.actions.cards import Card, Cards
from agent.actions.control_path import carriers
from agent.actions.devlink import REPORTERS, Devlink
from agent.actions.driver_modules import RELOADED, DriverModules
from agent.actions.interfaces import Peer, bounce
from agent.actions.nic_before import Before, Keeper
from agent.actions.nic_look import Looker
from agent.config import AgentConfig
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from agent.host import Host

DOWN_S = 0.5
SETTLE_S = 15.0  # a link trains for several seconds


class Way(StrEnum):
    """From the gentlest to the hardest."""

    LINK = "link"  # interrupts what the interface carries
    HEALTH = "health"  # may reset the card's firmware
    RELOAD = "reload"  # ends all that uses the PCI function
    DRIVER = "driver"  # ends all that uses any card of this driver


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What does the work; see each."""

    cards: Cards
    devlink: Devlink
    modules: DriverModules


class NicReset:
    """See the module's docstring. `peer`: host and port of the broker that we are connected to; `keeper`: where it is
    written down what must be put back; `settle_s`: how long a card may take to be healthy after each way; `down_s`: how
    long a link stays down.
    """

    name: ClassVar[str] = "nic.reset"

    def __init__(
        self,
        host: Host,
        peer: Peer,
        tools: Tools,
        keeper: Keeper,
        *,
        settle_s: float = SETTLE_S,
        down_s: float = DOWN_S,
    ) -> None:
        self._host = host
        self._peer = peer
        self._cards, self._devlink, self._modules = tools.cards, tools.devlink, tools.modules
        self._keeper, self._down_s = keeper, down_s
        self._looker = Looker(self._cards, self._devlink, settle_s=settle_s)
        self._one_at_a_time = asyncio.Lock()

    @classmethod
    def of(cls, host: Host, peer: Peer, config: AgentConfig) -> "NicReset":
        """With the tools that the configuration names."""
        cards = Cards(host, config.ib_root)
        tools = Tools(
            cards=cards,
            devlink=Devlink(config.devlink),
            modules=DriverModules(host, rmmod=config.rmmod, modprobe=config.modprobe, reloaded=RELOADED),
        )
        return cls(host, peer, tools, Keeper(host, cards, config.data_dir / "nic-reset"))

    async def plan(self, params: Params) -> list[str]:
        """Each way with what it does, or why it would be left out."""
        card, ways = await self._checked(params)
        steps = []
        for way in ways:
            why_not = await self._why_not(card, way)
            steps.append(f"leave out {way}: {why_not}" if why_not else await self._step(card, way))
        return [*steps, "stop as soon as the card is healthy; put back what was up, its MTU and its bond"]

    async def run(self, params: Params) -> Done:
        """Resets it until it is healthy."""
        if self._one_at_a_time.locked():
            raise Unreachable("another card of this node is being reset")
        async with self._one_at_a_time:
            card, ways = await self._checked(params)
            return await self._run(card, ways)

    async def recover(self, params: Params) -> None:  # noqa: ARG002  the card may be gone: what is on disk counts
        """The agent died half-way: loads the driver again where it is missing, and sets up what was up."""
        trouble: list[str] = []
        for before in self._keeper.left():
            try:
                await self._modules.load(before.modules)
            except ActionError as error:
                trouble.append(str(error))
            trouble += await self._keeper.restore(before)
            self._keeper.forget(before.bdf)
        if trouble:
            raise ActionError("; ".join(trouble))

    async def _run(self, card: Card, ways: list[Way]) -> Done:
        reach, modules = [card.bdf], []
        if Way.DRIVER in ways and not await self._why_not(card, Way.DRIVER):
            modules, reach = self._modules.loaded(card.driver), self._cards.of_driver(card.driver)
        before = await asyncio.to_thread(self._keeper.take, card.bdf, reach, modules)
        healthy = self._looker.expects(card, before)
        told: list[str] = []
        try:
            for way in ways:
                if why_not := await self._closed(card, way):
                    told.append(f"{way} left out: {why_not}")
                    continue
                try:
                    did = await self._perform(way, card, before)
                except (Refused, TimedOut, ActionError, OSError) as error:
                    did = str(error)
                trouble = await self._keeper.restore(before)
                trouble = trouble or await healthy()
                told.append(f"{way}: {did}" + (f"; then {', '.join(trouble)}" if trouble else ""))
                if not trouble:
                    break
            else:
                raise ActionError(f"{card.bdf} is not healthy: {'; '.join(told)}")
            if lost := await self._keeper.addresses_lost(before):
                raise ActionError(
                    f"{card.bdf} is healthy, but the node's network configuration has not given back "
                    f"{', '.join(lost)}"
                )
        finally:
            # Also when cancelled: what was up must not stay down.
            await asyncio.shield(asyncio.ensure_future(self._put_back(before)))
        return Done(text=f"{card.bdf} is healthy: {'; '.join(told)}")

    async def _put_back(self, before: Before) -> None:
        with contextlib.suppress(ActionError):  # said already, by the way that could not load it
            await self._modules.load(before.modules)
        await self._keeper.restore(before)
        self._keeper.forget(before.bdf)

    async def _perform(self, way: Way, card: Card, before: Before) -> str:
        match way:
            case Way.LINK:
                return await self._bounce(card, before)
            case Way.HEALTH:
                reporters = await self._devlink.in_error(card.bdf)
                for reporter in reporters:
                    await self._devlink.recover(reporter)
                names = ", ".join(reporter.name for reporter in reporters)
                return f"{names} recovered" if names else "no reporter is in error"
            case Way.RELOAD:
                await self._devlink.reload(card.bdf)
                return "driver initialised anew"
            case Way.DRIVER:
                try:
                    await self._modules.unload(before.modules)
                finally:
                    await asyncio.shield(asyncio.ensure_future(self._modules.load(before.modules)))
                return f"{', '.join(before.modules)} loaded anew"

    async def _bounce(self, card: Card, before: Before) -> str:
        names = [one.name for one in before.interfaces if one.up and one.bdf == card.bdf]
        if card.wanted in self._cards.interfaces(card.bdf) and card.wanted not in names:
            names.append(card.wanted)  # set down; to bounce it sets it up
        for name in names:
            stop = threading.Event()
            work = asyncio.ensure_future(asyncio.to_thread(bounce, name, self._down_s, stop))
            try:
                await asyncio.shield(work)
            except asyncio.CancelledError:
                stop.set()
                with contextlib.suppress(OSError, ActionError):
                    await asyncio.shield(work)
                raise
        return f"{', '.join(names)} down and up" if names else "no interface of it is up"

    async def _checked(self, params: Params) -> tuple[Card, list[Way]]:
        if not self._host.live:
            raise Refused("this is a recorded machine")
        at_most = str(params.get("at_most", Way.RELOAD))
        if at_most not in list(Way):
            raise Refused(f"at_most must be one of {', '.join(Way)}, not {at_most!r}")
        card = self._cards.find(str(params["nic"]))
        if why := await self._why_not(card, Way.LINK):
            raise Refused(f"{card.bdf} {why}")
        order = list(Way)
        return card, order[: order.index(Way(at_most)) + 1]

    async def _why_not(self, card: Card, way: Way) -> str:
        """Why this way is closed for this card now; empty when it is open. Refused when the way to the broker cannot be
        told.
        """
        carrying = await asyncio.to_thread(carriers, self._host, self._peer())
        standing = self._cards.standing(card, carrying)
        if standing.function:
            return f"carries the control path ({standing.function})"
        # Firmware belongs to the whole card, a driver to all of its cards.
        if way in (Way.HEALTH, Way.DRIVER) and standing.card:
            return f"the same card carries the control path ({standing.card})"
        if way is Way.DRIVER and standing.driver:
            return f"a card of the same driver carries the control path ({standing.driver})"
        if way in (Way.RELOAD, Way.DRIVER):
            functions = [card.bdf] if way is Way.RELOAD else self._cards.of_driver(card.driver)
            if number := sum(map(self._cards.virtual_functions, functions)):
                return f"{number} virtual functions would be lost"
        if way is Way.DRIVER:
            try:
                self._modules.loaded(card.driver)
            except ActionError as error:
                return str(error)
        return ""

    async def _closed(self, card: Card, way: Way) -> str:
        """`_why_not` when something may have been done already."""
        try:
            return await self._why_not(card, way)
        except Refused as error:
            return str(error)

    async def _step(self, card: Card, way: Way) -> str:
        match way:
            case Way.LINK:
                return f"set the interfaces of {card.bdf} down and up ({', '.join(self._cards.interfaces(card.bdf))})"
            case Way.HEALTH:
                return f"devlink health recover pci/{card.bdf} for what is in error of {', '.join(REPORTERS)}"
            case Way.RELOAD:
                return f"devlink dev reload pci/{card.bdf} action driver_reinit"
            case Way.DRIVER:
                modules = self._modules.loaded(card.driver)
                functions = ", ".join(self._cards.of_driver(card.driver))
                return f"unload and load {', '.join(modules)}: all of {functions}"

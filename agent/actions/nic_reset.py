"""nic.reset: resets a network card by one way after the other, gentlest first, until it is healthy; never the card that
carries the control path.

link    every interface of the PCI function that is up goes down and up
health  `devlink health recover` for each reporter that is in error
reload  `devlink dev reload`: the driver releases the function and initialises it again
driver  the driver's modules are unloaded and loaded: all cards of that driver

However it ends, interfaces that were up are up again, in their bond and with their MTU. Addresses are set by the node's
network configuration; an address that does not come back is a failure.
"""

import asyncio
import contextlib
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup, Peer
from agent.actions.base import Done, NodeAction, Params
from agent.actions.control_path import carriers
from agent.actions.devlink import REPORTERS, Devlink
from agent.actions.driver_modules import DriverModules
from agent.actions.interfaces import bounce, known
from agent.actions.network_cards import NetworkCard, NetworkCards
from agent.actions.nic_health import NicHealth
from agent.actions.nic_saved import Saved, SavedInterfaces
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
class NicTools:
    """What a reset works with."""

    cards: NetworkCards
    devlink: Devlink
    modules: DriverModules
    saved: SavedInterfaces


class NicReset(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "nic.reset"

    def __init__(
        self, host: Host, peer: Peer, tools: NicTools, *, settle_s: float = SETTLE_S, down_s: float = DOWN_S
    ) -> None:
        """`settle_s`: how long a card may take to become healthy after each way. `down_s`: how long a link stays down."""
        self._host = host
        self._peer = peer
        self._cards, self._devlink, self._modules = tools.cards, tools.devlink, tools.modules
        self._saved, self._down_s = tools.saved, down_s
        self._health = NicHealth(self._cards, self._devlink, settle_s=settle_s)
        self._one_at_a_time = asyncio.Lock()

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        host, config = setup.host, setup.config
        cards = NetworkCards(host, config.ib_root)
        return cls(
            host,
            setup.peer,
            NicTools(
                cards=cards,
                devlink=Devlink(config.devlink),
                modules=DriverModules(host, setup.modules),
                saved=SavedInterfaces(host, cards, config.data_dir / "nic-reset"),
            ),
        )

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

    async def recover(self, params: Params) -> None:  # noqa: ARG002  the card may be gone: the file counts
        """Loads the driver again where it is missing, and restores the interfaces."""
        problems: list[str] = []
        for saved in self._saved.unrestored():
            try:
                await self._modules.load(saved.modules)
            except ActionError as error:
                problems.append(str(error))
            problems += await self._saved.restore(saved)
            self._saved.forget(saved.bdf)
        if problems:
            raise ActionError("; ".join(problems))

    async def _run(self, card: NetworkCard, ways: list[Way]) -> Done:
        functions, modules = [card.bdf], []
        if Way.DRIVER in ways and not await self._why_not(card, Way.DRIVER):
            modules, functions = self._modules.loaded(card.driver), self._cards.of_driver(card.driver)
        saved = await asyncio.to_thread(self._saved.save, card.bdf, functions, modules)
        expected = self._health.expected(card, saved)
        report: list[str] = []
        try:
            for way in ways:
                if why_not := await self._closed(card, way):
                    report.append(f"{way} left out: {why_not}")
                    continue
                try:
                    did = await self._perform(way, card, saved)
                except (Refused, TimedOut, ActionError, OSError) as error:
                    did = str(error)
                problems = await self._saved.restore(saved)
                problems = problems or await self._health.problems(card, expected)
                report.append(f"{way}: {did}" + (f"; then {', '.join(problems)}" if problems else ""))
                if not problems:
                    break
            else:
                raise ActionError(f"{card.bdf} is not healthy: {'; '.join(report)}")
            if missing := await self._saved.missing_addresses(saved):
                raise ActionError(
                    f"{card.bdf} is healthy, but the node's network configuration has not given back "
                    f"{', '.join(missing)}"
                )
        finally:
            # Also when cancelled: what was up must not stay down.
            await asyncio.shield(asyncio.ensure_future(self._put_back(saved)))
        return Done(text=f"{card.bdf} is healthy: {'; '.join(report)}")

    async def _put_back(self, saved: Saved) -> None:
        with contextlib.suppress(ActionError):  # reported already by the way that could not load them
            await self._modules.load(saved.modules)
        await self._saved.restore(saved)
        self._saved.forget(saved.bdf)

    async def _perform(self, way: Way, card: NetworkCard, saved: Saved) -> str:
        match way:
            case Way.LINK:
                return await self._bounce(card, saved)
            case Way.HEALTH:
                reporters = await self._devlink.in_error(card.bdf)
                for reporter in reporters:
                    await self._devlink.recover(reporter)
                names = ", ".join(reporter.name for reporter in reporters)
                return f"{names} recovered" if names else "no reporter is in error"
            case Way.RELOAD:
                await self._devlink.reload(card.bdf)
                return "driver initialised again"
            case Way.DRIVER:
                try:
                    await self._modules.unload(saved.modules)
                finally:
                    await asyncio.shield(asyncio.ensure_future(self._modules.load(saved.modules)))
                return f"{', '.join(saved.modules)} reloaded"

    async def _bounce(self, card: NetworkCard, saved: Saved) -> str:
        names = [
            one.name for one in saved.interfaces if one.up and one.bdf == card.bdf
        ]  # not what is set down
        for name in names:
            await bounce(name, self._down_s)
        return f"{', '.join(names)} down and up" if names else "no interface of it is up"

    async def _checked(self, params: Params) -> tuple[NetworkCard, list[Way]]:
        if not self._host.live:
            raise Refused("this is a recorded machine")
        at_most = str(params.get("at_most", Way.RELOAD))
        if at_most not in list(Way):
            raise Refused(f"at_most must be one of {', '.join(Way)}, not {at_most!r}")
        card = self._cards.find(str(params["nic"]))
        named = str(params["nic"]).startswith("link/") and card.wanted in self._cards.interfaces(card.bdf)
        if named and not (await asyncio.to_thread(known, card.wanted)).up:
            raise Refused(f"{card.wanted} is set down: whoever did that sets it up again")
        if why := await self._why_not(card, Way.LINK):
            raise Refused(f"{card.bdf} {why}")
        order = list(Way)
        return card, order[: order.index(Way(at_most)) + 1]

    async def _why_not(self, card: NetworkCard, way: Way) -> str:
        """Why this way is closed for this card now; empty when it is open. Refused when the control path cannot be
        determined.
        """
        carrying = await asyncio.to_thread(carriers, self._host, self._peer())
        control_path = self._cards.control_path(card, carrying)
        if control_path.function:
            return f"carries the control path ({control_path.function})"
        # Firmware belongs to the whole card, a driver to all of its cards.
        if way in (Way.HEALTH, Way.DRIVER) and control_path.card:
            return f"the same card carries the control path ({control_path.card})"
        if way is Way.DRIVER and control_path.driver:
            return f"a card of the same driver carries the control path ({control_path.driver})"
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

    async def _closed(self, card: NetworkCard, way: Way) -> str:
        """`_why_not` when something may have been done already."""
        try:
            return await self._why_not(card, way)
        except Refused as error:
            return str(error)

    async def _step(self, card: NetworkCard, way: Way) -> str:
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

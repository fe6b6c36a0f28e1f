"""The look whether a network card is healthy."""

import asyncio
from collections.abc import Awaitable, Callable

from agent.actions import rtnetlink
from agent.actions.cards import Card, Cards
from agent.actions.devlink import Devlink
from agent.actions.nic_before import Before
from agent.contract.errors import ActionError

_LOOK_S = 0.1
_DEVLINK_LOOK_S = 1.0  # a process each time
_LINK_UP = "LinkUp"


class Looker:
    """Healthy is a card with a driver, whose links that were there are there again (of which the command is about must
    be there, and if there was none, one must), and with no devlink reporter in error.
    """

    def __init__(self, cards: Cards, devlink: Devlink, *, settle_s: float) -> None:
        self._cards = cards
        self._devlink = devlink
        self._settle_s = settle_s

    def expects(self, card: Card, before: Before) -> Callable[[], Awaitable[list[str]]]:
        """The look for this card: what is wrong with it, for people, at the end of the time that it may take; nothing as
        soon as it is healthy. InfiniBand ports are healthy when they have trained: a subnet manager that does not make
        them active is not the card's fault.
        """
        names = [one.name for one in before.interfaces if one.up and one.bdf == card.bdf]
        had = {one.name for one in before.interfaces if one.carrier and one.bdf == card.bdf}
        had |= {port for port, state in self._cards.infiniband(card.bdf).items() if state == _LINK_UP}
        must = had | {card.wanted} if card.wanted else had

        async def healthy() -> list[str]:
            loop = asyncio.get_running_loop()
            end_s = loop.time() + self._settle_s
            while True:
                pause_s = _LOOK_S
                if not (trouble := await self._links(card, names, must)):
                    pause_s = _DEVLINK_LOOK_S
                    trouble = await self._reporters(card)
                if not trouble or loop.time() > end_s:
                    return trouble
                await asyncio.sleep(pause_s)

        return healthy

    async def _links(self, card: Card, names: list[str], must: set[str]) -> list[str]:
        if not self._cards.driver(card.bdf):
            return ["it has no driver"]
        ports = self._cards.infiniband(card.bdf)
        links = {port: state == _LINK_UP for port, state in ports.items()}
        for name in self._cards.interfaces(card.bdf):
            if name in names or name in must:
                try:
                    links[name] = (await asyncio.to_thread(rtnetlink.link, name)).carrier
                except OSError:  # it is about to be renamed
                    links[name] = False
        if absent := sorted(one for one in must if not links.get(one, False)):
            return [f"{one} has no link" for one in absent]
        if links and not any(links.values()):
            return ["none of its links is there"]
        return []

    async def _reporters(self, card: Card) -> list[str]:
        try:
            return [
                f"devlink's reporter {one.name} is in error" for one in await self._devlink.in_error(card.bdf)
            ]
        except ActionError:  # no devlink here: the links must do
            return []

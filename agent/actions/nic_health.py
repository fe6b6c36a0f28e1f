"""Is a network card healthy?"""

import asyncio
from dataclasses import dataclass

from agent.actions.devlink import Devlink
from agent.actions.network_cards import NetworkCard, NetworkCards
from agent.actions.nic_saved import Saved
from agent.contract.errors import ActionError
from agent.shared import rtnetlink

_LOOK_S = 0.1
_DEVLINK_LOOK_S = 1.0  # a process each time
_LINK_UP = "LinkUp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a healthy card must show after a reset."""

    # Interfaces that were up.
    interfaces: list[str]
    # Interfaces and ports that must have a link; empty: any one of them.
    links: set[str]


class NicHealth:
    """A card is healthy when it has a driver, no devlink reporter is in error, and every link that was there is there
    again. The link that the command is about must be there; if there was none, at least one must be.
    """

    def __init__(self, cards: NetworkCards, devlink: Devlink, *, settle_s: float) -> None:
        """`settle_s`: how long a card may take to become healthy."""
        self._cards = cards
        self._devlink = devlink
        self._settle_s = settle_s

    def expected(self, card: NetworkCard, saved: Saved) -> Expected:
        """To be called before the reset."""
        own = [one for one in saved.interfaces if one.bdf == card.bdf]
        links = {one.name for one in own if one.carrier}
        links |= {port for port, state in self._cards.infiniband(card.bdf).items() if state == _LINK_UP}
        return Expected(
            interfaces=[one.name for one in own if one.up],
            links=links | {card.wanted} if card.wanted else links,
        )

    async def problems(self, card: NetworkCard, expected: Expected) -> list[str]:
        """What is wrong with the card when its time is over, for people; empty as soon as it is healthy. An InfiniBand port
        is healthy when it has trained: a subnet manager that does not make it active is not the card's fault.
        """
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._settle_s
        while True:
            pause_s = _LOOK_S
            if not (problems := await self._link_problems(card, expected)):
                pause_s = _DEVLINK_LOOK_S
                problems = await self._reporter_problems(card)
            if not problems or loop.time() > end_s:
                return problems
            await asyncio.sleep(pause_s)

    async def _link_problems(self, card: NetworkCard, expected: Expected) -> list[str]:
        if not self._cards.driver(card.bdf):
            return ["it has no driver"]
        ports = self._cards.infiniband(card.bdf)
        links = {port: state == _LINK_UP for port, state in ports.items()}
        for name in self._cards.interfaces(card.bdf):
            if name in expected.interfaces or name in expected.links:
                try:
                    links[name] = (await asyncio.to_thread(rtnetlink.interface, name)).carrier
                except OSError:  # it is about to be renamed
                    links[name] = False
        if absent := sorted(one for one in expected.links if not links.get(one, False)):
            return [f"{one} has no link" for one in absent]
        if links and not any(links.values()):
            return ["none of its links is there"]
        return []

    async def _reporter_problems(self, card: NetworkCard) -> list[str]:
        try:
            in_error = await self._devlink.in_error(card.bdf)
        except ActionError:  # there is no devlink here: the links must do
            return []
        return [f"devlink's reporter {one.name} is in error" for one in in_error]

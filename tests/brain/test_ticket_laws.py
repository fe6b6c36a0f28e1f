"""One ticket for each incident, under random failures, lost answers, restarts and new leaders; and none stays open."""

import asyncio
from typing import Any

from hypothesis import given, settings

from agent.contract.errors import Unreachable
from brain.core.effects import Effect, SendPage
from brain.core.inputs import Delivery, Input, OperatorCommand
from brain.core.pack.spec import Priority, Tickets
from brain.notify.compose import compose_from
from brain.notify.message import PageMessage
from brain.notify.tickets import TicketChannel
from tests.brain.test_paging_laws import Site, fates, moves


class Desk:
    """A ticket system whose answers get lost."""

    def __init__(self) -> None:
        self.of: dict[str, list[str]] = {}  # key -> its tickets
        self.ended: set[str] = set()
        self.told: dict[str, list[str]] = {}  # ticket -> ids of pages
        self.loses = False

    async def find(self, message: PageMessage) -> str:
        return (self.of.get(message.ticket_key) or [""])[0]

    async def is_open(self, ticket: str, message: PageMessage) -> bool:
        return ticket not in self.ended

    async def open(self, message: PageMessage, former: str) -> str:
        assert not former or former in self.ended, "a ticket beside one that is open"
        key = message.ticket_key
        assert bool(former) == any(
            one.partition(".")[0] == message.dedup_key for one in self.of if one != key
        )
        ticket = f"{key}/{len(self.of.setdefault(key, []))}"
        self.of[key].append(ticket)
        self.told[ticket] = [message.id]
        self._answer()
        return ticket

    async def has_told(self, ticket: str, message: PageMessage) -> bool:
        return message.id in self.told[ticket]

    async def comment(self, ticket: str, message: PageMessage) -> None:
        assert ticket not in self.ended, "a comment after its end"
        self.told[ticket].append(message.id)
        self._answer()

    async def end(self, ticket: str, message: PageMessage) -> None:
        self.ended.add(ticket)

    async def reach(self) -> str:
        return "desk"

    async def close(self) -> None:
        return

    def _answer(self) -> None:
        if self.loses:
            raise Unreachable("the answer was lost")


class TicketSite(Site):
    """The same site, whose group of tickets is a channel of our own."""

    def __init__(self, fate: list[str]) -> None:
        self.desk = Desk()
        self.channel = TicketChannel("desk", self.desk, settle_s=0.0)
        super().__init__(fate)

    def die(self, how: str) -> None:
        """What the channel knew is lost, too."""
        self.channel = TicketChannel("desk", self.desk, settle_s=0.0)
        super().die(how)

    def _do(self, effect: Effect) -> list[Input]:
        if not isinstance(effect, SendPage) or effect.to != "tickets":
            return super()._do(effect)
        self.sent.append((self.now, effect))
        self.count += 1
        fate = self.fate[self.count % len(self.fate)]
        if fate == "lost":
            return []
        self.desk.loses = fate == "no"
        message = compose_from(self.engine.state, effect)
        ok, ticket = True, ""
        try:
            ticket = asyncio.run(self.channel.send(message))
        except Unreachable:
            ok = False
        if fate == "unheard":
            return []
        return [
            Delivery(
                id=f"d:{self.count}", page=effect.id, ok=ok, channel="desk" if ok else "", why="no",
                tickets={"desk": ticket} if ticket else {},
            )
        ]  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(moves, fates)
def test_every_incident_has_one_ticket_and_it_is_closed(
    script: list[tuple[Any, ...]], fate: list[str]
) -> None:
    """Never a second one for an alert, whatever was lost; each page stands in it once; its end ends it."""
    every = Tickets(to="tickets", severities=tuple(Priority))
    site = TicketSite(fate)
    site.play(script, tickets=every)
    site.fate = ["ok"]
    site.wait(1000)
    for name, about in site.engine.state.incidents.items():
        if about.pages.first_at and not about.pages.passed_to and "tickets" not in about.pages.grouped:
            assert site.desk.of.get(about.pages.key or name), f"{name} has no ticket"
    for number in range(5):
        for name in list(site.engine.state.incidents):
            site.put(OperatorCommand(id=f"end-{number}-{name}", who="ann", verb="close", args={"id": name}))
        site.wait(700)
    assert not site.engine.state.incidents
    for key, tickets in site.desk.of.items():
        assert len(tickets) == 1, f"{key} has {len(tickets)} tickets"
        assert set(tickets) <= site.desk.ended, f"the ticket of {key} stays open"
        told = site.desk.told[tickets[0]]
        assert len(told) == len(set(told)), "a page stands there twice"

"""One ticket for each alert, whichever system keeps it: opened once, commented as the fault moves on, ended with it.

A fault that is back (decision 85) has another one, which names the former; where that is open yet, it is commented.

Which ticket an alert has stands in the engine's state: the log says it to every brain that leads (`Delivery.tickets`). Where it
is not known there, the system is asked, by the alert's key, before a ticket is opened. Its search may find a ticket only a while
after it was made, so after an attempt whose outcome nobody knows (an answer that was lost, a leader that is gone) a new one is
made only when the search has found none for `settle_s`.
"""

import asyncio
import weakref
from typing import Protocol

from agent.contract.errors import Refused
from brain.notify.message import PageMessage

MAX_TEXT = 30_000  # characters of a ticket: Jira takes 32,767
MAX_COMMENT = 6_000
POLL_S = 3.0  # between two searches
_REMEMBERED = 10_000  # alerts


class Gone(Refused):
    """There is no such ticket any more: somebody has deleted it."""


class TicketSystem(Protocol):
    """Where tickets are kept. Errors as in `Channel.send`."""

    async def find(self, message: PageMessage) -> str:
        """Returns the ticket of the page's alert, by its `ticket_key`; empty: the search has none."""
        ...

    async def is_open(self, ticket: str, message: PageMessage) -> bool:
        """Whether nobody has closed the ticket. Gone: there is none any more."""
        ...

    async def open(self, message: PageMessage, former: str) -> str:
        """Opens a ticket, which names the former one of its alert (empty: it had none); returns by what the system knows it."""
        ...

    async def has_told(self, ticket: str, message: PageMessage) -> bool:
        """Whether the ticket says this page already; False also where that cannot be known."""
        ...

    async def comment(self, ticket: str, message: PageMessage) -> None:
        """Adds the page to the ticket. Gone: there is none any more."""
        ...

    async def end(self, ticket: str, message: PageMessage) -> None:
        """The incident is over: closes the ticket, as the site wants it. One that is closed stays as it is."""
        ...

    async def reach(self) -> str:
        """As in Channel."""
        ...

    async def close(self) -> None:
        """Closes connections."""
        ...


class TicketChannel:
    """A channel of which each alert is a ticket."""

    def __init__(self, name: str, system: TicketSystem, *, settle_s: float) -> None:
        """`settle_s`: how long its search may lag behind, in seconds."""
        self._name = name
        self._system = system
        self._settle_s = settle_s
        self._known: dict[str, str] = {}
        # A key of two channel groups has two queues.
        self._at_work: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    @property
    def name(self) -> str:
        """What the configuration calls it."""
        return self._name

    async def send(self, message: PageMessage) -> str:
        """As in Channel: returns the alert's ticket; empty: it has none, and needs none any more."""
        lock = self._at_work.setdefault(message.dedup_key, asyncio.Lock())
        async with lock:
            sure = self._known.get(message.ticket_key) or message.tickets.get(self._name, "")
            ticket, deleted = sure or await self._left_open(message) or await self._found(message), ""
            while ticket and not await self._told(ticket, message, sure=ticket == sure):
                deleted = ticket
                ticket = await self._found(message, deleted)
            if not ticket and (message.status == "trigger" or message.untold):
                ticket = await self._opened(message)
            return ticket

    async def reach(self) -> str:
        """As in Channel."""
        return await self._system.reach()

    async def close(self) -> None:
        """Closes connections."""
        await self._system.close()

    async def _told(self, ticket: str, message: PageMessage, *, sure: bool) -> bool:
        """Adds a page to the ticket; False: it was deleted. `sure`: it is that of an earlier page."""
        self._remember(message, ticket)
        try:
            if (sure and not message.again) or not await self._system.has_told(ticket, message):
                await self._system.comment(ticket, message)
            if message.status == "resolve":
                await self._ended(ticket, message)
        except Gone:
            self._known.pop(message.ticket_key, None)
            return False
        return True

    async def _opened(self, message: PageMessage) -> str:
        ticket = await self._system.open(message, message.tickets_before.get(self._name, ""))
        self._remember(message, ticket)
        if message.status == "resolve":
            await self._ended(ticket, message)
        return ticket

    async def _ended(self, ticket: str, message: PageMessage) -> None:
        await self._system.end(ticket, message)
        self._known.pop(message.ticket_key, None)

    async def _left_open(self, message: PageMessage) -> str:
        """The ticket that the alert had when its fault was there before, if nobody has closed it since."""
        former = message.tickets_before.get(self._name, "")
        try:
            return former if former and await self._system.is_open(former, message) else ""
        except Gone:
            return ""

    async def _found(self, message: PageMessage, deleted: str = "") -> str:
        """The ticket that the search has; where one may have been made just now, it is asked until it must know."""
        loop = asyncio.get_running_loop()
        until = loop.time() + (self._settle_s if message.again or message.what != "open" else 0.0)
        while (ticket := await self._system.find(message)) in ("", deleted):
            left_s = until - loop.time()
            if left_s <= 0:
                return ""
            await asyncio.sleep(min(POLL_S, left_s))
        return ticket

    def _remember(self, message: PageMessage, ticket: str) -> None:
        self._known[message.ticket_key] = ticket
        while len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]

"""Publishes this brain's inputs to the log: in order, without waiting, repeated until the server has them.

A message's id makes a second copy harmless: the server drops it within its duplicate window, and the engine always
ignores it.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from nats.aio.client import Client
from nats.aio.msg import Msg

from agent.contract import subjects
from agent.contract.errors import Unreachable
from brain.adapters.refused_writes import RefusedWrites
from brain.adapters.server_words import place_of

RESEND_S = 2.0  # an entry without an answer for so long is sent again
WINDOW = 1000  # entries in flight at once


class OutboxEntry:
    """One message that waits for its position on the log."""

    __slots__ = ("answered", "body", "done", "id", "keep", "sent_at", "subject")

    def __init__(self, subject: str, body: bytes, id_: str, *, keep: bool) -> None:
        self.subject = subject
        self.body = body
        self.id = id_
        self.keep = keep
        self.sent_at = 0.0  # monotonic; 0: not on this connection yet
        self.done: asyncio.Future[int] | None = None
        self.answered: Callable[[], None] | None = None  # called once the log has it


class Outbox:
    """The entries without an answer. It outlives connections; call `serve` once for each."""

    def __init__(self, cell: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._cell = cell
        self._clock = clock
        self._entries: OrderedDict[int, OutboxEntry] = OrderedDict()
        self._waiting: OrderedDict[int, OutboxEntry] = OrderedDict()  # of these, not sent on this connection
        self._next = 0
        self._wake = asyncio.Event()
        self._connection: tuple[Client, str] | None = None  # and the inbox there, while `serve` runs
        self.refused = 0  # answers that were errors
        self.refusals = RefusedWrites(clock)

    def __len__(self) -> int:
        return len(self._entries)

    def put(
        self,
        what: str,
        body: bytes,
        id_: str,
        *,
        keep: bool = True,
        answered: Callable[[], None] | None = None,
    ) -> OutboxEntry:
        """Queues a message for `ward.<cell>.input.<what>`.

        `keep=False`: it is dropped when the connection is lost, since only the leader of that moment may publish it. `answered`:
        called once the log has it.
        """
        entry = OutboxEntry(subjects.brain_input(self._cell, what), body, id_, keep=keep)
        entry.answered = answered
        self._next += 1
        self._entries[self._next] = self._waiting[self._next] = entry
        self._wake.set()
        return entry

    async def append(
        self,
        what: str,
        body: bytes,
        id_: str,
        timeout_s: float = 5.0,
        answered: Callable[[], None] | None = None,
    ) -> int:
        """Queues a message, waits until it is on the log and returns its sequence number. Unreachable after a timeout.

        It may still arrive after that: tell the operator who waits.
        """
        entry = self.put(what, body, id_, answered=answered)
        entry.done = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout_s):
                return await entry.done
        except TimeoutError:
            raise Unreachable(
                f"the log did not take it within {timeout_s:g} s; it is sent when NATS is back"
            ) from None

    def drop_unkept(self) -> None:
        """Drops the entries that were only valid while leading, or on the connection that is gone."""
        for number in [number for number, entry in self._entries.items() if not entry.keep]:
            del self._entries[number]
            self._waiting.pop(number, None)

    async def serve(self, client: Client) -> None:
        """Publishes on this connection until cancelled."""
        inbox = client.new_inbox()
        await client.subscribe(f"{inbox}.*", cb=self._on_answer)
        self._waiting = OrderedDict(self._entries)
        for entry in self._entries.values():
            entry.sent_at = 0.0
        self._connection = client, inbox
        try:
            while True:
                await self.send()
                self._wake.clear()
                if not self._waiting or self._in_flight() >= WINDOW:
                    try:
                        async with asyncio.timeout(RESEND_S / 4 if self._entries else None):
                            await self._wake.wait()
                    except TimeoutError:
                        self._queue_overdue()
        finally:
            self._connection = None
            self.drop_unkept()

    async def send(self) -> None:
        """Sends what waits, as far as the window allows. `serve` does so in its turn: for whoever cannot wait for that."""
        if self._connection is None:
            return
        client, inbox = self._connection
        room = WINDOW - self._in_flight()
        while self._waiting and room > 0:
            number, entry = self._waiting.popitem(last=False)
            entry.sent_at = self._clock()
            room -= 1
            with self.refusals.sending(entry.id):
                await client.publish(
                    entry.subject,
                    entry.body,
                    reply=f"{inbox}.{number}",
                    headers={subjects.HEADER_ID: entry.id},
                )

    def _in_flight(self) -> int:
        return len(self._entries) - len(self._waiting)

    def _queue_overdue(self) -> None:
        now = self._clock()
        overdue = {
            number: entry
            for number, entry in self._entries.items()
            if number not in self._waiting and now - entry.sent_at >= RESEND_S
        }
        if overdue:
            self._waiting = OrderedDict(sorted((overdue | self._waiting).items()))

    async def _on_answer(self, message: Msg) -> None:
        """Handles the server's answer: it has the message, or gives an error and gets it again later."""
        number = int(message.subject.rpartition(".")[2])
        entry = self._entries.get(number)
        if entry is None:
            return
        if (sequence := place_of(message.data)) is None:
            self.refused += 1
            self.refusals.refused(entry.id, message.data)
            return
        self.refusals.taken(entry.id)
        del self._entries[number]
        self._waiting.pop(number, None)
        if self._in_flight() >= WINDOW - 1 or entry.done is not None:
            self._wake.set()
        if entry.done is not None and not entry.done.done():
            entry.done.set_result(sequence)
        if entry.answered is not None:
            entry.answered()

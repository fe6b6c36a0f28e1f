"""Spool → log: in order, many in flight, each event removed only when the broker has acknowledged it.

Readers of the log skip an event whose number is not above the last one of its spool. That makes sending again harmless,
but an event that is stored behind a later one would be lost. A connection keeps the order, but a change of the stream's
leader may lose one message and store the next. The acknowledgement gives the position on the log: an event that was
stored behind a later one gets a new number and is sent again.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

import orjson

from agent.contract import subjects
from agent.uplink.spool import Spool

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

WINDOW = 512  # messages in flight
BATCH = 128  # read from the spool at once
ACK_TIMEOUT_S = 5.0
FIRST_PAUSE_S = 0.1  # after the broker has refused (no stream yet, an election): doubled up to MAX_PAUSE_S
MAX_PAUSE_S = 2.0

_log = logging.getLogger(__name__)


class Publisher:
    """Sends one spool to one cell's log; `serve` for each connection."""

    def __init__(self, spool: Spool, cell: str, node: str) -> None:
        self._spool = spool
        self._subject = subjects.event(cell, node)
        self._wake = asyncio.Event()
        self._pause_s = FIRST_PAUSE_S
        spool.on_put = self._wake.set

    async def serve(self, client: "Client") -> None:
        """Publishes until cancelled; raises nats errors when the connection is lost."""
        flight = _Flight(client.new_inbox(), self._wake)
        await client.subscribe(f"{flight.inbox}.*", cb=flight.on_ack)
        while True:
            self._wake.clear()
            self._remove_stored(flight)
            if flight.refused:
                if flight.refused != flight.logged:
                    _log.warning("the broker does not accept events: %s", flight.refused)
                await asyncio.sleep(self._pause_s)
                self._pause_s = min(MAX_PAUSE_S, self._pause_s * 2)
                flight.restart()
            elif flight.overdue():
                _log.warning("no acknowledgement for %s s: sending again", ACK_TIMEOUT_S)
                flight.restart()
            if not await self._send(client, flight):
                await _wait(self._wake, ACK_TIMEOUT_S if flight.waiting else None)

    async def _send(self, client: "Client", flight: "_Flight") -> bool:
        """Sends what fits into the window; True when there may be more to send at once."""
        room = min(BATCH, WINDOW - len(flight.waiting))
        if room <= 0:
            return False
        rows = self._spool.pending(flight.cursor, room)
        now_s = asyncio.get_running_loop().time()
        for row in rows:
            flight.cursor = row.seq
            if row.seq in flight.stored:
                continue
            flight.waiting[row.seq] = now_s
            event_id, body = self._spool.message(row)
            headers = {
                subjects.HEADER_ID: event_id,
                subjects.HEADER_KIND: row.kind,
                subjects.HEADER_SEVERITY: row.severity,
            }
            await client.publish(self._subject, body, reply=f"{flight.inbox}.{row.seq}", headers=headers)
        if len(rows) == room:
            await asyncio.sleep(0)  # lets acknowledgements come in
            return True
        return False

    def _remove_stored(self, flight: "_Flight") -> None:
        """Removes events from the spool, up to the first one that may not be on the log."""
        if not flight.stored:
            return
        for seq in flight.misplaced():
            _log.warning("event %s was stored behind a later one: sent again under a new number", seq)
            self._spool.renumber(seq)
        first_open = min(flight.waiting, default=flight.cursor + 1)
        done = [seq for seq in flight.stored if seq < first_open]
        if done:
            self._pause_s, flight.logged = FIRST_PAUSE_S, ""
            self._spool.acknowledged(max(done))
            for seq in done:
                del flight.stored[seq]


class _Flight:
    """What was sent on one connection, and how far."""

    def __init__(self, inbox: str, wake: asyncio.Event) -> None:
        self.inbox = inbox
        # The highest number that was sent.
        self.cursor = 0
        # Number → when it was sent, while it is not acknowledged.
        self.waiting: dict[int, float] = {}
        # Number → position on the log, while an earlier number is not acknowledged.
        self.stored: dict[int, int] = {}
        # Why the broker refused an event; empty: it did not.
        self.refused = ""
        # The refusal that was logged last.
        self.logged = ""
        self._wake = wake

    async def on_ack(self, message: "Msg") -> None:
        """The broker's answer to one event."""
        seq = int(message.subject.rpartition(".")[2])
        status = (message.headers or {}).get("Status", "")
        answer = {} if status else orjson.loads(message.data)
        if status or "error" in answer:
            self.refused = str(answer.get("error", {}).get("description", "")) or "there is no stream for it"
        elif self.waiting.pop(seq, None) is not None:
            self.stored[seq] = int(answer["seq"])
        self._wake.set()

    def misplaced(self) -> list[int]:
        """Numbers that are stored behind a higher number on the log; each is returned once."""
        found: list[int] = []
        lowest = None  # position of the events with higher numbers
        for seq in sorted(self.stored, reverse=True):
            position = self.stored[seq]
            if lowest is not None and position > lowest:
                found.append(seq)
                self.stored[seq] = lowest  # dealt with
            else:
                lowest = position
        return found[::-1]

    def overdue(self) -> bool:
        """Has the oldest event waited too long for its acknowledgement?"""
        return bool(self.waiting) and (
            asyncio.get_running_loop().time() - next(iter(self.waiting.values())) > ACK_TIMEOUT_S
        )

    def restart(self) -> None:
        """Starts over from the first event that may not be on the log."""
        self.logged, self.refused = self.refused or self.logged, ""
        self.cursor = min([*self.waiting, self.cursor + 1]) - 1
        self.waiting.clear()


async def _wait(event: asyncio.Event, timeout_s: float | None) -> None:
    try:
        # Not wait_for, which can lose a cancellation on Python 3.11: the agent would not stop.
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return

"""Spool → log: in order, many in flight, each event removed only when the brain has said that it is on the log.

An event is offered (agent/contract/subjects.py) without a reply subject and without headers; the brain that leads takes it,
and acknowledges it at a subject of the node. While no brain leads, nothing is acknowledged, and one event is offered at a
time. Readers of the log skip an event whose number is not above the last one of its spool. That makes sending again
harmless, but an event that is stored behind a later one would be lost. The acknowledgement gives the position on the log:
an event that was stored behind a later one gets a new number and is sent again.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import orjson

from agent.contract import subjects
from agent.contract.acknowledgements import LEFT_OUT, decode_acknowledgement
from agent.contract.errors import ContractError
from agent.uplink.port import MOST_WAITING_BYTES
from agent.uplink.spool import Spool

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

WINDOW = 32  # messages in flight: half of what a lane keeps of one node
ACK_TIMEOUT_S = 5.0
MOST_LATE = 60  # five minutes, after which another server is tried each time

_log = logging.getLogger(__name__)


class Publisher:
    """Sends one spool to one cell's brain; `serve` for each connection."""

    def __init__(
        self,
        spool: Spool,
        cell: str,
        node: str,
        elsewhere: Callable[[], object] = lambda: None,
        heard: Callable[[bool], object] = lambda _: None,
    ) -> None:
        """`elsewhere`: goes to another server; called when nothing is acknowledged for long. `heard`: the brain has acknowledged
        events, or (True) has answered a beat.
        """
        self._elsewhere = elsewhere
        self._heard = heard
        self._late = 0  # how often nothing was acknowledged in time, one time after the other
        self._spool = spool
        self._offer = subjects.offer(cell, node, subjects.EVENT)
        self._acknowledgement = subjects.acknowledgement(cell, node, subjects.EVENT)
        self._wake = asyncio.Event()
        self._told = False
        spool.on_put = self._wake.set

    async def serve(self, client: "Client") -> None:
        """Publishes until cancelled; raises nats errors when the connection is lost."""
        flight = _Flight(self._wake, self._heard)
        await client.subscribe(
            self._acknowledgement, cb=flight.on_acknowledgement, pending_bytes_limit=MOST_WAITING_BYTES
        )
        while True:
            self._wake.clear()
            self._remove_stored(flight)
            if flight.overdue():
                if not self._told:
                    self._told = True
                    _log.warning(
                        "no brain has acknowledged an event for %g s: they wait in the spool. None leads, or the server refuses "
                        "what this node says (another line says that)",
                        ACK_TIMEOUT_S,
                    )
                flight.restart()
                self._late += 1
                if _tries_another(self._late):
                    self._elsewhere()
            if not await self._send(client, flight):
                await _wait(self._wake, ACK_TIMEOUT_S if flight.waiting else None)

    async def _send(self, client: "Client", flight: "_Flight") -> bool:
        """Sends what fits into the window; True when there may be more to send at once."""
        room = flight.window - len(flight.waiting)
        if room <= 0:
            return False
        rows = self._spool.pending(flight.cursor, room)
        now_s = asyncio.get_running_loop().time()
        for row in rows:
            flight.cursor = row.seq
            if row.seq in flight.stored:
                continue
            event_id, body = self._spool.message(row)
            flight.sent(row.seq, event_id, now_s)
            await client.publish(self._offer, body)
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
            self._late = 0
            if self._told:
                self._told = False
                _log.info("a brain takes events again")
            self._spool.acknowledged(max(done))
            for seq in done:
                del flight.stored[seq]


class _Flight:
    """What was sent on one connection, and how far."""

    def __init__(self, wake: asyncio.Event, heard: Callable[[bool], object]) -> None:
        # How many may be in flight: one until a brain is known to take them.
        self.window = 1
        # The highest number that was sent.
        self.cursor = 0
        # Number → when it was sent, while it is not acknowledged.
        self.waiting: dict[int, float] = {}
        # Number → position on the log, while an earlier number is not acknowledged.
        self.stored: dict[int, int] = {}
        # Event id → number, of those that wait.
        self._numbers: dict[str, int] = {}
        self._wake = wake
        self._heard = heard

    def sent(self, seq: int, event_id: str, now_s: float) -> None:
        """An event is on its way."""
        self.waiting[seq] = now_s
        self._numbers[event_id] = seq

    async def on_acknowledgement(self, message: "Msg") -> None:
        """The brain has stored events, or answers a beat."""
        try:
            entries = decode_acknowledgement(orjson.loads(message.data))
        except (ValueError, ContractError) as error:
            _log.warning("an acknowledgement that cannot be read: %s", error)
            return
        self._heard(not entries)
        if not entries:
            return  # nobody needs to wake
        for event_id, place in entries:
            seq = self._numbers.pop(event_id, None)
            if seq is not None and self.waiting.pop(seq, None) is not None:
                self.stored[seq] = place
                self.window = WINDOW
        self._wake.set()

    def misplaced(self) -> list[int]:
        """Numbers that are stored behind a higher number on the log; each is returned once."""
        found: list[int] = []
        lowest = None  # position of the events with higher numbers
        for seq in sorted(self.stored, reverse=True):
            position = self.stored[seq]
            if position == LEFT_OUT:
                continue
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
        """Starts over from the first event that may not be on the log, with one at a time."""
        self.cursor = min([*self.waiting, self.cursor + 1]) - 1
        self.waiting.clear()
        self._numbers.clear()
        self.window = 1


def _tries_another(late: int) -> bool:
    """At 2, 4, 8, 16, 32 and each multiple of 60: the server may be cut off from the others. If no brain leads, no other server
    knows better.
    """
    return late % MOST_LATE == 0 or (1 < late < MOST_LATE and late.bit_count() == 1)


async def _wait(event: asyncio.Event, timeout_s: float | None) -> None:
    try:
        # Not wait_for, which can lose a cancellation on Python 3.11: the agent would not stop.
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return

"""What becomes of each offer of a node: a beat, an event, an answer to a command, or a part of an evidence bundle.

Who sent an offer is the server's word (its subject); what it says is the node's. Every node has an allowance of each kind.
An event above it waits (brain/leader/event_queue.py). Of beats and answers the rest is dropped, and leaves its lane late, so
that a node that floods keeps the brain no busier than its allowance does. Parts of bundles are dealt with one after the
other: an agent sends the next one when it has the answer, so a node with many under way is no agent of ours.

Nothing that a node says may end the session of the brain (decision 33): what breaks our code is unreadable, and told.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from nats.aio.client import Client

from agent.contract import subjects
from agent.contract.acknowledgements import encode_acknowledgement
from agent.contract.errors import ContractError
from agent.shared.nats_connection import LOST
from agent.shared.tasks import Tasks
from brain.adapters.arrivals import Offer
from brain.adapters.evidence_store import EvidenceStore
from brain.adapters.lanes import Lanes
from brain.adapters.liveness import Beats
from brain.allowance import Allowance
from brain.leader.event_queue import EventQueue
from brain.leader.node_reports import NodeReports
from brain.unreadable import BROKEN_BY_TEXT

MANY_PARTS = 4
NOTHING_STORED = orjson.dumps(encode_acknowledgement(()))  # answers a beat
_log = logging.getLogger(__name__)
LOGGED_EVERY_S = 60.0
HOLD_S = 1.0  # how long a dropped offer stays in its lane
# (burst, per second) of one node.
ALLOWANCES = {
    subjects.BEAT: (20.0, 5.0),
    subjects.ANSWER: (200.0, 50.0),
}


class Reception:
    """One brain's, while it leads on one connection."""

    def __init__(
        self,
        client: Client,
        cell: str,
        *,
        lanes: Lanes,
        queue: EventQueue,
        beats: Beats,
        reports: NodeReports,
        evidence: EvidenceStore,
        background: Tasks,
        log_now: Callable[[], float],
        shut_out: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`log_now`: the log's time, seconds since 1970. `shut_out`: nothing that this node offers is taken."""
        self._log_now = log_now
        self._shut_out = shut_out
        self._client = client
        self._cell = cell
        self._lanes = lanes
        self._queue = queue
        self._beats = beats
        self._reports = reports
        self._evidence = evidence
        self._background = background
        self._allowances: dict[tuple[str, str], Allowance] = {}
        self._logged_s = float("-inf")
        self._parts: dict[str, int] = {}  # node → parts of bundles under way

    async def take(self, offer: Offer) -> None:
        """Deals with an offer, or puts it where it waits."""
        await self._survived(offer, self._take(offer))

    async def _survived(self, offer: Offer, dealing: Coroutine[Any, Any, None]) -> None:
        try:
            await dealing
        except LOST:
            raise
        except BROKEN_BY_TEXT as error:
            now_s = time.monotonic()
            if now_s >= self._logged_s + LOGGED_EVERY_S:
                self._logged_s = now_s
                _log.exception("an offer of %s (%s) broke what reads it", offer.node, offer.what)
            self._unreadable(offer, f"{type(error).__name__}: {error}")
            await self._lanes.done(offer)

    async def _take(self, offer: Offer) -> None:
        if self._shut_out(offer.node):
            self._background.start(self._done_late(offer), f"offer of {offer.node}")
        elif offer.what == subjects.EVENT:
            self._queue.put(offer)
        elif offer.what == subjects.EVIDENCE:
            self._background.start(self._survived(offer, self._part(offer)), f"evidence of {offer.node}")
        elif offer.what not in ALLOWANCES:
            self._unreadable(offer, f"nothing is offered as {offer.what[:40]!r}")
            self._background.start(self._done_late(offer), f"offer of {offer.node}")
        elif not self._allowed(offer):
            self._reports.slowed(offer.node)
            self._background.start(self._done_late(offer), f"offer of {offer.node}")
        else:
            if offer.what == subjects.ANSWER:
                # Whichever brain asked hears it there, and compares the reference.
                await self._client.publish(subjects.answer(self._cell, offer.node), offer.body)
            elif (beat := self._beats.take(offer.node, offer.body, self._log_now() - offer.at)) is None:
                self._unreadable(offer, "not a beat that this brain can read")
            else:
                self._reports.beat(beat)
                if beat.asks:
                    subject = subjects.acknowledgement(self._cell, offer.node, subjects.EVENT)
                    await self._client.publish(subject, NOTHING_STORED)
            await self._lanes.done(offer)

    def _allowed(self, offer: Offer) -> bool:
        key = offer.node, offer.what
        found = self._allowances.get(key)
        if found is None:
            found = self._allowances[key] = Allowance(*ALLOWANCES[offer.what])
        return found.spend(time.monotonic())

    def _unreadable(self, offer: Offer, why: str) -> None:
        self._reports.unreadable(offer.node, subjects.lane(self._cell, offer.node, offer.what), why)

    async def _done_late(self, offer: Offer) -> None:
        await asyncio.sleep(HOLD_S)
        await self._lanes.done(offer)

    async def _part(self, offer: Offer) -> None:
        node = offer.node
        self._parts[node] = self._parts.get(node, 0) + 1
        if self._parts[node] > MANY_PARTS:
            self._reports.slowed(node)
        try:
            answer = await self._evidence.take(self._client, node, offer.body)
        except ContractError as error:
            self._unreadable(offer, str(error))
            answer = b""
        finally:
            self._parts[node] -= 1
            if not self._parts[node]:
                del self._parts[node]
        if answer:
            subject = subjects.acknowledgement(self._cell, offer.node, subjects.EVIDENCE)
            await self._client.publish(subject, answer)
        await self._lanes.done(offer)

"""Events on their way from the lanes to the log: each node's in its order, the nodes in turn, few at a time.

Only the brain writes to the log, so ids, headers and order of what stands there are the brain's. An event is acknowledged to
its node, with its position, once the log has it; then it leaves the lane. Whoever dies in between leaves nothing undone:
the agent offers it again, and its id makes a second copy harmless. At most ON_THE_WAY events are with the server at any
time, so that the brain's own inputs never wait behind many.
"""

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg

from agent.contract import subjects
from agent.contract.acknowledgements import LEFT_OUT, MAX_ENTRIES, encode_acknowledgement
from agent.contract.errors import ContractError
from agent.contract.messages import Event, encode_event
from brain.adapters.arrivals import Offer
from brain.adapters.codec import read_event
from brain.adapters.lanes import Lanes
from brain.adapters.refused_writes import RefusedWrites
from brain.adapters.server_words import place_of
from brain.core.pack import vocabulary
from brain.leader.node_reports import NodeReports
from brain.leader.quotas import BESIDE_BODY, NodeQuota

ON_THE_WAY = 256
# Nodes hear this much later that the log has an event, unless others wait: the engine reads it at the same moment, and what it
# decides goes first.
SOON_S = 0.002
RESEND_S = 2.0  # an event that the log has not answered for so long is published again
REMEMBERED = (
    16_384  # events that are on the log, and are not written again when their nodes offer them once more
)
LATE_S = 0.25  # an event that waited longer than this for us says so in its age


@dataclass(slots=True)
class _Sent:
    offer: Offer
    event: Event
    body: bytes
    sent_s: float


class EventQueue:
    """The events of one leadership on one connection."""

    def __init__(
        self,
        client: Client,
        cell: str,
        lanes: Lanes,
        reports: NodeReports,
        *,
        may_write: Callable[[], bool],
        log_now: Callable[[], float],
        refusals: RefusedWrites,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`may_write`: does this brain lead? Asked before each message. `log_now`: the log's time, s since 1970. `refusals`: what
        the log does not take.
        """
        self._refusals = refusals
        self._client = client
        self._cell = cell
        self._lanes = lanes
        self._reports = reports
        self._may_write = may_write
        self._log_now = log_now
        self._clock = clock
        self._quotas: dict[str, NodeQuota] = {}
        self._waiting: dict[str, deque[Offer]] = {}
        self._turn: deque[str] = deque()  # nodes with waiting events, within their pace
        self._later: list[tuple[float, str]] = []  # nodes above it, and when it is their turn again: a heap
        self._sent: dict[int, _Sent] = {}
        self._on_the_way: set[str] = set()  # ids of the events in it
        self._places: dict[str, int] = {}  # event id → its place on the log, of the newest ones
        self._number = 0
        self._inbox = client.new_inbox()
        # Node → what is to be acknowledged: the event's id, and its place
        self._stored: dict[str, list[tuple[Offer, str, int]]] = {}
        self._soon: asyncio.TimerHandle | None = None  # when it is
        self._wake = asyncio.Event()

    def put(self, offer: Offer) -> None:
        """An event of a node, in its order."""
        waiting = self._waiting.get(offer.node)
        if waiting is None:
            self._waiting[offer.node] = deque((offer,))
            self._turn.append(offer.node)
            self._wake.set()
        else:
            waiting.append(offer)

    async def serve(self) -> None:
        """Moves events until cancelled."""
        await self._client.subscribe(f"{self._inbox}.*", cb=self._on_stored)
        while True:
            self._wake.clear()
            self._recall()
            while self._turn and len(self._sent) < ON_THE_WAY:
                await self._next()
            await self._acknowledge()
            await self._resend_overdue()
            if not self._turn or len(self._sent) >= ON_THE_WAY:
                try:
                    async with asyncio.timeout(self._pause_s()):
                        await self._wake.wait()
                except TimeoutError:
                    continue
            else:
                await asyncio.sleep(0)

    def _recall(self) -> None:
        """Nodes whose pace allows another event get their turn."""
        now_s = self._clock()
        while self._later and self._later[0][0] <= now_s:
            self._turn.append(heapq.heappop(self._later)[1])

    def _pause_s(self) -> float | None:
        pauses = [RESEND_S] if self._sent else []
        if self._later:
            pauses.append(max(0.001, self._later[0][0] - self._clock()))
        return min(pauses, default=None)

    async def _next(self) -> None:
        node, now_s = self._turn.popleft(), self._clock()
        quota = self._quotas.setdefault(node, NodeQuota())
        if not quota.pace.spend(now_s):
            heapq.heappush(self._later, (now_s + quota.pace.ready_s(), node))
            return
        waiting = self._waiting[node]
        offer = waiting.popleft()
        if waiting:
            self._turn.append(node)
        else:
            del self._waiting[node]
        await self._move(offer, quota, now_s)

    async def _move(self, offer: Offer, quota: NodeQuota, now_s: float) -> None:
        try:
            event = read_event(offer.body, offer.node)
        except ContractError as error:
            subject = subjects.lane(self._cell, offer.node, offer.what)
            self._reports.unreadable(offer.node, subject, str(error))
            await self._lanes.done(offer)
            return
        if (
            event.id in self._on_the_way
        ):  # its node has waited for too long: the answer to the first one is its answer
            await self._lanes.done(offer)
            return
        if (place := self._places.get(event.id)) is not None:
            await self._store(offer, event.id, place)
            return
        if event.kind in vocabulary.KINDS:
            self._reports.foreign_word(offer.node, event.kind)
            await self._store(offer, event.id, LEFT_OUT)
            return
        if not quota.ordinary(event, now_s):
            self._reports.slowed(offer.node)
        if not quota.takes(event, len(offer.body) + BESIDE_BODY, now_s):
            self._reports.left_out(offer.node)
            await self._store(offer, event.id, LEFT_OUT)
            return
        self._number += 1
        # Encoded anew: nothing stands on the log but what was read and checked.
        body = orjson.dumps(encode_event(_aged(event, self._log_now() - offer.at)))
        sent = self._sent[self._number] = _Sent(offer, event, body, now_s)
        self._on_the_way.add(event.id)
        await self._publish(self._number, sent)

    async def _publish(self, number: int, sent: _Sent) -> None:
        if not self._may_write():
            return  # whoever leads now gets it again from the node
        headers = {
            subjects.HEADER_ID: f"e:{sent.event.id}",
            subjects.HEADER_KIND: sent.event.kind,
            subjects.HEADER_SEVERITY: sent.event.severity.value,
        }
        with self._refusals.sending(sent.event.id):
            await self._client.publish(
                subjects.event(self._cell, sent.offer.node),
                sent.body,
                reply=f"{self._inbox}.{number}",
                headers=headers,
            )

    async def _resend_overdue(self) -> None:
        now_s = self._clock()
        for number, sent in list(self._sent.items()):
            if now_s - sent.sent_s < RESEND_S:
                return  # in order of sending
            del self._sent[number]
            sent.sent_s = now_s
            self._sent[number] = sent
            await self._publish(number, sent)

    async def _on_stored(self, message: Msg) -> None:
        """The log's answer. One that refuses is asked again later."""
        number = int(message.subject.rpartition(".")[2])
        if (place := place_of(message.data)) is None:
            if (refused := self._sent.get(number)) is not None:
                self._refusals.refused(refused.event.id, message.data)
            return
        if (sent := self._sent.pop(number, None)) is not None:
            self._refusals.taken(sent.event.id)
            self._on_the_way.discard(sent.event.id)
            self._places[sent.event.id] = place
            if len(self._places) > REMEMBERED:
                del self._places[next(iter(self._places))]
            await self._store(sent.offer, sent.event.id, place)

    async def _store(self, offer: Offer, event_id: str, place: int) -> None:
        entries = self._stored.setdefault(offer.node, [])
        entries.append((offer, event_id, place))
        if self._turn:
            self._wake.set()
        elif self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(SOON_S, self._wake.set)
        if len(entries) >= MAX_ENTRIES:
            await self._acknowledge()

    async def _acknowledge(self) -> None:
        stored, self._stored = self._stored, {}
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        for node, entries in stored.items():
            for offer, _, _ in entries:
                await self._lanes.done(offer)
            body = orjson.dumps(encode_acknowledgement([(id_, place) for _, id_, place in entries]))
            await self._client.publish(subjects.acknowledgement(self._cell, node, subjects.EVENT), body)


def _aged(event: Event, waited_s: float) -> Event:
    """An event that has waited in its lane, while no brain led, is older than its node said."""
    return event if waited_s < LATE_S else replace(event, age_s=event.age_s + waited_s)

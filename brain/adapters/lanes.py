"""The lanes: what nodes offer waits here, in memory, until the leading brain takes it.

A cell has subjects.LANES streams for events, beats and answers, and subjects.PARTS_LANES for parts of evidence bundles; a node's
offers go through those that its name gives. Each keeps so many messages of a kind of one node, of so many bytes at most, and
refuses more: a node that floods fills its own part, which is at most a fifth of the lane. Nothing is acknowledged by the
server; the brain takes a message out of the lane when it has dealt with it, which is how it sets a node's pace. What nobody
takes is forgotten after MAX_AGE_S, since agents offer again what was not acknowledged.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import nats.errors
from nats.aio.client import Client
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import APIError, NotFoundError, ServiceUnavailableError

from agent.contract import subjects
from agent.contract.messages import MAX_EVENT_BYTES
from agent.shared.nats_client import passed_directly
from agent.shared.nats_connection import LOST
from agent.shared.tasks import end
from brain.adapters import copies
from brain.adapters.arrivals import Arrivals, Offer, passed_on
from brain.adapters.streams import NoRoom

MAX_BYTES = 16 * 1024**2  # of one lane
MAX_AGE_S = 10.0
# What the server keeps free for all lanes of a cell; it reserves that much, and uses what is in them.
RESERVED_BYTES = (subjects.LANES + subjects.PARTS_LANES) * MAX_BYTES
_NO_MEMORY = 10028  # the server's "insufficient memory resources available"
_NO_PEERS = 10005  # a cluster's "no suitable peers for placement", for this or another reason
_NO_ROOM_TEXT = (
    f"NATS may not keep {RESERVED_BYTES // 1024**2} MiB of its memory free for what nodes say: raise max_mem in `jetstream` of "
    "each server, and the account's limit of memory where it has one (docs/cell.md, NATS of your own)"
)
_CONSUMER = "brain"
# Messages of one lane that the brain has and has not dealt with. A brain that is behind must not have seconds of them on its
# connection, before the log's answers and its lease; and one event of each node of a lane is to fit beside its beats.
_PENDING = 512
_ACK_WAIT_S = 60.0  # longer than anything is kept
_HEARTBEAT_S = 1.0
_LOST_AFTER_S = 4.0  # without a message or heartbeat for so long, the consumer is gone
_CHECK_S = 0.5
_AGAIN_S = 5.0  # after the servers could not say whether a lane has all its copies, it is asked again
_INACTIVE_S = 300.0
# Of a stream whose servers elect its leader, or that is gone.
_PASSING = (TimeoutError, nats.errors.TimeoutError, ServiceUnavailableError, NotFoundError)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One stream of them."""

    stream: str
    subjects: tuple[str, ...]
    # Messages of one kind of one node
    per_subject: int
    # Bytes of one message
    max_message: int


def lanes(cell: str) -> list[Lane]:
    """All lanes of a cell."""
    return [
        *(
            Lane(
                stream=subjects.lane_stream(cell, number),
                subjects=tuple(subjects.lane_subjects(cell, number)),
                per_subject=64,
                # With an answer's reference, or the headers that a node brings.
                max_message=MAX_EVENT_BYTES + 1024,
            )
            for number in range(subjects.LANES)
        ),
        *(
            Lane(
                stream=subjects.parts_stream(cell, number),
                subjects=(subjects.parts_subject(cell, number),),
                per_subject=8,  # an agent sends the next one when it has the answer
                max_message=2 * subjects.MAX_BUNDLE_CHUNK,
            )
            for number in range(subjects.PARTS_LANES)
        ),
    ]


class Lanes:
    """The lanes of one cell on one connection."""

    def __init__(self, client: Client, cell: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._cell = cell
        self._clock = clock
        self._lanes = lanes(cell)
        self._replicas = 1
        self._heard: dict[int, float] = {}
        self._unsure: dict[int, float] = {}  # lanes that may lack copies, and when that is asked again
        self._asked: set[int] = (
            set()
        )  # the lanes whose former consumer is gone, and whose new one nobody has confirmed yet

    async def ensure(self, replicas: int = 1) -> None:
        """Creates the lanes that are not there: a server forgets them when it stops. One that nothing can be said of now is
        left to `taken`.
        """
        self._replicas = replicas
        again_s = self._clock() + _AGAIN_S
        self._unsure = dict.fromkeys(_told(await self._each(self._ensure)), again_s)

    @contextlib.asynccontextmanager
    async def taken(
        self, take: Callable[[Offer], Awaitable[None]], interrupted: Callable[[], None]
    ) -> AsyncIterator[asyncio.Task[None]]:
        """While the context is open, each offer is passed to `take`, and nobody else gets one. `interrupted` is called
        when a lane has been silent without cause, and is heard again. The task ends when `take` raises what is no loss of the
        connection.
        """
        subscriptions = []
        self._asked.clear()
        arrivals = Arrivals(self._client, self._cell, take)
        dealing = asyncio.create_task(arrivals.serve(), name="arrivals")
        direct = contextlib.ExitStack()
        try:
            inbox = self._client.new_inbox()
            # One each: the server does not see that somebody listens where only a wildcard matches.
            for number in range(len(self._lanes)):
                taker = arrivals.taker(partial(self._hear, number))
                subscription = await self._client.subscribe(
                    f"{inbox}.{number}",
                    cb=passed_on(taker),
                    pending_msgs_limit=-1,
                    pending_bytes_limit=-1,
                )
                subscriptions.append(subscription)
                direct.enter_context(passed_directly(self._client, subscription, taker))
            for number in _told(await self._each(lambda number: self._consume(number, inbox))):
                self._heard[number] = -_LOST_AFTER_S  # the watch goes on with it
            watch = asyncio.create_task(self._watch(inbox, interrupted), name="lanes")
            try:
                yield dealing
            finally:
                watch.cancel()
                await asyncio.wait({watch})
        finally:
            direct.close()
            await end(dealing)
            for subscription in subscriptions:
                with contextlib.suppress(*LOST):
                    await subscription.unsubscribe()

    async def done(self, offer: Offer) -> None:
        """The offer was dealt with: it leaves the lane, and the node has room for another."""
        await self._client.publish(offer.token, b"+ACK")

    async def _each(self, work: Callable[[int], Awaitable[None]]) -> dict[int, BaseException]:
        """Does it for all lanes side by side. Returns the errors by lane."""
        numbers = range(len(self._lanes))
        results = await asyncio.gather(*map(work, numbers), return_exceptions=True)
        return {number: error for number, error in zip(numbers, results, strict=True) if error is not None}

    async def _ensure(self, number: int) -> None:
        manager, lane = self._client.jsm(), self._lanes[number]
        wanted = StreamConfig(
            name=lane.stream,
            subjects=list(lane.subjects),
            storage=StorageType.MEMORY,
            retention=RetentionPolicy.WORK_QUEUE,
            discard=DiscardPolicy.NEW,
            discard_new_per_subject=True,
            no_ack=True,
            max_msgs_per_subject=lane.per_subject,
            max_bytes=MAX_BYTES,
            max_age=MAX_AGE_S,
            max_msg_size=lane.max_message,
            duplicate_window=0.1,
            num_replicas=self._replicas,
        )
        try:
            await copies.at_least(self._client, lane.stream, self._replicas)
        except NotFoundError:
            try:
                await manager.add_stream(wanted)
            except APIError as error:
                if error.err_code != _NO_MEMORY and not _without_peers(error):
                    raise
                raise NoRoom(_NO_ROOM_TEXT) from error
        self._unsure.pop(number, None)

    async def _consume(self, number: int, inbox: str) -> None:
        """Makes the lane's only consumer anew: it ends the deliveries to whoever led before.

        Where that gets no answer it is asked again, not begun again: the consumer is there once its servers have elected its
        leader, and another one might be led by a server that hangs.
        """
        manager, stream = self._client.jsm(), self._lanes[number].stream
        if number not in self._asked:
            with contextlib.suppress(NotFoundError):
                await manager.delete_consumer(stream, _CONSUMER)
            self._asked.add(number)
        await manager.add_consumer(
            stream,
            ConsumerConfig(
                durable_name=_CONSUMER,
                deliver_subject=f"{inbox}.{number}",
                deliver_policy=DeliverPolicy.ALL,
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=_ACK_WAIT_S,
                max_ack_pending=_PENDING,
                flow_control=True,
                idle_heartbeat=_HEARTBEAT_S,
                mem_storage=True,
                inactive_threshold=_INACTIVE_S,
            ),
        )
        self._asked.discard(number)
        self._heard[number] = self._clock()

    def _hear(self, number: int) -> None:
        self._heard[number] = self._clock()

    async def _watch(self, inbox: str, interrupted: Callable[[], None]) -> None:
        """Makes the consumer of a lane anew when it is gone, for example after its server was lost. All such lanes side by
        side: one without an answer takes its time-out, and dozens may be without one at once.
        """
        mending: dict[int, asyncio.Task[None]] = {}
        try:
            while True:
                await asyncio.sleep(_CHECK_S)
                now_s = self._clock()
                for number, heard_s in self._heard.items():
                    if number in mending and not mending[number].done():
                        continue
                    if now_s - heard_s >= _LOST_AFTER_S:
                        work = self._mend(number, inbox, interrupted)
                    elif now_s >= self._unsure.get(number, math.inf):
                        work = self._complete(number)
                    else:
                        continue
                    mending[number] = asyncio.create_task(work, name=f"lane {number}")
        finally:
            await end(*mending.values())

    async def _complete(self, number: int) -> None:
        """Makes the copies of a lane that is delivered, and of which the servers could not say anything before."""
        try:
            await self._ensure(number)
        except LOST as error:
            _log.info("lane %d of cell %s may lack copies: %s", number, self._cell, error)
            self._unsure[number] = self._clock() + _AGAIN_S

    async def _mend(self, number: int, inbox: str, interrupted: Callable[[], None]) -> None:
        try:
            await self._ensure(number)
            await self._consume(number, inbox)
        except LOST as error:
            _log.warning("lane %d of cell %s is not delivered: %s", number, self._cell, error)
        else:
            _log.warning("lane %d of cell %s was silent: its consumer was made anew", number, self._cell)
            interrupted()


def _without_peers(error: APIError) -> bool:
    return error.err_code == _NO_PEERS and "insufficient" in (error.description or "")


def _told(errors: dict[int, BaseException]) -> dict[int, BaseException]:
    """The lanes of which the servers know no leader at the moment, or which they have lost: one is no reason to give up the
    others. Raises any other error.
    """
    for number, error in errors.items():
        if not isinstance(error, _PASSING):
            raise error
        _log.info("lane %d is not there yet: %s", number, error)
    return errors

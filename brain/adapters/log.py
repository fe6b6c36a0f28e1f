"""The log: one JetStream stream per cell, read in order from a sequence number, each message with the server's time.

It is read by an ephemeral push consumer. The consumer's own message count proves the order: after a gap, also one that only a
heartbeat tells of, or when its heartbeats stay away, a new consumer is created that starts after the last message read. A batch
is acknowledged only so that the server sends no more than IN_FLIGHT messages ahead: what else the connection has to carry, the
lease's answers and the server's pings first of all, must not wait behind megabytes of backlog. The consumer may be on another
server than the one that we are connected to, and what is said between them may be lost, while nobody's connection is.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    ReplayPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)

from agent.contract import subjects
from agent.shared.nats_client import passed_directly
from brain.adapters import streams
from brain.adapters.log_record import Record as Record
from brain.adapters.server_words import asked_at, parse_delivery
from brain.nats_config import LogConfig

_log = logging.getLogger(__name__)

BATCH = 256  # messages that are handled before other tasks run
IN_FLIGHT = 16 * BATCH  # sent by the server and not yet taken
HEARTBEAT_S = 1.0
_LOST_AFTER_S = 3.5  # without a message or heartbeat for so long, the consumer is gone
_ASK_AFTER_S = 5.0  # without a message for so long, the server is asked whether there is one
_INACTIVE_S = 30.0
_ACK_WAIT_S = 3600.0  # nothing is sent a second time on the same consumer
LEAST_BYTES = 64 * 1024**2
LATE_S = 3600.0  # so long after a message that came late, one that is on time again is no jump
SET_BACK_S = (
    30.0  # a message whose timestamp is so much too early was not delayed: the server's clock was set back
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInfo:
    """The present extent of the log.

    `identity` changes when the log is recreated: what was read before belongs to another one.
    """

    identity: str
    first_seq: int
    last_seq: int
    bytes: int
    # So many at most; 0: any number
    max_bytes: int
    # Older messages go; 0: none does
    max_age_s: float

    @property
    def empty(self) -> bool:
        """Has it no message, or none any more?"""
        return self.first_seq > self.last_seq or not self.last_seq


async def ensure(
    client: Client, cell: str, config: LogConfig, replicas: int = 1, *, alone: bool = False
) -> LogInfo:
    """Creates the stream of a cell or updates its limits, and returns its extent. `alone`: of `streams.ensure`.

    A server that has just started may need a moment for JetStream. ConfigError: the stream exists with other subjects or
    storage than ours.
    """
    wanted = StreamConfig(
        name=subjects.stream(cell),
        subjects=subjects.stream_subjects(cell),
        storage=StorageType.FILE,
        retention=RetentionPolicy.LIMITS,
        max_age=config.max_age_s,
        max_bytes=config.max_bytes,
        duplicate_window=config.duplicate_window_s,
        num_replicas=replicas,
    )
    await streams.ensure(client, wanted, "log.max_bytes", least=LEAST_BYTES, alone=alone)
    return await info(client, cell)


async def info(client: Client, cell: str) -> LogInfo:
    """Returns the present extent of the log."""
    found = await client.jsm().stream_info(subjects.stream(cell))
    return LogInfo(
        identity=str(found.created),
        first_seq=found.state.first_seq,
        last_seq=found.state.last_seq,
        bytes=found.state.bytes,
        max_bytes=max(0, found.config.max_bytes or 0),
        max_age_s=found.config.max_age or 0.0,
    )


class Reader:
    """Reads the log on one connection, starting after `after_seq`."""

    def __init__(
        self, client: Client, cell: str, after_seq: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._cell = cell
        self._last = after_seq
        self._clock = clock
        # Subject, reply and body as they came from the connection, and what the server says there instead of a message.
        self._queue: deque[tuple[bytes, bytes, bytes, Mapping[str, str] | None]] = deque()
        self._wake = asyncio.Event()
        self._subscription: Subscription | None = None
        self._direct = contextlib.ExitStack()
        self._count = 0  # the consumer's own number of the last message
        self._unacked = 0  # messages that were taken since the newest acknowledgement
        self._newest = b""  # where the newest message is acknowledged
        self._last_message = self._last_record = clock()

    async def batch(self) -> list[Record]:
        """Waits for the next messages: at least one, at most BATCH, in order."""
        if self._subscription is None:
            await self._subscribe()
        while True:
            records = await self._take()
            if records:
                self._last_record = self._clock()
                return records
            if self._clock() - self._last_record > _ASK_AFTER_S:
                await self._ask()
            self._wake.clear()
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._wake.wait()
            except TimeoutError:
                if self._clock() - self._last_message > _LOST_AFTER_S:
                    await self._subscribe()

    async def _ask(self) -> None:
        """Nothing has come for a while. If the log has more nevertheless, the consumer waits for something: it is made anew."""
        self._last_record = self._clock()
        with contextlib.suppress(Error, TimeoutError):
            state = (await self._client.jsm().stream_info(subjects.stream(self._cell))).state
            if state.messages and state.last_seq > self._last and not self._queue:
                await self._subscribe()

    async def close(self) -> None:
        """Removes the consumer."""
        subscription, self._subscription = self._subscription, None
        self._direct.close()
        self._queue.clear()
        if subscription is not None and not self._client.is_closed:
            await subscription.unsubscribe()

    async def _take(self) -> list[Record]:
        records: list[Record] = []
        if self._queue:
            self._last_message = self._clock()
        while self._queue and len(records) < BATCH:
            subject, reply, body, told = self._queue.popleft()
            if told is not None:
                await self._hear(reply, told)
                continue
            seq, at, number, pending = parse_delivery(reply)
            if number != self._count + 1:
                await self._subscribe()  # a gap: read again after the last good message
                return records
            self._count = number
            self._last = seq
            self._newest = reply
            records.append(Record(seq, at, subject.decode(), body, pending))
        self._unacked += len(records)
        if self._unacked >= BATCH:
            await self._acknowledge()
        return records

    async def _hear(self, reply: bytes, told: Mapping[str, str]) -> None:
        """What the server says of the consumer: a heartbeat, or a flow control request."""
        if asked := asked_at(reply.decode(), told):  # it is answered once everything before it has been taken
            await self._client.publish(asked)
        sent = told.get("Nats-Last-Consumer")
        if sent is not None and int(sent) > self._count:
            await self._subscribe()  # it sent what never came
        elif sent is not None and self._newest:
            # Again: between servers the last one may have been lost, and nothing follows.
            await self._acknowledge()

    async def _acknowledge(self) -> None:
        """Of all messages that were taken. After few it is left to the next heartbeat: no message waits for it."""
        self._unacked = 0
        await self._client.publish(self._newest.decode(), b"+ACK")

    async def _subscribe(self) -> None:
        await self.close()
        self._count, self._unacked, self._newest = 0, 0, b""
        inbox = self._client.new_inbox()

        def take(subject: bytes, reply: bytes, body: bytes, headers: Mapping[str, str] | None) -> None:
            if subscription is self._subscription:
                told = headers if headers and "Status" in headers else None
                self._queue.append((subject, reply, body, told))
                self._wake.set()

        async def deliver(message: Msg) -> None:
            take(message.subject.encode(), message.reply.encode(), message.data, message.headers)

        subscription = await self._client.subscribe(
            inbox, cb=deliver, pending_msgs_limit=-1, pending_bytes_limit=-1
        )
        self._subscription = subscription
        self._direct.enter_context(passed_directly(self._client, subscription, take))
        self._last_message = self._clock()
        await self._client.jsm().add_consumer(
            subjects.stream(self._cell),
            ConsumerConfig(
                deliver_subject=inbox,
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=self._last + 1,
                ack_policy=AckPolicy.ALL,
                ack_wait=_ACK_WAIT_S,
                max_ack_pending=IN_FLIGHT,
                replay_policy=ReplayPolicy.INSTANT,
                flow_control=True,
                idle_heartbeat=HEARTBEAT_S,
                inactive_threshold=_INACTIVE_S,
                mem_storage=True,
                num_replicas=1,
            ),
        )


def running_s() -> float:
    """How long this machine has been running, asleep or not: a sleep is no jump of another one's clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LogClock:
    """The server's time between messages: this machine's monotonic clock plus an offset.

    The offset is estimated from messages that arrived without a backlog: of the newest, the one with the least delay is
    the most accurate. A clock that was set back is followed with its first message.
    """

    def __init__(self, mono: Callable[[], float] = running_s, wall: Callable[[], float] = time.time) -> None:
        self._mono = mono
        self._guess = wall() - mono()  # until the first message
        self._offsets: deque[float] = deque(maxlen=32)
        self._newest = 0.0  # stamp
        self._on_time = (
            -math.inf
        )  # the offset before a message that was set back, or only late: that was seen later
        self._on_time_until_s = 0.0
        self._least = 0.0  # it never runs backwards, but with the server's

    def calibrate(self, stamp: float) -> None:
        """Takes the timestamp of a message that has just arrived without a backlog before it."""
        offset = stamp - self._mono()
        if self._offsets and offset < max(self._offsets) - SET_BACK_S:
            if (
                stamp >= self._newest
            ):  # of a clock that was set back it would be earlier, unless nothing came for as long
                self._on_time = max(self._offsets)
                self._on_time_until_s = self._mono() + LATE_S
            self._offsets.clear()
        self._newest = stamp
        if not self._offsets:
            self._least = 0.0  # what was told before was another clock, which may have been hours ahead
        self._offsets.append(offset)

    def ahead_s(self, stamp: float) -> float:
        """By so much is a message later than it can be, by this machine's count since the ones before: the server's clock has
        jumped. 0 before the first. What came late after an outage makes no jump of the next that is on time.
        """
        if not self._offsets:
            return 0.0
        known = max(self._offsets)
        if self._mono() < self._on_time_until_s:
            known = max(known, self._on_time)
        return stamp - self._mono() - known

    def now(self) -> float:
        """Returns the timestamp that the server would give a message now, in seconds since 1970."""
        offset = max(self._offsets) if self._offsets else self._guess
        self._least = max(self._least, self._mono() + offset)
        return self._least

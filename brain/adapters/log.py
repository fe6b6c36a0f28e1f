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
from typing import TypeVar

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
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError, ServiceUnavailableError
from nats.js.manager import JetStreamManager

from agent.contract import subjects
from agent.contract.errors import ConfigError, Unreachable
from agent.shared.nats_client import passed_directly
from brain.adapters import copies
from brain.adapters.log_record import Record as Record
from brain.adapters.server_words import asked_at, parse_delivery
from brain.nats_config import LogConfig

_log = logging.getLogger(__name__)
Number = TypeVar("Number", int, float)

BATCH = 256  # messages that are handled before other tasks run
IN_FLIGHT = 16 * BATCH  # sent by the server and not yet taken
HEARTBEAT_S = 1.0
_LOST_AFTER_S = 3.5  # without a message or heartbeat for so long, the consumer is gone
_ASK_AFTER_S = 5.0  # without a message for so long, the server is asked whether there is one
_ENSURE_TRIES = 20
_ENSURE_PAUSE_S = 0.25
_INACTIVE_S = 30.0
_ACK_WAIT_S = 3600.0  # nothing is sent a second time on the same consumer
_NO_ROOM = 10047  # the server's "insufficient storage resources available"
_NO_PEERS = 10005  # a cluster's "no suitable peers for placement", for this or another reason
LEAST_BYTES = 64 * 1024**2
LATE_S = 3600.0  # so long after a message that came late, one that is on time again is no jump
SET_BACK_S = (
    30.0  # a message whose timestamp is so much too early was not delayed: the server's clock was set back
)


class NoRoom(Error):
    """The server has no space for a stream: somebody must make some."""


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


async def ensure(
    client: Client, cell: str, config: LogConfig, replicas: int = 1, *, alone: bool = False
) -> LogInfo:
    """Creates the stream of a cell or updates its limits, and returns its extent. `alone`: of `ensure_stream`.

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
    await ensure_stream(client, wanted, "log.max_bytes", least=LEAST_BYTES, alone=alone)
    return await info(client, cell)


async def ensure_stream(
    client: Client, wanted: StreamConfig, key: str, *, least: int, alone: bool = False
) -> None:
    """Creates a stream or updates its limits, and how many copies there are at least. Where the server has no room for its
    max_bytes it gets less, down to `least`; `key` is the key of max_bytes in the configuration. `alone`: no other brain has set
    its limits, so they may become smaller. ConfigError: the stream exists with other subjects or storage.
    """
    manager = client.jsm()
    for _ in range(_ENSURE_TRIES):
        try:
            try:
                found = (await manager.stream_info(wanted.name or "")).config
            except NotFoundError:
                await _add(manager, wanted, key, least)
            else:
                if found.storage != StorageType.FILE or sorted(found.subjects or []) != sorted(
                    wanted.subjects or []
                ):
                    raise ConfigError(
                        f"NATS stream {wanted.name} has storage {found.storage} and subjects {found.subjects}: "
                        f"it was not made by gpuward; remove it or set another `cell`"
                    )
                limits = wanted if alone else _not_smaller(found, wanted, key)
                await _update(manager, found, limits.evolve(num_replicas=copies.of(found)), key)
                await copies.at_least(client, wanted.name or "", wanted.num_replicas or 1)
            return
        except (OSError, TimeoutError, ServiceUnavailableError, NoStreamResponseError):
            await asyncio.sleep(_ENSURE_PAUSE_S)
    raise Unreachable(f"NATS does not make the stream {wanted.name}: is JetStream enabled there?")


async def _add(manager: JetStreamManager, wanted: StreamConfig, key: str, least: int) -> None:
    """Creates the stream. The server reserves max_bytes immediately: a smaller log is better than none."""
    bytes_ = wanted.max_bytes or 0
    while True:
        try:
            await manager.add_stream(wanted.evolve(max_bytes=bytes_))
        except APIError as error:
            if not _no_room(error):
                raise
            if bytes_ < 2 * least:
                raise NoRoom(_no_room_text(wanted, key)) from error
            bytes_ //= 2
        else:
            break
    if bytes_ != wanted.max_bytes:
        bytes_ //= 2  # other streams need room as well
        await manager.update_stream(wanted.evolve(max_bytes=bytes_))
        _log.warning("NATS has no room for %s: it keeps at most %d MiB", key, bytes_ // 1024**2)


def _not_smaller(found: StreamConfig, wanted: StreamConfig, key: str) -> StreamConfig:
    """With the limits of the stream that is there where ours are smaller: those are another brain's, and what is within them must
    not go because a line is missing in a second brain.toml.
    """
    table = key.partition(".")[0]
    kept = wanted.evolve(
        max_bytes=_larger(found.max_bytes, wanted.max_bytes),
        max_age=_larger(found.max_age, wanted.max_age),
        duplicate_window=_larger(found.duplicate_window, wanted.duplicate_window),
    )
    if (kept.max_bytes, kept.max_age) != (wanted.max_bytes, wanted.max_age):
        _log.warning(
            "%s keeps up to %s, as another brain or a person has set it, and [%s] of this brain.toml says %s: the larger is "
            "kept, so that nothing is dropped. Write the same [%s] for each brain of the cell; to keep less, say so to the "
            "servers, too (`nats stream edit %s`)",
            wanted.name,
            _limits_text(kept),
            table,
            _limits_text(wanted),
            table,
            wanted.name,
        )
    return kept


def _larger(there: Number | None, ours: Number | None) -> Number:
    """Of two limits; 0 and less is none."""
    return max(there, ours) if there and ours and there > 0 and ours > 0 else 0


def _limits_text(stream: StreamConfig) -> str:
    size = f"{stream.max_bytes // 1024**2} MiB" if stream.max_bytes and stream.max_bytes > 0 else "any size"
    age = f"{stream.max_age / 86400:.3g} days" if stream.max_age else "any age"
    return f"{size} and {age}"


def _no_room(error: APIError) -> bool:
    return error.err_code == _NO_ROOM or (
        error.err_code == _NO_PEERS and "insufficient storage" in (error.description or "")
    )


async def _update(manager: JetStreamManager, found: StreamConfig, wanted: StreamConfig, key: str) -> None:
    """Sets the configured limits; without room for them the stream keeps its present size."""
    try:
        await manager.update_stream(wanted)
    except APIError as error:
        if not _no_room(error):
            raise
        _log.warning(
            "NATS has no room for %s: it keeps at most %d MiB", key, (found.max_bytes or 0) // 1024**2
        )
        try:
            await manager.update_stream(wanted.evolve(max_bytes=found.max_bytes))
        except APIError as still:
            if not _no_room(still):
                raise
            # It is there and works: what was promised to it is more than the server would promise today.
            _log.warning("%s; its other limits stay as they are", _no_room_text(found, key))


def _no_room_text(stream: StreamConfig, key: str) -> str:
    mib = (stream.max_bytes or 0) // 1024**2
    return (
        f"NATS may not use {mib} MiB more of its disk for {key}: make room, lower log.max_bytes and evidence.max_bytes, or "
        "raise max_file_store of servers of your own"
    )


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

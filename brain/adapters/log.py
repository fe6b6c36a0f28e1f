"""The log: one JetStream stream per cell, read in order from a sequence number, each message with the
server's time.

Reading is by an ephemeral push consumer without acknowledgements. Order is checked by the consumer's own
count: a gap, or silence longer than its heartbeats allow, makes a new consumer behind the last message that
was read.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    ReplayPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import NoStreamResponseError, NotFoundError, ServerError, ServiceUnavailableError
from nats.js.manager import JetStreamManager

from agent.contract import subjects
from agent.contract.errors import ConfigError, Unreachable
from brain.config import LogConfig

_log = logging.getLogger(__name__)

BATCH = 256  # messages that are handled before others get their turn
HEARTBEAT_S = 1.0
_SILENCE_S = 3.5  # without message and heartbeat: the consumer is gone
_ENSURE_TRIES = 20
_ENSURE_PAUSE_S = 0.25
_INACTIVE_S = 30.0
_NO_ROOM = 10047  # the server's "insufficient storage resources available"
LEAST_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class Record:
    """One message of the log."""

    seq: int
    at: float  # the server's stamp, seconds since 1970; not yet clamped
    subject: str
    body: bytes
    pending: int  # how many the server has ready behind this one


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInfo:
    """Where the log stands.

    `identity` changes when the log is made anew: what was read before is of another one.
    """

    identity: str
    first_seq: int
    last_seq: int


async def ensure(client: Client, cell: str, config: LogConfig, replicas: int = 1) -> LogInfo:
    """Makes the stream of a cell, or sets its limits anew; says where it stands.

    A server that has just started may need a moment for JetStream. ConfigError: the stream is there with
    other subjects or storage than ours.
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
    await make(client, wanted, "log.max_bytes", least=LEAST_BYTES)
    return await info(client, cell)


async def make(client: Client, wanted: StreamConfig, key: str, *, least: int) -> None:
    """Makes a stream, or sets its limits anew. Without room for its max_bytes it gets less, down to `least`; `key`
    names that in the configuration. ConfigError: it is there with other subjects or storage.
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
                await _update(manager, found, wanted)
            return
        except (OSError, TimeoutError, ServiceUnavailableError, NoStreamResponseError):
            await asyncio.sleep(_ENSURE_PAUSE_S)
    raise Unreachable(f"NATS does not make the stream {wanted.name}: is JetStream enabled there?")


async def _add(manager: JetStreamManager, wanted: StreamConfig, key: str, least: int) -> None:
    """A new stream.

    The server reserves max_bytes at once: where that is too much, a smaller log is better than none.
    """
    bytes_ = wanted.max_bytes or 0
    while True:
        try:
            await manager.add_stream(wanted.evolve(max_bytes=bytes_))
        except ServerError as error:
            if error.err_code != _NO_ROOM or bytes_ < 2 * least:
                raise
            bytes_ //= 2
        else:
            break
    if bytes_ != wanted.max_bytes:
        bytes_ //= 2  # others need room as well
        await manager.update_stream(wanted.evolve(max_bytes=bytes_))
        _log.warning("NATS has no room for %s: it keeps at most %d MiB", key, bytes_ // 1024**2)


async def _update(manager: JetStreamManager, found: StreamConfig, wanted: StreamConfig) -> None:
    """The limits as they are configured now; without room for them, those that it has."""
    try:
        await manager.update_stream(wanted)
    except ServerError as error:
        if error.err_code != _NO_ROOM:
            raise
        await manager.update_stream(wanted.evolve(max_bytes=found.max_bytes))


async def info(client: Client, cell: str) -> LogInfo:
    """Where the log stands now."""
    found = await client.jsm().stream_info(subjects.stream(cell))
    return LogInfo(
        identity=str(found.created), first_seq=found.state.first_seq, last_seq=found.state.last_seq
    )


class Reader:
    """Reads on one connection from behind `after_seq`."""

    def __init__(
        self, client: Client, cell: str, after_seq: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._cell = cell
        self._last = after_seq
        self._clock = clock
        self._queue: deque[Msg] = deque()
        self._wake = asyncio.Event()
        self._subscription: object | None = None
        self._count = 0  # the consumer's own number of the last message
        self._heard = clock()

    async def batch(self) -> list[Record]:
        """The next messages, at least one, at most BATCH, in order."""
        if self._subscription is None:
            await self._subscribe()
        while True:
            records = await self._take()
            if records:
                return records
            self._wake.clear()
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._wake.wait()
            except TimeoutError:
                if self._clock() - self._heard > _SILENCE_S:
                    await self._subscribe()

    async def close(self) -> None:
        """Ends the consumer."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None and not self._client.is_closed:
            await subscription.unsubscribe()  # type: ignore[attr-defined]
        self._queue.clear()

    async def _take(self) -> list[Record]:
        records: list[Record] = []
        while self._queue and len(records) < BATCH:
            message = self._queue.popleft()
            if message.headers is not None and "Status" in message.headers:
                # Flow control asks how far we are: it is answered when what came before it has been taken.
                if message.reply:
                    await self._client.publish(message.reply)
                continue
            record, count = _record(message)
            if count != self._count + 1:
                await self._subscribe()  # a gap: read again from behind the last good one
                break
            self._count = count
            self._last = record.seq
            records.append(record)
        return records

    async def _subscribe(self) -> None:
        await self.close()
        self._count = 0
        inbox = self._client.new_inbox()

        async def deliver(message: Msg) -> None:
            self._heard = self._clock()
            if subscription is self._subscription:
                self._queue.append(message)
                self._wake.set()

        subscription = await self._client.subscribe(
            inbox, cb=deliver, pending_msgs_limit=-1, pending_bytes_limit=-1
        )
        self._subscription = subscription
        self._heard = self._clock()
        await self._client.jsm().add_consumer(
            subjects.stream(self._cell),
            ConsumerConfig(
                deliver_subject=inbox,
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=self._last + 1,
                ack_policy=AckPolicy.NONE,
                replay_policy=ReplayPolicy.INSTANT,
                flow_control=True,
                idle_heartbeat=HEARTBEAT_S,
                inactive_threshold=_INACTIVE_S,
                mem_storage=True,
                num_replicas=1,
            ),
        )


class LogClock:
    """The log's time between messages, for timers: this machine's monotonic clock plus an offset.

    The offset is learned from messages that arrived without a backlog: the least delay among the newest is
    the best.
    """

    def __init__(
        self, mono: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._mono = mono
        self._guess = wall() - mono()  # until a message says better
        self._offsets: deque[float] = deque(maxlen=32)
        self._least = 0.0  # never runs backwards

    def heard(self, stamp: float) -> None:
        """A message with this stamp has just arrived, and no backlog was before it."""
        self._offsets.append(stamp - self._mono())

    def now(self) -> float:
        """Seconds since 1970 as the server would stamp a message now."""
        offset = max(self._offsets) if self._offsets else self._guess
        self._least = max(self._least, self._mono() + offset)
        return self._least


def _record(message: Msg) -> tuple[Record, int]:
    """The record and the consumer's number of a delivered message.

    Its reply subject is `$JS.ACK.<stream>.<consumer>.<tries>.<seq>.<count>.<ns>.<pending>`, newer servers
    with the domain and an account hash before the stream and one token more at the end.
    """
    parts = message.reply.split(".")
    if len(parts) > 9:
        parts = ["$JS", "ACK", *parts[4:11]]
    seq, count, stamp_ns, pending = int(parts[5]), int(parts[6]), int(parts[7]), int(parts[8])
    return Record(seq, stamp_ns / 1e9, message.subject, message.data, pending), count

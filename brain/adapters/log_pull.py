"""Reads the log piece by piece, at the reader's own pace: for whoever reads much of it, and may lag behind.

The live loop is told what comes as it comes (brain.adapters.log.Reader), and gets up to 32 MiB ahead of what it has handled; here
nothing waits in this process but one piece.
"""

import contextlib
import time
from collections.abc import Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, ReplayPolicy
from nats.js.errors import NotFoundError

from agent.contract import subjects
from agent.shared.nats_connection import LOST
from brain.adapters.log import Record
from brain.adapters.server_words import parse_delivery

PIECE = 64  # messages
_INACTIVE_S = 120.0
_APART_S = 0.01  # a message that was read is no younger than the time of who has read it, but for how times are rounded
_LOST_AFTER_S = 15.0  # nothing came for so long, not even the leader's pulse: the consumer may be gone


class LogPull:
    """Reads the log on one connection, from the position after `after_seq`. `close` removes the consumer."""

    def __init__(
        self,
        client: Client,
        cell: str,
        after_seq: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._stream = subjects.stream(cell)
        self._last = after_seq
        self._clock = clock
        self._consumer = ""
        self._subscription: JetStreamContext.PullSubscription | None = None
        self._heard_s = 0.0

    async def piece(self, wait_s: float) -> list[Record]:
        """The next messages, in order; none: nothing has come for `wait_s`. A jump of the positions is one of the log: what was
        between has gone from it. `LOST`: the connection is.
        """
        subscription = self._subscription or await self._open()
        try:
            messages: list[Msg] = await subscription.fetch(PIECE, timeout=wait_s)
        except (NatsTimeoutError, TimeoutError):
            if self._clock() - self._heard_s > _LOST_AFTER_S:
                await self.close()
            return []
        self._heard_s = self._clock()
        found: list[Record] = []
        for message in messages:
            told = parse_delivery(message.reply)
            # A jump that is not at a consumer's beginning may be a message that was lost on its way: asked for once more.
            if told.seq != self._last + 1 and told.number != 1:
                await self.close()
                break
            self._last = told.seq
            found.append(Record(told.seq, told.at, message.subject, message.data, told.pending))
        return found

    async def close(self) -> None:
        """Removes the consumer."""
        subscription, self._subscription = self._subscription, None
        if subscription is None or self._client.is_closed:
            return
        with contextlib.suppress(*LOST):
            await subscription.unsubscribe()
            await self._client.jsm().delete_consumer(self._stream, self._consumer)

    async def _open(self) -> JetStreamContext.PullSubscription:
        made = await self._client.jsm().add_consumer(
            self._stream,
            ConsumerConfig(
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=self._last + 1,
                ack_policy=AckPolicy.NONE,
                replay_policy=ReplayPolicy.INSTANT,
                inactive_threshold=_INACTIVE_S,
                mem_storage=True,
                num_replicas=1,
            ),
        )
        self._consumer = made.name
        jetstream = self._client.jetstream()
        self._subscription = await jetstream.pull_subscribe_bind(consumer=made.name, stream=self._stream)
        self._heard_s = self._clock()
        return self._subscription


async def first_at(client: Client, cell: str, since: float) -> int:
    """The position of the first message at or after this time (seconds since 1970); after the last one: there is none."""
    jsm, stream = client.jsm(), subjects.stream(cell)
    state = (await jsm.stream_info(stream)).state
    low, high = max(state.first_seq, 1), state.last_seq + 1
    while low < high:
        middle = (low + high) // 2
        pull = LogPull(client, cell, middle - 1)
        try:
            found = await pull.piece(5.0)
        finally:
            await pull.close()
        if found and found[0].at < since:
            low = max(found[0].seq, middle) + 1
        else:
            high = middle
    return low


async def same_up_to(client: Client, cell: str, seq: int, now: float) -> int | None:
    """The position up to which the log has what somebody has read up to `seq`, whose newest message was of the time `now` at most
    (seconds since 1970); None: up to `seq`, or that can no longer be seen.

    Servers that lose their newest messages give the positions again, and a brain that comes back late finds a log that is longer
    than what it has read. What came since is younger than all that it has read. `LOST`: NATS does not answer.
    """
    if not seq:
        return None
    try:
        found = await client.jsm().get_msg(subjects.stream(cell), seq)
    except NotFoundError:
        return None
    if found.time is None or found.time.timestamp() <= now + _APART_S:
        return None
    return await first_at(client, cell, now + _APART_S) - 1

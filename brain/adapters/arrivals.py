"""What has come through the lanes and was not dealt with yet, in the order in which it came.

Beats are most of it: thousands a second in a large cell. So the bytes of a message are taken in the moment in which they are
read (agent/shared/nats_parser.py), without an object of nats-py, a queue and a task for each lane.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from nats.aio.client import Client
from nats.aio.msg import Msg

from agent.contract import subjects
from agent.shared.nats_connection import LOST
from agent.shared.nats_parser import Taker
from brain.adapters.server_words import asked_at, parse_delivery

AT_ONCE = 128  # offers that are dealt with before other tasks run
_SENDERS = 65_536  # whose subjects are taken apart once only

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Offer:
    """One message of a node. The subject is the server's word for who sent it; the body is the node's."""

    node: str
    # subjects.EVENT, BEAT, ANSWER or EVIDENCE
    what: str
    body: bytes
    # When it came to the server, seconds since 1970 by the server's clock.
    at: float
    # Where to say that it was dealt with.
    token: str


class Arrivals:
    """Those of one leadership on one connection."""

    def __init__(self, client: Client, cell: str, take: Callable[[Offer], Awaitable[None]]) -> None:
        """`take` deals with an offer, or puts it where it waits."""
        self._client = client
        self._cell = cell
        self._take = take
        # Subject, reply, body, and what the server says there instead of an offer
        self._come: deque[tuple[bytes, bytes, bytes, Mapping[str, str] | None]] = deque()
        self._wake = asyncio.Event()

    def taker(self, heard: Callable[[], None]) -> Taker:
        """Takes what comes for one lane; `heard` is called for each message."""

        def take(subject: bytes, reply: bytes, body: bytes, headers: Mapping[str, str] | None) -> None:
            heard()
            told = headers if headers is not None and "Status" in headers else None
            self._come.append((subject, reply, body, told))
            self._wake.set()

        return take

    async def serve(self) -> None:
        """Deals with what comes, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._come:
                for _ in range(min(AT_ONCE, len(self._come))):
                    await self._survived(*self._come.popleft())
                await asyncio.sleep(0)

    async def _survived(
        self, subject: bytes, reply: bytes, body: bytes, told: Mapping[str, str] | None
    ) -> None:
        """Where the connection is lost, the node offers it again."""
        try:
            await self._deal(subject, reply, body, told)
        except LOST as error:
            _log.debug("an offer is left to the next connection: %s", error)

    async def _deal(self, subject: bytes, reply: bytes, body: bytes, told: Mapping[str, str] | None) -> None:
        if told is not None:
            if asked := asked_at(reply.decode(), told):
                await self._client.publish(asked)
            return
        sender = _sender(self._cell, subject)
        if sender is not None:  # else: the server's configuration is not ours
            await self._take(Offer(*sender, body, parse_delivery(reply).at, reply.decode()))


def passed_on(taker: Taker) -> Callable[[Msg], Awaitable[None]]:
    """The taker as a callback of nats-py: for a client that passes nothing directly."""

    async def pass_on(message: Msg) -> None:
        taker(message.subject.encode(), message.reply.encode(), message.data, message.headers)

    return pass_on


@lru_cache(_SENDERS)
def _sender(cell: str, subject: bytes) -> tuple[str, str] | None:
    """(node, what) of an offer; None: it is in no lane of that node."""
    text = subject.decode()
    node, what = subjects.offered(text)
    return (node, what) if text == subjects.lane(cell, node, what) else None

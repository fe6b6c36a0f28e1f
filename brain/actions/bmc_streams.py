"""Event streams of BMCs (Server-Sent Events), for one purpose: a BMC that says something is looked at now, not at its next turn.

A stream is opened while a look is under way that sees what was before, so nothing is missed between the two; one that ends is
opened again by a later look, after pauses that grow with each that did not last. What comes through it is bounded: bytes and
events per minute, so many streams in all, and looks by a pace that gets slower while it goes on. A BMC that says things without
end, or nothing at all, or lies, so costs what a poll costs.
"""

import asyncio
import base64
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp

from agent.contract.inert import inert
from agent.contract.messages import clip
from agent.shared import reasons
from agent.shared.tasks import end
from brain import fence
from brain.actions.bmc_base import EventSource
from brain.actions.server_sent import Concern, ServerSentReader

FIRST_S = 10.0  # between the first two looks for the sake of events; each further pause is twice as long
LIFE_S = 3600.0  # a stream that may hang without a word is opened again
LASTED_S = 600.0  # one that ended sooner was no good
LATER_S = 3600.0  # until a BMC that has no stream, refuses it, or floods it is asked again
WINDOW_S = 60.0
MOST_BYTES = 1 << 20  # in a window
MOST_EVENTS = 600


@dataclass(slots=True)
class LookPace:
    """When the events of one BMC may have it looked at: at once, then with pauses that double up to `most_s`; after `most_s`
    without any, at once again.
    """

    most_s: float
    _pause_s: float = FIRST_S
    _next_s: float = float("-inf")
    _last_s: float = float("-inf")

    def at_s(self, now_s: float) -> float:
        """When a look may begin because of an event that comes now."""
        if now_s - self._last_s >= self.most_s:
            self._pause_s, self._next_s = FIRST_S, float("-inf")
        self._last_s = now_s
        return max(now_s, self._next_s)

    def looked(self, now_s: float) -> None:
        """A look was asked for."""
        self._next_s = now_s + min(self._pause_s, self.most_s)
        self._pause_s = min(self._pause_s * 2, self.most_s)


@dataclass(slots=True)
class _Node:
    """What is known of the streams of one BMC."""

    paces: dict[Concern, LookPace]
    task: asyncio.Task[None] | None = None
    again_s: float = float("-inf")  # no stream before then
    rest_s: float = 0.0  # the last pause
    waiting: dict[Concern, asyncio.TimerHandle] = field(default_factory=dict)

    def quiet(self) -> None:
        """No look is waited for any more."""
        for handle in self.waiting.values():
            handle.cancel()
        self.waiting.clear()


class StreamEnded(Exception):
    """Why a stream is not heard any more; `until_s`: and for how long it is not asked for again."""

    def __init__(self, why: str, until_s: float = 0.0) -> None:
        super().__init__(why)
        self.until_s = until_s


class BmcStreams:
    """Those of all BMCs."""

    def __init__(
        self,
        at_most: int,
        every_s: float,
        *,
        look: Callable[[str], None],
        unwell: Callable[[str], bool],
        note: Callable[[str, str], None],
    ) -> None:
        """`look` has a node's BMC looked at now. `unwell`: something stands of the node, so that good news concerns it, too."""
        self._at_most = at_most
        self._most_s = max(every_s, FIRST_S)
        self._look = look
        self._unwell = unwell
        self._note = note
        self._nodes: dict[str, _Node] = {}
        self._noted: set[str] = set()
        self._session: aiohttp.ClientSession | None = None

    @property
    def heard(self) -> int:
        """How many streams there are."""
        return sum(one.task is not None for one in self._nodes.values())

    def wants(self, node: str) -> bool:
        """Is it worth asking this BMC now whether it has a stream?"""
        if not self._at_most:
            return False
        known = self._nodes.get(node)
        if known is not None and (known.task is not None or time.monotonic() < known.again_s):
            return False
        return self._room()

    def offer(self, node: str, source: EventSource | None) -> None:
        """What the BMC has said. None: it has no stream."""
        known = self._nodes.setdefault(
            node, _Node(paces={one: LookPace(most_s=self._most_s) for one in (Concern.BAD, Concern.GOOD)})
        )
        if source is None:
            known.again_s = time.monotonic() + LATER_S
        elif known.task is None and self._room():
            known.task = asyncio.create_task(self._hear(node, known, source), name=f"bmc {node}")

    def _room(self) -> bool:
        if self.heard < self._at_most:
            return True
        says = f"{self._at_most} streams of BMCs are heard, and more offer one: these are polled (bmc_poll.event_streams)"
        self._once("full", says)
        return False

    async def forget(self, node: str) -> None:
        """The node is gone."""
        if (known := self._nodes.pop(node, None)) is not None:
            known.quiet()
            if known.task is not None:
                await end(known.task)

    async def close(self) -> None:
        """Ends all of them."""
        nodes, self._nodes = list(self._nodes.values()), {}
        for one in nodes:
            one.quiet()
        await end(*(one.task for one in nodes if one.task is not None))
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _hear(self, node: str, known: _Node, source: EventSource) -> None:
        """One stream, until it ends."""
        began_s = time.monotonic()
        try:
            await self._stream(node, known, source)
            why, until_s = "", 0.0
        except StreamEnded as error:
            why, until_s = str(error), error.until_s
        except (aiohttp.ClientError, OSError, ValueError) as error:
            why, until_s = reasons.what(error), 0.0
            if isinstance(error, aiohttp.ClientSSLError):
                until_s = LATER_S
        now_s = time.monotonic()
        lasted = now_s - began_s >= LASTED_S
        known.rest_s = 0.0 if lasted else min(LATER_S, max(FIRST_S, known.rest_s * 2))
        known.again_s = now_s + (until_s or known.rest_s)
        known.task = None
        if until_s:
            says = inert(
                clip(f"{source.where}: {why}: its events are not heard for an hour, it is polled", 300)
            )
            self._once(why, says)

    async def _stream(self, node: str, known: _Node, source: EventSource) -> None:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                request_class=fence.Request,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=source.connect_s),
            )
        word = base64.b64encode(f"{source.user}:{source.word}".encode()).decode()
        headers = {
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",
            "Cache-Control": "no-store",
            "Authorization": f"Basic {word}",
        }
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(source.connect_s + source.answer_s):
                answer = await stack.enter_async_context(
                    self._session.get(
                        source.url,
                        headers=headers,
                        ssl=source.tls if source.tls is not None else True,
                        allow_redirects=False,
                    )
                )
            if answer.status != 200:
                raise StreamEnded(f"its stream of events is refused ({answer.status})", LATER_S)
            if answer.content_type != "text/event-stream":
                raise StreamEnded("what it offers is no stream of events", LATER_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LIFE_S):
                    await self._read(node, known, answer.content)

    async def _read(self, node: str, known: _Node, stream: aiohttp.StreamReader) -> None:
        reader, since_s, read, events = ServerSentReader(), time.monotonic(), 0, 0
        async for piece in stream.iter_any():
            if (now_s := time.monotonic()) - since_s >= WINDOW_S:
                since_s, read, events = now_s, 0, 0
            read += len(piece)
            for concern in reader.feed(piece):
                events += 1
                self._said(node, known, concern)
                if events > MOST_EVENTS:
                    break
            if read > MOST_BYTES or events > MOST_EVENTS:
                raise StreamEnded("it sends events without end", LATER_S)

    def _said(self, node: str, known: _Node, concern: Concern) -> None:
        """Has the BMC looked at, now or as soon as its pace allows; once for all that it says until then."""
        if concern is Concern.NONE or (concern is Concern.GOOD and not self._unwell(node)):
            return
        now_s = time.monotonic()
        at_s = known.paces[concern].at_s(now_s)
        if concern in known.waiting:
            return

        def now() -> None:
            known.waiting.pop(concern, None)
            known.paces[concern].looked(time.monotonic())
            self._look(node)

        if at_s <= now_s:
            now()
        else:
            known.waiting[concern] = asyncio.get_running_loop().call_later(at_s - now_s, now)

    def _once(self, what: str, says: str) -> None:
        """Notes it for the first BMC of which it is so: with a faulty firmware it is so of hundreds."""
        if what not in self._noted and len(self._noted) < 64:
            self._noted.add(what)
            self._note("bmc.streams", says)

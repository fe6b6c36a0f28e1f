"""Reads the history for the API, beside the event loop: whoever asks much costs neither the lease nor the nodes' events.

One read at a time, in a thread of its own with a connection of its own, which rests for as long as it works. Others wait
their turn, not for long. Each person (each address, of who has shown no credential) has a share of the thread's time and
of the answers that wait in memory until they are read.
"""

import asyncio
import contextlib
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import orjson
from aiohttp import hdrs, web

from brain.console.access.limits import Limits
from brain.console.brain_view import History
from brain.console.packing import JSON, Packed, packed
from brain.console.sending import PIECE, each, send

WAIT_S = 5.0  # for one's turn
LOOK_S = 1.0  # whether the disk has begun to hang
MOST_WAITING = 64
WAITING_OF_ONE = 8
SHARE, BURST_S = 0.2, 2.0  # of the thread's working time, for one person
MOST_UNSENT = 64 * 1024**2  # bytes of answers that are being sent
UNSENT_OF_ONE = MOST_UNSENT // 4
_STINT_S = 0.001

Payer = Callable[[web.Request], str]
Work = Callable[[History], bytes]


class Rests:
    """Has a thread rest for as long as it has worked, so that the event loop's turn never comes late."""

    def __init__(self) -> None:
        self._worked_s = 0.0

    def pause(self) -> None:
        """Called between small pieces of work, by one thread."""
        worked_s = time.thread_time() - self._worked_s
        if not 0 <= worked_s < _STINT_S:
            time.sleep(max(0.0, min(worked_s, 10 * _STINT_S)))
            self._worked_s = time.thread_time()


class Reading:
    """The reads of one console."""

    def __init__(
        self, history: Callable[[], History], payer: Payer, hangs: Callable[[], bool] = lambda: False
    ) -> None:
        """`history` gives the reader that nobody else uses; `payer` says to whom a request is charged; `hangs`: does the disk of
        the history answer nobody?
        """
        self._hangs = hangs
        self._history = history
        self._payer = payer
        self._thread = ThreadPoolExecutor(1, "console-reading")
        self._turn = asyncio.Lock()
        self._waiting: Counter[str] = Counter()
        self._unsent: Counter[str] = Counter()
        self._time = Limits(SHARE, BURST_S)

    def close(self) -> None:
        """Waits for the read under way; there are no more."""
        self._thread.shutdown(cancel_futures=True)

    async def answer(
        self, request: web.Request, work: Work, kind: str = JSON, also: Mapping[str, str] | None = None
    ) -> web.StreamResponse:
        """Sends what `work` makes, of this media type. `also`: further headers."""
        made: list[Packed] = []

        def both(history: History) -> bytes:
            made.append(packed(request, work(history), kind))
            return made[-1].body

        async with self.read(request, both) as body:
            headers = {**made[-1].headers, **(also or {})}
            if len(body) <= PIECE:
                return web.Response(status=made[-1].status, body=body or None, headers=headers)
            response = web.StreamResponse(headers=headers)
            response.content_length = len(body)
            return await send(request, response, each(body))

    @contextlib.asynccontextmanager
    async def read(self, request: web.Request, work: Work) -> AsyncIterator[bytes]:
        """What `work` makes, while it is being sent. HTTPServiceUnavailable, HTTPTooManyRequests: not now."""
        who = self._payer(request)
        self._check_disk()
        body = await self._read(request, who, work)
        self._unsent[who] += len(body)
        try:
            yield body
        finally:
            self._unsent[who] -= len(body)
            self._unsent += Counter()  # forgets who has nothing under way

    async def _read(self, request: web.Request, who: str, work: Work) -> bytes:
        if owed_s := self._time.owed_s(who, time.monotonic()):
            raise _later(web.HTTPTooManyRequests, "you have asked for much", owed_s)
        if self._unsent[who] >= UNSENT_OF_ONE or self._unsent.total() >= MOST_UNSENT:
            raise _later(web.HTTPServiceUnavailable, "earlier answers have not been read yet", WAIT_S)
        if self._waiting[who] >= WAITING_OF_ONE or self._waiting.total() >= MOST_WAITING:
            raise _later(web.HTTPServiceUnavailable, "too many wait to read the history", WAIT_S)
        self._waiting[who] += 1
        try:
            async with asyncio.timeout(WAIT_S):
                await self._turn.acquire()
        except TimeoutError as error:
            raise _later(web.HTTPServiceUnavailable, "others read the history", WAIT_S) from error
        finally:
            self._waiting[who] -= 1
            self._waiting += Counter()
        try:
            return await self._work(request, who, work)
        finally:
            self._turn.release()

    async def _work(self, request: web.Request, who: str, work: Work) -> bytes:
        if request.transport is None or request.transport.is_closing():
            raise web.HTTPServiceUnavailable(text="whoever asked has left")
        spent_s = 0.0

        def run() -> bytes:
            nonlocal spent_s
            began_s = time.thread_time()
            try:
                return work(self._history())
            finally:
                spent_s = time.thread_time() - began_s

        try:
            reading = asyncio.get_running_loop().run_in_executor(self._thread, copy_context().run, run)
            while not reading.done():
                await asyncio.wait((reading,), timeout=LOOK_S)
                if not reading.done():
                    self._check_disk()
            return reading.result()
        except (sqlite3.Error, UnicodeDecodeError, orjson.JSONDecodeError) as error:
            self._history().failed(error)
            raise _later(
                web.HTTPServiceUnavailable, f"the history cannot be read now: {error}", WAIT_S
            ) from error
        finally:
            self._time.spent(who, spent_s, time.monotonic())

    def _check_disk(self) -> None:
        """HTTPServiceUnavailable: nobody need wait."""
        if self._hangs():
            raise _later(
                web.HTTPServiceUnavailable,
                "the history cannot be read now: this brain's disk hangs (see `gpuward status`)",
                WAIT_S,
            )


def _later(
    kind: type[web.HTTPServiceUnavailable | web.HTTPTooManyRequests], why: str, wait_s: float
) -> web.HTTPException:
    seconds = int(wait_s) + 1
    return kind(text=f"{why}: try again in {seconds} s", headers={hdrs.RETRY_AFTER: str(seconds)})

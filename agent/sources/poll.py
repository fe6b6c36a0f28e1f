"""Polling in a thread of its own, for files whose reading may hang (broken firmware, a dead file server).

Not a source; a part of those that poll. A thread that hangs cannot be ended: it is left alone, no second one is started
beside it, and the hang is reported.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from agent.collectors.samples import Checkpoint, Sample
from agent.shared.rhythm import until_next
from agent.sources.base import Emit

Poll = Callable[[], list[Sample]]
NOTHING_S = 5.0  # between looks whether there is something to watch now
_BATCH = 200  # samples handed over at once, so that a flood does not starve the rest of the agent


@dataclass(slots=True, kw_only=True)
class _Look:
    """A poll that was asked for out of turn."""

    emit: Emit
    done: asyncio.Future[None]
    # The polling thread has begun it.
    begun: bool = False


_Result = tuple[_Look | None, list[Sample] | OSError]


class Poller:
    """Calls `poll` every `period_s` seconds; OSError from `run` when a call takes longer than `hang_s`.

    A poll without any sample does not wake the agent. While there is nothing to watch, as `watching` says after a poll, the
    pause is NOTHING_S, if that is longer.

    `forget` is called in the polling thread before its first poll and before one that `look` asked for: it shall not leave
    out what is unchanged.
    """

    def __init__(
        self,
        poll: Poll,
        *,
        what: str,
        period_s: float,
        hang_s: float = 30.0,
        forget: Callable[[], None] = lambda: None,
        watching: Callable[[], bool] = lambda: True,
    ) -> None:
        self._poll = poll
        self._forget = forget
        self._watching = watching
        # Until when the polling thread shall have done its next poll; written by it.
        self._deadline_s = 0.0
        # Wakes the polling thread, to look or to stop.
        self._wake = threading.Event()
        self._asked: _Look | None = None
        self._what = what
        self._period_s = period_s
        self._hang_s = hang_s
        self._thread: threading.Thread | None = None

    async def run(self, emit: Emit) -> None:
        """Poll until cancelled. Raises what `poll` raises."""
        loop = asyncio.get_running_loop()
        await self._wait_for_former_thread()
        results: asyncio.Queue[_Result] = asyncio.Queue()
        stop, wake = threading.Event(), threading.Event()
        self._wake = wake

        def hand_over(look: _Look | None, result: list[Sample] | OSError) -> None:
            if not stop.is_set():
                with suppress(RuntimeError):  # the loop was closed meanwhile
                    loop.call_soon_threadsafe(results.put_nowait, (look, result))

        def work() -> None:
            look = None
            try:
                self._forget()  # what a thread before this one has read, which hung, was lost with it
                while not stop.is_set():
                    wake.clear()
                    self._deadline_s = time.monotonic() + self._hang_s
                    look = self._asked
                    if look is not None and not look.begun:
                        look.begun = True
                        self._forget()
                    else:
                        look = None
                    samples = self._poll()
                    if samples or look is not None:
                        hand_over(look, samples)
                    pause_s = until_next(self._pause_s())
                    self._deadline_s = time.monotonic() + pause_s + self._hang_s
                    wake.wait(pause_s)
            except OSError as error:
                hand_over(look, error)
            finally:  # a bug is printed by the threading module, and this task learns that the thread is gone
                gone = OSError(f"{self._what}: the polling thread ended; see the agent's standard error")
                hand_over(look, gone)

        self._deadline_s = time.monotonic() + self._hang_s
        # A daemon: the agent can end while it hangs.
        self._thread = threading.Thread(target=work, name=self._what, daemon=True)
        self._thread.start()
        try:
            while True:
                look, result = await self._next(results)
                if isinstance(result, OSError):
                    raise result
                take = emit if look is None or look.done.done() else look.emit
                for number, sample in enumerate(result, 1):
                    take(sample)
                    # A checkpoint belongs to the sample that follows.
                    if number % _BATCH == 0 and not isinstance(sample, Checkpoint):
                        await asyncio.sleep(0)
                if look is not None and not look.done.done():
                    look.done.set_result(None)
        finally:
            stop.set()
            wake.set()
            if self._asked is not None and not self._asked.done.done():
                self._asked.done.set_exception(OSError(f"{self._what}: it ended meanwhile"))

    async def _next(self, results: asyncio.Queue[_Result]) -> _Result:
        """What the polling thread hands over next; OSError when it hangs."""
        while (left_s := self._deadline_s - time.monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    return await results.get()
        raise OSError(self._hung())

    def _pause_s(self) -> float:
        return self._period_s if self._watching() else max(self._period_s, NOTHING_S)

    async def look(self, emit: Emit) -> None:
        """See Source: a poll at once, beside those of each period."""
        look = self._asked = _Look(emit=emit, done=asyncio.get_running_loop().create_future())
        self._wake.set()
        try:
            await look.done
        finally:
            if self._asked is look:
                self._asked = None

    async def _wait_for_former_thread(self) -> None:
        for _ in range(100):
            if self._thread is None or not self._thread.is_alive():
                return
            await asyncio.sleep(0.01)
        raise OSError(self._hung())

    def _hung(self) -> str:
        return f"{self._what}: reading has not returned for more than {self._hang_s:.0f} s"

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
from agent.sources.base import Emit

Poll = Callable[[], list[Sample]]
_BATCH = 200  # samples handed over at once, so that a flood does not starve the rest of the agent


@dataclass(slots=True, kw_only=True)
class _Look:
    """A poll that was asked for out of turn."""

    emit: Emit
    done: asyncio.Future[None]
    # The polling thread has begun it.
    begun: bool = False


class Poller:
    """Calls `poll` every `period_s` seconds; OSError from `run` when a call takes longer than `hang_s`.

    A poll without any sample does not wake the agent, except once in `hang_s / 3` as a sign of life.

    `forget` is called in the polling thread before a poll that `look` asked for: it shall not leave out what is unchanged.
    """

    def __init__(
        self,
        poll: Poll,
        *,
        what: str,
        period_s: float,
        hang_s: float = 30.0,
        forget: Callable[[], None] = lambda: None,
    ) -> None:
        self._poll = poll
        self._forget = forget
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
        results: asyncio.Queue[tuple[_Look | None, list[Sample] | OSError]] = asyncio.Queue()
        stop, wake = threading.Event(), threading.Event()
        self._wake = wake

        def hand_over(look: _Look | None, result: list[Sample] | OSError) -> None:
            if not stop.is_set():
                with suppress(RuntimeError):  # the loop was closed meanwhile
                    loop.call_soon_threadsafe(results.put_nowait, (look, result))

        def work() -> None:
            look = None
            told_s = time.monotonic()
            try:
                while not stop.is_set():
                    wake.clear()
                    look = self._asked
                    if look is not None and not look.begun:
                        look.begun = True
                        self._forget()
                    else:
                        look = None
                    samples = self._poll()
                    if samples or look is not None or time.monotonic() - told_s >= self._hang_s / 3:
                        told_s = time.monotonic()
                        hand_over(look, samples)
                    wake.wait(self._period_s)
            except OSError as error:
                hand_over(look, error)
            finally:  # a bug is printed by the threading module, and this task learns that the thread is gone
                gone = OSError(f"{self._what}: the polling thread ended; see the agent's standard error")
                hand_over(look, gone)

        # A daemon: the agent can end while it hangs.
        self._thread = threading.Thread(target=work, name=self._what, daemon=True)
        self._thread.start()
        try:
            while True:
                try:
                    async with asyncio.timeout(self._period_s + self._hang_s):
                        look, result = await results.get()
                except TimeoutError:
                    raise OSError(self._hung()) from None
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

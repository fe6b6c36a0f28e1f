"""Polling in a thread of its own, for files whose reading may hang (broken firmware, a dead file server).

Not a source; a part of those that poll. A thread that hangs cannot be ended: it is left alone, no second one is started
beside it, and the hang is reported.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from agent.collectors.samples import Checkpoint, Sample
from agent.sources.base import Emit

Poll = Callable[[], list[Sample]]
_BATCH = 200  # samples handed over at once, so that a flood does not starve the rest of the agent


class Poller:
    """Calls `poll` every `period_s` seconds; OSError from `run` when a call takes longer than `hang_s`."""

    def __init__(self, poll: Poll, *, what: str, period_s: float, hang_s: float = 30.0) -> None:
        self._poll = poll
        self._what = what
        self._period_s = period_s
        self._hang_s = hang_s
        self._thread: threading.Thread | None = None

    async def run(self, emit: Emit) -> None:
        """Poll until cancelled. Raises what `poll` raises."""
        loop = asyncio.get_running_loop()
        await self._wait_for_former_thread()
        results: asyncio.Queue[list[Sample] | OSError] = asyncio.Queue()
        stop = threading.Event()

        def hand_over(result: list[Sample] | OSError) -> None:
            if not stop.is_set():
                with suppress(RuntimeError):  # the loop was closed meanwhile
                    loop.call_soon_threadsafe(results.put_nowait, result)

        def work() -> None:
            try:
                while not stop.is_set():
                    hand_over(self._poll())
                    stop.wait(self._period_s)
            except OSError as error:
                hand_over(error)
            finally:  # a bug is printed by the threading module, and this task learns that the thread is gone
                hand_over(OSError(f"{self._what}: the polling thread ended; see the agent's standard error"))

        # A daemon: the agent can end while it hangs.
        self._thread = threading.Thread(target=work, name=self._what, daemon=True)
        self._thread.start()
        try:
            while True:
                try:
                    async with asyncio.timeout(self._period_s + self._hang_s):
                        result = await results.get()
                except TimeoutError:
                    raise OSError(self._hung()) from None
                if isinstance(result, OSError):
                    raise result
                for number, sample in enumerate(result, 1):
                    emit(sample)
                    # A checkpoint belongs to the sample that follows.
                    if number % _BATCH == 0 and not isinstance(sample, Checkpoint):
                        await asyncio.sleep(0)
        finally:
            stop.set()

    async def _wait_for_former_thread(self) -> None:
        for _ in range(100):
            if self._thread is None or not self._thread.is_alive():
                return
            await asyncio.sleep(0.01)
        raise OSError(self._hung())

    def _hung(self) -> str:
        return f"{self._what}: reading has not returned for more than {self._hang_s:.0f} s"

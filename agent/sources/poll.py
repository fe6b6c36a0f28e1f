"""Polling in a thread of its own, for files whose reading may hang (sick firmware, a dead file server).

Not a source: what sources that poll share. A thread that hangs cannot be ended; it is left alone, no second
one is started beside it, and the hang is said.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from agent.collectors.readings import Mark, Reading
from agent.sources.base import Emit

Poll = Callable[[], list[Reading]]
_BATCH = 200  # readings handed over in one go, so that a flood does not starve the rest of the agent


class Poller:
    """Calls `poll` every `period_s` seconds; OSError from `run` when a call takes longer than `hang_s`."""

    def __init__(self, poll: Poll, *, what: str, period_s: float, hang_s: float = 30.0) -> None:
        self._poll = poll
        self._what = what
        self._period_s = period_s
        self._hang_s = hang_s
        self._thread: threading.Thread | None = None

    async def run(self, emit: Emit) -> None:
        """Poll until cancelled. What `poll` raises, this raises."""
        loop = asyncio.get_running_loop()
        await self._wait_for_former_thread()
        results: asyncio.Queue[list[Reading] | OSError] = asyncio.Queue()
        stop = threading.Event()

        def hand_over(result: list[Reading] | OSError) -> None:
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
            finally:  # a bug is printed by the threading module, and the agent learns that the thread is gone
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
                for number, reading in enumerate(result, 1):
                    emit(reading)
                    if number % _BATCH == 0 and not isinstance(reading, Mark):  # it belongs to the next one
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

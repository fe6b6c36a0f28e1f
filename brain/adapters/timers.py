"""The engine's timers as inputs: the leader publishes to the log that one is due. The timers are part of the state."""

import asyncio
import heapq
from collections.abc import Callable, Mapping

from brain.core.inputs import TimerFired

REPEAT_S = 5.0  # a timer that was published as due and is still set is published again after this
_LEAST_WAIT_S = 0.005
_SLACK = 1000


class Timers:
    """A heap of the state's timers, kept while this brain leads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: seconds since 1970 by the log's clock."""
        self._clock = clock
        self._heap: list[tuple[float, str, float]] = []  # (when to check, name, due)
        self._fired: dict[str, tuple[float, int]] = {}  # name -> (due, how often it was published)
        self._wake = asyncio.Event()

    def reset(self, timers: Mapping[str, float]) -> None:
        """Starts with all timers of the state: this brain leads from now on."""
        self._heap = [(due, name, due) for name, due in timers.items()]
        heapq.heapify(self._heap)
        self._fired.clear()
        self._wake.set()

    def set(self, name: str, due: float) -> None:
        """Adds a timer that the engine has set."""
        if not self._heap or due < self._heap[0][0]:
            self._wake.set()
        heapq.heappush(self._heap, (due, name, due))

    def due(self, timers: Mapping[str, float]) -> list[TimerFired]:
        """Returns those of the state's `timers` that are due now and have not been published."""
        if len(self._heap) > 2 * len(timers) + _SLACK:
            self._compact(timers)
        now = self._clock()
        found = []
        while self._heap and self._heap[0][0] <= now:
            _, name, due = heapq.heappop(self._heap)
            if timers.get(name) != due:
                self._fired.pop(name, None)
                continue  # set to another time, cancelled, or handled
            before, times = self._fired.get(name, (due, 0))
            times = times if before == due else 0
            self._fired[name] = (due, times + 1)
            # The server drops a second message with the same id: a repetition needs another one.
            id_ = f"t:{name}:{due}" + (f":{times}" if times else "")
            found.append(TimerFired(id=id_, name=name, due=due))
            heapq.heappush(self._heap, (now + REPEAT_S, name, due))
        return found

    async def wait(self) -> None:
        """Waits until the next timer may be due, or an earlier one is set."""
        self._wake.clear()
        # By a clock that was set back time goes on slowly, or stands still for a moment: then it is asked again soon.
        delay = max(_LEAST_WAIT_S, self._heap[0][0] - self._clock()) if self._heap else None
        try:
            async with asyncio.timeout(delay):
                await self._wake.wait()
        except TimeoutError:
            return

    def _compact(self, timers: Mapping[str, float]) -> None:
        """Drops old entries: most timers are reset long before they are due, and these must not pile up."""
        now = self._clock()
        self._heap = [
            (due if self._fired.get(name, (0.0, 0))[0] != due else now + REPEAT_S, name, due)
            for name, due in timers.items()
        ]
        heapq.heapify(self._heap)

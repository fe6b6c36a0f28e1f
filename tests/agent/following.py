"""Helpers for tests of sources: run one, and wait for what it says."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from agent.collectors.readings import Reading
from agent.sources.base import Source


class Heard(list[Reading]):
    """What a source has said, in order, and when by the monotonic clock."""

    def __init__(self) -> None:
        super().__init__()
        self.at_s: list[float] = []
        self.task: asyncio.Task[None] | None = None

    def emit(self, reading: Reading) -> None:
        """The source's `emit`."""
        self.at_s.append(time.monotonic())
        self.append(reading)

    async def until(self, condition: Callable[["Heard"], bool], timeout_s: float = 5.0) -> None:
        """Waits until `condition` holds; fails when it does not in time, or when the source broke."""
        deadline = time.monotonic() + timeout_s
        while not condition(self):
            if self.task is not None and self.task.done():
                self.task.result()
            assert time.monotonic() < deadline, f"not heard in {timeout_s} s; heard {self[-20:]}"
            await asyncio.sleep(0.001)


@asynccontextmanager
async def following(source: Source) -> AsyncIterator[Heard]:
    """Runs `source` for the block."""
    heard = Heard()
    heard.task = asyncio.create_task(source.run(heard.emit))
    await asyncio.sleep(0)
    try:
        yield heard
    finally:
        heard.task.cancel()
        with suppress(asyncio.CancelledError, OSError):
            await heard.task


async def once(source: Source) -> Heard:
    """What `source` says about the present state."""
    heard = Heard()
    await source.once(heard.emit)
    return heard

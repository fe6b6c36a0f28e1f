"""Helpers for tests of sources: run one, and wait for what it emits."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from agent.collectors.samples import Sample
from agent.sources.base import Source


class Emitted(list[Sample]):
    """What a source has emitted, in order, and when by the monotonic clock."""

    def __init__(self) -> None:
        super().__init__()
        self.at_s: list[float] = []
        self.task: asyncio.Task[None] | None = None

    def emit(self, sample: Sample) -> None:
        """The source's `emit`."""
        self.at_s.append(time.monotonic())
        self.append(sample)

    async def until(self, condition: Callable[["Emitted"], bool], timeout_s: float = 60.0) -> None:
        """Waits until `condition` holds; fails when it does not in time, or when the source broke."""
        deadline = time.monotonic() + timeout_s
        while not condition(self):
            if self.task is not None and self.task.done():
                self.task.result()
            assert time.monotonic() < deadline, f"not emitted within {timeout_s} s; emitted {self[-20:]}"
            await asyncio.sleep(0.001)


@asynccontextmanager
async def following(source: Source) -> AsyncIterator[Emitted]:
    """Runs `source` for the block."""
    emitted = Emitted()
    emitted.task = asyncio.create_task(source.run(emitted.emit))
    await asyncio.sleep(0)
    try:
        yield emitted
    finally:
        emitted.task.cancel()
        with suppress(asyncio.CancelledError, OSError):
            await emitted.task


async def once(source: Source) -> Emitted:
    """What `source` emits about the present state."""
    emitted = Emitted()
    await source.once(emitted.emit)
    return emitted

"""Small files that are written beside the event loop: one write at a time, and of what waits only the newest."""

import asyncio
from collections.abc import Callable
from functools import partial

from agent.shared.tasks import abandonable


class LatestWrite:
    """One file. A disk that hangs keeps nobody waiting, and costs what was to be written."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        """`write` blocks, and raises OSError."""
        self._write = write
        self._next: bytes | None = None
        self._under_way: asyncio.Task[bool] | None = None

    def put(self, content: bytes) -> None:
        """Writes this, or what is put after it, as soon as the disk lets it."""
        self._next = content
        if self._under_way is None or self._under_way.done():
            self._under_way = asyncio.create_task(self._all())

    async def settled(self) -> bool:
        """Waits until all is written. False: the disk has refused the last of it."""
        return self._under_way is None or await asyncio.shield(self._under_way)

    async def _all(self) -> bool:
        taken = True
        while (content := self._next) is not None:
            self._next = None
            try:
                await abandonable(partial(self._write, content), "small file")
                taken = True
            except OSError:
                taken = False
        return taken

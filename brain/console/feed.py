"""Notes as they come, for those who watch.

A watcher that reads too slowly loses its place, never the brain's time.
"""

import asyncio
import contextlib
from collections.abc import Iterator

from brain.core.effects import Note

BACKLOG = 1000  # notes that a watcher may be behind


class Feed:
    """The watchers of one brain."""

    def __init__(self) -> None:
        self._watchers: dict[int, asyncio.Queue[Note | None]] = {}
        self._count = 0

    def publish(self, note: Note) -> None:
        """To every watcher, without waiting."""
        for key, queue in list(self._watchers.items()):
            if queue.qsize() >= BACKLOG:
                queue.put_nowait(None)
                del self._watchers[key]
            else:
                queue.put_nowait(note)

    @contextlib.contextmanager
    def watch(self) -> Iterator[asyncio.Queue[Note | None]]:
        """A queue of the notes from now on; None at its end says that the watcher was too slow."""
        self._count += 1
        key = self._count
        queue: asyncio.Queue[Note | None] = asyncio.Queue()
        self._watchers[key] = queue
        try:
            yield queue
        finally:
            self._watchers.pop(key, None)

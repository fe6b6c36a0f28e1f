"""Passes notes to watchers as they are written. A watcher that reads too slowly is dropped, so that it costs no time."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping

from brain.core.effects import Note

BACKLOG = 1000  # how many notes a watcher may be behind


class Feed:
    """The watchers of one brain."""

    def __init__(self) -> None:
        self._watchers: dict[int, asyncio.Queue[tuple[int, Note] | None]] = {}
        self._count = 0
        self.ended = 0  # how often all watches were ended
        self._published: Counter[str] = Counter()

    @property
    def counts(self) -> Mapping[str, int]:
        """How many notes were published, by kind."""
        return self._published

    def publish(self, note: Note, seq: int) -> None:
        """Passes a note to every watcher, without waiting. `seq`: of the input that caused it; 0: the brain itself wrote it."""
        self._published[note.kind] += 1
        for key, queue in list(self._watchers.items()):
            if queue.qsize() >= BACKLOG:
                queue.put_nowait(None)
                del self._watchers[key]
            else:
                queue.put_nowait((seq, note))

    def end(self) -> None:
        """Ends all watches: the history is made again, or of another log."""
        self.ended += 1
        for queue in self._watchers.values():
            queue.put_nowait(None)
        self._watchers.clear()

    @contextlib.contextmanager
    def watch(self) -> Iterator[asyncio.Queue[tuple[int, Note] | None]]:
        """Returns a queue of the notes from now on; a final None means that the watcher was too slow, or that
        all watches were ended.
        """
        self._count += 1
        key = self._count
        queue: asyncio.Queue[tuple[int, Note] | None] = asyncio.Queue()
        self._watchers[key] = queue
        try:
            yield queue
        finally:
            self._watchers.pop(key, None)

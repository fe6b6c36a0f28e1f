"""Passes notes to watchers as they are written. A watcher that reads too slowly is dropped, so that it costs no time."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from brain.core.effects import Note

BACKLOG = 1000  # how many notes a watcher may be behind


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A note that was written, the same for all watchers."""

    # Of the input that caused it; 0: the brain itself wrote it
    seq: int
    note: Note
    # language -> what watchers who speak it are sent
    _bodies: dict[str, bytes] = field(default_factory=dict)

    def body(self, language: str, make: Callable[[Note], bytes]) -> bytes:
        """What watchers are sent in a language: made for the first one, since two hundred times it would hold up the brain."""
        if language not in self._bodies:
            self._bodies[language] = make(self.note)
        return self._bodies[language]


class Feed:
    """The watchers of one brain."""

    def __init__(self) -> None:
        self._watchers: dict[int, asyncio.Queue[Published | None]] = {}
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
        one = Published(seq=seq, note=note)
        for key, queue in list(self._watchers.items()):
            if queue.qsize() >= BACKLOG:
                queue.put_nowait(None)
                del self._watchers[key]
            else:
                queue.put_nowait(one)

    def end(self) -> None:
        """Ends all watches: the history is made again, or of another log."""
        self.ended += 1
        for queue in self._watchers.values():
            queue.put_nowait(None)
        self._watchers.clear()

    @contextlib.contextmanager
    def watch(self) -> Iterator[asyncio.Queue[Published | None]]:
        """Returns a queue of the notes from now on; a final None means that the watcher was too slow, or that
        all watches were ended.
        """
        self._count += 1
        key = self._count
        queue: asyncio.Queue[Published | None] = asyncio.Queue()
        self._watchers[key] = queue
        try:
            yield queue
        finally:
            self._watchers.pop(key, None)

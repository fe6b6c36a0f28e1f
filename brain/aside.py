"""Work on files that may hang, beside the event loop: somebody waits for what it returns."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from agent.shared.tasks import abandonable
from brain.glance import FileHangs

T = TypeVar("T")
WITHIN_S = 15.0  # so long a change may take, the wait for its lock in it
MOST = 8  # under way at once, on one file: each that hangs has a thread


class _UnderWay:
    """What is under way in this process, by its file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count: Counter[Path] = Counter()

    def begin(self, path: Path) -> None:
        """FileHangs: too much is."""
        with self._lock:
            if self._count[path] >= MOST:
                raise FileHangs(path)
            self._count[path] += 1

    def end(self, path: Path) -> None:
        with self._lock:
            self._count[path] -= 1


_UNDER_WAY = _UnderWay()


async def aside(work: Callable[[], T], path: Path) -> T:
    """What `work`, which reads or changes this file, returns. It takes no place from others when the disk hangs. FileHangs: it
    has not returned in time, and may be done later; or so many hang that this one was not begun.
    """
    _UNDER_WAY.begin(path)

    def counted() -> T:
        try:
            return work()
        finally:
            _UNDER_WAY.end(path)

    try:
        async with asyncio.timeout(WITHIN_S):
            return await abandonable(counted, "file")
    except TimeoutError as error:
        raise FileHangs(path) from error

"""Work on files that may hang, beside the event loop: somebody waits for what it returns."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from agent.shared.tasks import abandonable
from brain.glance import FileHangs

T = TypeVar("T")
WITHIN_S = 15.0  # so long a change may take, the wait for its lock in it
MOST = 32  # under way at once: each that hangs has a thread
# Of the whole process, as its disks are.
_FREE = threading.BoundedSemaphore(MOST)


async def aside(work: Callable[[], T], path: Path) -> T:
    """What `work`, which reads or changes this file, returns. It takes no place from others when the disk hangs. FileHangs: it
    has not returned in time, and may be done later; or so many hang that this one was not begun.
    """
    if not _FREE.acquire(blocking=False):
        raise FileHangs(path)

    def counted() -> T:
        try:
            return work()
        finally:
            _FREE.release()

    try:
        async with asyncio.timeout(WITHIN_S):
            return await abandonable(counted, "file")
    except TimeoutError as error:
        raise FileHangs(path) from error

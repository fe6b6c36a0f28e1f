"""Background work that belongs to something: what fails in it fails its owner, and it ends with its owner.

Waits in this work use `asyncio.timeout`: in Python 3.11 `asyncio.wait_for` can lose a cancellation that comes at the
moment at which the wait is over, and then the work would never end.
"""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

CANCEL_AGAIN_S = 1.0  # a task that has not ended so long after its cancellation is cancelled again


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancels tasks and waits until they have ended, whatever they raise.

    Again and again: nats-py waits with `asyncio.wait_for`, which on Python 3.11 loses a cancellation that comes at the
    moment at which the wait is over; the task would go on for ever.
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_AGAIN_S)


class Tasks:
    """An async context manager; leaving it cancels what still runs. `wait` raises the first error."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._error: BaseException | None = None
        self._failed = asyncio.Event()

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Runs it beside the others."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def wait(self) -> None:
        """For ever, or until one of them fails: then its error."""
        await self._failed.wait()
        if self._error is not None:
            raise self._error

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and self._error is None:
            self._error = error
            self._failed.set()

    async def __aenter__(self) -> "Tasks":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await end(*self._tasks)

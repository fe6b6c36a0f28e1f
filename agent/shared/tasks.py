"""Background work: ends it reliably, abandons what cannot be ended, finishes what must not be interrupted.

Such work waits with `asyncio.timeout`: in Python 3.11 `asyncio.wait_for` can lose a cancellation that comes at the moment
at which the wait is over, and then the work would never end.
"""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, TypeVar

from agent.shared.tried import tried

T = TypeVar("T")

CANCEL_AGAIN_S = 1.0  # a task that has not ended this long after its cancellation is cancelled again


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancels tasks and waits until they have ended, whatever they raise.

    It cancels them repeatedly, since nats-py waits with `asyncio.wait_for` (see above).
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_AGAIN_S)


async def abandonable(work: Callable[[], T], name: str) -> T:
    """Runs `work` in a thread of its own that can be abandoned: a file system or a driver may hang in it for ever, and the
    process continues, and can end. A cancellation does not reach the thread: tell it to stop by other means.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if ended.done():
            return
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(result)  # type: ignore[arg-type]  # None only with an error

    def body() -> None:
        outcome = tried(work)
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, *outcome)

    context = contextvars.copy_context()
    threading.Thread(target=lambda: context.run(body), name=name, daemon=True).start()
    return await ended


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` returns; None: `stop` was set first, and it was cancelled."""
    task, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        await end(task, stopping)


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` to its end even if the caller is cancelled meanwhile; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    return task.result()


async def run_together(*works: Coroutine[Any, Any, None]) -> None:
    """Runs them side by side until the first one fails (its error is raised) or the caller is cancelled; ends all."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        await end(*tasks)


class Tasks:
    """Background work that belongs to an owner: a failure in it fails the owner, and it ends with the owner.

    An async context manager; leaving it cancels what still runs. `wait` raises the first error.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._error: BaseException | None = None
        self._failed = asyncio.Event()

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Runs `work` beside the others."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def wait(self) -> None:
        """Waits for ever, or until one of them fails, and raises its error."""
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

"""Ending background work for certain, and leaving alone what cannot be ended."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

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


async def abandonable(work: Callable[[], T], name: str) -> T:
    """Runs `work` in a thread of its own that nobody has to wait for: a file system or a driver may hang in it for
    ever, and the agent goes on, and can end. Cancelled, it leaves the thread to itself: tell it by other means.
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
        try:
            outcome: tuple[T | None, BaseException | None] = (work(), None)
        except Exception as error:  # noqa: BLE001 - not caught: carried over to who waits
            outcome = (None, error)
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, *outcome)

    context = contextvars.copy_context()
    threading.Thread(target=lambda: context.run(body), name=name, daemon=True).start()
    return await ended

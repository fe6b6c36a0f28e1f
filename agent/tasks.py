"""Ending background work for certain, and work that must not be cut short."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")

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


async def to_the_end(work: Coroutine[Any, Any, _T]) -> _T:
    """Runs `work` to its end even when the caller is cancelled meanwhile; the cancellation comes after it."""
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

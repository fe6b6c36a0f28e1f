"""Ending background work for certain."""

import asyncio
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

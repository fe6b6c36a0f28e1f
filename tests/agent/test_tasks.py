"""Ending background work: also when a library swallows a cancellation."""

import asyncio
import contextlib

import pytest

from agent.shared import tasks


async def test_a_task_that_loses_its_first_cancellation_still_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """As asyncio.wait_for does on Python 3.11 when the wait is over at the same moment; a plain cancel would hang."""
    monkeypatch.setattr(tasks, "CANCEL_AGAIN_S", 0.01)
    swallowed = []

    async def busy() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        swallowed.append(True)
        await asyncio.Event().wait()

    async def broken() -> None:
        raise OSError("it fails by itself")

    busy_task, broken_task = asyncio.create_task(busy()), asyncio.create_task(broken())
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await tasks.end(busy_task, broken_task)
    assert swallowed
    assert busy_task.cancelled()
    assert isinstance(broken_task.exception(), OSError)

"""What is remembered of events waits until they have left, and is not forgotten."""

import asyncio

from agent.contract.messages import Severity, UnsentEvent
from agent.remembered.afterwards import Afterwards


def _event(number: int) -> UnsentEvent:
    return UnsentEvent(
        kind="gpu.lost", component="gpu/0000:3b:00", severity=Severity.FATAL, data={"n": number}
    )


async def test_it_comes_after_what_waits_already_in_order_and_once() -> None:
    """Tasks that the event has woken, and those that they wake, go first: each takes its turn of the loop."""
    came: list[object] = []
    afterwards = Afterwards(came.extend)
    afterwards.note([_event(1)])
    afterwards.note([_event(2), _event(3)])
    for turn in range(5):
        await asyncio.sleep(0)
        came.append(turn)
    assert came == [0, 1, 2, 3, 4]
    async with asyncio.timeout(10):
        while len(came) < 8:
            await asyncio.sleep(0.001)
    assert came[5:] == [_event(1), _event(2), _event(3)]
    afterwards.note([_event(4)])
    async with asyncio.timeout(10):
        while len(came) < 9:
            await asyncio.sleep(0.001)
    assert came[8] == _event(4)


async def test_at_the_end_it_does_not_wait() -> None:
    """And nothing comes a second time."""
    came: list[UnsentEvent] = []
    afterwards = Afterwards(came.extend)
    afterwards.note([_event(1)])
    afterwards.now()
    assert came == [_event(1)]
    afterwards.now()
    await asyncio.sleep(0.05)
    assert came == [_event(1)]

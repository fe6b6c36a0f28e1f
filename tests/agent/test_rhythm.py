"""All that is done again and again begins at the same moments."""

import asyncio
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors.samples import Sample
from agent.shared import rhythm
from agent.sources.poll import NOTHING_S, Poller


@given(st.floats(0, 1e9), st.sampled_from([0.05, 0.5, 1.0, 2.0, 10.0, 60.0]))
def test_it_is_never_at_once_and_never_longer_than_the_pause(now_s: float, period_s: float) -> None:
    """A clock that stands a rounding error before the moment does not make two of one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now_s)
        left_s = rhythm.until_next(period_s)
    assert period_s / 100 <= left_s <= period_s * 1.02
    multiples = (now_s + left_s) / period_s
    assert abs(multiples - round(multiples)) < 0.001


async def test_what_was_started_at_different_times_wakes_together() -> None:
    """Three pauses of one length end in the same round of the loop."""
    woken: list[float] = []

    async def wait(after_s: float) -> None:
        await asyncio.sleep(after_s)
        await rhythm.pause(0.5)
        woken.append(time.monotonic())

    await asyncio.sleep(rhythm.until_next(0.5))
    await asyncio.gather(wait(0.0), wait(0.05), wait(0.1))
    assert {round(at / 0.5) for at in woken} == {round(woken[0] / 0.5)}


async def following(poller: Poller, until: Callable[[], bool]) -> None:
    task = asyncio.create_task(poller.run(lambda _: None))
    async with asyncio.timeout(60):
        while not until():
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait((task,))


async def test_where_there_is_nothing_to_watch_it_is_looked_for_seldom() -> None:
    """A pause of some seconds; as soon as there is something, the usual one."""
    times: list[float] = []
    there = False

    def poll() -> list[Sample]:
        nonlocal there
        times.append(time.monotonic())
        there = len(times) > 1
        return []

    poller = Poller(poll, what="test", period_s=0.02, watching=lambda: there)
    await following(poller, lambda: len(times) > 20)
    assert 0 < times[1] - times[0] <= NOTHING_S * 1.5
    assert times[20] - times[1] < NOTHING_S, "nineteen of its usual pauses"

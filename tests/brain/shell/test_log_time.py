"""The log's time is the NATS server's clock, and that can be wrong: whatever it does, everything that waits comes to its end."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from brain.adapters.log import LogClock
from brain.core.inputs import Intent, Leader, PackLoaded, Pulse
from brain.core.state import State
from tests.brain.shell.loop_kit import NOW, Brain, Log
from tests.brain.world import GPU, pack

HOUR_S, YEAR_S = 3600.0, 365 * 86_400.0
FAULT_AT, LASTS_S = 20, 60  # seconds since the brain began; how long a GPU idles before that is a fault
# What is wrong with the server's clock so long after that.
CLOCKS: dict[str, Callable[[int], float]] = {
    "it is right": lambda _: 0.0,
    "an hour back, for good: it was ahead since the log began": lambda second: (
        -HOUR_S if second >= 10 else 0.0
    ),
    "a year ahead for a second": lambda second: YEAR_S if second == 10 else 0.0,
    "a year ahead for a second, while the fault is there": lambda second: YEAR_S if second == 25 else 0.0,
    "a minute to and fro": lambda second: 60.0 * (second // 5 % 2),
}


class Site:
    """A brain that leads, on a log whose server stamps messages by a clock of the test's. A turn of the loop is a second."""

    def __init__(self, folder: Path, wrong: Callable[[int], float]) -> None:
        self.second, self._wrong, self.log = 0, wrong, Log()
        self.brain = Brain("b1", folder, LogClock(lambda: float(self.second), lambda: NOW))
        self.brain.lease.give(1)
        self.log.put(PackLoaded(id="p", pack=pack(hold_off_s=0)), Leader(id="l:1", epoch=1, brain="b1"))

    def stamp(self) -> float:
        """What the server writes on a message now."""
        return NOW + self.second + self._wrong(self.second)

    async def turn(self) -> None:
        """Timers that are due go onto the log, or else a pulse does, and the brain reads it."""
        self.second += 1
        due = self.brain.timers.due(self.brain.replica.state.timers)
        self.log.put(*due, Pulse(id=f"pulse:{self.second}"), at=self.stamp())
        await self.brain.read(self.log)


@pytest.mark.parametrize("clock", CLOCKS)
async def test_whatever_the_servers_clock_does_a_fault_is_dealt_with(tmp_path: Path, clock: str) -> None:
    """What it waits for comes: in time where the clock is right, else after twice the time at the latest; where its facts
    have ended with a clock that was ahead, the node is asked to look again first.
    """
    async with contextlib.AsyncExitStack() as stack:
        site = Site(tmp_path, CLOCKS[clock])
        stack.callback(site.brain.close)
        stack.push_async_exit(site.brain.background)
        while site.second < FAULT_AT:
            await site.turn()
        while not site.brain.appended(Intent):
            if site.second % 10 == 0:  # as agents tell what is present, again and again
                site.log.event("gpu.idle", GPU, unit="x.service", job="", at=site.stamp())
            await site.turn()
            assert site.second < FAULT_AT + 3 * LASTS_S, "it waits for ever"
        if clock == "it is right":
            assert site.second >= FAULT_AT + LASTS_S
        assert site.brain.replica.state.now >= NOW, "and its time has not run backwards"


async def test_the_logs_time_and_the_servers_meet_again(tmp_path: Path) -> None:
    """While it is ahead it runs at half the speed: a schedule of a site is an hour off for two hours, and not for ever."""
    async with contextlib.AsyncExitStack() as stack:
        site = Site(tmp_path, lambda second: -60.0 if second >= 10 else 0.0)
        stack.callback(site.brain.close)
        stack.push_async_exit(site.brain.background)
        ahead = []
        while site.second < 140:
            await site.turn()
            ahead.append(site.brain.replica.state.now - site.stamp())
        assert max(ahead) <= 60
        assert ahead[60] <= 40
        assert ahead[-1] <= 0
        async with asyncio.timeout(30):  # pages are written beside the loop
            while "over since b1 looked last" not in site.brain.pages():
                await asyncio.sleep(0.01)
        assert "was set back by 59 s" in site.brain.pages()


@pytest.mark.parametrize("clock", CLOCKS)
async def test_a_jump_ahead_is_told_at_once(tmp_path: Path, clock: str) -> None:
    """What was to last until a time in between has ended, and nobody but a person can say whether it should have."""
    async with contextlib.AsyncExitStack() as stack:
        site = Site(tmp_path, CLOCKS[clock])
        stack.callback(site.brain.close)
        stack.push_async_exit(site.brain.background)
        jumps = False
        while site.second < 30:
            before = site.stamp() - site.second
            await site.turn()
            jumps = jumps or site.stamp() - site.second > before + 1
            assert site.brain.background.names.count("log_jumped") == jumps, (
                "at once, and a clock to and fro once an hour"
            )


def test_a_clock_that_was_set_back_is_followed() -> None:
    """Of the newest messages the least delayed one counts, but not for what the server's clock was before."""
    mono = [100.0]
    log = LogClock(lambda: mono[0], lambda: NOW)
    log.calibrate(NOW)
    log.calibrate(NOW + YEAR_S)
    mono[0] += 1
    log.calibrate(NOW + 1)
    assert log.now() == NOW + 1, (
        "else each event that waited for a moment would be a year old, and count for nothing"
    )


def test_an_outage_is_no_jump_of_a_clock() -> None:
    """A message that an outage held up looks like a clock that was set back, and the next one like one that jumped ahead."""
    mono = [100.0]
    log = LogClock(lambda: mono[0], lambda: NOW)
    log.calibrate(NOW)
    mono[0] += 120
    log.calibrate(NOW + 10)  # stamped before the outage, and heard after it
    mono[0] += 1
    assert log.ahead_s(NOW + 121) == 0
    log.calibrate(NOW + 121)
    assert log.now() == NOW + 121
    assert log.ahead_s(NOW + 181) == 60, "and a jump is one"


@pytest.mark.parametrize("apart_s", [0.0, 0.5, 1.9])
def test_two_servers_that_stamp_in_turn_make_no_time_pass(apart_s: float) -> None:
    """Their clocks differ a little. An hour behind the log's time, each step from the one to the other counted as time."""
    state = State(now=NOW, stamp=NOW)
    for hundredth in range(1, 20_001):
        state.heard(NOW - HOUR_S + hundredth / 100 - (apart_s if hundredth % 2 else 0.0))
    assert 98 <= state.now - NOW <= 101
    state.heard(NOW - 2 * HOUR_S)  # one was set back once more: it is that one's time that passes
    state.heard(NOW - 2 * HOUR_S + 100)
    assert 148 <= state.now - NOW <= 151


async def test_what_was_on_the_log_before_tells_no_clock(tmp_path: Path) -> None:
    """Nobody wrote for two minutes, since no brain ran: what is written after its start is on time, and no jump."""
    async with contextlib.AsyncExitStack() as stack:
        site = Site(tmp_path, lambda _: 120.0)
        stack.callback(site.brain.close)
        stack.push_async_exit(site.brain.background)
        await site.brain.read(site.log)
        for _ in range(5):
            await site.turn()
        assert "log_jumped" not in site.brain.background.names

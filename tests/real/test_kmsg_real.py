"""The real /dev/kmsg: it is one per machine, so every test marks its lines with a token of its own."""

import os
import random
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.collectors.readings import Line, Overrun
from agent.host import Host
from agent.sources.kmsg import KmsgSource
from tests.agent.following import Heard, following, once

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("kmsg"),
    pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK | os.W_OK), reason="needs root: /dev/kmsg"),
]
BOTH = frozenset({0, 1})  # what a test writes has facility 1
_RATE_LIMIT = Path("/proc/sys/kernel/printk_devkmsg")


@pytest.fixture
def token() -> str:
    return f"gpuward-test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def unlimited() -> Iterator[None]:
    """The kernel takes any number of lines from user space, for the length of the test."""
    before = _RATE_LIMIT.read_text()
    _RATE_LIMIT.write_text("on\n")
    yield
    _RATE_LIMIT.write_text(before)


def write(text: str) -> None:
    """One line; a descriptor of its own each, since the kernel limits the rate of each."""
    fd = os.open("/dev/kmsg", os.O_WRONLY)
    try:
        os.write(fd, f"<4>{text}\n".encode())
    finally:
        os.close(fd)


def texts(heard: Heard, token: str) -> list[str]:
    return [reading.text for reading in heard if isinstance(reading, Line) and token in reading.text]


async def ready(source: KmsgSource, heard: Heard) -> None:
    await heard.until(lambda _: source.position is not None)


async def test_a_line_is_heard_with_its_time_and_text(token: str) -> None:
    """A record of two lines comes back whole, with escapes undone, on the node's monotonic clock."""
    source = KmsgSource(Host(), facilities=BOTH)
    async with following(source) as heard:
        await ready(source, heard)
        write(f"{token} one\\x\ntwo é")
        await heard.until(lambda h: texts(h, token) != [])
    line = next(reading for reading in heard if isinstance(reading, Line) and token in reading.text)
    assert line.text == f"{token} one\\x\ntwo é"
    assert line.facility == 1
    assert line.priority == 4
    assert abs(line.mono_s - time.monotonic()) < 60
    assert source.position is not None
    assert source.position[0] == Host().boot_id()
    assert source.position[1] >= line.seq


async def test_history_is_no_news_and_a_restart_misses_nothing(token: str) -> None:
    """Lines before the first start are not said; lines between two runs are, once."""
    write(f"{token} before the first start")
    first = KmsgSource(Host(), facilities=BOTH)
    async with following(first) as heard:
        await ready(first, heard)
        write(f"{token} first run")
        await heard.until(lambda h: texts(h, token) != [])
    write(f"{token} between")
    async with following(KmsgSource(Host(), start=first.position, facilities=BOTH)) as again:
        await again.until(lambda h: len(texts(h, token)) == 1)
        write(f"{token} second run")
        await again.until(lambda h: len(texts(h, token)) == 2)
    assert texts(heard, token) == [f"{token} first run"]
    assert texts(again, token) == [f"{token} between", f"{token} second run"]
    assert not [reading for reading in again if isinstance(reading, Overrun)]


@pytest.mark.overruns
@pytest.mark.timeout(400)  # it waits for the story that another worker plays
async def test_an_overrun_is_counted_and_what_is_left_is_read(token: str, unlimited: None) -> None:
    """When the kernel overwrites faster than we read: every record is either heard or counted as lost."""
    source = KmsgSource(Host(), facilities=BOTH)
    async with following(source) as heard:
        await ready(source, heard)
        write(f"{token} start")
        await heard.until(lambda h: len(texts(h, token)) == 1)
        start = source.position
        fd = os.open("/dev/kmsg", os.O_WRONLY)
        for number in range(20_000):  # the loop does not run meanwhile: nobody reads
            os.write(fd, f"<7>{token} {number}\n".encode())
        os.close(fd)
        await heard.until(lambda h: texts(h, token)[-1].endswith(" 19999"), timeout_s=20)
        end = source.position
    assert start is not None
    assert end is not None
    overruns = [reading.lost for reading in heard if isinstance(reading, Overrun)]
    lines = [r for r in heard if isinstance(r, Line) and r.seq > start[1]]
    assert sum(overruns) > 1000
    assert len(texts(heard, token)) > 100, "what was still in the ring must be read"
    # Records of other facilities are counted in the position and not heard; none were written here but ours.
    assert len(lines) + sum(overruns) == pytest.approx(end[1] - start[1], abs=50)


async def test_once_reads_the_whole_log(token: str) -> None:
    """`once` says what the ring holds now, and ends."""
    write(f"{token} here")
    assert texts(await once(KmsgSource(Host(), facilities=BOTH)), token) == [f"{token} here"]


async def test_a_line_is_heard_at_the_kernels_next_tick(token: str) -> None:
    """From the write to the reading: the kernel wakes readers at its tick (4 ms at HZ=250), we add little."""
    source = KmsgSource(Host(), facilities=BOTH)
    waits_ms = []
    async with following(source) as heard:
        await ready(source, heard)
        for number in range(40):
            mark = f"{token} {number}."
            time.sleep(random.random() * 0.008)  # a fixed pause would lock onto the tick
            write(mark)
            await heard.until(lambda h, mark=mark: mark in texts(h, token))  # type: ignore[misc]
            at = next(
                i for i, reading in enumerate(heard) if isinstance(reading, Line) and reading.text == mark
            )
            line = heard[at]
            assert isinstance(line, Line)
            waits_ms.append((heard.at_s[at] - line.mono_s) * 1e3)
    waits_ms.sort()
    # A bare reader waits 4 ms at the most here; the machine may be busy with other tests.
    assert waits_ms[len(waits_ms) // 2] < 8, waits_ms

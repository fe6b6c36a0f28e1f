"""The real /dev/kmsg: it is one per machine, so every test marks its lines with a token of its own."""

import contextlib
import os
import random
import select
import shutil
import statistics
import time
import uuid
from pathlib import Path

import pytest

from agent.collectors.samples import Line, Overrun
from agent.host import Host
from agent.sources.kmsg import KmsgSource, KmsgSourceOptions, open_log
from tests.agent.following import Emitted, following, once
from tests.real.test_bond_uml import run_guest

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("kmsg"),
    pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK | os.W_OK), reason="needs root: /dev/kmsg"),
]
BOTH = (0, 1)  # what a test writes has facility 1
FILES = Path(__file__).resolve().parent / "uml"


@pytest.fixture
def token() -> str:
    return f"gpuward-test-{uuid.uuid4().hex[:12]}"


def write(text: str) -> None:
    """One line; a descriptor of its own each, since the kernel limits the rate of each."""
    fd = os.open("/dev/kmsg", os.O_WRONLY)
    try:
        os.write(fd, f"<4>{text}\n".encode())
    finally:
        os.close(fd)


def texts(emitted: Emitted, token: str) -> list[str]:
    return [sample.text for sample in emitted if isinstance(sample, Line) and token in sample.text]


async def ready(source: KmsgSource, emitted: Emitted) -> None:
    await emitted.until(lambda _: source.position is not None)


async def test_a_line_is_emitted_with_its_time_and_text(token: str) -> None:
    """A record of two lines comes back whole, with escapes undone, on the node's monotonic clock."""
    source = KmsgSource(Host(), KmsgSourceOptions(kmsg_facilities=BOTH))
    async with following(source) as emitted:
        await ready(source, emitted)
        write(f"{token} one\\x\ntwo é")
        await emitted.until(lambda h: texts(h, token) != [])
    line = next(sample for sample in emitted if isinstance(sample, Line) and token in sample.text)
    assert line.text == f"{token} one\\x\ntwo é"
    assert line.facility == 1
    assert line.priority == 4
    assert abs(line.mono_s - time.monotonic()) < 60
    assert source.position is not None
    assert source.position[0] == Host().boot_id()
    assert source.position[1] >= line.seq


async def test_history_is_no_news_and_a_restart_misses_nothing(token: str) -> None:
    """Lines before the first start are not reported; lines between two runs are, once."""
    write(f"{token} before the first start")
    first = KmsgSource(Host(), KmsgSourceOptions(kmsg_facilities=BOTH))
    async with following(first) as emitted:
        await ready(first, emitted)
        write(f"{token} first run")
        await emitted.until(lambda h: texts(h, token) != [])
    write(f"{token} between")
    async with following(
        KmsgSource(Host(), KmsgSourceOptions(kmsg_facilities=BOTH), start=first.position)
    ) as again:
        await again.until(lambda h: len(texts(h, token)) == 1)
        write(f"{token} second run")
        await again.until(lambda h: len(texts(h, token)) == 2)
    assert texts(emitted, token) == [f"{token} first run"]
    assert texts(again, token) == [f"{token} between", f"{token} second run"]
    assert not [sample for sample in again if isinstance(sample, Overrun)]


@pytest.mark.component("user-mode-linux")
@pytest.mark.slow
def test_an_overrun_is_counted_and_what_is_left_is_read(tmp_path: Path) -> None:
    """When the kernel overwrites faster than we read: every record is either emitted or counted as lost.

    In a kernel of its own: this machine's log is read by other tests too.
    """
    if shutil.which("linux.uml") is None:
        pytest.skip("needs apt-get install user-mode-linux kmod")
    (told,) = run_guest(FILES / "kmsg_guest.py", tmp_path)
    lost, lines = sum(told["lost"]), told["lines"]  # type: ignore[call-overload]  # JSON
    assert lost > 1000
    assert told["flood"] > 100, "what was still in the ring must be read"  # type: ignore[operator]  # JSON
    assert lines + lost == told["records"]


async def test_once_reads_the_whole_log(token: str) -> None:
    """`once` emits what the ring holds now, and ends."""
    write(f"{token} here")
    assert texts(await once(KmsgSource(Host(), KmsgSourceOptions(kmsg_facilities=BOTH))), token) == [
        f"{token} here"
    ]


class Bare:
    """A reader of the log that does nothing else."""

    def __init__(self) -> None:
        self._fd = open_log(Path("/dev/kmsg"))
        os.lseek(self._fd, 0, os.SEEK_END)
        self._woken = select.poll()
        self._woken.register(self._fd, select.POLLIN)

    def until(self, mark: str) -> None:
        """Returns when it has read the line."""
        while True:
            assert self._woken.poll(60_000), "the kernel woke nobody"
            with contextlib.suppress(BrokenPipeError):  # another program has overrun the log
                if mark in os.read(self._fd, 8192).decode():
                    return

    def close(self) -> None:
        os.close(self._fd)


async def test_a_line_is_emitted_when_the_kernel_wakes_its_readers(token: str) -> None:
    """At its tick (4 ms at HZ=250): in the median we take not much longer than a bare reader beside us."""
    source = KmsgSource(Host(), KmsgSourceOptions(kmsg_facilities=BOTH))
    ours_ms, bare_ms = [], []
    bare = Bare()
    async with following(source) as emitted:
        await ready(source, emitted)
        for number in range(40):
            mark = f"{token} {number}."
            time.sleep(random.random() * 0.008)  # a fixed pause would lock onto the tick
            written_s = time.monotonic()
            write(mark)
            await emitted.until(lambda h, mark=mark: mark in texts(h, token))  # type: ignore[misc]
            at = next(
                i for i, sample in enumerate(emitted) if isinstance(sample, Line) and sample.text == mark
            )
            ours_ms.append((emitted.at_s[at] - written_s) * 1e3)
            bare.until(mark)
            time.sleep(random.random() * 0.008)
            written_s = time.monotonic()
            write(f"{mark}bare")
            bare.until(f"{mark}bare")
            bare_ms.append((time.monotonic() - written_s) * 1e3)
    bare.close()
    # Twice as long, and the 5 ms of a turn of a busy processor.
    assert statistics.median(ours_ms) < 2 * statistics.median(bare_ms) + 5, (ours_ms, bare_ms)

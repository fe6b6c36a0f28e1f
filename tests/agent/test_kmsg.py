"""The kernel log as a stream, on a stand-in that keeps record boundaries (a SOCK_SEQPACKET pair)."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.collectors.samples import Line, Overrun
from agent.host import Host
from agent.sources.kmsg import KernelClock, KmsgSource, KmsgSourceOptions
from tests.agent.following import following, once
from tests.agent.uplink_kit import Clock, FakeHost

BOOT = "11111111-2222-3333-4444-555555555555"


class Ring:
    """A stand-in for /dev/kmsg: what was written and not read yet is the ring."""

    def __init__(self) -> None:
        self.reader, self.writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.reader.setblocking(False)

    def open(self, path: Path) -> int:
        assert path.name == "kmsg"
        return os.dup(self.reader.fileno())

    def write(self, seq: int, text: str, number: int = 4) -> None:
        self.writer.send(f"{number},{seq},{seq * 1000000},-;{text}\n SUBSYSTEM=pci\n".encode())


@pytest.fixture
def ring() -> Iterator[Ring]:
    made = Ring()
    yield made
    made.reader.close()
    made.writer.close()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    folder = tmp_path / "proc/sys/kernel/random"
    folder.mkdir(parents=True)
    (folder / "boot_id").write_text(BOOT + "\n")
    return Host(root=tmp_path)


async def test_the_first_start_ever_reports_no_history(host: Host, ring: Ring) -> None:
    """What is in the log at the first start is passed over, yet the position is known for the next start."""
    for seq in range(300, 400):
        ring.write(seq, "old")
    source = KmsgSource(host, KmsgSourceOptions(), opener=ring.open)
    async with following(source) as emitted:
        await emitted.until(lambda _: source.position == (BOOT, 399))
        ring.write(400, "new")
        await emitted.until(lambda h: len(h) == 1)
    assert emitted == [Line(text="new", mono_s=400.0, seq=400, priority=4)]
    assert source.position == (BOOT, 400)


async def test_a_restart_goes_on_where_it_stopped(host: Host, ring: Ring) -> None:
    """On the same boot, records up to the stored position are not reported again, later ones are not missed."""
    for seq in range(5, 10):
        ring.write(seq, f"line {seq}")
    async with following(KmsgSource(host, KmsgSourceOptions(), start=(BOOT, 7), opener=ring.open)) as emitted:
        await emitted.until(lambda h: len(h) == 2)
    assert [sample.seq for sample in emitted if isinstance(sample, Line)] == [8, 9]


async def test_a_restart_reports_what_was_overwritten_meanwhile(host: Host, ring: Ring) -> None:
    """When the ring no longer holds the record after the stored position, the lost ones are counted."""
    ring.write(50, "the oldest that is left")
    async with following(KmsgSource(host, KmsgSourceOptions(), start=(BOOT, 7), opener=ring.open)) as emitted:
        await emitted.until(lambda h: len(h) == 2)
    assert isinstance(emitted[0], Overrun)
    assert emitted[0].lost == 42
    assert isinstance(emitted[1], Line)


async def test_after_a_reboot_the_new_log_is_read_from_its_start(host: Host, ring: Ring) -> None:
    """Nobody has seen this boot's records: they are read although their numbers are low."""
    ring.write(0, "Linux version")
    ring.write(1, "NVRM: Xid")
    source = KmsgSource(host, KmsgSourceOptions(), start=("an older boot", 90000), opener=ring.open)
    async with following(source) as emitted:
        await emitted.until(lambda h: len(h) == 2)
    assert source.position == (BOOT, 1)


async def test_a_gap_is_an_overrun_and_the_rest_is_read(host: Host, ring: Ring) -> None:
    """Lost records are reported once, with their number, before the record that follows."""
    async with following(KmsgSource(host, KmsgSourceOptions(), start=(BOOT, 0), opener=ring.open)) as emitted:
        for seq in (1, 2, 10, 11):
            ring.write(seq, "x")
        await emitted.until(lambda h: len(h) == 5)
    assert isinstance(emitted[2], Overrun)
    assert emitted[2].lost == 7
    assert [sample.seq for sample in emitted if isinstance(sample, Line)] == [1, 2, 10, 11]


async def test_only_accepted_facilities_are_emitted(host: Host, ring: Ring) -> None:
    """A line that user space forged (facility 1) is passed over, unless the config accepts that facility."""
    for source, want in (
        (KmsgSource(host, KmsgSourceOptions(), start=(BOOT, 0), opener=ring.open), ["kernel"]),
        (
            KmsgSource(host, KmsgSourceOptions(kmsg_facilities=(0, 1)), start=(BOOT, 0), opener=ring.open),
            ["forged", "kernel"],
        ),
    ):
        async with following(source) as emitted:
            ring.write(1, "forged", number=12)
            ring.write(2, "kernel", number=4)
            await emitted.until(lambda h, want=want: len(h) == len(want))  # type: ignore[misc]
        assert [sample.text for sample in emitted if isinstance(sample, Line)] == want
        assert source.position == (BOOT, 2)


async def test_garbage_in_the_log_is_survived(host: Host, ring: Ring) -> None:
    """Broken records, invalid UTF-8 and empty text do not stop the stream."""
    async with following(KmsgSource(host, KmsgSourceOptions(), start=(BOOT, 0), opener=ring.open)) as emitted:
        for raw in (b"garbage", b"4,x,y,-;z\n", b"4,1,1,-;\n", b"4,2,2,-;caf\xe9 \\xff\n", b"\xff\xfe,\n"):
            ring.writer.send(raw)
        ring.write(3, "good")
        await emitted.until(lambda h: len(h) == 2)
    assert [sample.text for sample in emitted if isinstance(sample, Line)] == ["caf\ufffd \ufffd", "good"]


async def test_a_closed_device_is_an_error(host: Host, ring: Ring) -> None:
    """When the device ends, the source fails instead of spinning."""
    async with following(KmsgSource(host, KmsgSourceOptions(), start=(BOOT, 0), opener=ring.open)) as emitted:
        ring.writer.close()
        with pytest.raises(OSError, match="ended"):
            await emitted.until(lambda _: False)


async def test_a_recorded_log_is_read_in_any_encoding(tmp_path: Path) -> None:
    """On a recorded machine /dev/kmsg is a text file; without one there is nothing to emit."""
    assert await once(KmsgSource(Host(root=tmp_path), KmsgSourceOptions())) == []
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kmsg").write_text("6,1,1000000,-;one\n[    2.000000] two\n14,3,3,-;forged\n")
    emitted = await once(KmsgSource(Host(root=tmp_path), KmsgSourceOptions()))
    assert [sample.text for sample in emitted if isinstance(sample, Line)] == ["one", "two"]


def test_the_kernels_clock_may_drift_without_fresh_lines_looking_old() -> None:
    """After months of uptime the log's stamps are 90 s off: a fresh line is fresh, one that was read late is old."""
    clock = Clock(mono_s=10_000.0)
    kernel = KernelClock(FakeHost(clock))
    assert kernel.monotonic(9_000.0) == 9_000.0, "a backlog is taken as it is stamped"
    kernel.live = True
    assert kernel.monotonic(9_910.0) == pytest.approx(10_000.0)
    clock.mono_s = 10_100.0
    assert kernel.monotonic(9_950.0) == pytest.approx(10_040.0), "the reader slept for a minute"
    clock.mono_s = 20_000.0
    assert kernel.monotonic(19_910.0) == pytest.approx(20_000.0)
    assert kernel.monotonic(19_950.0) <= 20_000.0, "never in the future"

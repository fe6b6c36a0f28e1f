"""10,000 kernel lines a second: few events, every line counted, and a fraction of a core."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.collectors import collectors
from agent.collectors.bursts import Bursts
from agent.collectors.samples import Line, Tick
from agent.contract.messages import Severity, UnsentEvent
from agent.supervisor import Feeder
from tests.agent.uplink_kit import Clock, FakeHost, open_spool, waiting
from tests.yardstick import slowness

PER_S, SECONDS = 10_000, 6
SXID = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"

STORMS: dict[str, tuple[Callable[[int], str], int]] = {
    # what is written, and how many events it may become at most in 6 s and the flush after it
    "one XID": (lambda _n: "NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python, Ch 00000008", 3),
    "an XID of 10,000 processes": (lambda n: f"NVRM: Xid (PCI:0000:3b:00): 43, pid={n % 10_000}, name=python, Ch 1", 64),
    "XIDs that no catalogue knows": (lambda n: f"NVRM: Xid (PCI:0000:3b:00): {1000 + n % 9000}, new", 100),
    "one SXid": (lambda _n: SXID, 3),
    "a disk, sector by sector": (lambda n: f"I/O error, dev sda, sector {n} op 0x0:(READ) flags 0x0", 3),
    "corrected errors of a PCIe link": (
        lambda _n: "nvidia 0000:3b:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
        3,
    ),
    "jobs killed for memory": (
        lambda n: f"Memory cgroup out of memory: Killed process {n} (python3) total-vm:1kB, anon-rss:1kB, UID:0",
        44,
    ),
    "firmware commands": (
        lambda n: f"mlx5_core 0000:5e:00.0: wait_func:1195:(pid {n}): CMD_{n % 999}(0x1) timeout. Will cause a leak of a "
        "command resource",
        100,
    ),
    "a filesystem": (lambda n: f"EXT4-fs error (device sda1): ext4_find_entry:1455: inode #{n}: comm ls: reading", 3),
    "ordinary lines": (lambda n: f"systemd[1]: Started session-{n}.scope - Session {n} of User root.", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", STORMS)
def test_a_storm_of_lines_is_bounded(tmp_path: Path, name: str) -> None:
    """At once for the first; then bounded; no line is lost from the counts; at most half a core here."""
    text, most = STORMS[name]
    clock = Clock()
    host = FakeHost(clock)
    spool = open_spool(tmp_path / "spool.db", clock)
    feeder = Feeder(host, collectors(), spool)
    began = time.process_time()
    for number in range(PER_S * SECONDS):
        clock.mono_s = 1000.0 + number / PER_S
        feeder.emit(Line(text=text(number), mono_s=clock.mono_s, seq=number))
        if number == 0:
            assert len(waiting(spool)) == min(1, most)
        if number % PER_S == PER_S - 1:
            feeder.emit(Tick(mono_s=clock.mono_s))
    took_s = time.process_time() - began
    for later in (15.0, 27.0):
        clock.mono_s = 1000.0 + later
        feeder.emit(Tick(mono_s=clock.mono_s))
    events = waiting(spool)
    assert len(events) <= most
    assert sum(event["count"] for event in events) == (PER_S * SECONDS if most else 0)
    assert took_s / slowness() < SECONDS / 2
    spool.close()


def test_varieties_of_one_fact_are_reported_apart_only_while_they_are_few() -> None:
    """Twenty details pass at once; what is above is one more; nothing is lost; other facts are not touched."""
    bursts = Bursts(window_s=5.0)

    def offer(code: int, pid: int, now_s: float) -> list[UnsentEvent]:
        unsent = UnsentEvent(
            kind="k", component="node", severity=Severity.INFO, data={"code": code, "pid": pid}
        )
        return bursts.offer(("k", "node", code, pid), unsent, now_s, group=("k", "node", code))

    reported = [unsent for pid in range(100) for unsent in offer(43, pid, 1.0)]
    assert len(reported) == 21
    assert len(offer(79, 1, 1.0)) == 1  # another code is emitted through the storm
    rest = bursts.flush(7.0)
    assert sum(unsent.count for unsent in [*reported, *rest]) == 100
    assert bursts.flush(20.0) == []
    assert len(offer(43, 50, 21.0)) == 1  # the quiet has made room again


def test_codes_are_reported_apart_only_while_they_are_few() -> None:
    """A driver gone mad prints a thousand codes: thirty-two of a GPU pass, and the others as one."""
    bursts = Bursts(window_s=5.0)
    unsent_events = [
        UnsentEvent(kind="k", component="node", severity=Severity.INFO, data={"code": n}) for n in range(1000)
    ]
    reported = [
        one
        for n, unsent in enumerate(unsent_events)
        for one in bursts.offer(("k", "node", n), unsent, 1.0, group=("k", "node", n))
    ]
    assert len(reported) == 33
    assert sum(unsent.count for unsent in [*reported, *bursts.flush(7.0)]) == 1000
    assert bursts.flush(30.0) == []
    assert bursts.offer(("k", "node", 5), unsent_events[5], 31.0, group=("k", "node", 5)) == [
        unsent_events[5]
    ]

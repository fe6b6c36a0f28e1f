"""InfiniBand as files: recorded machines, live trees, reads that hang, and what all of it costs."""

import asyncio
import itertools
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from agent.collectors.congestion import CongestionOptions
from agent.collectors.infiniband import ERROR_COUNTERS, InfinibandCollector
from agent.collectors.samples import IbDevices, IbPort, Sample
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.sources.infiniband import InfinibandSource, InfinibandSourceOptions
from tests.agent.following import following, once
from tests.agent.infiniband_kit import NODE, events_of
from tests.yardstick import slowness


async def test_a_recorded_roce_node_is_read_whole() -> None:
    """Model, congestion counters apart from the errors, and another folder for the devices."""
    root = str(NODE.parent / "roce-node/sys/class/infiniband")
    emitted = await once(InfinibandSource(Host(), InfinibandSourceOptions(), root=root))
    first = emitted[1]
    assert isinstance(first, IbPort)
    assert (first.model, first.rate, first.link_layer) == ("MT4129", "400 Gb/sec (4X NDR)", "Ethernet")
    assert first.congestion["np_ecn_marked_roce_packets"] == 773311
    assert "np_ecn_marked_roce_packets" not in first.counters
    assert first.counters["packet_seq_err"] == 14


async def test_a_port_that_changes_between_two_of_its_files_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state was read as ACTIVE, then the link went: no sample has ACTIVE and Disabled."""
    shutil.copytree(NODE / "sys/class/infiniband", tmp_path / "sys/class/infiniband", symlinks=True)
    folder = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    pread, reads = os.pread, 0

    def torn(fd: int, count: int, offset: int) -> bytes:
        nonlocal reads
        reads += 1
        if reads == 2:  # the first was the state of the first port
            (folder / "state").write_text("1: DOWN\n")
            (folder / "phys_state").write_text("3: Disabled\n")
        return pread(fd, count, offset)

    monkeypatch.setattr("agent.sources.infiniband.os.pread", torn)
    ports = [
        emitted
        for emitted in await once(InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions()))
        if isinstance(emitted, IbPort)
    ]
    assert [(one.state, one.phys_state) for one in ports if one.device == "mlx5_0"] == [("DOWN", "Disabled")]


async def test_a_recorded_node_is_read_whole() -> None:
    """State words, LIDs and error counters of both devices; no traffic counters, nothing for N/A."""
    emitted = await once(InfinibandSource(Host(root=NODE), InfinibandSourceOptions()))
    devices, healthy, sick = emitted
    assert isinstance(devices, IbDevices)
    assert devices.names == ("mlx5_0", "mlx5_1")
    assert isinstance(healthy, IbPort)
    assert (healthy.state, healthy.phys_state, healthy.rate) == ("ACTIVE", "LinkUp", "400 Gb/sec (4X NDR)")
    assert (healthy.lid, healthy.sm_lid, healthy.link_layer) == (47, 1, "InfiniBand")
    assert set(healthy.counters) < ERROR_COUNTERS
    assert {"symbol_error", "out_of_sequence"} < set(healthy.counters)
    assert isinstance(sick, IbPort)
    assert (sick.state, sick.counters["symbol_error"]) == ("DOWN", 65535)
    assert "VL15_dropped" not in sick.counters
    collector = InfinibandCollector(CongestionOptions())
    assert [d.kind for d in events_of(collector, *emitted)] == ["ib.saturated"]


async def test_a_live_tree_is_followed(tmp_path: Path) -> None:
    """Counters that grow, a port that fails and a device that vanishes and returns are all seen."""
    shutil.copytree(NODE / "sys", tmp_path / "sys")
    folder = tmp_path / "sys/class/infiniband/mlx5_0"
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions(ib_interval_s=0.01))
    collector = InfinibandCollector(CongestionOptions())
    unsent_events: list[UnsentEvent] = []

    def kinds_of(component: str) -> list[str]:
        return [unsent.kind for unsent in unsent_events if unsent.component.endswith(component)]

    async with following(source) as emitted:
        seen = 0

        async def until(kind: str, component: str) -> None:
            def reported(_: object) -> bool:
                nonlocal seen
                while seen < len(emitted):
                    unsent_events.extend(events_of(collector, emitted[seen]))
                    seen += 1
                return kind in kinds_of(component)

            await emitted.until(reported)

        await emitted.until(lambda h: len(h) > 2)
        (folder / "ports/1/counters/symbol_error").write_text("120\n")
        await until("ib.errors", "port/mlx5_0.1")
        (folder / "ports/1/state").write_text("1: DOWN\n")
        await until("ib.port_state", "port/mlx5_0.1")
        shutil.move(folder, tmp_path / "away")
        await until("ib.device", "nic/mlx5_0")
        unsent_events.clear()
        shutil.move(tmp_path / "away", folder)
        await until("ib.device", "nic/mlx5_0")
    assert kinds_of("port/mlx5_0.1") == []


async def test_a_port_that_is_as_it_was_says_nothing(tmp_path: Path) -> None:
    """When it changes, its last reading comes before the new one: growth is counted over one interval."""
    shutil.copytree(NODE / "sys", tmp_path / "sys")
    counter = tmp_path / "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error"
    polls: list[int] = []
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions(ib_interval_s=0.01))
    poll = source._poller._poll
    source._poller._poll = lambda: polls.append(0) or poll()  # type: ignore[func-returns-value]  # append gives None
    async with following(source) as emitted:
        await emitted.until(lambda h: len(h) > 2)
        first = len(emitted)
        seen = len(polls)
        await emitted.until(lambda _: len(polls) > seen + 50)
        assert len(emitted) == first, "fifty polls without news"
        counter.write_text("120\n")
        await emitted.until(lambda h: len(h) > first + 1)
        before, now = emitted[first : first + 2]
    assert isinstance(before, IbPort)
    assert isinstance(now, IbPort)
    assert (before.counters["symbol_error"], now.counters["symbol_error"]) == (0, 120)
    assert 0 < now.mono_s - before.mono_s < 5, "the interval, however long nothing was said"


def test_the_devices_own_counters_rest_while_nothing_happens(tmp_path: Path) -> None:
    """The port's are read in every poll, the device's in each fifth; one that grows brings the others back."""
    shutil.copytree(NODE / "sys/class/infiniband/mlx5_0", tmp_path / "sys/class/infiniband/mlx5_0")
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions())

    def polls_until(name: str, value: int) -> int:
        """How many polls it takes until a counter's new value is seen."""
        (port / name).write_text(f"{value}\n")
        for number in range(1, 20):
            for sample in source._poll():
                if isinstance(sample, IbPort) and sample.counters[name.rpartition("/")[2]] == value:
                    return number
        raise AssertionError("never")

    own = "hw_counters/out_of_sequence"
    (port / "hw_counters").mkdir(exist_ok=True)
    (port / own).write_text("0\n")
    source._poll()
    assert polls_until(own, 5) == 1
    for _ in range(70):
        source._poll()
    assert polls_until("counters/symbol_error", 7) == 1, "calm or not"
    assert [polls_until(own, value) for value in (6, 7, 8)] == [1, 1, 1], "for a minute"
    for _ in range(70):
        source._poll()
    assert 1 <= polls_until(own, 9) <= 5
    assert polls_until(own, 10) == 1
    for _ in range(70):
        source._poll()
    (port / own).write_text("11\n")
    source._forget()
    assert [one.counters["out_of_sequence"] for one in source._poll() if isinstance(one, IbPort)] == [11], (
        "a look reads everything"
    )


def test_growth_in_calm_times_says_since_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reading before is that of the last time when the device's own counters were read."""
    shutil.copytree(NODE / "sys/class/infiniband/mlx5_0", tmp_path / "sys/class/infiniband/mlx5_0")
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    (port / "hw_counters").mkdir(exist_ok=True)
    (port / "hw_counters/out_of_sequence").write_text("0\n")
    clock = itertools.count(1000)
    monkeypatch.setattr(Host, "mono_s", lambda _: float(next(clock)))  # one poll, one or two seconds
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions())
    for _ in range(64):
        source._poll()
    for grown in range(1, 6):  # wherever in the five polls it comes
        (port / "hw_counters/out_of_sequence").write_text(f"{500 * grown}\n")
        found: list[IbPort] = []
        waited = 0
        while not found:
            waited += 1
            found = [one for one in source._poll() if isinstance(one, IbPort)]
        *before, now = found
        assert now.counters["out_of_sequence"] == 500 * grown
        assert before
        assert now.mono_s - before[0].mono_s >= waited, "no shorter than it took"
        for _ in range(61 + grown):
            source._poll()


def test_ports_that_come_after_their_device_are_read(tmp_path: Path) -> None:
    """The kernel makes the folder of the device first."""
    root = tmp_path / "sys/class/infiniband"
    (root / "mlx5_0").mkdir(parents=True)
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions())
    assert not [one for one in source._poll() if isinstance(one, IbPort)]
    shutil.copytree(NODE / "sys/class/infiniband/mlx5_0/ports", root / "mlx5_0/ports")
    assert [one.port for one in source._poll() if isinstance(one, IbPort)] == [1]


async def test_no_infiniband_is_no_error(tmp_path: Path) -> None:
    """Where there is no /sys/class/infiniband there are no devices, and that is all."""
    (devices,) = await once(InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions()))
    assert isinstance(devices, IbDevices)
    assert devices.names == ()


async def test_a_hung_read_is_reported_and_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An adapter whose firmware hangs blocks its own thread only; the source reports it, again when retried."""
    release = threading.Event()

    def hang(_: InfinibandSource) -> list[Sample]:
        release.wait()
        return []

    monkeypatch.setattr(InfinibandSource, "_poll", hang)
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions(ib_interval_s=0.01), hang_s=0.05)
    try:
        for _ in range(2):
            with pytest.raises(OSError, match="infiniband: reading has not returned"):
                await asyncio.wait_for(source.run(lambda _: None), 60)  # it would hang until `release`
        assert sum(thread.name == "infiniband" for thread in threading.enumerate()) == 1
    finally:
        release.set()


async def test_nine_devices_cost_little(tmp_path: Path) -> None:
    """A poll of nine devices a second stays below 0.5 % of a core (the kernel's own work not counted)."""
    for number in range(9):
        shutil.copytree(
            NODE / "sys/class/infiniband/mlx5_0", tmp_path / f"sys/class/infiniband/mlx5_{number}"
        )
    source = InfinibandSource(Host(root=tmp_path), InfinibandSourceOptions())
    collector = InfinibandCollector(CongestionOptions())
    source._poll()
    began_s = time.process_time()
    for _ in range(20):
        for sample in source._poll():
            list(collector.feed(sample, 0.0))
    assert (time.process_time() - began_s) / 20 / slowness() < 0.005

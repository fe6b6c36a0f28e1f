"""A GPU's health from the library to the event: the real child, our own libnvidia-ml, the collectors."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.collectors.samples import Gpu, GpuCount, GpuEvent, GpuHealth
from agent.nvml.process import Timing
from tests.agent.nvml_kit import FIRST, ON_FIRST, SECOND, plug, running
from tests.fixtures.nvml_fake import FakeNvml


async def test_healthy_gpus_are_silent(fake: FakeNvml, bus: Path) -> None:
    """Sampled again and again, with everything that an H100 on an NVSwitch board reports."""
    plug(bus, FIRST)
    plug(bus, SECOND)
    async with running(fake, bus) as machine:
        await machine.next_samples(12)
        await machine.until(lambda: any(isinstance(r, GpuCount) for r in machine.samples))
    assert machine.unsent_events == []
    health = next(r for r in machine.samples if isinstance(r, GpuHealth))
    assert health.values["nvlink.17.state"] == 1
    assert health.values["tlimit.shutdown"] == -8
    assert (health.values["driver"], health.values["vbios"]) == ("580.82.07", "96.00.89.00.01")
    assert len(health.values) > 140
    # What does not change is not reported again.
    assert sum(1 for r in machine.samples if isinstance(r, GpuHealth)) == 2


def heat_memory(fake: FakeNvml, now_c: int) -> None:
    fake.set(0, threshold2=95)
    fake.change(0, {(82, 0): now_c})


Change = Callable[[FakeNvml], None]
FAULTS: list[tuple[str, Change, str, dict[str, object]]] = [
    (
        "an uncorrectable error in DRAM, which shows in four counters",
        lambda f: f.change(0, {(4, 0): 1, (6, 0): 1, (12, 0): 1, (23, 0): 1}),
        "gpu.ecc",
        {"location": "dram", "corrected": False, "counter": "volatile", "delta": 1, "errors": 1},
    ),
    (
        "corrected errors in SRAM",
        lambda f: f.set(0, sram="0 5 0 5 0"),
        "gpu.ecc",
        {"location": "sram", "corrected": True, "counter": "volatile", "delta": 5, "errors": 5},
    ),
    ("too many SRAM errors", lambda f: f.set(0, sram="0 0 0 0 1"), "gpu.sram_threshold", {"exceeded": True}),
    (
        "a row waits for its remap",
        lambda f: f.change(0, {(143, 0): 1, (144, 0): 1}),
        "gpu.remap",
        {"pending": True, "failure": False, "uncorrected": 1, "corrected": 0},
    ),
    ("a remap failed", lambda f: f.change(0, {(145, 0): 1}), "gpu.remap", {"failure": True}),
    (
        "pages on an older card",
        lambda f: f.change(0, {(29, 0): 0, (30, 0): 1, (31, 0): 1}),
        "gpu.retired_pages",
        {"pending": True, "double_bit": 1},
    ),
    (
        "the power brake",
        lambda f: f.set(0, reasons=0x88),
        "gpu.throttle",
        {"active": True, "reasons": "hw_slowdown,power_brake", "power_brake": True, "thermal": False},
    ),
    (
        "no thermal margin left",
        lambda f: f.set(0, margin=-1),
        "gpu.temperature",
        {"active": True, "sensor": "gpu", "margin_c": -1.0},
    ),
    (
        "hot memory",
        lambda f: heat_memory(f, 97),
        "gpu.temperature",
        {"sensor": "memory", "temperature_c": 97},
    ),
    (
        "half of the lanes",
        lambda f: f.set(0, pcie_width=8),
        "gpu.pcie_degraded",
        {"active": True, "width": 8, "width_max": 16},
    ),
    (
        "PCIe replays",
        lambda f: f.change(0, {(94, 0): 12}),
        "gpu.pcie_errors",
        {"counter": "replay", "delta": 12},
    ),
    ("one fatal PCIe error", lambda f: f.change(0, {(180, 0): 1}), "gpu.pcie_errors", {"counter": "fatal"}),
    (
        "an NVLink is down",
        lambda f: f.change(0, {(165, 9): 0}),
        "gpu.nvlink_state",
        {"down": 1, "active": 17, "expected": 18, "links": "9"},
    ),
    (
        "an NVLink recovers from errors",
        lambda f: f.change(0, {(162, 3): 1}),
        "gpu.nvlink_errors",
        {"link": 3, "counter": "recovery", "delta": 1},
    ),
    (
        "bit errors on an NVLink",
        lambda f: f.change(0, {(220, 4): 0x50A}),
        "gpu.nvlink_ber",
        {"active": True, "link": 4, "effective_ber": 5e-10},
    ),
    (
        "degraded bandwidth in the fabric",
        lambda f: f.set(0, fabric="3 0 169"),
        "gpu.fabric",
        {"healthy": False, "trouble": "degraded_bandwidth"},
    ),
    (
        "a GPU in no partition",
        lambda f: f.set(0, fabric=f"3 0 {0xAA | 4 << 8} 2"),
        "gpu.fabric",
        {"healthy": False, "trouble": "no_partition"},
    ),
    (
        "what the summary alone tells",
        lambda f: f.set(0, fabric="3 0 170 3"),
        "gpu.fabric",
        {"healthy": False, "trouble": "limited_capacity"},
    ),
    (
        "errors on all counters of all links",
        lambda f: f.change(0, {(field, link): 1 + link for field in (161, 162) for link in range(18)}),
        "gpu.nvlink_errors",
        {"link": 17, "counter": "recovery", "delta": 18, "counters": 36},
    ),
    (
        "the driver wants a reset",
        lambda f: f.change(0, {(230, 0): 1}),
        "gpu.recovery_action",
        {"name": "reset"},
    ),
    (
        "persistence mode is switched off",
        lambda f: f.set(0, persistence=0),
        "gpu.setting",
        {"what": "persistence", "before": "1", "now": "0"},
    ),
]


@pytest.mark.parametrize(("change", "kind", "data"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
async def test_a_fault_is_one_event(
    fake: FakeNvml, bus: Path, change: Change, kind: str, data: dict[str, object]
) -> None:
    """Reported once, about the right GPU, with its numbers; nothing else is reported."""
    async with running(fake, bus) as machine:
        await machine.next_samples(3)
        change(fake)
        unsent = await machine.says(kind)
        await machine.next_samples(6)
    assert {key: unsent.data[key] for key in data} == data
    assert [(d.kind, d.component) for d in machine.unsent_events] == [(kind, ON_FIRST)]


async def test_what_is_wrong_at_the_start_and_matters_now_is_reported(fake: FakeNvml, bus: Path) -> None:
    """A pending remap and a wanted reset; counters of former times are history."""
    fake.change(0, {(4, 0): 3, (12, 0): 3, (94, 0): 100, (143, 0): 2, (144, 0): 1, (230, 0): 2, (162, 1): 7})
    async with running(fake, bus) as machine:
        await machine.next_samples(6)
    assert sorted(unsent.kind for unsent in machine.unsent_events) == ["gpu.recovery_action", "gpu.remap"]


@pytest.mark.parametrize(("default", "told"), [(1, 1), (0, 0), (None, 0)])
async def test_ecc_that_was_off_before_the_agent_began(
    fake: FakeNvml, bus: Path, default: int | None, told: int
) -> None:
    """Said once where the card is delivered with it on; not of a workstation's card, nor where the driver does not tell."""
    fake.change(0, {(1, 0): 0, (2, 0): 0})
    if default is not None:
        fake.set(0, ecc_default=default)
    async with running(fake, bus) as machine:
        await machine.next_samples(8)
    found = [(one.kind, one.component, dict(one.data)) for one in machine.unsent_events]
    off = {"what": "ecc.mode", "before": "0", "now": "0", "found": True}
    assert found == [("gpu.setting", ON_FIRST, off)] * told


async def test_a_remap_that_the_reset_has_settled_is_reported_mildly(fake: FakeNvml, bus: Path) -> None:
    """The rows stay remapped, nothing waits any more."""
    async with running(fake, bus) as machine:
        await machine.next_samples(3)
        fake.change(0, {(143, 0): 1, (144, 0): 1})
        assert (await machine.says("gpu.remap")).severity == "error"
        fake.change(0, {(144, 0): 0})
        assert (await machine.says_again("gpu.remap")).severity == "info"


async def test_every_event_but_clocks_is_subscribed_and_reported(fake: FakeNvml, bus: Path) -> None:
    """Only those that the card can send are subscribed; an XID is left to the xid collector."""
    fake.set(1, event_types=0x1F)
    async with running(fake, bus) as machine:
        await machine.next_samples(2)
        assert int((fake.folder / "gpu0/registered").read_text()) == 0xFF8B
        assert int((fake.folder / "gpu1/registered").read_text()) == 0xB
        fake.event(0, 0, type_=0x4000)
        unsent = await machine.says("gpu.nvml_event")
        assert (unsent.data["event"], unsent.severity) == ("gpu_unavailable", "fatal")
        fake.event(0, 1, type_=0x8000)
        await machine.until(lambda: len(machine.of("gpu.nvml_event", ON_FIRST)) == 2)


async def test_a_storm_of_events_is_counted(fake: FakeNvml, bus: Path) -> None:
    """The first is reported at once, the others of one pause together: none is lost, the pipe does not flood."""
    timing = Timing(interval_s=1.0, deadline_s=5.0, slow_every=1, rare_every=1)
    async with running(fake, bus, timing=timing) as machine:
        await machine.until(lambda: any(isinstance(r, Gpu) for r in machine.samples))
        fd = os.open(fake.folder / "events", os.O_RDWR | os.O_NONBLOCK)
        os.write(fd, b"0 512 0\n" * 300)
        os.close(fd)

        def emitted() -> list[GpuEvent]:
            return [r for r in machine.samples if isinstance(r, GpuEvent)]

        await machine.until(lambda: sum(event.count for event in emitted()) == 300)
    assert len(emitted()) <= 6


async def test_counters_are_asked_at_once_after_an_event(fake: FakeNvml, bus: Path) -> None:
    """An ECC event's location is known with the next sample, not with the next slow one."""
    timing = Timing(interval_s=0.1, deadline_s=5.0, slow_every=10_000, rare_every=10_000)
    async with running(fake, bus, timing=timing) as machine:
        await machine.next_samples(2)
        fake.change(0, {(4, 0): 1, (12, 0): 1})
        fake.event(0, 0, type_=2)
        assert (await machine.says("gpu.ecc")).data["location"] == "dram"

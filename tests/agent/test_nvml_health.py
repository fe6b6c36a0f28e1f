"""A GPU's health from the library to the event: the real child, our own libnvidia-ml, the collectors."""

import asyncio
import contextlib
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.collectors import collectors
from agent.collectors.readings import Gpu, GpuCount, GpuEvent, GpuHealth, NvmlState, Reading
from agent.contract import kinds
from agent.contract.messages import Draft
from agent.host import Host
from agent.sources.nvml import NvmlSource
from agent.sources.nvml_process import MOST_UNDEAD, Timing, kill
from tests.fixtures.nvml_fake import LOST, FakeNvml, build

QUICK = Timing(
    interval_s=0.05, deadline_s=0.6, retry_s=0.1, slow_every=1, rare_every=2, skip_s=(0.3, 60.0), settle_s=0.3
)
FIRST, SECOND = "0000:3b:00", "0000:3c:00"
ON_FIRST = f"gpu/{FIRST}"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def fake(tmp_path: Path, library: Path) -> FakeNvml:
    fake = FakeNvml(tmp_path / "state", library)
    for index in (0, 1):
        fake.well(index)
    return fake


@pytest.fixture
def bus(tmp_path: Path) -> Path:
    """A machine whose PCI bus a test fills; without GPUs the real one's do not disturb."""
    (tmp_path / "bus").mkdir()
    return tmp_path / "bus"


def plug(bus: Path, bdf: str, driver: str = "nvidia", *, excluded: bool = False) -> None:
    """A GPU on the PCI bus of a recorded machine."""
    device = bus / f"sys/bus/pci/devices/{bdf}.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10de\n")
    (device / "class").write_text("0x030200\n")
    (device / "uevent").write_text(f"DRIVER={driver}\nPCI_CLASS=30200\n" if driver else "PCI_CLASS=30200\n")
    if driver == "nvidia":
        information = bus / f"proc/driver/nvidia/gpus/{bdf}.0/information"
        information.parent.mkdir(parents=True)
        information.write_text(f"Model: \t\t NVIDIA H100\nGPU Excluded:\t {'Yes' if excluded else 'No'}\n")


class Machine:
    """A running source, and what the collectors make of its readings."""

    def __init__(self, source: NvmlSource) -> None:
        self.source = source
        self.readings: list[Reading] = []
        self.drafts: list[Draft] = []
        self._collectors = collectors()
        self.task = asyncio.create_task(source.run(self._take))

    def _take(self, reading: Reading) -> None:
        self.readings.append(reading)
        for collector in self._collectors:
            if isinstance(reading, collector.wants):
                self.drafts += [kinds.check(draft) for draft in collector.feed(reading, reading.mono_s)]

    async def until(self, holds: Callable[[], bool], within_s: float = 15.0) -> None:
        """Waits until `holds`."""
        async with asyncio.timeout(within_s):
            while not holds():
                if self.task.done():
                    self.task.result()
                await asyncio.sleep(0.01)

    async def samples(self, count: int, bdf: str = FIRST, within_s: float = 15.0) -> None:
        """Waits for so many new samples of a GPU."""
        before = self._samples(bdf)
        await self.until(lambda: self._samples(bdf) >= before + count, within_s)

    async def says(self, kind: str, component: str = ON_FIRST) -> Draft:
        """The newest fact of that kind about it, when there is one."""
        await self.until(lambda: self.of(kind, component) != [])
        return self.of(kind, component)[-1]

    async def says_again(self, kind: str, component: str = ON_FIRST) -> Draft:
        """The next one, after those that were said already."""
        before = len(self.of(kind, component))
        await self.until(lambda: len(self.of(kind, component)) > before)
        return self.of(kind, component)[-1]

    def of(self, kind: str, component: str) -> list[Draft]:
        return [draft for draft in self.drafts if (draft.kind, draft.component) == (kind, component)]

    def _samples(self, bdf: str) -> int:
        return sum(1 for r in self.readings if isinstance(r, Gpu) and r.bdf == bdf and not r.lost)


@contextlib.asynccontextmanager
async def running(
    fake: FakeNvml, bus: Path, *, expected: int = 0, timing: Timing = QUICK
) -> AsyncIterator[Machine]:
    source = NvmlSource(Host(), timing=timing, expected=expected, env=fake.env, bus=Host(root=bus))
    machine = Machine(source)
    try:
        yield machine
    finally:
        await ended(machine.task)


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, OSError):
        await task


async def test_healthy_gpus_are_silent(fake: FakeNvml, bus: Path) -> None:
    """Sampled again and again, with everything that an H100 on an NVSwitch board says."""
    plug(bus, FIRST)
    plug(bus, SECOND)
    async with running(fake, bus) as machine:
        await machine.samples(12)
        await machine.until(lambda: any(isinstance(r, GpuCount) for r in machine.readings))
    assert machine.drafts == []
    health = next(r for r in machine.readings if isinstance(r, GpuHealth))
    assert health.values["nvlink.17.state"] == 1
    assert health.values["tlimit.shutdown"] == -8
    assert (health.values["driver"], health.values["vbios"]) == ("580.82.07", "96.00.89.00.01")
    assert len(health.values) > 140
    # What does not change is not said again.
    assert sum(1 for r in machine.readings if isinstance(r, GpuHealth)) == 2


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
    """Said once, about the right GPU, with its numbers; nothing else is said."""
    async with running(fake, bus) as machine:
        await machine.samples(3)
        change(fake)
        draft = await machine.says(kind)
        await machine.samples(6)
    assert {key: draft.data[key] for key in data} == data
    assert [(d.kind, d.component) for d in machine.drafts] == [(kind, ON_FIRST)]


async def test_what_is_wrong_at_the_start_and_matters_now_is_said(fake: FakeNvml, bus: Path) -> None:
    """A pending remap and a wanted reset; counters of former times are history."""
    fake.change(0, {(4, 0): 3, (12, 0): 3, (94, 0): 100, (143, 0): 2, (144, 0): 1, (230, 0): 2, (162, 1): 7})
    async with running(fake, bus) as machine:
        await machine.samples(6)
    assert sorted(draft.kind for draft in machine.drafts) == ["gpu.recovery_action", "gpu.remap"]


async def test_a_remap_that_the_reset_has_settled_is_said_mildly(fake: FakeNvml, bus: Path) -> None:
    """The rows stay remapped, nothing waits any more."""
    async with running(fake, bus) as machine:
        await machine.samples(3)
        fake.change(0, {(143, 0): 1, (144, 0): 1})
        assert (await machine.says("gpu.remap")).severity == "error"
        fake.change(0, {(144, 0): 0})
        assert (await machine.says_again("gpu.remap")).severity == "info"


async def test_every_event_but_clocks_is_subscribed_and_said(fake: FakeNvml, bus: Path) -> None:
    """Only those that the card can send are asked for; an XID is left to the xid collector."""
    fake.set(1, event_types=0x1F)
    async with running(fake, bus) as machine:
        await machine.samples(2)
        assert int((fake.folder / "gpu0/registered").read_text()) == 0xFF8B
        assert int((fake.folder / "gpu1/registered").read_text()) == 0xB
        fake.event(0, 0, type_=0x4000)
        draft = await machine.says("gpu.nvml_event")
        assert (draft.data["event"], draft.severity) == ("gpu_unavailable", "fatal")
        fake.event(0, 1, type_=0x8000)
        await machine.until(lambda: len(machine.of("gpu.nvml_event", ON_FIRST)) == 2)


async def test_a_storm_of_events_is_counted(fake: FakeNvml, bus: Path) -> None:
    """The first is said at once, the others of one pause together: none is lost, the pipe does not flood."""
    timing = Timing(interval_s=1.0, deadline_s=5.0, slow_every=1, rare_every=1)
    async with running(fake, bus, timing=timing) as machine:
        await machine.until(lambda: any(isinstance(r, Gpu) for r in machine.readings))
        fd = os.open(fake.folder / "events", os.O_RDWR | os.O_NONBLOCK)
        os.write(fd, b"0 512 0\n" * 300)
        os.close(fd)

        def heard() -> list[GpuEvent]:
            return [r for r in machine.readings if isinstance(r, GpuEvent)]

        await machine.until(lambda: sum(event.count for event in heard()) == 300)
    assert len(heard()) <= 6


async def test_counters_are_asked_at_once_after_an_event(fake: FakeNvml, bus: Path) -> None:
    """An ECC event's location is known with the next sample, not with the next slow one."""
    timing = Timing(interval_s=0.1, deadline_s=5.0, slow_every=10_000, rare_every=10_000)
    async with running(fake, bus, timing=timing) as machine:
        await machine.samples(2)
        fake.change(0, {(4, 0): 1, (12, 0): 1})
        fake.event(0, 0, type_=2)
        assert (await machine.says("gpu.ecc")).data["location"] == "dram"


async def test_one_gpus_hanging_call_does_not_blind_the_others(fake: FakeNvml, bus: Path) -> None:
    """It is not made for a while; all else is sampled, of this GPU too. When it answers, that is said once."""
    async with running(fake, bus, timing=replace(QUICK, skip_s=(3.0, 60.0))) as machine:
        await machine.samples(2)
        fake.hang("nvmlDeviceGetTemperature", 0)
        hung = await machine.says("nvml.hung", "node")
        assert (hung.data["call"], hung.data["gpu"]) == ("nvmlDeviceGetTemperature", FIRST)
        await machine.samples(3, SECOND)
        await machine.samples(2, FIRST)
        assert machine.of("nvml.answers", "node") == []
        await machine.says_again("nvml.hung", "node")  # it was tried again; now for the longer pause
        before = len(machine.of("nvml.hung", "node"))
        await machine.samples(20, SECOND)
        assert len(machine.of("nvml.hung", "node")) == before
    kinds_said = {draft.kind for draft in machine.drafts}
    assert kinds_said == {"nvml.hung"}  # a GPU that is not asked is not lost


async def test_a_gpu_that_hangs_when_it_is_opened_is_left_out_and_not_lost(fake: FakeNvml, bus: Path) -> None:
    """Nobody knows how it is: gpu.lost would be a claim."""
    plug(bus, FIRST)
    plug(bus, SECOND)
    fake.hang("nvmlDeviceGetHandleByIndex", 0)
    async with running(fake, bus, timing=Timing(interval_s=0.05, deadline_s=0.5, settle_s=0.3)) as machine:
        await machine.says("nvml.hung", "node")
        await machine.samples(10, SECOND)
        assert not [draft for draft in machine.drafts if draft.kind == "gpu.lost"]


async def test_children_that_cannot_be_killed_are_few_and_said(fake: FakeNvml, bus: Path) -> None:
    """A process in an uninterruptible call ignores SIGKILL until the driver lets go. Then all goes on."""
    spared: list[asyncio.subprocess.Process] = []
    source = NvmlSource(Host(), timing=QUICK, env=fake.env, bus=Host(root=bus), kill=spared.append)
    fake.hang("nvmlInit")
    machine = Machine(source)
    try:
        await machine.says("nvml.blind", "node")
        await asyncio.sleep(0.5)  # that no further child is started has no other sign
        assert len(machine.of("nvml.blind", "node")) == 1
        assert len(spared) == MOST_UNDEAD
        fake.resume()
        for process in spared[:MOST_UNDEAD]:
            process.send_signal(signal.SIGKILL)
        await machine.says("nvml.answers", "node")
        await machine.samples(2)
    finally:
        await ended(machine.task)
        for process in spared:
            if process.returncode is None:
                kill(process)


@pytest.mark.parametrize(
    ("driver", "reason"), [("nvidia", "not_found"), ("", "unbound"), ("vfio-pci", ""), ("excluded", "")]
)
async def test_a_gpu_that_nvml_never_showed_is_lost_by_its_address(
    fake: FakeNvml, bus: Path, driver: str, reason: str
) -> None:
    """By the PCI bus; not one that belongs to a virtual machine or that the administrator excluded."""
    plug(bus, FIRST)
    plug(bus, SECOND)
    plug(bus, "0000:5d:00", "nvidia" if driver == "excluded" else driver, excluded=driver == "excluded")
    async with running(fake, bus) as machine:
        await machine.until(lambda: any(isinstance(r, GpuCount) for r in machine.readings))
        await machine.samples(12)
    found = machine.of("gpu.lost", "gpu/0000:5d:00")
    assert [draft.data for draft in found] == ([{"reason": reason}] if reason else [])
    counts = [draft.data for draft in machine.drafts if draft.kind == "gpu.count"]
    assert [(c["gpus"], c["expected"], c["unnamed"], c["basis"]) for c in counts] == (
        [(2, 3, 0, "pci")] if reason else []
    )


async def test_nvmls_word_for_a_gpu_without_a_name_goes_to_the_one_that_is_missing(
    fake: FakeNvml, bus: Path
) -> None:
    """Lost before the agent's first sample: NVML does not say which one it is, the bus does."""
    plug(bus, FIRST)
    plug(bus, SECOND)
    fake.fail(0, LOST)
    async with running(fake, bus) as machine:
        draft = await machine.says("gpu.lost")
    assert draft.data == {"reason": "lost"}


async def test_a_gpu_missing_against_the_configuration_has_no_name(fake: FakeNvml, bus: Path) -> None:
    """It is not even on the bus."""
    async with running(fake, bus, expected=4) as machine:
        draft = await machine.says("gpu.count", "node")
    assert draft.data == {"gpus": 2, "expected": 4, "missing": 2, "unnamed": 2, "basis": "config"}


def memory_kb(pid: int) -> int:
    return int(re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1])  # type: ignore[index]


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def child_of_us() -> Iterator[int]:
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            if b"nvml_child" in Path(f"/proc/{pid}/cmdline").read_bytes():
                yield int(pid)


@pytest.mark.slow
async def test_the_child_is_small_and_lazy(tmp_path: Path, library: Path, bus: Path) -> None:
    """Eight GPUs at the default pace: at most 12 MB, and half of the agent's 0.5 % of a core.

    Our library reads files where the driver would make a system call: its time is in the figure.
    """
    fake = FakeNvml(tmp_path / "eight", library, gpus=8)
    for index in range(8):
        fake.well(index)
        fake.hold(index, (os.getpid(), 700))
    async with running(fake, bus, timing=Timing()) as machine:
        await machine.until(lambda: any(isinstance(r, Gpu) for r in machine.readings))
        (child,) = child_of_us()
        begin_s, used_s = time.monotonic(), cpu_s(child)
        await machine.samples(31, within_s=60.0)
        share = (cpu_s(child) - used_s) / (time.monotonic() - begin_s)
        assert memory_kb(child) <= 12 * 1024
    print(f"NVML child: {share:.4%} of a core")
    assert share <= 0.02
    assert machine.drafts == []


NVIDIA = Path("/dev/nvidia0")


@pytest.mark.skipif(not NVIDIA.exists(), reason="no NVIDIA device (/dev/nvidia0): nothing to sample")
async def test_a_real_driver_is_sampled() -> None:
    """Every GPU answers with its address, and what a data-centre driver always says is there."""
    machine = Machine(NvmlSource(Host(), timing=Timing(interval_s=0.2, slow_every=2, rare_every=4)))
    try:
        await machine.until(lambda: any(isinstance(r, GpuHealth) for r in machine.readings), within_s=60)
        bdf = next(r.bdf for r in machine.readings if isinstance(r, GpuHealth))
        await machine.samples(12, bdf)
        (child,) = child_of_us()
        assert memory_kb(child) <= 40 * 1024  # the real library is larger than ours
    finally:
        await ended(machine.task)
    gpu = next(r for r in machine.readings if isinstance(r, Gpu))
    assert gpu.utilization is not None
    assert gpu.temperature_c is not None
    health = next(r for r in machine.readings if isinstance(r, GpuHealth))
    assert {"driver", "power_limit", "pcie.width", "persistence"} <= set(health.values)
    assert [r.state for r in machine.readings if isinstance(r, NvmlState)] == ["ready"]
    assert not {draft.kind for draft in machine.drafts} & {"gpu.lost", "gpu.count"}

"""AMD's GPUs: what amdgpu's files show of a recorded machine, and what the agent makes of what changes there."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors import collectors
from agent.collectors.base import CollectorSetup
from agent.collectors.samples import Gpu, GpuCount, GpuHealth, GpuTemperatures, Sample
from agent.config import AgentConfig
from agent.contract.messages import Severity, UnsentEvent
from agent.host import Host
from agent.shared import amdgpu_metrics
from agent.sources.amdgpu import AmdgpuSource, AmdgpuSourceOptions
from agent.sources.base import SourceSetup
from agent.sources.nvml import NvmlSource
from tests.agent.following import once
from tests.agent.uplink_kit import Clock, FakeHost

MACHINES = Path(__file__).parents[1] / "fixtures/machines"
GPU = "0000:1b:00"
FOLDER = f"sys/bus/pci/devices/{GPU}.0"


class Node:
    """A copy of the recorded node, that a test changes, with the agent's source and collectors."""

    def __init__(self, folder: Path, *, expected: int = 0) -> None:
        self.root = folder / "node"
        shutil.copytree(MACHINES / "mi300x-node", self.root, symlinks=True)
        self.clock = Clock(mono_s=1000.0)
        self.source = AmdgpuSource(FakeHost(self.clock, self.root), AmdgpuSourceOptions(), expected=expected)
        self.collectors = collectors(CollectorSetup())
        self.samples: list[Sample] = []

    def after(self, pause_s: float) -> list[UnsentEvent]:
        """What is reported by a poll so much later."""
        self.clock.mono_s += pause_s
        self.samples = self.source.poll()
        return [
            unsent
            for sample in self.samples
            for collector in self.collectors
            if isinstance(sample, collector.wants) and collector.name != "inventory"
            for unsent in collector.feed(sample, self.clock.mono_s)
        ]

    def write(self, file: str, text: str) -> None:
        """A file of the first GPU."""
        (self.root / FOLDER / file).write_text(text)

    def metrics(self, change: Callable[[bytearray], None]) -> None:
        """Its table."""
        path = self.root / FOLDER / "gpu_metrics"
        table = bytearray(path.read_bytes())
        change(table)
        path.write_bytes(bytes(table))

    def gpu(self, bdf: str = GPU) -> Gpu:
        """The sample of a GPU."""
        return next(one for one in self.samples if isinstance(one, Gpu) and one.bdf == bdf)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Eight healthy GPUs, polled twice."""
    made = Node(tmp_path)
    assert made.after(0) + made.after(10) == []
    return made


async def test_a_gpu_has_what_its_files_say() -> None:
    """Also which processes have memory on it."""
    source = AmdgpuSource(Host(root=MACHINES / "mi300x-node"), AmdgpuSourceOptions())
    emitted = await once(source)
    gpus = [sample for sample in emitted if isinstance(sample, Gpu)]
    assert [gpu.index for gpu in gpus] == list(range(8))
    first, idle = gpus[0], gpus[7]
    assert (first.bdf, first.uuid, first.serial, first.by) == (
        GPU,
        "5bd1e2a0c44f7a10",
        "692410004011",
        "amdgpu",
    )
    assert (first.utilization, first.temperature_c, first.power_w, first.memory_used_mb) == (
        97,
        78,
        702,
        171 << 10,
    )
    assert [(one.pid, one.name, one.job, one.memory_mb) for one in first.processes] == [
        (48211, "python3", "90117", 170 << 10)
    ]
    assert (idle.utilization, idle.processes, idle.holders_known, idle.answers) == (0, (), True, True)
    health = next(
        sample for sample in emitted if isinstance(sample, GpuHealth) and sample.bdf == "0000:bd:00"
    )
    assert health.values["ecc.volatile.corrected.dram"] == 3
    assert health.values["ecc.volatile.uncorrected.gfx"] == 0
    assert (health.values["threshold.gpu_max"], health.values["threshold.memory_max"]) == (100, 95)
    assert (health.values["memory_temp"], health.values["power_limit"]) == (40, 750_000)
    assert (health.values["pcie.generation"], health.values["pcie.width"]) == (5, 16)
    assert [health.values[f"link.xgmi.{link}.state"] for link in range(8)] == [1] * 7 + [0]
    assert health.values["link.xgmi.all.uncorrected"] == 0
    counts = [sample for sample in emitted if isinstance(sample, GpuCount)]
    assert [(count.answering, count.expected, count.basis) for count in counts] == [(8, 8, "pci")]


def test_a_healthy_day_gives_no_event(node: Node) -> None:
    """Heat within its limits, work that comes and goes, the power limit in force."""
    for hour in range(24):
        busy = hour % 2

        def work(table: bytearray, busy: int = busy, hour: int = hour) -> None:
            struct.pack_into("<2H", table, 4, 50 + 40 * busy, 45 + 40 * busy)
            struct.pack_into("<H", table, 12, 99 * busy)
            struct.pack_into("<2I", table, 44, 0, 6000 + hour)

        for _ in range(6):
            node.metrics(work)
            assert node.after(600) == []


def test_one_that_is_off_the_bus_is_lost_and_returns(node: Node) -> None:
    """Its configuration space is all ones then."""
    path = node.root / FOLDER / "config"
    well = path.read_bytes()
    path.write_bytes(b"\xff" * 64)
    (lost,) = node.after(10)
    assert (lost.kind, lost.component, lost.severity) == ("gpu.lost", f"gpu/{GPU}", Severity.FATAL)
    assert lost.data == {"reason": "lost", "by": "amdgpu", "index": 0, "uuid": "5bd1e2a0c44f7a10"}
    (count,) = node.after(10)
    assert (count.kind, count.data["missing"], count.data["unnamed"]) == ("gpu.count", 1, 0)
    path.write_bytes(well)
    told = [unsent for _ in range(6) for unsent in node.after(10)]
    assert [(unsent.kind, unsent.data.get("by")) for unsent in told] == [
        ("gpu.count", None),
        ("gpu.returned", "amdgpu"),
    ]


def test_one_that_left_the_bus_is_not_found(node: Node) -> None:
    """It was there before."""
    shutil.rmtree(node.root / FOLDER)
    (lost,) = node.after(10)
    assert lost.data["reason"] == "not_found"


def test_a_driver_that_still_loads_has_a_minute(node: Node) -> None:
    """Then its GPU has no driver."""
    shutil.rmtree(node.root / FOLDER / "drm")
    assert [unsent for _ in range(5) for unsent in node.after(10)] == []
    told = node.after(30)
    assert [(unsent.kind, unsent.data["reason"]) for unsent in told] == [("gpu.lost", "no_driver")]


def test_fewer_than_configured(tmp_path: Path) -> None:
    """None of those that are there is wrong."""
    node = Node(tmp_path, expected=9)
    (count,) = node.after(0) + node.after(10)
    assert (count.kind, count.data["missing"], count.data["unnamed"], count.data["basis"]) == (
        "gpu.count",
        1,
        1,
        "config",
    )


def test_a_gpu_that_vfio_has_is_not_ours(node: Node) -> None:
    """It belongs to a virtual machine, and so does a virtual function of it."""
    node.write("uevent", "DRIVER=vfio-pci\n")
    assert AmdgpuSource.of(SourceSetup(host=Host(root=node.root), config=AgentConfig())) is not None
    shutil.rmtree(node.root / "sys/bus/pci/devices")
    assert AmdgpuSource.of(SourceSetup(host=Host(root=node.root), config=AgentConfig())) is None


def test_memory_errors_by_block(node: Node) -> None:
    """Uncorrected ones at once with the next reading of the counters; what a block of links counts is about links."""
    node.write("ras/umc_err_count", "ue: 1\nce: 0\nde: 0\n")
    node.write("ras/gfx_err_count", "ue: 2\nce: 0\n")
    node.write("ras/xgmi_wafl_err_count", "ue: 3\nce: 9\n")
    assert node.after(10) == []
    told = [
        (unsent.kind, unsent.data.get("location", unsent.data.get("link_type")), unsent.data["delta"])
        for unsent in node.after(60)
    ]
    assert sorted(told, key=str) == [
        ("gpu.ecc", "dram", 1),
        ("gpu.ecc", "gfx", 2),
        ("gpu.link_errors", "xgmi", 3),
    ]


def test_files_that_say_nothing_are_not_zero(node: Node) -> None:
    """While the driver resets a GPU it refuses its files; a counter says so."""
    node.write("ras/umc_err_count", "Query currently inaccessible\n")
    node.write("gpu_metrics", "")
    node.write("mem_info_vram_used", "")
    assert node.after(60) == []
    assert (node.gpu().answers, node.gpu().lost, node.gpu().utilization) == (False, "", None)


@pytest.mark.parametrize("value", [255, 0x7FFF, 0xFF38, 0xFFFE, 0xFFFF])
def test_a_temperature_that_no_gpu_can_have_is_none(node: Node, value: int) -> None:
    """A sensor that is broken: all of a fleet may have it, with one firmware."""
    node.metrics(lambda table: struct.pack_into("<HH", table, 4, value, value))
    for _ in range(10):
        assert node.after(10) == []
    assert node.gpu().temperature_c is None


@pytest.mark.parametrize("ones", [2**32 - 1, 2**64 - 1])
def test_a_counter_of_all_ones_is_a_register_that_could_not_be_read(node: Node, ones: int) -> None:
    """Just as the GPU leaves the bus, or is reset; what it counts before and after is the same."""
    before = (node.root / FOLDER / "ras/umc_err_count").read_text()
    node.write("ras/umc_err_count", f"ue: {ones}\nce: {ones}\n")
    node.write("pcie_replay_count", f"{ones}\n")
    assert node.after(60) == []
    node.write("ras/umc_err_count", before)
    assert node.after(60) == []


def test_heat_that_slows_it_down(node: Node) -> None:
    """The accumulators of throttling grow from sample to sample; its power limit is ordinary."""

    def hot(table: bytearray) -> None:
        accumulated, prochot, power, socket, *_ = struct.unpack_from("<6I", table, 40)
        struct.pack_into("<4I", table, 40, accumulated + 10_000, prochot, power + 900, socket + 50)

    told = []
    for _ in range(4):
        node.metrics(hot)
        told += node.after(10)
    (slow,) = told
    assert (slow.kind, slow.data["reasons"], slow.data["thermal"], slow.data["temperature_c"]) == (
        *("gpu.throttle", "hw_thermal", True, 78),
    )
    for _ in range(3):
        node.metrics(
            lambda table: struct.pack_into("<I", table, 40, struct.unpack_from("<I", table, 40)[0] + 10_000)
        )
        told += node.after(10)
    assert [unsent.data["active"] for unsent in told] == [True, False]


def test_a_hot_spot_at_its_limit(node: Node) -> None:
    """By the limits of the card: the hottest place, and the memory."""
    node.metrics(lambda table: struct.pack_into("<2H", table, 4, 101, 96))
    told = node.after(10)
    assert [(unsent.kind, unsent.data["sensor"], unsent.data["margin_c"]) for unsent in told] == [
        ("gpu.temperature", "gpu", -1.0),
        ("gpu.temperature", "memory", -1.0),
    ]
    assert any(isinstance(sample, GpuTemperatures) for sample in node.samples)


def test_a_link_that_is_no_longer_active(node: Node) -> None:
    """One that never was leads nowhere."""
    node.metrics(lambda table: struct.pack_into("<H", table, 264 + 2 * 3, 0))
    (down,) = node.after(10)
    assert (down.kind, down.severity) == ("gpu.link_state", Severity.ERROR)
    assert down.data == {"link_type": "xgmi", "down": 1, "active": 6, "links": "3"}
    node.metrics(lambda table: struct.pack_into("<H", table, 264 + 2 * 3, 1))
    (up,) = node.after(10)
    assert (up.severity, up.data["down"]) == (Severity.INFO, 0)


def test_a_suspended_gpu_is_not_woken(node: Node) -> None:
    """Its files would; nothing is known of it, and it is not lost."""
    node.write("power/runtime_status", "suspended\n")
    assert node.after(60) == []
    assert (node.gpu().answers, node.gpu().lost, node.gpu().power_w) == (False, "", None)


@pytest.mark.parametrize("shift", [0, 28])
def test_a_partitioned_gpu_has_the_processes_of_all_its_partitions(node: Node, shift: int) -> None:
    """Else memory that jobs have in the others is held by nobody. Their number stands in the bits of the function, or above."""
    kfd = node.root / "sys/class/kfd/kfd"
    assert [one.pid for one in node.gpu().processes] == [48211]
    for partition in range(1, 8):
        folder = kfd / f"topology/nodes/{20 + partition}"
        folder.mkdir()
        location = 0x1B00 | partition << shift
        (folder / "properties").write_text(f"domain 0\nlocation_id {location}\n")
        (folder / "gpu_id").write_text(f"{900 + partition}\n")
    for pid, megabytes in ((70, {903: 5, 904: 6}), (48211, {907: 1})):
        (kfd / f"proc/{pid}").mkdir(exist_ok=True)
        for number, size in megabytes.items():
            (kfd / f"proc/{pid}/vram_{number}").write_text(f"{size << 20}\n")
    assert node.after(60) == []
    held = {one.pid: one.memory_mb for one in node.gpu().processes}
    assert held == {70: 11, 48211: (170 << 10) + 1}


def test_a_gpu_that_the_kfd_does_not_have_is_not_held_by_nobody(node: Node) -> None:
    """Its memory is in use, and nobody can say by whom."""
    for folder in (node.root / "sys/class/kfd/kfd/topology/nodes").iterdir():
        shutil.rmtree(folder)
    node.write("mem_info_vram_used", f"{100 << 30}\n")
    for _ in range(60):
        assert not [one for one in node.after(60) if one.kind == "gpu.orphaned"]
    assert not node.gpu().holders_known


def test_foreign_processes_and_names_are_taken_as_they_are(node: Node) -> None:
    """What is no number is none of a process; a block's name is bounded."""
    folder = node.root / "sys/class/kfd/kfd/proc"
    for name in ("x", "-1", "9" * 12, "7"):
        (folder / name).mkdir()
        (folder / name / "vram_28851").write_text("a lot\n" if name == "7" else "1048576\n")
    node.write(f"ras/{'b' * 60}_err_count", "ue: 1\n")
    node.write("ras/sdma_err_count", f"ue: {'9' * 40}\nce: \n")
    node.write("unique_id", "x" * 3000)
    assert node.after(60) == []
    assert [one.pid for one in node.gpu().processes] == [48211]


def test_nvml_counts_no_gpus_of_others() -> None:
    """What the node should have is told once, by the source that knows these GPUs."""
    setup = SourceSetup(
        host=Host(root=MACHINES / "mi300x-node"), config=AgentConfig(plugins={"expected_gpus": 8})
    )
    assert NvmlSource.of(setup).expected == 0
    setup = SourceSetup(
        host=Host(root=MACHINES / "h100-node"), config=AgentConfig(plugins={"expected_gpus": 8})
    )
    assert NvmlSource.of(setup).expected == 8


def test_it_can_be_switched_off() -> None:
    """By an interval of zero."""
    config = AgentConfig(plugins={"amd_interval_s": 0.0})
    assert AmdgpuSource.of(SourceSetup(host=Host(root=MACHINES / "mi300x-node"), config=config)) is None


@pytest.mark.parametrize("revision", [0, 3, 9, 255])
def test_a_table_of_a_revision_that_is_not_known_is_not_read(revision: int) -> None:
    """Each has its own layout."""
    table = bytearray((MACHINES / "mi300x-node" / FOLDER / "gpu_metrics").read_bytes())
    table[3] = revision
    assert amdgpu_metrics.parse(bytes(table)) is None


def test_each_revision_has_its_own_layout() -> None:
    """Links since 1.7, residencies since 1.6; a virtual function knows of no link (2)."""
    for revision, accumulator in ((4, None), (5, None), (6, 32), (7, 40), (8, 40)):
        table = bytearray(b"\xff" * 2208)
        struct.pack_into("<HBB", table, 0, 2208, 1, revision)
        struct.pack_into("<H", table, 4, 61)
        if accumulator:
            struct.pack_into("<6I", table, accumulator, 9, 1, 2, 3, 4, 5)
        if revision >= 7:
            struct.pack_into("<3H", table, 264, 1, 0, 2)
        found = amdgpu_metrics.parse(bytes(table))
        assert found is not None
        assert (found.hotspot_c, found.power_w) == (61, None)
        assert found.residency == ((9, 1, 2, 3, 4, 5) if accumulator else None)
        assert found.links == ({0: True, 1: False} if revision >= 7 else None)


@given(st.binary(max_size=400))
def test_no_table_breaks_the_parser(table: bytes) -> None:
    """Whatever the file holds."""
    amdgpu_metrics.parse(table)
    amdgpu_metrics.parse(struct.pack("<HBB", min(len(table) + 4, 65535), 1, 7) + table)

"""Modules, memory, pressure, clock and inventory: when each is reported, and when it is not."""

import ctypes
from collections.abc import Iterable

import pytest

from agent.collectors.base import Collector
from agent.collectors.clock import SETTLE_S, ClockCollector, ClockOptions
from agent.collectors.inventory import InventoryCollector
from agent.collectors.node import NodeCollector, NodeOptions
from agent.collectors.samples import Gpu, Sample
from agent.collectors.samples_node import (
    GpuCard,
    Inventory,
    LoadedModules,
    Memory,
    NicCard,
    Pressure,
    WallClock,
)
from agent.contract import kinds
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.shared import kernel_clock
from agent.sources.inventory import InventorySource, InventorySourceOptions
from agent.sources.node import NodeSource, NodeSourceOptions
from tests.agent.following import once
from tests.agent.golden import FIXTURES


def events_of(collector: Collector, samples: Iterable[Sample]) -> list[UnsentEvent]:
    unsent_events = [unsent for sample in samples for unsent in collector.feed(sample, 0.0)]
    for unsent in unsent_events:
        kinds.check(unsent)
        assert unsent.kind in collector.kinds
    return unsent_events


def loaded(*names: str) -> LoadedModules:
    return LoadedModules(loaded=frozenset(names))


@pytest.mark.parametrize(
    ("needed", "samples", "says"),
    [
        ((), [loaded()], []),  # never loaded, not required
        (("nvidia",), [loaded("nvidia")], []),
        (("nvidia", "rdma_cm"), [loaded("nvidia")], ["-rdma_cm"]),
        ((), [loaded("nvidia"), loaded()], ["-nvidia"]),
        ((), [loaded("nvidia"), loaded(), loaded()], ["-nvidia"]),
        ((), [loaded("nvidia"), loaded(), loaded("nvidia"), loaded()], ["-nvidia", "+nvidia", "-nvidia"]),
        (("rdma_cm",), [loaded(), loaded("rdma_cm")], ["-rdma_cm", "+rdma_cm"]),
    ],
)
def test_modules_that_are_missed(
    needed: tuple[str, ...], samples: list[LoadedModules], says: list[str]
) -> None:
    """Those that the operator requires, and those that were loaded."""
    unsent_events = events_of(NodeCollector(NodeOptions(kernel_modules=needed)), samples)
    assert [
        f"{'+' if unsent.data['loaded'] else '-'}{unsent.data['module']}" for unsent in unsent_events
    ] == says


def test_memory_and_pressure_have_a_hysteresis() -> None:
    """A value that wanders about the threshold is one event."""
    collector = NodeCollector(NodeOptions(memory_low_percent=2.0, memory_pressure_percent=10.0))
    shares = [50, 1.9, 2.5, 1.5, 2.9, 3.1, 2.1]
    memory = events_of(
        collector, [Memory(total_mb=100_000, available_mb=int(share * 1000)) for share in shares]
    )
    assert [(d.data["low"], d.data["available_mb"]) for d in memory] == [(True, 1900), (False, 3100)]
    waits = [0, 10, 7, 12, 5, 4.9, 9]
    pressure = events_of(
        collector, [Pressure(resource="memory", some_percent=50, full_percent=float(wait)) for wait in waits]
    )
    assert [(d.data["high"], d.data["full_percent"]) for d in pressure] == [(True, 10.0), (False, 4.9)]
    silent = NodeCollector(NodeOptions(memory_low_percent=0, memory_pressure_percent=0))
    assert events_of(silent, [Memory(total_mb=100, available_mb=0), Memory(total_mb=0, available_mb=0)]) == []
    assert events_of(silent, [Pressure(resource="memory", some_percent=99, full_percent=99)]) == []


def clock(at_s: float, *, sync: bool = True, offset_s: float = 0.0, ahead_s: float = 1e9) -> WallClock:
    return WallClock(synchronised=sync, offset_s=offset_s, max_error_s=0.01, ahead_s=ahead_s, mono_s=at_s)


def test_a_clock_that_is_not_synchronised_is_reported_after_a_while() -> None:
    """A time daemon that starts or restarts is no fact; a node without one is, once, and so is its return."""
    collector = ClockCollector(ClockOptions())
    assert (
        events_of(collector, [clock(0, sync=False), clock(SETTLE_S - 1, sync=False), clock(SETTLE_S)]) == []
    )
    ill = [clock(200 + n, sync=False) for n in range(0, 300, 10)]
    (reported,) = events_of(collector, ill)
    assert (reported.data["well"], reported.data["synchronised"]) == (False, False)
    (back,) = events_of(collector, [clock(600), clock(610)])
    assert back.data["well"] is True


def test_an_offset_counts_like_no_synchronisation() -> None:
    """The daemon runs and slews for minutes: far off all the same."""
    (reported,) = events_of(
        ClockCollector(ClockOptions(clock_offset_s=0.5)), [clock(n, offset_s=-0.7) for n in range(0, 200, 10)]
    )
    assert reported.data["offset_s"] == -0.7


def test_a_step_of_the_clock_is_reported_at_once() -> None:
    """Both ways, with its size; slewing is none."""
    samples = [
        clock(0),
        clock(10, ahead_s=1e9 + 0.01),
        clock(20, ahead_s=1e9 - 3599.99),
        clock(30, ahead_s=1e9),
    ]
    unsent_events = events_of(ClockCollector(ClockOptions()), samples)
    assert [(d.kind, d.data["step_s"]) for d in unsent_events] == [
        ("node.clock_step", -3600.0),
        ("node.clock_step", 3599.99),
    ]


async def test_this_machine_is_read() -> None:
    """Memory, modules and clock of the machine that the test runs on; adjtimex fills the structure we think it does."""
    assert ctypes.sizeof(kernel_clock._Timex) == 208  # struct timex on 64-bit Linux
    emitted = {
        type(sample).__name__: sample for sample in await once(NodeSource(Host(), NodeSourceOptions()))
    }
    memory, now = emitted["Memory"], emitted["WallClock"]
    assert isinstance(memory, Memory)
    assert 0 < memory.available_mb < memory.total_mb
    assert isinstance(now, WallClock)
    assert abs(now.offset_s) < 10
    assert 0 <= now.max_error_s < 100


GPU = GpuCard(bdf="0000:3b:00", model="NVIDIA H100", uuid="GPU-1", vbios="96.00", firmware="550.90")
NIC = NicCard(device="mlx5_0", model="MT4129", firmware="28.39", guid="a:1")


def inventory(
    *, driver: str = "550.90", gpu: GpuCard = GPU, nic: NicCard = NIC, memory_mb: int = 2_063_000
) -> Inventory:
    return Inventory(kernel="5.15", driver=driver, cpus=192, memory_mb=memory_mb, gpus=(gpu,), nics=(nic,))


def digest(now: Inventory) -> object:
    return events_of(InventoryCollector(), [now])[0].data["digest"]


def test_the_inventory_is_reported_at_start_and_on_change() -> None:
    """Whole at start; then only what changed, with what it was."""
    collector = InventoryCollector()
    assert [d.component for d in events_of(collector, [inventory(), inventory()])] == [
        "node",
        "gpu/0000:3b:00",
        "nic/mlx5_0",
    ]
    (node,) = events_of(collector, [inventory(driver="560.35")])
    assert (node.data["changed"], node.data["driver"]) == (True, "560.35")
    assert "driver 550.90 -> 560.35" in node.evidence
    swapped = GpuCard(bdf="0000:3b:00", model="NVIDIA H100", uuid="GPU-2", vbios="96.00", firmware="550.90")
    (gpu,) = events_of(collector, [inventory(driver="560.35", gpu=swapped)])
    assert (gpu.kind, gpu.evidence) == ("node.inventory.gpu", "uuid GPU-1 -> GPU-2")


def test_another_driver_after_a_reboot_is_a_change() -> None:
    """The agent has started again; while the driver is not loaded yet there is nothing to compare."""
    first = InventoryCollector()
    events_of(first, [inventory()])
    (same, *_) = events_of(InventoryCollector(before=first.remembered()), [inventory()])
    assert (same.data["changed"], same.evidence) == (False, "")
    after = InventoryCollector(before=first.remembered())
    booting, loaded = (
        d for d in events_of(after, [inventory(driver=""), inventory()]) if d.component == "node"
    )
    assert (booting.data["changed"], loaded.data["changed"]) == (False, False)
    upgraded = InventoryCollector(before=first.remembered())
    events_of(upgraded, [inventory(driver="")])
    (node,) = events_of(upgraded, [inventory(driver="560.35")])
    assert (node.data["changed"], upgraded.remembered()["driver"]) == (True, "560.35")


def test_equal_nodes_have_equal_digests() -> None:
    """What differs between equal nodes does not count; firmware and VBIOS do."""
    other = GpuCard(bdf="0000:5e:00", model="NVIDIA H100", uuid="GPU-9", vbios="96.00", firmware="550.90")
    assert digest(inventory()) == digest(inventory(gpu=other, memory_mb=2_063_100))
    older = NicCard(device="mlx5_0", model="MT4129", firmware="28.36", guid="a:1")
    flashed = GpuCard(bdf="0000:3b:00", model="NVIDIA H100", uuid="GPU-1", vbios="95.00", firmware="550.90")
    assert len({digest(inventory()), digest(inventory(nic=older)), digest(inventory(gpu=flashed))}) == 3


def test_nvml_fills_in_what_proc_does_not_know() -> None:
    """A GPU without a UUID in /proc gets it from NVML, and its serial number."""
    collector = InventoryCollector()
    events_of(collector, [inventory(gpu=GpuCard(bdf="0000:3b:00"))])
    sample = Gpu(index=0, bdf="0000:3b:00", uuid="GPU-7", serial="1653023018213")
    (gpu,) = events_of(collector, [sample, sample])
    assert (gpu.data["uuid"], gpu.data["serial"]) == ("GPU-7", "1653023018213")


async def test_a_recorded_inventory() -> None:
    """Models, addresses, firmware and interfaces; a GPU that was never opened has no UUID."""
    (sick,) = await once(
        InventorySource(Host(root=FIXTURES / "machines/node-in-trouble"), InventorySourceOptions())
    )
    assert isinstance(sick, Inventory)
    assert [(gpu.bdf, gpu.uuid[:8], gpu.vbios) for gpu in sick.gpus] == [
        ("0000:1b:00", "GPU-5c1b", "96.00.74.00.01"),
        ("0000:52:00", "", ""),
    ]
    assert (sick.driver, sick.cpus, sick.product) == ("550.90.07", 192, "G593-SD0-AAX1-000")
    assert (sick.nics[0].bdf, sick.nics[0].netdevs, sick.nics[4].firmware) == (
        "0000:18:00",
        "ib0:4092",
        "28.36.1010",
    )

"""What the agent's commands share: collectors as this machine and its configuration want them."""

from functools import partial

from agent.collectors import collectors
from agent.collectors.base import Collector
from agent.collectors.gpu_memory import GpuMemoryCollector
from agent.collectors.inventory import InventoryCollector
from agent.collectors.settings import Settings
from agent.config import AgentConfig
from agent.host import Host
from agent.last_known import LastKnown


def collectors_for(
    host: Host,
    config: AgentConfig,
    *,
    lost_before: frozenset[str] = frozenset(),
    known: LastKnown | None = None,
) -> list[Collector]:
    """Fresh collectors, which know this machine's NVIDIA driver, the GPUs that were lost before (LostGpus) and what else
    an earlier run knew.
    """
    found = collectors(
        Settings(
            driver=nvidia_driver(host),
            lost_before=lost_before,
            ecc_before=known.ecc if known else {},
            node_before=known.node if known else {},
            nics=nic_names(host),
            idle_window_s=config.idle_window_s,
            ib_exempt=config.ib_exempt,
            ib_expected_gbps=config.ib_expected_gbps,
            congestion_per_s=config.congestion_per_s,
            kernel_modules=config.kernel_modules,
            memory_low_percent=config.memory_low_percent,
            memory_pressure_percent=config.memory_pressure_percent,
            io_pressure_percent=config.io_pressure_percent,
            disk_full_percent=config.disk_full_percent,
            clock_offset_s=config.clock_offset_s,
            job_nan_loss=config.job_nan_loss,
        )
    )
    if known is None:
        return found
    for collector in found:
        if isinstance(collector, GpuMemoryCollector):
            known.ecc_now = partial(getattr, collector, "aggregates")
        elif isinstance(collector, InventoryCollector):
            known.node_now = partial(getattr, collector, "settled")
    return found


def nic_names(host: Host) -> dict[str, str]:
    """PCI address with the function → InfiniBand device, e.g. `0000:5e:00.0` → `mlx5_0`; drivers name the first."""
    names = {}
    for name in host.listdir("/sys/class/infiniband"):
        for line in host.read(f"/sys/class/infiniband/{name}/device/uevent").splitlines():
            if line.startswith("PCI_SLOT_NAME="):
                names[line.partition("=")[2]] = name
    return names


def nvidia_driver(host: Host) -> str:
    """The version of the loaded NVIDIA driver, e.g. `580.82.07`; empty where there is none."""
    for word in host.read("/proc/driver/nvidia/version").partition("\n")[0].split():
        if word[:1].isdigit() and "." in word:
            return word
    return ""

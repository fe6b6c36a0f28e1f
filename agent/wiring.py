"""What the agent's commands share: collectors as this machine and its configuration want them."""

from agent.collectors import collectors
from agent.collectors.base import Collector
from agent.collectors.settings import Settings
from agent.config import AgentConfig
from agent.host import Host


def collectors_for(
    host: Host, config: AgentConfig, *, lost_before: frozenset[str] = frozenset()
) -> list[Collector]:
    """Fresh collectors, which know this machine's NVIDIA driver and the GPUs that were lost before (LostGpus)."""
    return collectors(
        Settings(
            driver=nvidia_driver(host),
            lost_before=lost_before,
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

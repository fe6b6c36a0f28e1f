"""What the agent's commands share: collectors as this machine and its configuration want them."""

from agent.collectors import collectors
from agent.collectors.base import Collector
from agent.collectors.settings import Settings
from agent.config import AgentConfig
from agent.host import Host


def collectors_for(host: Host, config: AgentConfig) -> list[Collector]:
    """Fresh collectors, which know this machine's NVIDIA driver."""
    return collectors(
        Settings(driver=nvidia_driver(host), idle_window_s=config.idle_window_s, nics=nic_names(host))
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

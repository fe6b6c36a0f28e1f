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
    settings = Settings(
        driver=nvidia_driver(host), idle_window_s=config.idle_window_s, lost_before=lost_before
    )
    return collectors(settings)


def nvidia_driver(host: Host) -> str:
    """The version of the loaded NVIDIA driver, e.g. `580.82.07`; empty where there is none."""
    for word in host.read("/proc/driver/nvidia/version").partition("\n")[0].split():
        if word[:1].isdigit() and "." in word:
            return word
    return ""

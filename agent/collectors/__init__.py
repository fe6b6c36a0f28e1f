"""All collectors. Pure: samples in, events out. A new one is one file here, and its entry in `COLLECTORS`; or in `RARE`, if what
it reads is off until a site sets an option.
"""

from collections.abc import Container, Mapping
from importlib import import_module
from typing import cast

from agent.collectors.agent_health import AgentHealthCollector
from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.bond import BondCollector
from agent.collectors.clock import ClockCollector
from agent.collectors.device import DeviceCollector
from agent.collectors.gpu import GpuCollector
from agent.collectors.gpu_heat import GpuHeatCollector
from agent.collectors.gpu_links import GpuLinksCollector
from agent.collectors.gpu_memory import GpuMemoryCollector
from agent.collectors.gpu_minute import GpuMinuteCollector
from agent.collectors.gpu_peer_links import GpuPeerLinksCollector
from agent.collectors.gpu_power import GpuPowerCollector
from agent.collectors.gpu_state import GpuStateCollector
from agent.collectors.gpu_use import GpuUseCollector
from agent.collectors.holders import HoldersCollector
from agent.collectors.ibrate import IbRateCollector
from agent.collectors.infiniband import InfinibandCollector
from agent.collectors.inventory import InventoryCollector
from agent.collectors.joblog import JobLogCollector
from agent.collectors.kernel_lines import KernelLinesCollector
from agent.collectors.link import LinkCollector
from agent.collectors.mount import MountCollector
from agent.collectors.nic import NicCollector
from agent.collectors.node import NodeCollector
from agent.collectors.npu_fault import NpuFaultCollector
from agent.collectors.nvme import NvmeCollector
from agent.collectors.optics import OpticsCollector
from agent.collectors.service import ServiceCollector
from agent.collectors.stuck import StuckCollector
from agent.collectors.subnet import SubnetCollector
from agent.collectors.xid import XidCollector

# In the order in which they are given a sample.
COLLECTORS: tuple[type[Collector], ...] = (
    XidCollector,
    KernelLinesCollector,
    GpuCollector,
    StuckCollector,
    HoldersCollector,
    GpuUseCollector,
    GpuMemoryCollector,
    GpuHeatCollector,
    GpuPowerCollector,
    GpuMinuteCollector,
    GpuPeerLinksCollector,
    NpuFaultCollector,
    GpuLinksCollector,
    GpuStateCollector,
    InfinibandCollector,
    IbRateCollector,
    SubnetCollector,
    NicCollector,
    BondCollector,
    LinkCollector,
    DeviceCollector,
    ServiceCollector,
    JobLogCollector,
    NodeCollector,
    MountCollector,
    NvmeCollector,
    OpticsCollector,
    ClockCollector,
    InventoryCollector,
    AgentHealthCollector,
)


# Option → module here and its class. Imported only where the option is set, as the agent must stay small; the last ones.
RARE: Mapping[str, tuple[str, str]] = {
    "traffic_interval_s": ("traffic", "TrafficCollector"),
    "storage_interval_s": ("storage", "StorageCollector"),
    "settings_interval_s": ("settings", "SettingsCollector"),
    "dcgm_interval_s": ("dcgm", "DcgmCollector"),
    "probe_hosts": ("probes", "ProbeCollector"),
}


def every_collector() -> tuple[type[Collector], ...]:
    """Those of `COLLECTORS`, and all of `RARE`."""
    return collectors_with(RARE)


def collectors_with(keys: Container[str]) -> tuple[type[Collector], ...]:
    """Those of `COLLECTORS`, and of `RARE` those whose option is among the keys that are set."""
    wanted = (where for key, where in RARE.items() if key in keys)
    rare = (getattr(import_module(f"agent.collectors.{module}"), name) for module, name in wanted)
    return (*COLLECTORS, *(cast(type[Collector], one) for one in rare))


def collectors(setup: CollectorSetup | None = None) -> list[Collector]:
    """Fresh ones, each with an empty memory, in the order of `COLLECTORS`; those of `RARE` where their option is set."""
    setup = setup or CollectorSetup()
    return [collector.of(setup) for collector in collectors_with(setup.values)]

"""All collectors. Pure: samples in, events out. A new one is one file here, and its entry in `COLLECTORS`."""

from agent.collectors.agent_health import AgentHealthCollector
from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.bond import BondCollector
from agent.collectors.clock import ClockCollector
from agent.collectors.dcgm import DcgmCollector
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
from agent.collectors.probes import ProbeCollector
from agent.collectors.service import ServiceCollector
from agent.collectors.settings import SettingsCollector
from agent.collectors.storage import StorageCollector
from agent.collectors.stuck import StuckCollector
from agent.collectors.subnet import SubnetCollector
from agent.collectors.traffic import TrafficCollector
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
    DcgmCollector,
    GpuLinksCollector,
    GpuStateCollector,
    InfinibandCollector,
    IbRateCollector,
    SubnetCollector,
    NicCollector,
    TrafficCollector,
    BondCollector,
    LinkCollector,
    DeviceCollector,
    ServiceCollector,
    JobLogCollector,
    NodeCollector,
    MountCollector,
    StorageCollector,
    NvmeCollector,
    OpticsCollector,
    ProbeCollector,
    ClockCollector,
    InventoryCollector,
    SettingsCollector,
    AgentHealthCollector,
)


def collectors(setup: CollectorSetup | None = None) -> list[Collector]:
    """Fresh ones, each with an empty memory, in the order of `COLLECTORS`."""
    setup = setup or CollectorSetup()
    return [collector.of(setup) for collector in COLLECTORS]

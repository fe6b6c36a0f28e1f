"""All collectors, by name. Pure: readings in, drafts of events out. A new one is one line in `collectors`."""

from agent.collectors.agent_health import AgentHealthCollector
from agent.collectors.base import Collector
from agent.collectors.bond import BondCollector
from agent.collectors.clock import ClockCollector
from agent.collectors.device import DeviceCollector
from agent.collectors.gpu import GpuCollector
from agent.collectors.gpu_heat import GpuHeatCollector
from agent.collectors.gpu_links import GpuLinksCollector
from agent.collectors.gpu_memory import GpuMemoryCollector
from agent.collectors.gpu_state import GpuStateCollector
from agent.collectors.gpu_use import GpuUseCollector
from agent.collectors.ibrate import IbRateCollector
from agent.collectors.infiniband import InfinibandCollector
from agent.collectors.inventory import InventoryCollector
from agent.collectors.joblog import JobLogCollector
from agent.collectors.kernel_lines import KernelLinesCollector
from agent.collectors.link import LinkCollector
from agent.collectors.mount import MountCollector
from agent.collectors.nic import NicCollector
from agent.collectors.node import NodeCollector
from agent.collectors.service import ServiceCollector
from agent.collectors.settings import Settings
from agent.collectors.stuck import StuckCollector
from agent.collectors.subnet import SubnetCollector
from agent.collectors.xid import XidCollector


def collectors(settings: Settings | None = None) -> list[Collector]:
    """Fresh ones, each with an empty memory, in the order in which they get a reading."""
    settings = settings or Settings()
    return [
        XidCollector(driver=settings.driver, burst_s=settings.burst_s),
        KernelLinesCollector(burst_s=settings.burst_s, nics=settings.nics),
        GpuCollector(lost_before=settings.lost_before),
        StuckCollector(idle_window_s=settings.idle_window_s),
        GpuUseCollector(idle_window_s=settings.idle_window_s),
        GpuMemoryCollector(ecc_before=settings.ecc_before),
        GpuHeatCollector(),
        GpuLinksCollector(),
        GpuStateCollector(),
        InfinibandCollector(congestion_per_s=settings.congestion_per_s),
        IbRateCollector(expected_gbps=settings.ib_expected_gbps, exempt=settings.ib_exempt),
        SubnetCollector(),
        NicCollector(congestion_per_s=settings.congestion_per_s),
        BondCollector(),
        LinkCollector(),
        DeviceCollector(),
        ServiceCollector(),
        JobLogCollector(nan_loss=settings.job_nan_loss),
        NodeCollector(
            needed_modules=settings.kernel_modules,
            memory_low_percent=settings.memory_low_percent,
            memory_pressure_percent=settings.memory_pressure_percent,
            io_pressure_percent=settings.io_pressure_percent,
        ),
        MountCollector(full_percent=settings.disk_full_percent),
        ClockCollector(offset_s=settings.clock_offset_s),
        InventoryCollector(before=settings.node_before),
        AgentHealthCollector(),
    ]

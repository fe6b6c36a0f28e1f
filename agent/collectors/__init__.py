"""All collectors, by name. Pure: readings in, drafts of events out. A new one is one line in `collectors`."""

from agent.collectors.agent_health import AgentHealthCollector
from agent.collectors.base import Collector
from agent.collectors.device import DeviceCollector
from agent.collectors.gpu import GpuCollector
from agent.collectors.infiniband import InfinibandCollector
from agent.collectors.joblog import JobLogCollector
from agent.collectors.kernel_lines import KernelLinesCollector
from agent.collectors.link import LinkCollector
from agent.collectors.service import ServiceCollector
from agent.collectors.settings import Settings
from agent.collectors.stuck import StuckCollector
from agent.collectors.xid import XidCollector


def collectors(settings: Settings | None = None) -> list[Collector]:
    """Fresh ones, each with an empty memory, in the order in which they get a reading."""
    settings = settings or Settings()
    return [
        XidCollector(driver=settings.driver, burst_s=settings.burst_s),
        KernelLinesCollector(burst_s=settings.burst_s, nics=settings.nics),
        GpuCollector(),
        StuckCollector(idle_window_s=settings.idle_window_s),
        InfinibandCollector(),
        LinkCollector(),
        DeviceCollector(),
        ServiceCollector(),
        JobLogCollector(),
        AgentHealthCollector(),
    ]

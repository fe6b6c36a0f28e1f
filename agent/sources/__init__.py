"""All sources, by name. A new one is one line in `sources` and one in `source_types`.

Modules are imported where they are used: a node whose agent watches no systemd unit carries no D-Bus library.
"""

from agent.config import AgentConfig
from agent.host import Host
from agent.sources.base import Source

NVSWITCHES = "/dev/nvidia-nvswitchctl"  # made by the driver where there are NVSwitches


def sources(host: Host, config: AgentConfig, *, kmsg_start: tuple[str, int] | None = None) -> list[Source]:
    """The sources of a machine. `kmsg_start`: where the last run ended in the kernel log (KmsgSource)."""
    from agent.sources.infiniband import InfinibandSource
    from agent.sources.kmsg import KmsgSource
    from agent.sources.netlink import NetlinkSource
    from agent.sources.nvml import NvmlSource, Timing
    from agent.sources.udev import UdevSource

    found: list[Source] = [
        KmsgSource(host, start=kmsg_start, facilities=frozenset(config.kmsg_facilities)),
        UdevSource(host),
        NetlinkSource(host),
        InfinibandSource(host, period_s=config.ib_interval_s),
        NvmlSource(host, timing=Timing(interval_s=config.nvml_interval_s)),
    ]
    if config.services:
        from agent.sources.systemd import SystemdSource

        found.append(SystemdSource(host, units=config.services, bus_address=config.dbus_address))
    if config.job_logs:
        from agent.collectors.joblog import MARKERS
        from agent.sources.joblog import JobLogSource

        pattern = config.job_id_pattern
        found.append(JobLogSource(host, globs=config.job_logs, job_pattern=pattern, markers=MARKERS))
    log = config.fabric_manager_log
    if log and (host.path(NVSWITCHES).exists() or host.path(log).exists()):
        from agent.sources.fabric_manager import FabricManagerSource

        found.append(FabricManagerSource(host, path=log))
    return found


def source_types() -> list[type[Source]]:
    """Every source that there is, for `gpuward-agent list`."""
    from agent.sources.fabric_manager import FabricManagerSource
    from agent.sources.infiniband import InfinibandSource
    from agent.sources.joblog import JobLogSource
    from agent.sources.kmsg import KmsgSource
    from agent.sources.netlink import NetlinkSource
    from agent.sources.nvml import NvmlSource
    from agent.sources.systemd import SystemdSource
    from agent.sources.udev import UdevSource

    return [
        KmsgSource,
        UdevSource,
        NetlinkSource,
        InfinibandSource,
        NvmlSource,
        SystemdSource,
        JobLogSource,
        FabricManagerSource,
    ]

"""All sources, by name. A new one is one line in `sources` and one in `source_types`.

Modules are imported where they are used: a node whose agent watches no systemd unit carries no D-Bus library.
"""

from collections.abc import Callable, Mapping

from agent.collectors.joblog import MARKERS, NAN_MARKERS
from agent.config import AgentConfig
from agent.host import Host
from agent.nvml_pause import NvmlPause
from agent.sources.base import Source

NVSWITCHES = "/dev/nvidia-nvswitchctl"  # made by the driver where there are NVSwitches
SMINFO = "sminfo"  # of infiniband-diags
_UNIT_PATHS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)


def sources(
    host: Host,
    config: AgentConfig,
    *,
    kmsg_start: tuple[str, int] | None = None,
    marks: Callable[[str], Mapping[str, str]] = lambda _: {},
    pause: NvmlPause | None = None,
) -> list[Source]:
    """The sources of a machine. `kmsg_start`: where the last run ended in the kernel log (KmsgSource); `marks`: and in
    what else it read, by the beginning of the keys (Mark); `pause`: by which actions get the driver to themselves.
    """
    from agent.sources.bond import BondSource
    from agent.sources.infiniband import InfinibandSource
    from agent.sources.inventory import InventorySource
    from agent.sources.kmsg import KmsgSource
    from agent.sources.mounts import MountSource
    from agent.sources.netlink import NetlinkSource
    from agent.sources.nic import NicSource
    from agent.sources.node import NodeSource
    from agent.sources.nvml import NvmlSource
    from agent.sources.nvml_process import Timing
    from agent.sources.udev import UdevSource

    found: list[Source] = [
        KmsgSource(host, start=kmsg_start, facilities=frozenset(config.kmsg_facilities)),
        UdevSource(host),
        NetlinkSource(host),
        InfinibandSource(host, period_s=config.ib_interval_s, root=config.ib_root),
        NicSource(host, links=config.nic_links, ib_root=config.ib_root, period_s=config.nic_interval_s),
        BondSource(host),
        NodeSource(host, modules=config.kernel_modules, period_s=config.node_interval_s),
        MountSource(
            host,
            expected=config.mounts,
            period_s=config.mount_interval_s,
            deadline_s=config.mount_deadline_s,
        ),
        InventorySource(host, ib_root=config.ib_root, period_s=config.inventory_interval_s),
        NvmlSource(
            host,
            timing=Timing(interval_s=config.nvml_interval_s),
            expected=config.expected_gpus,
            pause=pause,
        ),
    ]
    if units := (*config.services, *installed(host, config.watch_services)):
        from agent.sources.systemd import SystemdSource

        found.append(SystemdSource(host, units=tuple(dict.fromkeys(units)), bus_address=config.dbus_address))
    markers = (*MARKERS, *(NAN_MARKERS if config.job_nan_loss else ()))
    if config.job_logs:
        from agent.sources.joblog import JobLogSource

        pattern = config.job_id_pattern
        found.append(
            JobLogSource(
                host,
                globs=config.job_logs,
                job_pattern=pattern,
                markers=markers,
                marks=marks(f"{JobLogSource.name} "),
            )
        )
    if config.journal_units:
        from agent.sources.journal import JournalSource

        field = config.journal_job_field
        found.append(
            JournalSource(
                host,
                units=config.journal_units,
                job_field=field,
                markers=markers,
                marks=marks(JournalSource.name),
            )
        )
    if host.live and config.sm_interval_s and (config.ib_tools / SMINFO).exists():
        from agent.sources.subnet import SubnetSource

        found.append(
            SubnetSource(host, tools=config.ib_tools, period_s=config.sm_interval_s, root=config.ib_root)
        )
    log = config.fabric_manager_log
    if log and (host.path(NVSWITCHES).exists() or host.path(log).exists()):
        from agent.sources.fabric_manager import FabricManagerSource

        found.append(FabricManagerSource(host, path=log, marks=marks(f"{FabricManagerSource.name} ")))
    return found


def installed(host: Host, units: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `units` that this machine has, where systemd runs it: the others cannot fail."""
    if not host.live or not host.path("/run/systemd/system").is_dir():  # as sd_booted(3)
        return ()
    full = (unit if "." in unit else f"{unit}.service" for unit in units)
    return tuple(unit for unit in full if any(host.path(f"{path}/{unit}").exists() for path in _UNIT_PATHS))


def source_types() -> list[type[Source]]:
    """Every source that there is, for `gpuward-agent list`."""
    from agent.sources.bond import BondSource
    from agent.sources.fabric_manager import FabricManagerSource
    from agent.sources.infiniband import InfinibandSource
    from agent.sources.inventory import InventorySource
    from agent.sources.joblog import JobLogSource
    from agent.sources.journal import JournalSource
    from agent.sources.kmsg import KmsgSource
    from agent.sources.mounts import MountSource
    from agent.sources.netlink import NetlinkSource
    from agent.sources.nic import NicSource
    from agent.sources.node import NodeSource
    from agent.sources.nvml import NvmlSource
    from agent.sources.subnet import SubnetSource
    from agent.sources.systemd import SystemdSource
    from agent.sources.udev import UdevSource

    return [
        *(KmsgSource, UdevSource, NetlinkSource, InfinibandSource, NicSource, BondSource, NodeSource),
        *(MountSource, InventorySource, NvmlSource, SystemdSource, JobLogSource, JournalSource),
        *(FabricManagerSource, SubnetSource),
    ]

"""All sources. A new one is one file here, and its entry in `SOURCES`; or in `RARE`, if it is off until a site sets an option."""

from collections.abc import Container, Mapping
from importlib import import_module
from typing import cast

from agent.sources.amdgpu import AmdgpuSource
from agent.sources.ascend import AscendSource
from agent.sources.base import Source, SourceSetup
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
from agent.sources.nvme import NvmeSource
from agent.sources.nvml import NvmlSource
from agent.sources.optics import OpticsSource
from agent.sources.power_caps import PowerCapSource
from agent.sources.subnet import SubnetSource
from agent.sources.systemd import SystemdSource
from agent.sources.udev import UdevSource

# In the order in which they are started.
SOURCES: tuple[type[Source], ...] = (
    KmsgSource,
    UdevSource,
    NetlinkSource,
    InfinibandSource,
    NicSource,
    BondSource,
    NodeSource,
    MountSource,
    NvmeSource,
    OpticsSource,
    InventorySource,
    NvmlSource,
    AmdgpuSource,
    AscendSource,
    PowerCapSource,
    SystemdSource,
    JobLogSource,
    JournalSource,
    SubnetSource,
    FabricManagerSource,
)


# Option → module here and its class. Imported only where the option is set, as the agent must stay small; the last ones.
RARE: Mapping[str, tuple[str, str]] = {
    "traffic_interval_s": ("traffic", "TrafficSource"),
    "storage_interval_s": ("storage", "StorageSource"),
    "settings_interval_s": ("settings", "SettingsSource"),
    "dcgm_interval_s": ("dcgm", "DcgmSource"),
    "probe_hosts": ("probes", "ProbeSource"),
}


def every_source() -> tuple[type[Source], ...]:
    """Those of `SOURCES`, and all of `RARE`."""
    return sources_with(RARE)


def sources_with(keys: Container[str]) -> tuple[type[Source], ...]:
    """Those of `SOURCES`, and of `RARE` those whose option is among the keys that are set."""
    wanted = (where for key, where in RARE.items() if key in keys)
    rare = (getattr(import_module(f"agent.sources.{module}"), name) for module, name in wanted)
    return (*SOURCES, *(cast(type[Source], one) for one in rare))


def sources(setup: SourceSetup) -> list[Source]:
    """The sources that this machine and its configuration have a use for."""
    return [source for one in sources_with(setup.config.plugins) if (source := one.of(setup)) is not None]

"""All sources. A new one is one file here, and its entry in `SOURCES`."""

from agent.sources.amdgpu import AmdgpuSource
from agent.sources.ascend import AscendSource
from agent.sources.base import Source, SourceSetup
from agent.sources.bond import BondSource
from agent.sources.dcgm import DcgmSource
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
from agent.sources.probes import ProbeSource
from agent.sources.settings import SettingsSource
from agent.sources.storage import StorageSource
from agent.sources.subnet import SubnetSource
from agent.sources.systemd import SystemdSource
from agent.sources.traffic import TrafficSource
from agent.sources.udev import UdevSource

# In the order in which they are started.
SOURCES: tuple[type[Source], ...] = (
    KmsgSource,
    UdevSource,
    NetlinkSource,
    InfinibandSource,
    NicSource,
    TrafficSource,
    BondSource,
    NodeSource,
    MountSource,
    StorageSource,
    NvmeSource,
    OpticsSource,
    InventorySource,
    SettingsSource,
    NvmlSource,
    AmdgpuSource,
    AscendSource,
    PowerCapSource,
    SystemdSource,
    JobLogSource,
    JournalSource,
    SubnetSource,
    FabricManagerSource,
    DcgmSource,
    ProbeSource,
)


def sources(setup: SourceSetup) -> list[Source]:
    """The sources that this machine and its configuration have a use for."""
    return [source for one in SOURCES if (source := one.of(setup)) is not None]

"""Samples of the node itself: bonds, interface counters, modules, pressure, mounts, clock, inventory. No I/O here.

A part of agent.collectors.samples, which lists them all.
"""

from dataclasses import dataclass

from agent.contract.optics_module import OpticsModule
from agent.contract.smart_log import SmartLog


@dataclass(frozen=True, slots=True, kw_only=True)
class BondSlave:
    """One member of a bond."""

    name: str
    # MII status.
    up: bool
    # Link failure count since it joined.
    failures: int = 0
    # 802.3ad aggregator id.
    aggregator: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bond:
    """One look at /proc/net/bonding/<name>."""

    name: str
    # `fault-tolerance (active-backup)` | `IEEE 802.3ad Dynamic link aggregation` | ...
    mode: str
    # MII status of the bond.
    up: bool = True
    # Active slave; empty: none, or a mode without one.
    active: str = ""
    # 802.3ad: MAC of the LACP partner, all zeros when none answers; empty in other modes.
    partner: str = ""
    # 802.3ad: id of the active aggregator.
    aggregator: str = ""
    slaves: tuple[BondSlave, ...] = ()
    removed: bool = False
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NicCounters:
    """Counters of one network interface, from its driver (ethtool)."""

    name: str
    # Only those that agent.collectors.nic names.
    counters: dict[str, int]
    # Priorities with flow control (PFC), 0 to 7; None: the driver does not tell.
    lossless: frozenset[int] | None = None
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModules:
    """Which of the watched kernel modules are loaded."""

    loaded: frozenset[str]
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Main memory, MiB."""

    total_mb: int
    available_mb: int
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """Pressure stall information of one resource: share of the last 60 s in which tasks waited for it, %."""

    # memory | io
    resource: str
    # At least one task waited.
    some_percent: float
    # All tasks waited.
    full_percent: float
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One mounted file system. Sizes are 0 where they are not known."""

    path: str
    fstype: str
    # On a file server.
    remote: bool
    # ok | hung | error | gone (it is expected, and not mounted)
    state: str
    # Of an error.
    reason: str = ""
    # Since the query began, when it hangs.
    waited_s: float = 0.0
    total_bytes: int = 0
    # For ordinary users.
    free_bytes: int = 0
    # Inodes; 0: this file system does not count them.
    files: int = 0
    files_free: int = 0
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WallClock:
    """The wall clock as the kernel disciplines it (adjtimex)."""

    synchronised: bool
    # What the kernel is still slewing away.
    offset_s: float
    max_error_s: float
    # Wall clock minus monotonic clock: jumps when the clock is set.
    ahead_s: float
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NpuFaults:
    """Which fault codes an Ascend NPU has now."""

    # `0000:c1:00`
    bdf: str
    # By which its tools name it; -1: not known.
    index: int = -1
    # OK | Warning | Alarm | Critical | UNKNOWN
    health: str
    # Eight hexadecimal digits each; None: it is not well, and the tool did not say why.
    codes: tuple[str, ...] | None = ()
    # What the tool says of the first of them.
    said: str = ""
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolState:
    """A vendor's tool did not end in time and was killed, or has ended in time again."""

    # npu-smi | hccn_tool
    tool: str
    # hung | answers
    state: str
    args: str = ""
    waited_s: float = 0.0
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DcgmFinding:
    """One error that DCGM's health check shows (agent/contract/dcgm_errors.py)."""

    # Address of the GPU, `0000:3b:00`; empty: it is of another entity, or DCGM does not say where its GPU is.
    bdf: str
    # `GPU 3`, `Switch 0`, by DCGM's numbers; empty: of a whole group.
    entity: str
    system: str
    failed: bool
    code: int
    name: str
    told_by: str
    # 0: it is no XID.
    xid: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DcgmHealth:
    """All that DCGM's health check shows now."""

    findings: tuple[DcgmFinding, ...] = ()
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCard:
    """A GPU as the PCI bus and the driver know it. Empty: not known."""

    # `0000:3b:00`
    bdf: str
    model: str = ""
    uuid: str = ""
    vbios: str = ""
    firmware: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NicCard:
    """An InfiniBand or RoCE device. Empty: not known."""

    # `mlx5_0`
    device: str
    # hca_type, e.g. MT4129.
    model: str = ""
    # PSID.
    board: str = ""
    firmware: str = ""
    guid: str = ""
    bdf: str = ""
    # Its interfaces with their MTU: `eth2:9000`.
    netdevs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What the node is made of."""

    kernel: str
    # NVIDIA; empty: none.
    driver: str
    cpus: int
    memory_mb: int
    # Of the DMI table.
    product: str = ""
    bios: str = ""
    gpus: tuple[GpuCard, ...] = ()
    nics: tuple[NicCard, ...] = ()
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmeHealth:
    """What one NVMe controller says of its disk. Texts are empty where they are not known."""

    # `nvme0`
    name: str
    # None: it has not answered for `waited_s`.
    log: SmartLog | None
    waited_s: float = 0.0
    model: str = ""
    serial: str = ""
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Optics:
    """What the pluggable module of one network interface is, and says of itself."""

    # `eth2`
    link: str
    module: OpticsModule
    # `mlx5_2.1`, where the interface belongs to a port of RDMA; else empty.
    port: str = ""
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """How the node is set up, as texts that are equal on equal nodes. Empty: not known."""

    # Parameters of the kernel that matter.
    boot: str = ""
    # What the BIOS and the boot have set of processors and memory.
    processors: str = ""
    # Options of the file systems of /etc/fstab.
    mounts: str = ""
    # RDMA devices: model, NUMA node, flow control.
    rdma: str = ""
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """How many bytes a port or an interface has carried since it is there."""

    # `port/mlx5_0.1`, `link/eth2`
    component: str
    rate_gbps: float
    received_bytes: int
    sent_bytes: int
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTime:
    """How long requests to a file server took, summed up since it was mounted."""

    path: str
    fstype: str
    requests: int
    waited_ms: float
    # `OST0003`, where targets are told apart.
    target: str = ""
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageTarget:
    """How full one target of a shared file system is."""

    path: str
    target: str
    total_kb: int
    free_kb: int
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerProbes:
    """What became of the packets of one round to one peer."""

    # Its node.
    peer: str
    # It is on the same leaf switch.
    near: bool
    sent: int
    # Of each that was answered, its time on the way there and back.
    times_us: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRound:
    """One round of probes from one address of this node."""

    # `eth2`
    link: str
    address: str
    peers: tuple[PeerProbes, ...]
    mono_s: float = 0.0


NodeSample = (
    Bond
    | NicCounters
    | LoadedModules
    | Memory
    | Pressure
    | Mount
    | WallClock
    | Inventory
    | NodeSettings
    | ServerTime
    | StorageTarget
    | Traffic
    | NvmeHealth
    | Optics
    | NpuFaults
    | ToolState
    | DcgmHealth
    | ProbeRound
)

"""Readings of the node itself: bonds, interface counters, modules, pressure, mounts, clock, inventory. No I/O here.

A part of agent.collectors.readings, which lists them all.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class BondSlave:
    """One member of a bond."""

    name: str
    up: bool  # MII status
    failures: int = 0  # link failure count since it joined
    aggregator: str = ""  # 802.3ad aggregator id


@dataclass(frozen=True, slots=True, kw_only=True)
class Bond:
    """One reading of /proc/net/bonding/<name>."""

    name: str
    mode: str  # `fault-tolerance (active-backup)` | `IEEE 802.3ad Dynamic link aggregation` | ...
    up: bool = True  # MII status of the bond
    active: str = ""  # active slave; empty: none, or a mode without one
    partner: str = ""  # 802.3ad: MAC of the LACP partner, all zeros when none answers; empty in other modes
    aggregator: str = ""  # 802.3ad: id of the active aggregator
    slaves: tuple[BondSlave, ...] = ()
    removed: bool = False
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NicCounters:
    """Counters of one network interface, from its driver (ethtool)."""

    name: str
    counters: dict[str, int]  # only those that agent.collectors.nic names
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Modules:
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

    resource: str  # memory | io
    some_percent: float  # at least one task waited
    full_percent: float  # all tasks waited
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One mounted file system. Sizes are 0 where they are not known."""

    path: str
    fstype: str
    remote: bool  # on a file server
    state: str  # ok | hung | error | gone (it is expected, and not mounted)
    reason: str = ""  # of an error
    waited_s: float = 0.0  # since it was asked, when it is hung
    total_bytes: int = 0
    free_bytes: int = 0  # for ordinary users
    files: int = 0  # inodes; 0: this file system does not count them
    files_free: int = 0
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The wall clock as the kernel disciplines it (adjtimex)."""

    synchronised: bool
    offset_s: float  # that the kernel is still slewing away
    max_error_s: float
    ahead_s: float  # wall clock minus monotonic clock: jumps when somebody sets the clock
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCard:
    """A GPU as the PCI bus and the driver know it. Empty: not known."""

    bdf: str  # `0000:3b:00`
    model: str = ""
    uuid: str = ""
    vbios: str = ""
    firmware: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NicCard:
    """An InfiniBand or RoCE device. Empty: not known."""

    device: str  # `mlx5_0`
    model: str = ""  # hca_type, e.g. MT4129
    board: str = ""  # PSID
    firmware: str = ""
    guid: str = ""
    bdf: str = ""
    netdevs: str = ""  # its interfaces with their MTU, `eth2:9000`


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What the node is made of."""

    kernel: str
    driver: str  # NVIDIA; empty: none
    cpus: int
    memory_mb: int
    product: str = ""  # of the DMI table
    bios: str = ""
    gpus: tuple[GpuCard, ...] = ()
    nics: tuple[NicCard, ...] = field(default=())
    mono_s: float = 0.0


NodeReading = Bond | NicCounters | Modules | Memory | Pressure | Mount | Clock | Inventory

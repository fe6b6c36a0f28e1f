"""What sources hand to collectors: one frozen value for each kind of reading. No I/O here.

`mono_s` is the node's monotonic clock at which the fact came about, where the source knows it (the kernel log
does), else at which it was read; the agent computes an event's age from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.collectors.readings_node import NodeReading as NodeReading
from agent.contract.kernel_text import Line as Line  # the brain reads kernel logs too


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun:
    """The kernel overwrote records before they were read."""

    lost: int
    mono_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A kernel uevent."""

    change: str  # add | remove | change | bind | unbind | move
    subsystem: str  # pci | net | infiniband | block
    sysname: str  # `0000:3b:00.0` | `eth0` | `mlx5_0` | `nvme0n1`
    pci_class: int = 0  # e.g. 0x030200 (3D controller); 0 when not known
    vendor: int = 0  # PCI vendor, 0x10de is NVIDIA; 0 when not known
    driver: str = ""
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """State of a network interface, from rtnetlink (RTM_NEWLINK, RTM_DELLINK) or /sys/class/net."""

    name: str
    admin_up: bool
    carrier: bool
    operstate: str  # up | down | dormant | lowerlayerdown | unknown | ...
    kind: str = ""  # veth | bond | ...; empty for hardware
    slave: bool = False  # of a bond (IFF_SLAVE)
    mtu: int = 0  # bytes; 0: not known
    carrier_changes: int | None = None  # since the interface came to be; None: not known
    removed: bool = False
    first: bool = False  # part of the dump at start, not a change
    before: str = ""  # its former name, when this reading says that it was renamed
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IbPort:
    """One reading of a port under /sys/class/infiniband."""

    device: str
    port: int
    state: str  # ACTIVE ...
    phys_state: str  # LinkUp ...
    rate: str
    lid: int
    sm_lid: int
    link_layer: str  # InfiniBand | Ethernet
    model: str = ""  # hca_type, e.g. MT4129: what like cards have in common
    sm_sl: int = 0  # service level to the subnet manager
    congestion: dict[str, int] = field(default_factory=dict)  # as `counters`; read more seldom
    congestion_s: float = 0.0  # when it was read
    counters: dict[str, int] = field(
        default_factory=dict
    )  # file name -> value; unreadable or "N/A" ones left out
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IbDevices:
    """Which InfiniBand devices there are now."""

    names: tuple[str, ...]
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SmAnswer:
    """What the subnet manager that a port knows answered to a question."""

    device: str
    port: int
    sm_lid: int
    state: str  # MASTER | STANDBY | DISCOVERING | NOTACTIVE; empty: no answer
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that holds a GPU."""

    pid: int
    memory_mb: int
    name: str = ""
    job: str = ""  # Slurm job id or Kubernetes pod, from its cgroup or environment
    unit: str = ""  # systemd unit, from its cgroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One NVML sample of a GPU. None: this driver or card does not say it."""

    index: int
    bdf: str  # `0000:3b:00`
    uuid: str
    serial: str = ""  # of the board; empty: not known
    lost: str = ""  # "" when it answers, else lost | not_found | reset_required
    utilization: int | None = None  # %
    memory_used_mb: int | None = None
    power_w: float | None = None
    temperature_c: int | None = None
    slowdowns: int | None = None  # nvmlClocksEventReasons
    processes: tuple[GpuProcess, ...] = ()
    holders_known: bool = True  # False: NVML does not say which processes there are
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHealth:
    """All that NVML says of a GPU beside Gpu, said again when any of it changed. What it does not say is left out.

    Counters: `ecc.<volatile|aggregate>.<corrected|uncorrected>.<total|dram|sram|l1|l2|register|texture|cbu>`,
    `remap.corrected|uncorrected` (rows), `remap.banks_max|high|partial|low|none` (spare rows left, in banks),
    `retired.single_bit|double_bit` (pages), `pcie.replay|correctable|fatal|...`, `nvlink.<link>.replay|receive|...`
    (`nvlink.all.*`: of drivers that count for all links). Flags: `remap.pending|failure`, `retired.pending`,
    `sram_threshold`, `persistence`, `mig`, `mig_pending`, `ecc.mode`, `ecc.mode_pending`. °C: `margin` (T.Limit),
    `memory_temp`, `tlimit.*`, `threshold.*`. mW: `power_limit`, `power_limit_default`. Others: `recovery_action`
    (field 230), `pcie.width|width_max|generation|generation_max`, `nvlink.links`, `nvlink.<link>.state` (1: active),
    `nvlink.<link>.effective_ber|symbol_ber` (as NVML encodes them), `fabric.state|status|health`, `driver`, `vbios`.
    """

    index: int
    bdf: str
    values: Mapping[str, int | float | str]
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCount:
    """How many GPUs answer, said when it has been so for a while."""

    answering: int
    lost: int  # those that were reported by their address
    expected: int
    basis: str  # where `expected` comes from: config | pci | seen
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuEvent:
    """An NVML event (XID and others)."""

    bdf: str
    type: int  # NVML event bit
    data: int  # for an XID the code
    count: int = 1  # how many equal ones this stands for
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlState:
    """What the NVML child itself says."""

    state: str  # absent | hung | answers | ready | blind (killed children do not die, no new one is started)
    reason: str = ""
    call: str = ""
    waited_s: float = 0.0
    gpus: int = 0
    bdf: str = ""  # the GPU on which a call hangs, where it is known
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """State of a systemd unit."""

    name: str
    active: str
    sub: str
    result: str = ""
    first: bool = False  # state at start, not a change
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """One line of a job's log."""

    text: str
    file: str
    job: str = ""  # from the file's name where the config says how
    mono_s: float = 0.0  # when it was written, as far as that is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """No fact: how far a source has read, the reading that follows included. It is kept, with what that reading says, so
    that a later run goes on there and loses and doubles nothing.
    """

    key: str  # e.g. `log /var/log/jobs/4711.out`
    value: str  # empty: what it was about is gone
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A second has passed; for collectors that must say something when nothing else happens."""

    mono_s: float


Reading = (
    Line
    | Overrun
    | Device
    | Link
    | IbPort
    | IbDevices
    | SmAnswer
    | Gpu
    | GpuHealth
    | GpuCount
    | GpuEvent
    | NvmlState
    | Unit
    | JobLine
    | Mark
    | Tick
    | NodeReading
)

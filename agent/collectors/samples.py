"""What sources hand to collectors: one frozen value for each kind of sample. No I/O here.

`mono_s` is the node's monotonic clock when the fact came about, where the source knows it (the kernel log does), else
when it was read; the agent computes an event's age from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.collectors.samples_node import NodeSample as NodeSample
from agent.contract.kernel_text import Line as Line  # the brain reads kernel logs too


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun:
    """The kernel overwrote log records before they were read."""

    lost: int
    mono_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A kernel uevent."""

    # add | remove | change | bind | unbind | move
    change: str
    # pci | net | infiniband | block
    subsystem: str
    # `0000:3b:00.0` | `eth0` | `mlx5_0` | `nvme0n1`
    sysname: str
    # E.g. 0x030200 (3D controller); 0: not known.
    pci_class: int = 0
    # PCI vendor (agent/contract/accelerators.py); 0: not known.
    vendor: int = 0
    driver: str = ""
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkState:
    """State of a network interface, from rtnetlink (RTM_NEWLINK, RTM_DELLINK) or /sys/class/net."""

    name: str
    admin_up: bool
    carrier: bool
    # up | down | dormant | lowerlayerdown | unknown | ...
    operstate: str
    # veth | bond | ...; empty for hardware.
    kind: str = ""
    # Of a bond (IFF_SLAVE).
    slave: bool = False
    # Bytes; 0: not known.
    mtu: int = 0
    # Since the interface was made; None: not known.
    carrier_changes: int | None = None
    removed: bool = False
    # With `removed`: it goes on in another network namespace, as a container's.
    moved: bool = False
    # Part of the dump at start, not a change.
    first: bool = False
    # Its former name, when this sample reports that it was renamed.
    before: str = ""
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredPower:
    """A GPU's power limit that gpuward has lowered and not restored."""

    bdf: str
    # As it was set, and as it was before, mW.
    limit_mw: int
    before_mw: int
    # It was set in an earlier boot: it no longer stands.
    over: bool = False
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IbPort:
    """One look at a port under /sys/class/infiniband."""

    device: str
    port: int
    # ACTIVE ...
    state: str
    # LinkUp ...
    phys_state: str
    rate: str
    lid: int
    sm_lid: int
    # InfiniBand | Ethernet
    link_layer: str
    # hca_type, e.g. MT4129; cards of one model are compared with each other.
    model: str = ""
    # Service level to the subnet manager.
    sm_sl: int = 0
    # As `counters`, read less often.
    congestion: dict[str, int] = field(default_factory=dict)
    # When `congestion` was read.
    congestion_s: float = 0.0
    # File name → value; those that are unreadable or "N/A" are left out.
    counters: dict[str, int] = field(default_factory=dict)
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IbDevices:
    """Which InfiniBand devices there are now."""

    names: tuple[str, ...]
    # Those that are not seen here any more and that their driver has still: they are in another network namespace.
    moved: tuple[str, ...] = ()
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SmAnswer:
    """What the subnet manager that a port knows answered to a query."""

    device: str
    port: int
    sm_lid: int
    # MASTER | STANDBY | DISCOVERING | NOTACTIVE; empty: no answer.
    state: str
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that holds a GPU."""

    pid: int
    memory_mb: int
    name: str = ""
    # Slurm job id or Kubernetes pod, from its cgroup or environment.
    job: str = ""
    # systemd unit, from its cgroup.
    unit: str = ""
    # D or Z, of a process whose GPU is at zero utilisation; else empty.
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One sample of an accelerator, a GPU or an NPU. None: this driver or card does not report it."""

    # NVML's number, or the place in the order of addresses.
    index: int
    # `0000:3b:00`
    bdf: str
    uuid: str
    # Of the board; empty: not known.
    serial: str = ""
    # Who was asked: nvml | amdgpu | npu-smi.
    by: str = "nvml"
    # Empty when it answers, else lost | not_found | reset_required | unknown_error | unbound | no_driver.
    lost: str = ""
    # False: it is lost, more of what it was asked failed than worked, or it supports nothing at all.
    answers: bool = True
    # Percent, at this sample; the highest and the lowest since the one before: the child leaves out some while all is calm.
    utilization_now: int | None = None
    utilization: int | None = None
    utilization_least: int | None = None
    memory_used_mb: int | None = None
    power_w: float | None = None
    # Only read where the GPUs of a job are compared (agent/collectors/gpu_minute.py).
    sm_clock_mhz: int | None = None
    temperature_c: int | None = None
    # Bit mask: nvmlClocksEventReasons, for all vendors.
    slowdowns: int | None = None
    processes: tuple[GpuProcess, ...] = ()
    # False: it is not reported which processes there are.
    holders_known: bool = True
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHealth:
    """All that is known of a GPU or NPU besides Gpu, sent again when any of it has changed. Unknown values are left out.

    Counters: `ecc.<volatile|aggregate>.<corrected|uncorrected>.<total|dram|sram|l1|l2|register|texture|cbu>`,
    `remap.corrected|uncorrected` (rows), `remap.banks_max|high|partial|low|none` (spare rows left, in banks),
    `retired.single_bit|double_bit` (pages), `pcie.replay|correctable|fatal|...`, `nvlink.<link>.replay|receive|...`
    (`nvlink.all.*`: of drivers that count for all links). Flags: `remap.pending|failure`, `retired.pending`,
    `sram_threshold`, `persistence`, `mig`, `mig_pending`, `ecc.mode`, `ecc.mode_pending`, `ecc.default` (as the card is
    delivered). °C: `margin` (T.Limit), `memory_temp`, `tlimit.*`, `threshold.*`. mW: `power_limit`, `power_limit_default`.
    Others: `recovery_action` (field 230), `pcie.width|width_max|generation|generation_max`, `nvlink.links`,
    `nvlink.<link>.state` (1: active), `nvlink.<link>.effective_ber|symbol_ber` (as NVML encodes them),
    `fabric.state|status|health`, `driver`, `vbios`, `model` (only where GPUs are compared). Of links that are not NVLinks:
    `link.<xgmi|hccs|roce>.<link>.state` (1: active), `link.<type>.all.uncorrected`. Of AMD's GPUs the location of an ECC counter
    is the block that the driver names: `gfx`, `sdma`, ...
    """

    index: int
    bdf: str
    values: Mapping[str, int | float | str]
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTemperatures:
    """As GpuHealth, where nothing but `margin` or `memory_temp` has changed: they change all the time."""

    index: int
    bdf: str
    # All that GpuHealth had, with the temperatures as they are now.
    values: Mapping[str, int | float | str]
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCount:
    """How many GPUs answer, once the number has settled."""

    answering: int
    # Those that were reported by their address.
    lost: int
    expected: int
    # Where `expected` comes from: config | pci | seen.
    basis: str
    # Who counts: nvml | amdgpu | npu-smi. Each counts its own maker's; `config` is of the node.
    by: str = "nvml"
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuEvent:
    """An NVML event (XID and others)."""

    bdf: str
    # NVML event bit.
    type: int
    # For an XID the code.
    data: int
    # How many equal ones this stands for.
    count: int = 1
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlState:
    """State of the NVML child process."""

    # absent | refused (it cannot be opened, and GPUs have the driver) | hung | answers | ready | blind (killed children do
    # not die, no new one is started)
    state: str
    reason: str = ""
    call: str = ""
    waited_s: float = 0.0
    # nvmlReturn_t of nvmlInit.
    code: int = 0
    gpus: int = 0
    # The GPU on which a call hangs, where it is known.
    bdf: str = ""
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """State of a systemd unit."""

    name: str
    active: str
    sub: str
    result: str = ""
    # State at start, not a change.
    first: bool = False
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """One line of a job's log."""

    text: str
    file: str
    # From the file's name, where the configuration describes it.
    job: str = ""
    # When it was written, where that is known.
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """No fact: how far a source has read, including the sample that follows.

    It is stored together with the events of that sample, so that a later run goes on there and nothing is lost or doubled.
    """

    # E.g. `log /var/log/jobs/4711.out`.
    key: str
    # Empty: what it was about is gone.
    value: str
    mono_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A second has passed; for collectors that report something when nothing else happens."""

    mono_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A source has taken all its samples again, for agent.look. Only `Collector.restate` gets it."""

    source: str
    mono_s: float = 0.0


Sample = (
    Line
    | Overrun
    | Device
    | LinkState
    | LoweredPower
    | IbPort
    | IbDevices
    | SmAnswer
    | Gpu
    | GpuHealth
    | GpuTemperatures
    | GpuCount
    | GpuEvent
    | NvmlState
    | Unit
    | JobLine
    | Checkpoint
    | Tick
    | Looked
    | NodeSample
)

"""Every kind of event, declared: nothing else may be emitted, and rules may name nothing else.

docs/reference.md is generated from this table. A field's `unit` is empty where it has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.contract.errors import ContractError
from agent.contract.messages import Draft, Scalar, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of an event's data."""

    name: str
    type: str  # text | int | float | bool
    summary: str
    unit: str = ""
    always: bool = True  # False: left out where the machine does not say it


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of event."""

    name: str
    component: str  # component type(s) that it is about, comma separated
    severity: Severity  # the usual one
    source: str  # where the agent hears it
    summary: str
    fields: tuple[Field, ...] = ()
    example: Mapping[str, Scalar] | None = None


def _f(name: str, type_: str, summary: str, unit: str = "", *, always: bool = True) -> Field:
    return Field(name=name, type=type_, summary=summary, unit=unit, always=always)


def _table(*kinds: Kind) -> dict[str, Kind]:
    return {kind.name: kind for kind in kinds}


INFO, WARNING, ERROR, FATAL = Severity.INFO, Severity.WARNING, Severity.ERROR, Severity.FATAL

KINDS: dict[str, Kind] = _table(
    # --- GPU ---
    Kind(
        name="gpu.xid",
        component="gpu",
        severity=ERROR,
        source="kernel log",
        summary="The driver printed an XID. Severity and action come from the catalogue; an unknown code has severity unknown.",
        fields=(
            _f("code", "int", "XID"),
            _f("name", "text", "the catalogue's name, or 'unknown'"),
            _f("action", "text", "the catalogue's immediate action, e.g. RESET_GPU, RESTART_APP, IGNORE"),
            _f("message", "text", "what the driver says after the code"),
            _f("pid", "int", "process that it names", always=False),
            _f("process", "text", "name of that process", always=False),
            _f(
                "recovery_action",
                "int",
                "XID 154: the new recovery action (0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset, 5 IMEX)",
                always=False,
            ),
            _f("link", "int", "NVLink that it names", always=False),
            _f("caused_by", "int", "the previous XID that it names as its cause", always=False),
            _f("unit", "text", "XID 144 to 150: the NVLink unit that it names", always=False),
            _f(
                "unproven",
                "bool",
                "the action was decoded by a bit layout (NVLink5, driver 575 or newer) that no real line has confirmed to us",
                always=False,
            ),
        ),
        example={
            "code": 79,
            "name": "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS",
            "action": "RESTART_BM",
            "message": "GPU has fallen off the bus.",
        },
    ),
    Kind(
        name="gpu.off_bus",
        component="gpu",
        severity=FATAL,
        source="kernel log",
        summary="The driver says without an XID that a GPU has fallen off the bus.",
        fields=(_f("message", "text", "the line"),),
        example={"message": "GPU has fallen off the bus."},
    ),
    Kind(
        name="gpu.lost",
        component="gpu",
        severity=FATAL,
        source="NVML",
        summary="NVML answers 'GPU is lost' or no longer finds a GPU that it had found.",
        fields=(
            _f("reason", "text", "lost | not_found | reset_required"),
            _f("index", "int", "NVML index", always=False),
            _f("uuid", "text", "GPU UUID", always=False),
        ),
        example={"reason": "lost", "index": 3},
    ),
    Kind(
        name="gpu.removed",
        component="gpu",
        severity=FATAL,
        source="udev",
        summary="The kernel removed the PCI device of a GPU.",
        fields=(_f("driver", "text", "driver that was bound", always=False),),
        example={"driver": "nvidia"},
    ),
    Kind(
        name="gpu.returned",
        component="gpu",
        severity=INFO,
        source="udev or NVML",
        summary="A GPU that was lost or removed answers again.",
        fields=(_f("by", "text", "udev | nvml"),),
        example={"by": "nvml"},
    ),
    Kind(
        name="gpu.idle",
        component="gpu",
        severity=WARNING,
        source="NVML",
        summary="Zero utilisation over the whole idle window while a process holds the GPU. An empty idle GPU is healthy.",
        fields=(
            _f("idle_s", "float", "how long utilisation has been zero", "s"),
            _f("memory_mb", "int", "memory in use", "MiB"),
            _f("processes", "int", "processes that hold it"),
            _f("job", "text", "job id of the holder; empty: no job", always=True),
            _f("unit", "text", "systemd unit of the holder; empty: none"),
            _f("power_w", "float", "power draw", "W", always=False),
        ),
        example={"idle_s": 600.0, "memory_mb": 70000, "processes": 1, "job": "4711", "unit": ""},
    ),
    Kind(
        name="gpu.busy",
        component="gpu",
        severity=INFO,
        source="NVML",
        summary="A GPU that was reported idle works again, or nobody holds it any more.",
        fields=(_f("utilization", "int", "utilisation", "%"),),
        example={"utilization": 97},
    ),
    Kind(
        name="nvml.hung",
        component="node",
        severity=ERROR,
        source="agent",
        summary="An NVML call did not return within its deadline; the child process was replaced.",
        fields=(
            _f("call", "text", "the call"),
            _f("waited_s", "float", "deadline", "s"),
            _f("times", "int", "how often since the agent started"),
        ),
        example={"call": "nvmlDeviceGetTemperature", "waited_s": 10.0, "times": 1},
    ),
    Kind(
        name="nvml.answers",
        component="node",
        severity=INFO,
        source="agent",
        summary="NVML answers again after a hang.",
        fields=(_f("after_s", "float", "how long it did not", "s"),),
        example={"after_s": 31.5},
    ),
    Kind(
        name="nvml.absent",
        component="node",
        severity=INFO,
        source="agent",
        summary="There is no NVML library or driver here; said once per agent start, not an error by itself.",
        fields=(_f("reason", "text", "the library's answer"),),
        example={"reason": "NVML Shared Library Not Found"},
    ),
    # --- InfiniBand and links ---
    Kind(
        name="ib.errors",
        component="port",
        severity=WARNING,
        source="/sys/class/infiniband counters",
        summary="An error counter of a port grew since the last reading.",
        fields=(
            _f("counter", "text", "file name, e.g. symbol_error"),
            _f("delta", "int", "growth"),
            _f("value", "int", "value now"),
            _f("interval_s", "float", "time between the readings", "s"),
        ),
        example={"counter": "symbol_error", "delta": 240, "value": 240, "interval_s": 1.0},
    ),
    Kind(
        name="ib.saturated",
        component="port",
        severity=WARNING,
        source="/sys/class/infiniband counters",
        summary="A legacy counter stands at its maximum and cannot show more errors; it must be cleared.",
        fields=(_f("counter", "text", "file name"), _f("value", "int", "its maximum")),
        example={"counter": "symbol_error", "value": 65535},
    ),
    Kind(
        name="ib.counter_reset",
        component="port",
        severity=INFO,
        source="/sys/class/infiniband counters",
        summary="A counter went down: somebody cleared it.",
        fields=(
            _f("counter", "text", "file name"),
            _f("before", "int", "value before"),
            _f("value", "int", "value now"),
        ),
        example={"counter": "symbol_error", "before": 65535, "value": 0},
    ),
    Kind(
        name="ib.port_state",
        component="port",
        severity=WARNING,
        source="/sys/class/infiniband state",
        summary="Logical or physical state of a port changed; severity info when it became ACTIVE.",
        fields=(
            _f("state", "text", "DOWN | INIT | ARMED | ACTIVE | ACTIVE_DEFER"),
            _f("before", "text", "state before"),
            _f("phys_state", "text", "e.g. LinkUp, Polling, Disabled"),
        ),
        example={"state": "DOWN", "before": "ACTIVE", "phys_state": "Polling"},
    ),
    Kind(
        name="ib.sm_lid",
        component="port",
        severity=WARNING,
        source="/sys/class/infiniband sm_lid",
        summary="The subnet manager that a port knows changed.",
        fields=(_f("sm_lid", "int", "LID now"), _f("before", "int", "LID before")),
        example={"sm_lid": 7, "before": 1},
    ),
    Kind(
        name="ib.device",
        component="nic",
        severity=ERROR,
        source="/sys/class/infiniband",
        summary="An InfiniBand device vanished or came back (severity info).",
        fields=(_f("present", "bool", "is it there now"),),
        example={"present": False},
    ),
    Kind(
        name="link.state",
        component="link",
        severity=WARNING,
        source="rtnetlink",
        summary="A network interface lost or got its carrier, or was set up or down. Severity info when it is up.",
        fields=(
            _f("up", "bool", "operational state is up"),
            _f("admin_up", "bool", "set up by the administrator"),
            _f("carrier", "bool", "has a carrier"),
            _f("operstate", "text", "up, down, dormant, lowerlayerdown, ..."),
        ),
        example={"up": False, "admin_up": True, "carrier": False, "operstate": "down"},
    ),
    Kind(
        name="link.removed",
        component="link",
        severity=ERROR,
        source="rtnetlink",
        summary="A network interface vanished.",
        fields=(),
        example={},
    ),
    Kind(
        name="device.changed",
        component="pcie,link,nic,disk",
        severity=INFO,
        source="udev",
        summary="The kernel added or removed a PCI, network, InfiniBand or block device.",
        fields=(
            _f("change", "text", "add | remove"),
            _f("subsystem", "text", "pci | net | infiniband | block"),
        ),
        example={"change": "remove", "subsystem": "pci"},
    ),
    # --- services and jobs ---
    Kind(
        name="service.state",
        component="service",
        severity=ERROR,
        source="systemd",
        summary="A watched unit changed its state. Severity info when it became active.",
        fields=(
            _f("active", "text", "active | inactive | failed | activating | ..."),
            _f("sub", "text", "sub-state"),
            _f("result", "text", "systemd's result", always=False),
        ),
        example={"active": "failed", "sub": "failed", "result": "exit-code"},
    ),
    Kind(
        name="job.cuda_error",
        component="gpu,node,job",
        severity=ERROR,
        source="job log",
        summary="A job's log names a CUDA error. The component is the GPU when the line names its PCI address.",
        fields=(
            _f("name", "text", "e.g. CUDA_ERROR_DEVICE_REMOVED"),
            _f("job", "text", "job id; empty when unknown"),
            _f("file", "text", "log file"),
        ),
        example={"name": "CUDA_ERROR_DEVICE_REMOVED", "job": "4711", "file": "/var/log/jobs/4711.log"},
    ),
    Kind(
        name="job.nccl_error",
        component="node,job",
        severity=WARNING,
        source="job log",
        summary="A job's log shows an NCCL warning, failure or watchdog time-out.",
        fields=(
            _f("what", "text", "warning | timeout | system_error | remote_error | ib_error"),
            _f("job", "text", "job id; empty when unknown"),
            _f("file", "text", "log file"),
        ),
        example={"what": "timeout", "job": "4711", "file": "/var/log/jobs/4711.log"},
    ),
    # --- the agent itself ---
    Kind(
        name="agent.started",
        component="node",
        severity=INFO,
        source="agent",
        summary="The agent started on this node.",
        fields=(
            _f("version", "text", "agent version"),
            _f("kernel", "text", "kernel release"),
            _f("gpus", "int", "GPUs on the PCI bus"),
        ),
        example={"version": "0.1.0", "kernel": "6.1.0", "gpus": 8},
    ),
    Kind(
        name="agent.kmsg_overrun",
        component="node",
        severity=WARNING,
        source="kernel log",
        summary="The kernel overwrote log records before the agent read them.",
        fields=(_f("lost", "int", "records lost"),),
        example={"lost": 15904},
    ),
    Kind(
        name="agent.dropped",
        component="node",
        severity=WARNING,
        source="uplink",
        summary="Events were dropped because the spool was full (mildest and oldest first).",
        fields=(_f("dropped", "int", "events dropped since the last report"),),
        example={"dropped": 120},
    ),
    Kind(
        name="agent.source_failed",
        component="node",
        severity=ERROR,
        source="agent",
        summary="A source could not be opened or broke; it is tried again with growing pauses.",
        fields=(_f("source", "text", "its name"), _f("reason", "text", "what went wrong")),
        example={
            "source": "kmsg",
            "reason": "Permission denied: run the agent as root or give it CAP_SYSLOG",
        },
    ),
    Kind(
        name="agent.bad_command",
        component="node",
        severity=WARNING,
        source="commands",
        summary="A command was refused (signature, epoch, expiry, allow-list, parameters).",
        fields=(
            _f("command", "text", "command id as far as it could be read"),
            _f("why", "text", "the reason"),
        ),
        example={"command": "", "why": "signature does not fit"},
    ),
    Kind(
        name="command.result",
        component="node",
        severity=INFO,
        source="commands",
        summary="How a command ended. Sent again when the brain asks again.",
        fields=(
            _f("command", "text", "command id"),
            _f("outcome", "text", "ok | failed | refused | unreachable | unknown"),
            _f("why", "text", "what was done or what went wrong"),
            _f("took_s", "float", "duration", "s"),
            _f("evidence", "text", "name of the evidence bundle", always=False),
        ),
        example={
            "command": "inc-7k2m.r1.s1.a1",
            "outcome": "ok",
            "why": "nvidia-persistenced.service active for 2 s",
            "took_s": 2.3,
        },
    ),
)


def check(draft: Draft) -> Draft:
    """`draft` if its kind and fields are declared, else ContractError."""
    kind = KINDS.get(draft.kind)
    if kind is None:
        raise ContractError(f"kind {draft.kind!r} is not declared in agent/contract/kinds.py")
    fields = {field.name for field in kind.fields}
    for name in draft.data:
        if name not in fields:
            raise ContractError(f"{draft.kind} has no field {name!r}")
    for field in kind.fields:
        if field.always and field.name not in draft.data:
            raise ContractError(f"{draft.kind} needs the field {field.name!r}")
    return draft

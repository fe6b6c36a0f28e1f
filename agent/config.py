"""What the operator of an agent can set: one TOML file of flat keys, each with unit, default, meaning (read by config_file.py).

Unknown keys are errors. docs/reference.md is generated from the fields below: `describe()` lists them.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from agent.host import Host

_ROOT = Path("/")
EVIDENCE_TOOLS = {
    "nvidia-smi": "/usr/bin/nvidia-smi",
    "nvidia-bug-report": "/usr/bin/nvidia-bug-report.sh",
    "nft": "/usr/sbin/nft",
    "ip": "/usr/sbin/ip",
    "rdma": "/usr/sbin/rdma",
}
_IB_TOOLS = Path("/usr/sbin")
_DATA_DIR = Path("/var/lib/gpuward-agent")


def _meta(doc: str, unit: str = "", least: float | None = None) -> dict[str, Any]:
    return {"doc": doc, "unit": unit, "least": least}


def _option(default: Any, doc: str, *, unit: str = "", least: float | None = None) -> Any:
    """A field with its documentation; a list or table gets a fresh copy for each config."""
    meta = _meta(doc, unit, least)
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=meta)
    return field(default=default, metadata=meta)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """What the operator can set. Every field has a default that is safe on a production node."""

    cell: str = _option("default", "failure domain that this node belongs to; part of every NATS subject")
    node: str = _option("", "name of this node; empty: the host name up to its first dot")
    nats_url: str = _option("nats://127.0.0.1:4222", "NATS servers, comma separated; tls:// for TLS")
    nats_seed_file: str = _option(
        "", "file with this node's NKEY seed (mode 0600); empty: connect without one"
    )
    nats_ca_file: str = _option("", "PEM file with the CA of the servers; empty: the system's CAs")
    data_dir: Path = field(
        default=_DATA_DIR, metadata=_meta("folder of the spool, the command journal and the evidence bundles")
    )
    trusted_keys: Mapping[str, str] = _option(
        {}, "key id = base64 of the Ed25519 public key of a brain; empty: every command is refused"
    )
    allow: tuple[str, ...] = _option(
        ("evidence.collect",), "actions that this node may run; all others are refused, whoever signed them"
    )
    services: tuple[str, ...] = _option(
        (), "systemd units that are watched and that service.restart may touch; empty: none"
    )
    watch_services: tuple[str, ...] = _option(
        (
            *(
                "nvidia-persistenced",
                "nvidia-fabricmanager",
                "nvidia-imex",
                "nvidia-dcgm",
                "slurmd",
                "kubelet",
            ),
            *("containerd", "docker", "opensm", "chronyd", "ntpd", "systemd-timesyncd"),
        ),
        "systemd units that are watched where they are installed; service.restart may not touch them",
    )
    kmsg_facilities: tuple[int, ...] = _option(
        (0,),
        "kernel log facilities that are believed; 0 is the kernel, and any local user can write the others",
    )
    job_logs: tuple[str, ...] = _option((), "glob patterns of job logs to follow; empty: none")
    fabric_manager_log: str = _option(
        "/var/log/fabricmanager.log",
        "log of NVIDIA's fabric manager, followed where there are NVSwitches; empty: not",
    )
    job_id_pattern: str = _option(
        r"(?P<job>\d+)[^/]*$",
        "regular expression searched in a job log's path; its group `job` is the job id (the first number of the file's name)",
    )
    job_nan_loss: bool = _option(False, "say it when a job's log shows a loss that is not a number")
    journal_units: tuple[str, ...] = _option(
        (), "systemd units (patterns too) in whose journal job output is looked for; empty: none"
    )
    journal_job_field: str = _option(
        "", "journal field that holds the job id, e.g. CONTAINER_NAME; empty: the job is not named"
    )
    ib_root: str = _option("/sys/class/infiniband", "folder of the InfiniBand and RoCE devices")
    ib_exempt: tuple[str, ...] = _option(
        (),
        "devices or ports (mlx5_2, mlx5_2.1) whose rate and state are compared with nothing: management cards",
    )
    ib_expected_gbps: float = _option(
        0.0, "rate that every active port must have; 0: each is compared with its like", unit="Gb/s", least=0
    )
    ib_tools: Path = field(
        default=_IB_TOOLS, metadata=_meta("folder of infiniband-diags (sminfo, ibqueryerrors)")
    )
    ibdiagnet: str = _option("", "absolute path of NVIDIA's ibdiagnet, for ib.inspect; empty: it is not run")
    sm_interval_s: float = _option(
        30.0,
        "pause between questions (sminfo) whether the subnet manager answers; 0: it is not asked",
        unit="s",
        least=0,
    )
    nic_links: tuple[str, ...] = _option(
        (), "interfaces whose driver counters (ethtool -S) are read; empty: those of RDMA devices"
    )
    nic_interval_s: float = _option(10.0, "pause between readings of driver counters", unit="s", least=1)
    congestion_per_s: float = _option(
        1000.0, "slower growth of a pause, PFC, CNP or ECN counter is not said", unit="1/s", least=0.001
    )
    node_interval_s: float = _option(
        10.0, "pause between looks at modules, memory, pressure and clock", unit="s", least=0.05
    )
    kernel_modules: tuple[str, ...] = _option(
        (), "kernel modules that must be loaded, e.g. nvidia_peermem; others are missed when they vanish"
    )
    memory_low_percent: float = _option(
        2.0, "less available memory than this is said; 0: never", unit="%", least=0
    )
    memory_pressure_percent: float = _option(
        10.0, "said when all tasks waited so long for memory in a minute; 0: never", unit="%", least=0
    )
    io_pressure_percent: float = _option(50.0, "the same for I/O; checkpoints make some", unit="%", least=0)
    mounts: tuple[str, ...] = _option(
        (),
        "mount points that must be there, e.g. /lustre; all local and remote file systems are watched anyway",
    )
    mount_interval_s: float = _option(30.0, "pause between looks at file systems", unit="s", least=0.05)
    mount_deadline_s: float = _option(
        10.0, "a file system that does not answer for so long hangs", unit="s", least=0.05
    )
    disk_full_percent: float = _option(
        95.0, "said when so much of a file system's space or inodes is used; 0: never", unit="%", least=0
    )
    clock_offset_s: float = _option(
        0.5, "a larger offset or step of the wall clock is said", unit="s", least=0.001
    )
    inventory_interval_s: float = _option(300.0, "pause between inventories", unit="s", least=0.05)
    ib_interval_s: float = _option(
        1.0, "pause between readings of InfiniBand state and counters", unit="s", least=0.05
    )
    nvml_interval_s: float = _option(1.0, "pause between NVML samples", unit="s", least=0.05)
    expected_gpus: int = _option(
        0, "GPUs that this node should have; 0: those on the PCI bus, or ever seen since the start", least=0
    )
    beat_interval_s: float = _option(
        2.0, "pause between beats; a brain takes longer silence for a fault", unit="s", least=0.05
    )
    idle_window_s: float = _option(
        600.0, "how long a held GPU must show zero utilisation to be reported", unit="s", least=1
    )
    spool_max_events: int = _option(
        100_000, "events kept while the broker is away; above, the mildest and oldest are dropped", least=100
    )
    spool_max_bytes: int = _option(
        64 * 1024 * 1024, "size of the kept events; as above", unit="bytes", least=65536
    )
    devlink: str = _option("/usr/sbin/devlink", "absolute path of devlink (iproute2), for nic.reset")
    ibportstate: str = _option(
        "/usr/sbin/ibportstate", "absolute path of ibportstate (infiniband-diags), for ib.port_reset"
    )
    gpu_services: tuple[str, ...] = _option(
        (
            *("nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service", "dcgm-exporter.service"),
            *("nvidia-dcgm.service", "nvidia-imex.service", "nvidia-persistenced.service"),
            "nvidia-fabricmanager.service",
        ),
        "systemd units that hold the GPUs: gpu.reset, pci.rescan and driver.reload stop those that run, in this order, "
        "and start them again; list no unit that runs your jobs",
    )
    fabric_manager_unit: str = _option(
        "nvidia-fabricmanager.service", "systemd unit that fabricmanager.restart restarts"
    )
    driver_unload: tuple[str, ...] = _option(
        ("nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia_peermem", "nvidia"),
        "kernel modules of the GPU driver in the order in which driver.reload unloads them",
    )
    driver_load: tuple[str, ...] = _option(
        ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem"),
        "the same in the order in which those that were there are loaded again; the first must load",
    )
    loadable_modules: tuple[str, ...] = _option(
        ("mlx5_ib", "rdma_cm", "nvidia_peermem"), "kernel modules that module.load may load"
    )
    nvidia_smi: str = _option("/usr/bin/nvidia-smi", "absolute path of nvidia-smi")
    dcgmi: str = _option("/usr/bin/dcgmi", "absolute path of dcgmi")
    modprobe: str = _option("/usr/sbin/modprobe", "absolute path of modprobe")
    rmmod: str = _option("/usr/sbin/rmmod", "absolute path of rmmod")
    dbus_address: str = _option("unix:path=/run/dbus/system_bus_socket", "D-Bus on which systemd answers")
    evidence_tools: Mapping[str, str] = _option(
        EVIDENCE_TOOLS,
        "tools that evidence.collect asks = absolute path; what is not listed or not there is not asked",
    )
    bug_report_s: float = _option(
        60.0,
        "how long NVIDIA's bug report may take in evidence about GPUs; 0: none is made",
        unit="s",
        least=0,
    )
    bug_report_bytes: int = _option(
        16 * 1024 * 1024, "a larger bug report is left out of the bundle", unit="bytes", least=65536
    )
    root: Path = field(
        default=_ROOT, metadata=_meta("root of the machine; anything but / is a recording: it is only read")
    )

    def host(self) -> Host:
        """The machine that this agent watches."""
        return Host(root=self.root)

    def servers(self) -> list[str]:
        """The NATS servers, one URL each."""
        return [url.strip() for url in self.nats_url.split(",") if url.strip()]

    def public_keys(self) -> dict[str, bytes]:
        """Key id → 32 bytes."""
        return {name: base64.b64decode(text) for name, text in self.trusted_keys.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One row of the documentation."""

    name: str
    type: str
    default: str
    unit: str
    summary: str


def describe() -> list[Option]:
    """Every option, in the order of the class, for the documentation."""
    return list(_describe())


def _describe() -> Iterator[Option]:
    for item in fields(AgentConfig):
        default = _default(item.name)
        text = (
            list(default)
            if isinstance(default, tuple)
            else str(default)
            if isinstance(default, Path)
            else default
        )
        yield Option(
            name=item.name,
            type=kind(item.name),
            default=repr(text),
            unit=item.metadata["unit"],
            summary=item.metadata["doc"],
        )


_KINDS = {bool: "true or false", str: "text", int: "whole number", float: "number", dict: "table"}


def _default(key: str) -> Any:
    item = AgentConfig.__dataclass_fields__[key]
    if item.default_factory is not MISSING:
        return item.default_factory()
    return item.default


def kind(key: str) -> str:
    """The type of an option, in words."""
    default = _default(key)
    if isinstance(default, tuple):
        return "list of whole numbers" if key == "kmsg_facilities" else "list of texts"
    return "path" if isinstance(default, Path) else _KINDS[type(default)]

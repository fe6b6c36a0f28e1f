"""What the operator of an agent can set, apart from the options that collectors and sources declare in their own files.

One TOML file of flat keys, read by agent.config_file. Here are the options of the agent itself, those of its actions
(whose code is loaded only when an action is first used), and those that sources and actions share.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent import acceptance, dbus
from agent.contract.actions import ACTIONS
from agent.contract.fitness import SOCKET
from agent.host import Host
from agent.options import Chosen, absolute_path, absolute_paths, at_most, chosen, option
from agent.shared.inert_log import LogFormat

EVIDENCE_TOOLS = {
    "nvidia-smi": "/usr/bin/nvidia-smi",
    "nvidia-bug-report": "/usr/bin/nvidia-bug-report.sh",
    "nft": "/usr/sbin/nft",
    "ip": "/usr/sbin/ip",
    "rdma": "/usr/sbin/rdma",
}
IB_ROOT = "/sys/class/infiniband"
MAX_SOCKET_PATH = 100  # the kernel's limit is 107, and the socket is made under a longer name


def _known_actions(key: str, names: tuple[str, ...]) -> str:
    unknown = next((name for name in names if name not in ACTIONS), None)
    return "" if unknown is None else f"{key}: unknown action {unknown!r} (known: {', '.join(ACTIONS)})"


def _public_keys(key: str, texts: Mapping[str, str]) -> str:
    for key_id, text in texts.items():
        try:
            size = len(base64.b64decode(text, validate=True))
        except binascii.Error:
            size = -1
        if size != 32:
            return f"{key}.{key_id} must be the base64 of a 32-byte Ed25519 public key"
    return ""


def _at_least_one_server(key: str, text: str) -> str:
    return "" if _servers(text) else f"{key} must name at least one server, e.g. nats://127.0.0.1:4222"


def _servers(text: str) -> list[str]:
    return [url.strip() for url in text.split(",") if url.strip()]


def _known_tools(key: str, paths: Mapping[str, str]) -> str:
    for name, path in paths.items():
        if name not in EVIDENCE_TOOLS or (path and not path.startswith("/")):
            return f"{key}.{name}: give the absolute path of one of {', '.join(EVIDENCE_TOOLS)}"
    return ""


def _prom_file_or_empty(key: str, path: str) -> str:
    if path and not path.endswith(".prom"):
        return f"{key} must end with .prom: node_exporter reads no other file"
    return _absolute_path_or_empty(key, path)


def _known_format(key: str, value: str) -> str:
    known = [one.value for one in LogFormat]
    return "" if value in known else f"{key} must be {' or '.join(known)}, not {value!r}"


def _folder(key: str, path: Path) -> str:
    return (
        ""
        if path.is_absolute() and path.is_dir()
        else f"{key} must be the absolute path of a folder, not {str(path)!r}"
    )


def _absolute_path_or_empty(key: str, path: str) -> str:
    return absolute_path(key, path) if path else ""


def _socket_or_empty(key: str, path: str) -> str:
    if len(path.encode()) > MAX_SOCKET_PATH:
        return f"{key} must have at most {MAX_SOCKET_PATH} characters: the kernel allows no more"
    return _absolute_path_or_empty(key, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """Every option has a default that is safe on a production node."""

    cell: str = option("default", "failure domain that this node belongs to; part of every NATS subject")
    node: str = option("", "name of this node; empty: the host name up to its first dot", example="gpu-0017")
    nats_url: str = option(
        "nats://127.0.0.1:4222",
        "NATS servers, comma separated; tls:// for TLS",
        example="tls://nats-1.example.com:4222,tls://nats-2.example.com:4222,tls://nats-3.example.com:4222",
        check=_at_least_one_server,
    )
    nats_seed_file: str = option(
        "",
        "file with this node's NKEY seed (mode 0600); empty: connect without one",
        example="/etc/gpuward/node.nk",
    )
    nats_jwt_file: str = option(
        "",
        "file with this node's user JWT, for servers in operator mode; empty: connect by the NKEY alone",
        example="/etc/gpuward/node.jwt",
    )
    nats_ca_file: str = option(
        "", "PEM file with the CA of the servers; empty: the system's CAs", example="/etc/gpuward/ca.pem"
    )
    data_dir: Path = option(
        Path("/var/lib/gpuward-agent"),
        "folder of the spool, the command journal and the evidence bundles; a unit's StateDirectory takes its place",
    )
    log_format: str = option(
        LogFormat.TEXT.value,
        "text, or json: each line of the log is an object, with the ids of incident, run and step as keys",
        check=_known_format,
    )
    metrics_file: str = option(
        "",
        "file in the folder of node_exporter's textfile collector, for metrics of the agent itself; empty: none is written",
        example="/var/lib/prometheus/node-exporter/gpuward.prom",
        check=_prom_file_or_empty,
    )
    metrics_interval_s: float = option(15.0, "pause between writing them", unit="s", least=1)
    check_socket: str = option(
        SOCKET,
        "unix socket on which `gpuward-agent check` gets its answer, where its folder is there (the unit makes the default's); "
        "only the agent's user and root can connect; empty: none",
        check=_socket_or_empty,
    )
    root: Path = option(
        Path("/"), "root of the machine; anything but / is a recording, which is only read", check=_folder
    )
    beat_interval_s: float = option(
        2.0,
        "pause between beats; the brain takes a longer silence for a fault",
        unit="s",
        least=0.05,
        check=at_most(60),
    )
    spool_max_events: int = option(
        100_000,
        "events kept while the broker is away; beyond it the mildest and oldest are dropped",
        least=100,
    )
    spool_max_bytes: int = option(
        64 * 1024 * 1024, "size of the kept events; as above", unit="bytes", least=65536
    )

    # --- commands ---
    allow: tuple[str, ...] = option(
        ("agent.look", "evidence.collect"),
        "actions that this node may run, whoever signed the command; all others are refused: begin with those that only read",
        example=("agent.look", "evidence.collect", "service.restart", "link.bounce"),
        check=_known_actions,
    )
    trusted_keys: Mapping[str, str] = option(
        {},
        "key id = base64 of the Ed25519 public key of a brain; empty: every command is refused",
        example={"brain-1": "A" * 43 + "="},
        check=_public_keys,
    )

    trust_serial: int = option(
        0,
        "the announcement of keys as of which `trusted_keys` and `nats_ca_file` are, written by `gpuward-agent join`; the brain "
        "announces later ones, which are kept in data_dir and count instead until one of these three is changed",
        least=0,
    )

    # --- shared by sources and actions ---
    services: tuple[str, ...] = option(
        (),
        "systemd units that are watched and that service.restart may touch, on its host also that of the subnet manager; "
        "list no unit that runs your jobs",
        example=("nvidia-persistenced.service", "nvidia-fabricmanager.service"),
    )
    dbus_address: str = option(dbus.SYSTEM_BUS, "D-Bus on which systemd answers")
    mounts: tuple[str, ...] = option(
        (),
        "mount points that must be mounted; all local and remote file systems are watched anyway",
        example=("/lustre", "/home"),
        check=absolute_paths,
    )
    ib_root: str = option(IB_ROOT, "folder of the InfiniBand and RoCE devices", check=absolute_path)
    ib_tools: Path = option(
        Path("/usr/sbin"), "folder of infiniband-diags (sminfo, ibqueryerrors)", check=absolute_path
    )

    # --- actions ---
    gpu_services: tuple[str, ...] = option(
        (
            *("nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service", "dcgm-exporter.service"),
            *("nvidia-dcgm.service", "nvidia-imex.service", "nvidia-persistenced.service"),
            "nvidia-fabricmanager.service",
        ),
        "systemd units that hold the GPUs: gpu.reset, pci.rescan and driver.reload stop those that run, in this order, "
        "and start them again; list no unit that runs your jobs",
    )
    fabric_manager_unit: str = option(
        "nvidia-fabricmanager.service", "systemd unit that fabricmanager.restart restarts"
    )
    driver_unload: tuple[str, ...] = option(
        ("nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia_peermem", "nvidia"),
        "kernel modules of the GPU driver in the order in which driver.reload unloads them",
    )
    driver_load: tuple[str, ...] = option(
        ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem"),
        "the same in the order in which those that were loaded are loaded again; the first must load",
    )
    loadable_modules: tuple[str, ...] = option(
        ("mlx5_ib", "rdma_cm", "nvidia_peermem"), "kernel modules that module.load may load"
    )
    nvidia_smi: str = option(
        "/usr/bin/nvidia-smi", "absolute path of nvidia-smi, for gpu.reset", check=absolute_path
    )
    dcgmi: str = option(
        "/usr/bin/dcgmi", "absolute path of dcgmi, for gpu.diagnose and dcgm_interval_s", check=absolute_path
    )
    modprobe: str = option("/usr/sbin/modprobe", "absolute path of modprobe", check=absolute_path)
    rmmod: str = option("/usr/sbin/rmmod", "absolute path of rmmod", check=absolute_path)
    devlink: str = option(
        "/usr/sbin/devlink", "absolute path of devlink (iproute2), for nic.reset", check=absolute_path
    )
    ibportstate: str = option(
        "/usr/sbin/ibportstate",
        "absolute path of ibportstate (infiniband-diags), for ib.port_reset",
        check=absolute_path,
    )
    ibdiagnet: str = option(
        "",
        "absolute path of NVIDIA's ibdiagnet, for ib.inspect; empty: it is not run",
        example="/usr/bin/ibdiagnet",
        check=_absolute_path_or_empty,
    )
    evidence_tools: Mapping[str, str] = option(
        EVIDENCE_TOOLS,
        "tools that evidence.collect runs = absolute path; one that is not listed or not installed is left out",
        check=_known_tools,
    )
    bug_report_s: float = option(
        60.0,
        "how long NVIDIA's bug report may take in evidence about GPUs; 0: none is made",
        unit="s",
        least=0,
    )
    bug_report_bytes: int = option(
        16 * 1024 * 1024, "a larger bug report is left out of the bundle", unit="bytes", least=65536
    )

    acceptance: Mapping[str, Mapping[str, Any]] = option(
        {},
        "programs that node.accept runs, one table each: `argv` (absolute path and arguments), `limit_s`, `quick` (true: before "
        "each return to service too), `figures` (`json`, or a regular expression with named groups), `floors` and `ceilings` "
        "(figure = number), `gpus` (false: it needs no GPU); examples: docs/acceptance.md",
        example={
            "all_reduce": {
                "argv": ("/opt/nccl-tests/all_reduce_perf", "-b", "1G", "-e", "8G", "-f", "2", "-g", "8"),
                "limit_s": 300,
                "quick": True,
                "figures": r"Avg bus bandwidth\s*:\s*(?P<bus_gb_per_s>[0-9.]+)",
                "floors": {"bus_gb_per_s": 150},
            }
        },
        check=acceptance.check,
    )

    # What is set of the options that collectors and sources declare: key → value.
    plugins: Mapping[str, Any] = field(default_factory=dict)

    def options(self, part: type[Chosen]) -> Chosen:
        """The options of a collector or source, e.g. `config.options(ClockOptions)`."""
        return chosen(part, self.plugins)

    def host(self) -> Host:
        """The machine that this agent watches."""
        return Host(root=self.root)

    @property
    def joined(self) -> bool:
        """Has it been said where this node belongs? Without a key and on the default's loopback nobody is there to hear it."""
        return bool(self.nats_seed_file) or self.nats_url != type(self)().nats_url

    def servers(self) -> list[str]:
        """The NATS servers, one URL each."""
        return _servers(self.nats_url)

    def public_keys(self) -> dict[str, bytes]:
        """Key id → 32 bytes."""
        return {name: base64.b64decode(text) for name, text in self.trusted_keys.items()}

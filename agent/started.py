"""What the agent says when it starts: what runs, and whether the machine is still called as when it joined."""

import logging
from contextlib import suppress
from pathlib import Path

from agent import __version__
from agent.config import AgentConfig
from agent.contract.components import NODE
from agent.contract.inert import inert
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip
from agent.host import Host
from agent.nvml import bus
from agent.shared import files

HOST_FILE = "node.host"  # beside the node's seed; `gpuward-agent join` writes it
FOUND_FILE = "host.json"  # in data_dir, of who joined before version 0.2: as the machine was called at the first start since
NAMELESS = ("", "(none)", "localhost")  # how a machine is called until the network has named it

_log = logging.getLogger(__name__)


def started(host: Host, config: AgentConfig, *, booted: bool, in_order: bool = False) -> UnsentEvent:
    """Returns the event `agent.started`. `in_order`: it was stopped before, and not killed. A machine that was renamed is
    logged, too, and a node that has not joined.
    """
    if not config.joined:
        _log.warning(
            "this node has not joined a cell: nobody hears it before `gpuward-agent join TOKEN`, "
            "with a token of `gpuward cell token`"
        )
    gpus = sum(1 for function in host.listdir(bus.PCI) if bus.is_gpu(host, function))
    data: dict[str, Scalar] = {
        "version": __version__,
        "kernel": host.kernel(),
        "gpus": gpus,
        "booted": booted,
        "in_order": in_order,
    }
    renamed = False
    name = host.hostname()
    if joined := joined_host(config) or _found_host(config, name):
        renamed = _label(name) not in (_label(joined), *NAMELESS)
        data |= {"renamed": renamed, "host": clip(name)}
        if renamed:
            _log.warning(
                "this machine is called %s and joined as %s when it was called %s: schedulers and BMCs are asked about %s. "
                '`gpuward-agent join` says how it is meant (docs/cell.md, "A node is renamed")',
                *(inert(one) for one in (name, config.node, joined, config.node)),
            )
    return UnsentEvent(
        kind="agent.started",
        component=NODE,
        severity=Severity.WARNING if renamed else Severity.INFO,
        data=data,
    )


def joined_host(config: AgentConfig) -> str:
    """How the machine was called when it joined; empty: it is not known, as of whoever joined before version 0.2."""
    if not config.nats_seed_file:
        return ""
    try:
        return clip(Path(config.nats_seed_file).with_name(HOST_FILE).read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return ""


def _found_host(config: AgentConfig, name: str) -> str:
    """How the machine was called when this was asked first of the node; empty: it has no name yet, or has not joined."""
    file = config.data_dir / FOUND_FILE
    found = files.read_json(file)
    if isinstance(found, dict) and found.get("node") == config.node and isinstance(found.get("host"), str):
        return clip(found["host"])
    if not config.nats_seed_file or _label(name) in NAMELESS:
        return ""
    with suppress(OSError):  # at the next start, then
        files.write_json(file, {"node": config.node, "host": name})
    return name


def _label(name: str) -> str:
    """A host name up to its first dot: some machines have it whole, some do not, and that changes."""
    return name.partition(".")[0].lower()

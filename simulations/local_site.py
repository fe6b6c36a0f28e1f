"""The files of one `gpuward up`: folders, keys, and the configuration of each part. Each start writes all but the keys."""

import contextlib
import fcntl
import json
import os
import platform
import re
import shutil
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from agent.contract import subjects
from agent.contract.errors import ConfigError
from agent.shared.words import t
from brain.adapters import keys
from brain.adapters.nats_server import NatsServer
from brain.config import BrainConfig
from brain.console.drill import RECIPIENT
from simulations.drills.drill import LEAVES
from simulations.events import SIMULATED

CELL = "default"
SHORT_RESOLVE_DELAY_S = 5.0  # of a rehearsal
LONG_RESOLVE_DELAY_S = 120.0  # longer ones stay: they have a meaning, which the rules' examples check


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSite:
    """Where one `gpuward up` keeps its files, and who its nodes are. Paths are absolute."""

    data: Path
    console_port: int
    # The name of this machine as a node.
    node: str
    # The names of the simulated nodes.
    simulated: tuple[str, ...]

    @property
    def url(self) -> str:
        """Where clients find the brain."""
        return f"http://127.0.0.1:{self.console_port}"

    def log(self, name: str) -> Path:
        """The log file of a child."""
        return self.data / "logs" / f"{name}.log"

    @property
    def pages(self) -> Path:
        """The file of pages, which needs no configuration."""
        return self.data / "brain" / "pages.log"

    def config(self, name: str) -> Path:
        """The configuration file of a child."""
        return self.data / "config" / f"{name}.toml"


def prepare(data: Path, *, console_port: int, nodes: int) -> LocalSite:
    """Makes the folders; ConfigError when they cannot be written to."""
    data = data.resolve()
    width = max(2, len(str(nodes)))
    names = tuple(f"{SIMULATED}{n:0{width}}" for n in range(1, nodes + 1))
    site = LocalSite(data=data, console_port=console_port, node=this_node(platform.node()), simulated=names)
    try:
        for folder in ("logs", "config", "keys", "brain", "agent", "fleet"):
            (data / folder).mkdir(mode=0o750, parents=True, exist_ok=True)
            if not os.access(data / folder, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
        (data / "keys").chmod(0o700)
    except OSError as error:
        raise ConfigError(
            t(
                "{data}: {strerror}: give a folder that you may write with --data",
                data=data,
                strerror=error.strerror,
            )
        ) from error
    return site


def this_node(hostname: str) -> str:
    """The node name of this machine; never one that belongs to a simulated node, as those are in mode auto."""
    name = hostname.partition(".")[0]
    try:
        subjects.token(name, "host name")
    except ConfigError:
        name = "localhost"
    return f"real-{name}" if name.startswith(SIMULATED) or name == RECIPIENT else name


@contextlib.contextmanager
def locked(data: Path, *, patience_s: float = 30.0) -> Iterator[int]:
    """Holds the folder against any other `gpuward up`; ConfigError when one holds it already. Yields the file by which the parts
    of this one hold it too, so that the next one waits for the end of what a killed one has left.
    """
    with (data / "up.lock").open("a+") as lock:
        ends_s = time.monotonic() + patience_s
        while not _taken(lock):
            lock.seek(0)
            other = lock.read().strip()
            if _runs(other) or time.monotonic() > ends_s:
                raise ConfigError(
                    t(
                        "{data} is in use by another `gpuward up` (pid {pid}): stop it, or give another folder with --data",
                        data=data,
                        pid=other or "?",
                    )
                )
            time.sleep(0.1)  # it was killed, and its parts are ending
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield lock.fileno()


def _taken(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _runs(pid: str) -> bool:
    """Is there such a process? One that cannot be told from none counts as one."""
    return not pid.isdecimal() or Path(f"/proc/{pid}").exists()


def free_port(wanted: int, option: str) -> int:
    """`wanted`, or any free port of loopback for 0; ConfigError when it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port in TIME_WAIT is free
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            raise ConfigError(
                t(
                    "port {wanted} of 127.0.0.1: {strerror}: stop what uses it, or give another with {option}",
                    wanted=wanted,
                    strerror=error.strerror,
                    option=option,
                )
            ) from error
        port: int = probe.getsockname()[1]
        return port


def _shortened(source: Path, target: Path, keys: str, pace: float) -> str:
    """Copies a folder of rules or runbooks, with the times of these keys (`a|b`) shortened; the path of the copy."""

    def shorter(found: re.Match[str]) -> str:
        seconds = float(found[2])
        if found[1] == "resolve_delay_s":
            delay_s = seconds if seconds > LONG_RESOLVE_DELAY_S else min(seconds, SHORT_RESOLVE_DELAY_S)
            return f"resolve_delay_s: {delay_s:g}"
        return f"{found[1]}: {max(0.5, round(seconds / pace, 1)):g}"

    shutil.rmtree(target, ignore_errors=True)
    for file in source.rglob("*.yaml"):
        copy = target / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = re.sub(rf"\b({keys}): ([0-9.]+)", shorter, file.read_text(encoding="utf-8"))
        copy.write_text(text, encoding="utf-8")
    return str(target)


def write_shortened_pack(folder: Path, pace: float) -> dict[str, str]:
    """Copies the shipped rules and runbooks below `folder`, with resolve delays and verifications shortened; the brain's
    configuration keys for them.
    """
    defaults = BrainConfig()
    return {
        "rules": _shortened(defaults.rules_dir, folder / "rules", "resolve_delay_s", pace),
        "runbooks": _shortened(defaults.runbooks_dir, folder / "runbooks", "within_s|for_s", pace),
    }


def write_topology(path: Path, nodes: Sequence[str]) -> None:
    """Simulated nodes have LEAVES leaf switches, in turn."""
    leaves = {node: {"leaf": f"leaf-{1 + n % LEAVES}"} for n, node in enumerate(nodes)}
    path.write_text(json.dumps(leaves), encoding="utf-8")


def write_configs(site: LocalSite, server: NatsServer, *, pace: float = 1.0) -> None:
    """The configuration of brain, agent and fleet, with their credentials.

    `pace`: by how much verifications and resolve delays are shortened, as simulated machines recover faster than real ones.
    """
    signer = keys.load_signer(site.data / "keys" / "signing.key")
    write_topology(site.data / "config" / "topology.yaml", site.simulated)
    brain: dict[str, object] = {
        "cell": CELL,
        "data_dir": str(site.data / "brain"),
        "topology": str(site.data / "config" / "topology.yaml"),
        "signing_key_file": str(site.data / "keys" / "signing.key"),
        "drill": True,
        "nats": {"url": server.url, "seed_file": str(server.brain_seed_file)},
        "console": {"port": site.console_port},
        "settings": {"ask_who_is_hit": bool(site.simulated)},
        # Simulated nodes, and scopes wider than a node; observe everywhere else. Without nodes nobody could inspect a fabric.
        "modes": [{"mode": "auto", "nodes": pattern} for pattern in (f"{SIMULATED}*", "") if site.simulated],
    }
    if pace != 1:
        brain |= write_shortened_pack(site.data / "config", pace)
    agent = {
        "cell": CELL,
        "node": site.node,
        "nats_url": server.url,
        "nats_seed_file": str(server.node_seed_file(site.node)),
        "data_dir": str(site.data / "agent"),
        "metrics_file": str(site.data / "agent" / "gpuward.prom"),
        "kmsg_facilities": [0],
        "trusted_keys": {signer.key_id: signer.public},
    }
    fleet = {
        "cell": CELL,
        "nodes": list(site.simulated),
        "nats_url": server.url,
        "nats_seed_file": str(server.node_seed_file("fleet", (*site.simulated, RECIPIENT))),
        "data_dir": str(site.data),
        "trusted_keys": {signer.key_id: signer.public},
    }
    for name, table in (("brain", brain), ("agent", agent), ("fleet", fleet)):
        head = "# Written by `gpuward up` at each start.\n"
        site.config(name).write_text(head + toml(table), encoding="utf-8")


def toml(table: Mapping[str, object]) -> str:
    """A table of plain values, tables and lists of tables as TOML, on one line each."""
    return "".join(f"{json.dumps(key)} = {_value(value)}\n" for key, value in table.items())


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return json.dumps(value)  # for strings, numbers and booleans it is TOML too

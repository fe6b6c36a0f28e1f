"""The embedded NATS server: who may say what, and that it starts, reloads and ends in order."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from agent.contract import requests, subjects
from agent.contract.errors import ConfigError
from agent.shared.nats_connection import LOST
from brain.adapters import keys, log, server_log
from brain.adapters.nats_accounts import Member
from brain.adapters.nats_server import NatsServer
from brain.nats_config import LogConfig
from tests.real.intake_kit import Reception, intake
from tests.real.nats import free_port

pytestmark = pytest.mark.component("nats-server")
WITHIN_S = 60


@pytest.fixture(name="server")
def _server(tmp_path: Path) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path / "nats", cell="c", port=free_port())
    try:
        yield server
    finally:
        server.stop()


class Refusals:
    """What the server would not let a client do."""

    def __init__(self) -> None:
        self.said: list[str] = []

    async def hear(self, error: Exception) -> None:
        """nats-py's error callback."""
        self.said.append(str(error))


@contextlib.asynccontextmanager
async def connected(server: NatsServer, seed: Path, node: str = "") -> AsyncIterator[tuple[Client, Refusals]]:
    """A client with a seed; of a node, when it is named. A machine that is too busy to let it in within nats-py's or the server's
    two seconds is asked again; who may not come in hears so at once.
    """
    refusals = Refusals()
    deadline = time.monotonic() + WITHIN_S
    while True:
        try:
            client = await nats.connect(
                server.url, nkeys_seed=str(seed), error_cb=refusals.hear, allow_reconnect=False
            )
            break
        except (OSError, TimeoutError, nats.errors.Error) as error:
            if "authorization" in str(error).lower() or time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.2)
    refusals.said.clear()  # of attempts to connect
    try:
        yield client, refusals
    finally:
        await client.close()


async def asked(taking: Reception, node: str, body: bytes) -> bytes:
    """What a node answers. A brain whose connection was slow enough to be given up is asked again when it has the next one."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        try:
            return await taking.requests.request(node, body, 10)
        except NoRespondersError:
            raise
        except LOST:
            assert time.monotonic() < deadline, f"{node} is not asked"
            await asyncio.sleep(0.2)


async def test_a_node_speaks_for_itself_only(server: NatsServer) -> None:
    """Its own events, beats and answers pass; everything else is refused by the server itself."""
    one, two = server.node_seed_file("n1"), server.node_seed_file("n2")
    server.start()
    async with (
        connected(server, server.brain_seed_file) as (brain, _),
        connected(server, one, "n1") as (n1, refused),
    ):
        await log.ensure(brain, "c", LogConfig(max_bytes=64 * 1024**2))
        forbidden = [
            subjects.event("c", "n2"),
            subjects.event("c", "n1"),
            subjects.lane("c", "n1", subjects.EVENT),
            subjects.offer("c", "n2", subjects.BEAT),
            subjects.acknowledgement("c", "n2", subjects.EVENT),
            subjects.command("c", "n2"),
            subjects.brain_input("c", "operator"),
            "$JS.API.STREAM.DELETE.WARD_c",
            "_INBOX.somebody",
        ]
        for subject in forbidden:
            await n1.publish(subject, b"not mine")
        for subject in (
            subjects.event("c", ">"),
            subjects.command("c", "n2"),
            "_INBOX.>",
            subjects.acknowledgement("c", "n2", "*"),
            subjects.lane("c", "n1", "*"),
        ):
            await n1.subscribe(subject)
        await n1.flush(WITHIN_S)
        deadline = time.monotonic() + WITHIN_S
        while len(refused.said) < len(forbidden) + 5 and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        assert len(refused.said) == len(forbidden) + 5, refused.said
        assert (await log.info(brain, "c")).last_seq == 0, "the brain alone writes to the log"
        async with (
            intake(server.url, "c", seed_file=server.brain_seed_file) as taking,
            connected(server, two, "n2") as (n2, quiet),
        ):

            async def answer(message: Msg) -> None:
                reference, body = requests.unpack(message.data) or ("", b"")
                offer = subjects.offer("c", "n2", subjects.ANSWER)
                await n2.publish(offer, requests.pack(reference, body + b" n2"))

            with pytest.raises(NoRespondersError):
                await asked(taking, "n2", b"?")
            await n2.subscribe(subjects.command("c", "n2"), cb=answer)
            await n2.flush(WITHIN_S)
            assert await asked(taking, "n2", b"I am") == b"I am n2"
            assert quiet.said == []


async def test_strangers_stay_out_and_new_nodes_come_in_without_a_restart(
    server: NatsServer, tmp_path: Path
) -> None:
    """A node that is added to the running server connects at once, and nobody is thrown out for it."""
    server.start()
    other = NatsServer(tmp_path / "other", cell="c", port=free_port())
    with pytest.raises(nats.errors.Error):
        async with connected(server, other.node_seed_file("n1"), "n1"):
            pass
    async with connected(server, server.brain_seed_file) as (brain, _):
        async with connected(server, server.node_seed_file("n3"), "n3"):
            pass
        fleet = server.node_seed_file("sim", [f"s{number}" for number in range(1000)])
        async with connected(server, fleet, "s7") as (sim, refused):
            await sim.publish(subjects.offer("c", "s999", subjects.BEAT), b"")
            await sim.flush()
            assert refused.said == []
        assert brain.is_connected


def test_a_port_that_is_taken_is_said_so(server: NatsServer, tmp_path: Path) -> None:
    """With the key to change."""
    server.start()
    second = NatsServer(tmp_path / "second", cell="c", port=int(server.url.rpartition(":")[2]))
    with pytest.raises(ConfigError, match=r"taken by another program.*nats\.embedded\.port"):
        second.start()


def test_it_dies_with_a_brain_that_is_killed_and_the_next_one_starts(tmp_path: Path) -> None:
    """SIGKILL of the parent leaves no server behind that would hold the port and the files."""
    port = free_port()
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom brain.adapters.nats_server import NatsServer\n"
        "server = NatsServer(Path(sys.argv[1]), cell='c', port=int(sys.argv[2]))\nserver.start()\n"
        "print('up', flush=True)\ntime.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "nats"), str(port)],
        stdout=subprocess.PIPE,
        cwd=Path.cwd(),
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"up\n"
    child = int((tmp_path / "nats" / "nats.pid").read_text())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait(60)
    parent.stdout.close()
    server = NatsServer(tmp_path / "nats", cell="c", port=port)
    server.start()
    try:
        assert server.running()
        assert int((tmp_path / "nats" / "nats.pid").read_text()) != child
    finally:
        server.stop()
    assert not server.running()


async def test_what_may_not_be_done_fills_no_disk(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server writes a line for each refusal: its log is emptied in time, its end is kept, and a reload still works."""
    monkeypatch.setattr(server_log, "MAX_BYTES", 100_000)
    server.allow(Member(name="n1", public=keys.load_nkey(server.node_seed_file("n1")), nodes=("n1",)))
    server.start()
    log_file = server.folder / "nats.log"
    async with connected(server, server.node_seed_file("n1")) as (client, refusals):
        for number in range(2000):
            await client.publish(f"ward.c.offer.n1.x{number}", b"")
        await client.flush(60)
        async with asyncio.timeout(60):
            while len(refusals.said) < 2000 or log_file.stat().st_size < 200_000:
                await asyncio.sleep(0.01)
        assert server.take_refused() == {"n1": 2000}
        assert log_file.stat().st_size < 100_000
        assert b"x1999" in (server.folder / "nats.log.1").read_bytes()
        await server.set_nodes({"n2": keys.load_nkey(server.node_seed_file("n2"))})
    assert not server.out_of_space()

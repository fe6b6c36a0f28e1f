"""Evidence bundles are uploaded: over a real broker with a node's permissions, which dies, and past curious nodes."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client

from agent.commands import evidence_upload
from agent.commands.evidence_upload import EvidenceUpload
from agent.commands.journal import Journal, Result
from agent.contract import subjects
from agent.contract.commands import Command, Outcome
from agent.contract.errors import ActionError
from agent.uplink.connection import node_connection
from brain.adapters import evidence
from brain.adapters.nats_server import NatsServer
from brain.nats_config import EvidenceConfig
from tests.bundles import fetch
from tests.real.intake_kit import Reception, intake
from tests.real.nats import free_port

pytestmark = pytest.mark.component("nats-server")
SMALL = EvidenceConfig(max_bytes=64 * 1024**2)
ID = "inc-1.r1.s1.a1"


@pytest.fixture(name="server")
def _server(tmp_path: Path) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path / "nats", cell="c", port=free_port())
    server.node_seed_file("n1")
    server.node_seed_file("n2")
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextlib.asynccontextmanager
async def connected(server: NatsServer, node: str = "") -> AsyncIterator[tuple[Client, list[str]]]:
    """A client with the brain's credentials or a node's, and what it was refused."""
    refused: list[str] = []

    async def on_error(error: Exception) -> None:
        refused.append(str(error))

    client = await nats.connect(
        server.url,
        nkeys_seed=str(server.node_seed_file(node) if node else server.brain_seed_file),
        error_cb=on_error,
        allow_reconnect=False,
    )
    try:
        yield client, refused
    finally:
        await client.close()


class Node:
    """A node's journal and bundles, and the task that uploads them."""

    def __init__(self, folder: Path, server: NatsServer, name: str = "n1") -> None:
        self.folder = folder / name
        self.folder.mkdir()
        self.name = name
        self._server = server
        self.restart()

    def restart(self) -> None:
        """Only the files are left."""
        self.journal = Journal(self.folder / "journal.jsonl")
        self.upload = EvidenceUpload(self.journal, self.folder, "c", self.name)

    def collect(self, size: int, command: str = ID) -> bytes:
        """A command that made a bundle of this size."""
        content = os.urandom(size)
        (self.folder / f"{command}.tar.gz").write_bytes(content)
        order = Command(
            id=command,
            node=self.name,
            action="evidence.collect",
            params={"component": "node"},
            epoch=1,
            session="s",
            not_after_s=0,
            timeout_s=1,
            why="",
        )
        self.journal.accept(order, "b", "s")
        self.journal.finish(
            command, Result(outcome=Outcome.OK, why="", evidence=f"{command}.tar.gz", evidence_bytes=size)
        )
        self.upload.wake()
        return content

    @contextlib.asynccontextmanager
    async def uploading(self) -> AsyncIterator[None]:
        """As the agent does it, over lost connections too."""
        seed = str(self._server.node_seed_file(self.name))
        task = asyncio.create_task(
            node_connection([self._server.url], self.name, seed_file=seed).serve(self.upload.serve)
        )
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def taking(server: NatsServer) -> contextlib.AbstractAsyncContextManager[Reception]:
    """The brain's part that takes in what nodes offer."""
    return intake(server.url, "c", seed_file=server.brain_seed_file)


async def until(true: Callable[[], bool], within_s: float = 60.0) -> None:
    """Waits for a condition, with a bound."""
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)


async def test_a_bundle_waits_for_a_brain_and_arrives_whole(
    server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No brain takes it yet: kept, tried again; then it is there byte for byte, and uploaded only once."""
    monkeypatch.setattr(evidence_upload, "ANSWER_S", 0.5)
    monkeypatch.setattr(evidence_upload, "FIRST_PAUSE_S", 0.05)
    node = Node(tmp_path, server)
    content = node.collect(1_000_000)
    async with connected(server) as (brain, _):
        async with node.uploading():
            await until(lambda: bool(node.upload._last_error))
            async with taking(server):
                await evidence.ensure(brain, "c", SMALL)
                assert await fetch(brain, "c", "n1", "inc-9") is None
                await until(lambda: not node.journal.to_upload())
                second = node.collect(10, "other")  # while it waits for more
                await until(lambda: not node.journal.to_upload())
        assert await fetch(brain, "c", "n1", ID) == content
        assert await fetch(brain, "c", "n1", "other") == second
        last_seq = (await brain.jsm().stream_info(subjects.evidence_stream("c"))).state.last_seq
        node.restart()
        assert node.journal.to_upload() == [], "also after a restart"
        assert last_seq == 9 + 2, "eight chunks, one chunk, two descriptions"


async def test_a_broker_that_dies_during_an_upload(server: NatsServer, tmp_path: Path) -> None:
    """The bundle is sent again, whole, takes no more room for it, and an agent's restart in between loses nothing."""
    node = Node(tmp_path, server)
    content = node.collect(6_000_000)
    chunks = -(-6_000_000 // subjects.MAX_BUNDLE_CHUNK)

    async def stored() -> int:
        async with connected(server) as (brain, _):
            return (await brain.jsm().stream_info(subjects.evidence_stream("c"))).state.messages

    async with taking(server), node.uploading():
        while await stored() < 3:
            await asyncio.sleep(0)
        server.stop()
        assert node.journal.to_upload(), "it was in the middle"
    node.restart()
    server.start()
    async with taking(server), node.uploading():
        await until(lambda: not node.journal.to_upload())
    async with connected(server) as (brain, _):
        assert await fetch(brain, "c", "n1", ID) == content
        assert await stored() == chunks + 1


async def test_a_node_can_neither_read_nor_touch_the_bundles_of_others(
    server: NatsServer, tmp_path: Path
) -> None:
    """The server itself refuses it; and what an ordinary object store lets its writers do, this one does not."""
    node = Node(tmp_path, server)
    content = node.collect(300_000)
    async with connected(server) as (brain, _), connected(server, "n2") as (n2, refused):
        async with taking(server), node.uploading():
            await until(lambda: not node.journal.to_upload())
        stream = subjects.evidence_stream("c")
        forbidden = [
            subjects.bundle_chunk("c", "n1", ID, 0),
            subjects.bundle_about("c", "n1", ID),
            f"$JS.API.STREAM.MSG.GET.{stream}",
            f"$JS.API.DIRECT.GET.{stream}",
            f"$JS.API.STREAM.PURGE.{stream}",
            f"$JS.API.STREAM.DELETE.{stream}",
            f"$JS.API.CONSUMER.CREATE.{stream}",
        ]
        for subject in forbidden:
            await n2.publish(subject, b"{}")
        await n2.subscribe(subjects.bundle_chunk("c", "n1", ID, 0))
        await n2.subscribe("$O.>")
        await n2.flush()
        await until(lambda: len(refused) == len(forbidden) + 2)
        assert await fetch(brain, "c", "n1", ID) == content


async def test_a_bundle_whose_parts_have_gone_is_not_handed_out(server: NatsServer, tmp_path: Path) -> None:
    """The oldest chunks go first when the bucket is full: what is left is no bundle. Nor is nonsense."""
    node = Node(tmp_path, server)
    node.collect(300_000)
    async with connected(server) as (brain, _):
        async with taking(server), node.uploading():
            await until(lambda: not node.journal.to_upload())
        await brain.jsm().purge_stream(
            subjects.evidence_stream("c"), subject=subjects.bundle_chunk("c", "n1", ID, 0)
        )
        with pytest.raises(ActionError, match="no longer complete"):
            await fetch(brain, "c", "n1", ID)
        for about in (b"\xff", b"[]", b'{"size": 1}', b'{"size": 1e12, "chunks": 9999999, "digest": ""}'):
            await brain.jetstream().publish(subjects.bundle_about("c", "n1", "odd"), about)
            with pytest.raises(ActionError, match=r"cannot be read|larger"):
                await fetch(brain, "c", "n1", "odd")

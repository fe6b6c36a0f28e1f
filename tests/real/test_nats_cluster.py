"""A cell on three NATS servers of a site's own, each with the file of `gpuward cell show --nats-accounts`; one dies."""

import asyncio
import time
from pathlib import Path
from typing import Any

import nats.errors
import orjson
import pytest
from click.testing import CliRunner
from nats.js.errors import ServiceUnavailableError

from agent.contract import subjects
from brain.adapters import nkey
from brain.adapters.nkey import NkeyKind
from brain.cell.registry import CellRegistry
from brain.cli.main import group
from tests.real.brain_kit import Lab, Node, lab
from tests.real.nats_cluster import Cluster
from tests.real.operator_kit import OperatorClusterLab

pytestmark = pytest.mark.component("nats-server")


class ClusterLab(Lab):
    """A brain on a cluster, and the commands with which an operator lets nodes in."""

    binary = ""  # of its servers; empty: the pinned one

    def __init__(self, folder: Path, more: dict[str, Any]) -> None:
        self.cluster = Cluster(folder / "site", self.binary)
        self._seed = folder / "brain.nk"
        nats = {"url": self.cluster.url, "seed_file": str(self._seed), "ca_file": str(self.cluster.ca_file)}
        super().__init__(
            folder, {"nats": nats | {"replicas": 3}, "evidence": {"max_bytes": 100 * 1024**2}} | more
        )
        (folder / "brain/cell").mkdir(parents=True)
        self.registry = CellRegistry(folder / "brain/cell/registry.json")
        toml = {"data_dir": str(folder / "brain"), "nats": nats}
        lines = [
            f'data_dir = "{toml["data_dir"]}"',
            "[nats]",
            *(f'{key} = "{one}"' for key, one in nats.items()),
        ]
        (folder / "brain.toml").write_text("\n".join(lines))
        self._write()
        self.cluster.start()

    async def credential(self, name: str) -> Path:
        """As an operator does it: the node's key into the cell, the file into the servers, a reload."""
        file = self.folder / f"{name}.nk"
        if not file.exists():
            self.registry.add(name, nkey.load_or_make(file, NkeyKind.USER).public, now=time.time())
            self._write()
            await asyncio.to_thread(self.cluster.reload)
        return file

    def brain_credential(self) -> Path:
        """Made by the command."""
        return self._seed

    def end(self) -> None:
        """The servers."""
        self.cluster.kill()

    def _write(self) -> None:
        done = CliRunner().invoke(
            group({}), ["cell", "show", "--nats-accounts", "--config", str(self.folder / "brain.toml")]
        )
        assert done.exit_code == 0, done.output
        self.cluster.accounts.write_text(done.output)


async def offer_until(node: Node, stop: asyncio.Event) -> list[str]:
    """Event after event; each is offered again until it is on the log. Returns their ids."""
    ids = []
    while not stop.is_set():
        ids.append((await node.event("agent.started", version="1")).id)
        await asyncio.sleep(0.05)
    return ids


async def test_the_server_that_leads_the_streams_dies(tmp_path: Path) -> None:
    """Events go on, none is lost and none is twice on the log; the brain leads again; the server comes back."""
    async with lab(tmp_path, ClusterLab) as found:
        assert isinstance(found, ClusterLab)
        node = await found.node("n1")
        await node.event("agent.started", version="1")
        brain = await found.brain_client()
        log = (await brain.jsm().stream_info(subjects.stream("default"))).config
        lane = (await brain.jsm().stream_info(subjects.lane_stream("default", subjects.lane_of("n1")))).config
        assert (log.num_replicas, lane.num_replicas) == (3, 3)
        info = await brain.request(f"$JS.API.STREAM.INFO.{subjects.stream('default')}", b"", 30)
        leader = orjson.loads(info.data)["cluster"]["leader"]

        node.again_s = 1.0
        stop = asyncio.Event()
        offers = asyncio.create_task(offer_until(node, stop))
        await node.event("agent.started", version="2")
        found.cluster.servers[leader].kill()
        killed_s = time.monotonic()
        await node.event("agent.started", version="3")
        print(f"without {leader}: an event is on the log after {time.monotonic() - killed_s:.1f} s")
        # Where the lease's own stream was led by another server, it was never lost.
        await found.until(lambda status: status["leads"], "the brain leads")
        found.cluster.servers[leader].start()
        await node.event("agent.started", version="4")
        stop.set()
        ids = await asyncio.wait_for(offers, 120)
        assert len(ids) > 1

        stored = await events(found)
        assert sorted(stored.keys() & set(ids)) == sorted(ids), "none is lost"
        assert [one for one in ids if stored[one] != 1] == [], "none is there twice"


async def test_accounts_as_jwts_reach_every_server(tmp_path: Path) -> None:
    """A node that joins is let in by each of them, and one that is revoked by none."""
    async with lab(tmp_path, OperatorClusterLab) as found:
        assert isinstance(found, OperatorClusterLab)
        node = await found.node("n1")
        await node.event("agent.started", version="1")
        file = await found.credential("n1")
        urls = found.server.url.split(",")
        for url in urls:
            await found.until_in(file, url, there=True)
        found.registry.revoke("n1", now=time.time())
        for url in urls:
            await found.until_in(file, url, there=False)


async def events(found: ClusterLab, node: str = "n1") -> dict[str, int]:
    """Event id of a node -> how often it is on the log, in its order."""
    deadline = time.monotonic() + 120
    while True:  # a request that servers get while they elect may stay without an answer
        client = await found.brain_client()
        try:
            name = subjects.stream("default")
            end = (await client.jsm().stream_info(name)).state.last_seq
            log = client.jetstream()
            subscription = await log.subscribe("ward.default.>", stream=name, ordered_consumer=True)
            break
        except (nats.errors.TimeoutError, ServiceUnavailableError):
            assert time.monotonic() < deadline, "the log cannot be read"
            await asyncio.sleep(0.2)
    counts: dict[str, int] = {}
    place = 0
    while place < end:
        message = await subscription.next_msg(timeout=60)
        place = message.metadata.sequence.stream
        if message.subject == subjects.event("default", node):
            id_ = orjson.loads(message.data)["id"]
            counts[id_] = counts.get(id_, 0) + 1
    return counts

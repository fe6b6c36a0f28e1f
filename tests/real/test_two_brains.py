"""Two brains of one cell, each with files of its own: what one of them must know that stands in the other's."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nats
import pytest

from agent.contract.errors import ConfigError
from brain.adapters import keys
from brain.adapters.rotation import KeyRotation
from brain.cell.registry import CellRegistry
from brain.cell.trust import KeyKind
from brain.cli import cell_shared
from tests.real.brain_kit import Lab, Node
from tests.real.nats import NatsServer, free_port, nats_server
from tests.real.test_nobody_leads import outside, told

pytestmark = pytest.mark.component("nats-server")


class Pair:
    """The first one leads and has no registry; the second one reads along, and has that of the cell."""

    def __init__(self, leader: Lab, other: Lab, node: Node) -> None:
        self.leader = leader
        self.other = other
        self.node = node
        self.registry = CellRegistry(other.config.registry_file)

    async def is_taken(self) -> bool:
        """Whether an event of the node comes onto the log."""
        try:
            async with asyncio.timeout(4):
                await self.node.event("agent.started", version="1")
        except TimeoutError:
            return False
        return True

    async def knows(self, *names: str) -> None:
        """Both brains know these nodes, and no others."""
        for brain in (self.leader, self.other):
            await brain.until(
                lambda found: [one["name"] for one in found["nodes"]] == list(names),
                f"{brain.config.brain} knows {names}",
                "/api/v1/nodes",
            )


@contextlib.asynccontextmanager
async def pair(folder: Path) -> AsyncIterator[Pair]:
    """As above, with a node that has joined."""
    with nats_server(folder / "nats", nodes=["n1"]) as server:
        more: dict[str, Any] = {"nats": {"url": server.url}, "settings": {"hold_off_s": 0}}
        leader = Lab(folder / "b1", more | {"brain": "b1"})
        await leader.start()
        assert leader.running is not None
        other = Lab(folder / "b2", more | {"brain": "b2", "signing_key_file": str(leader.config.signing_key)})
        other.config.cell_dir.mkdir(parents=True)
        CellRegistry(other.config.registry_file).add(
            "n1", keys.load_nkey(folder / "n1.nk"), now=time.time() - 60
        )
        await other.start(leads=False)
        client = await nats.connect(server.node_url("n1"))
        node = Node("n1", client, leader.running.signer.key.verify_key)
        node.again_s = 0.5
        await node.listen()
        try:
            yield Pair(leader, other, node)
        finally:
            await client.close()
            await other.stop()
            await leader.stop()


async def test_a_node_that_one_brain_has_revoked_is_not_heard_by_the_other(tmp_path: Path) -> None:
    """The brain that leads has no registry: it is told on the log, under the operator's name, and drops what the node offers.

    When the node is let in again, that is told as well; and a brain that starts anew knows both.
    """
    async with pair(tmp_path) as cell:
        assert await cell.is_taken()
        await cell.knows("n1")
        cell.registry.revoke("n1", by="ann", now=time.time())
        await cell.knows()
        assert not await cell.is_taken()
        assert not await cell.is_taken(), "however often it tries"
        await cell.knows()
        await cell.leader.stop()
        await cell.other.until(lambda status: status["leads"], "the other leads")
        await cell.leader.start(leads=False)
        await cell.other.stop()
        await cell.leader.until(lambda status: status["leads"] and status["pack"], "the first leads again")
        assert not await cell.is_taken(), "it knows from the log"
        await cell.other.start(leads=False)
        cell.registry.add("n1", keys.load_nkey(tmp_path / "n1.nk"), now=time.time())
        deadline = time.monotonic() + 60
        while not await cell.is_taken():
            assert time.monotonic() < deadline, "it is let in again"
        await cell.knows("n1")


async def test_a_second_brain_makes_no_key_of_its_own(tmp_path: Path) -> None:
    """Nodes would obey none of its commands. It is told what to say where, and starts with what it is given."""
    with nats_server(tmp_path / "nats", nodes=["n1"]) as server:
        more: dict[str, Any] = {"nats": {"url": server.url}}
        first = Lab(tmp_path / "b1", more | {"brain": "b1"})
        await first.start()
        second = Lab(tmp_path / "b2", more | {"brain": "b2"})
        key = second.config.signing_key
        with pytest.raises(ConfigError) as caught:
            await second.start(leads=False)
        assert f"{key} is not there, and brain b1 has written the log of cell default" in str(caught.value)
        assert "say `gpuward cell share FILE`, and here" in str(caught.value)
        assert not key.exists()
        assert cell_shared.take(second.config, cell_shared.gathered(first.config), time.time()) == [
            "signing.key"
        ]
        await second.start(leads=False)
        assert first.running is not None
        assert second.running is not None
        assert second.running.signer.public == first.running.signer.public
        await second.stop()
        await first.stop()


async def test_two_brains_that_are_started_at_once_make_one_key(tmp_path: Path) -> None:
    """The servers take the claim of one of them; the other one is told whose it is, and starts with the key that it is given."""
    with nats_server(tmp_path / "nats") as server:
        more: dict[str, Any] = {"nats": {"url": server.url}}
        both = [Lab(tmp_path / name, more | {"brain": name}) for name in ("b1", "b2")]
        ended = await asyncio.gather(*(brain.start(leads=False) for brain in both), return_exceptions=True)
        (refused,) = [end for end in ended if end is not None]
        assert isinstance(refused, ConfigError)
        made, other = both if ended[0] is None else reversed(both)
        assert f"brain {made.config.brain} has written the log of cell default" in str(refused)
        assert not other.config.signing_key.exists()
        cell_shared.take(other.config, cell_shared.gathered(made.config), time.time())
        await other.start(leads=False)
        assert made.running is not None
        assert other.running is not None
        assert made.running.signer.public == other.running.signer.public
        await made.until(lambda status: status["leads"] and status["pack"], "its first message harms nothing")
        await other.stop()
        await made.stop()


async def test_where_nobody_can_tell_no_key_is_made(tmp_path: Path) -> None:
    """The servers do not answer: there may be another brain. People hear of it, and the brain goes on when they do."""
    server = NatsServer(tmp_path / "nats")
    async with outside() as out:
        brain = Lab(tmp_path / "b1", {"nats": {"url": server.url}, "brain": "b1"} | out.config)
        starting = asyncio.create_task(brain.start())
        await told(out, "brain_disconnected")
        (page,) = out.pages
        assert "whether the cell has another brain" in page["why_now"]
        assert "start the servers, or bring that key here" in page["why_now"]
        assert not brain.config.signing_key.exists()
        assert not starting.done()
        server.start()
        try:
            await starting
            assert brain.config.signing_key.exists()
            await told(out, "brain_disconnected", "resolve")
            assert out.told("brain_disconnected") == ["open", "resolve"]
        finally:
            await brain.stop()
            server.kill()


async def test_a_brain_that_is_stopped_before_anybody_could_tell_ends_in_order(tmp_path: Path) -> None:
    """It did what it was asked: a unit that systemd stops so is stopped, and has not failed."""
    nats_config = {"url": f"nats://127.0.0.1:{free_port()}"}
    brain = Lab(tmp_path / "b1", {"nats": nats_config, "brain": "b1"})
    starting = asyncio.create_task(brain.start(leads=False))
    await asyncio.sleep(2)
    assert not starting.done()
    await brain.stop()
    await starting
    assert brain.running is None
    assert not brain.config.signing_key.exists()


async def test_a_brain_that_has_never_reached_its_servers_is_told(tmp_path: Path) -> None:
    """It has its key, as a brain that was restored on another machine: it waits, and people hear of it once."""
    async with outside() as out:
        nats_config = {"url": f"nats://127.0.0.1:{free_port()}"}
        brain = Lab(tmp_path / "b1", {"nats": nats_config, "brain": "b1"} | out.config)
        keys.load_signer(brain.config.signing_key)
        await brain.start(leads=False)
        try:
            await told(out, "brain_disconnected")
            assert "no connection to NATS" in out.pages[0]["why_now"]
        finally:
            await brain.stop()


async def test_a_rotation_that_is_begun_at_a_brain_that_does_not_lead_waits_for_its_lead(
    tmp_path: Path,
) -> None:
    """Nodes hear of keys from the leader only: a standby that exchanged its key by the clock would sign with one that no node
    knows, and where both brains did so, nobody could tell by the numbers of their announcements.
    """
    with nats_server(tmp_path / "nats") as server:
        more: dict[str, Any] = {"nats": {"url": server.url}}
        leader = Lab(tmp_path / "b1", more | {"brain": "b1"})
        await leader.start()
        other = Lab(tmp_path / "b2", more | {"brain": "b2"})
        cell_shared.take(other.config, cell_shared.gathered(leader.config), time.time())
        await other.start(leads=False)
        key = keys.read_signer(other.config.signing_key).key_id
        KeyRotation(other.config).begin(KeyKind.SIGNING, now=time.time(), overlap_s=0)

        async def noted() -> bool:
            found = await other.get("/api/v1/notes")
            return any("this brain does not lead" in note["text"] for note in found["notes"])

        async with asyncio.timeout(60):
            while not await noted():
                await asyncio.sleep(0.2)
        assert keys.read_signer(other.config.signing_key).key_id == key
        await leader.stop()
        async with asyncio.timeout(60):
            while keys.read_signer(other.config.signing_key).key_id == key:
                await asyncio.sleep(0.2)
        await other.stop()

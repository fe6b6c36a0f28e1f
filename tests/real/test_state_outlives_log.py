"""The log no longer reaches back to what is still open, and the brain has lost its disk: it goes on from its copy in NATS."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import nats
import orjson
import pytest
from nats.aio.client import Client

from agent.contract import subjects
from brain.adapters import state_copy
from tests.real.brain_kit import Lab, Node
from tests.real.nats import nats_server
from tests.real.test_nobody_leads import Outside, outside, told

pytestmark = pytest.mark.component("nats-server")
CELL = "default"


class Old:
    """A cell whose hold and open incident are older than the first message that its log still has; its brain is stopped."""

    def __init__(self, brain: Lab, client: Client, out: Outside) -> None:
        self.brain = brain
        self.client = client  # with the brain's rights
        self.out = out

    def lose_disk(self) -> None:
        """What no backup has."""
        for name in ("state.snapshot", "history.sqlite", "history.sqlite-wal", "history.sqlite-shm"):
            (self.brain.config.data_dir / name).unlink(missing_ok=True)


@contextlib.asynccontextmanager
async def old(folder: Path) -> AsyncIterator[Old]:
    """As above."""
    with nats_server(folder / "nats", nodes=["n1"]) as server:
        async with outside() as out:
            more = {"snapshot": {"every_s": 1}, "nats": {"url": server.url}, "settings": {"hold_off_s": 0}}
            brain = Lab(folder / "b1", more | out.config)
            client = await nats.connect(server.url)
            try:
                await brain.start()
                assert brain.running is not None
                node_client = await nats.connect(server.node_url("n1"))
                node = Node("n1", node_client, brain.running.signer.key.verify_key)
                await node.listen()
                await node.event("gpu.lost", "gpu/0000:3b:00", reason="lost")
                await brain.until(lambda found: found["incidents"], "the fault is seen", "/api/v1/incidents")
                assert (await brain.say("hold", scope="node/n1", why="under repair for months"))[0] == 200
                handled = await _last(client)
                deadline = time.monotonic() + 60
                while await _copied(client) < handled:
                    assert time.monotonic() < deadline, "the state is copied"
                    await asyncio.sleep(0.2)
                await node.event("link.state", "link/eth1", up=False, admin_up=True, carrier=False)
                await client.jetstream().purge_stream(subjects.stream(CELL), seq=handled + 1)
                await node_client.close()
                await brain.stop()
                yield Old(brain, client, out)
            finally:
                await client.close()
                await brain.stop()


async def _last(client: Client) -> int:
    return (await client.jetstream().stream_info(subjects.stream(CELL))).state.last_seq


async def _copied(client: Client) -> int:
    """To which position the copy in NATS reaches."""
    return snapshot_seq(await state_copy.read(client, CELL))


def snapshot_seq(raw: bytes) -> int:
    """The position of a snapshot; 0: it is none."""
    return int(orjson.loads(raw.partition(b"\n")[0])["seq"]) if raw else 0


@pytest.fixture(autouse=True)
def _a_copy_of_each_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brain.leader.snapshots.COPY_S", 0.0)


async def test_what_is_older_than_the_log_is_not_forgotten(tmp_path: Path) -> None:
    """The hold stands, the incident is open and is shown, and what came after the copy was read from the log."""
    async with old(tmp_path) as cell:
        cell.lose_disk()
        await cell.brain.start()
        status = await cell.brain.get("/api/v1/status")
        assert [hold["scope"] for hold in status["holds"]] == ["node/n1"]
        found = await cell.brain.until(
            lambda found: len(found["incidents"]) >= 2, "both faults are shown", "/api/v1/incidents"
        )
        assert sorted(one["scope"] for one in found["incidents"]) == [
            "gpu/n1/0000:3b:00",
            "link/n1/eth1",
        ]
        assert cell.out.told("state_lost") == []


async def test_a_state_that_is_lost_is_told(tmp_path: Path) -> None:
    """No snapshot, no copy, and a log without its beginning: people hear what is not known any more."""
    async with old(tmp_path) as cell:
        cell.lose_disk()
        await cell.client.jetstream().delete_object_store(subjects.state_bucket(CELL))
        await cell.brain.start()
        await told(cell.out, "state_lost")
        (page,) = [page for page in cell.out.pages if page["cause"] == "state_lost"]
        assert "what was open, held and drained before is not known here" in page["why_now"]

"""The brain's folder comes back from a backup, and the log has gone on meanwhile."""

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from agent.contract import subjects
from brain.adapters import state_copy
from tests.real.brain_kit import Lab, Node
from tests.real.nats import NatsServer, nats_server
from tests.real.test_nobody_leads import Outside, outside
from tests.real.test_state_outlives_log import snapshot_seq

pytestmark = pytest.mark.component("nats-server")
CELL = "default"


@pytest.fixture(autouse=True)
def _a_copy_of_each_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brain.leader.snapshots.COPY_S", 0.0)


class Site:
    """A brain on a server of the site's own, and a node."""

    def __init__(self, server: NatsServer, brain: Lab, client: Client, out: Outside) -> None:
        self.server = server
        self.brain = brain
        self.client = client  # with the brain's rights
        self.out = out

    @contextlib.asynccontextmanager
    async def node(self) -> AsyncIterator[Node]:
        """While the brain runs."""
        assert self.brain.running is not None
        client = await nats.connect(self.server.node_url("n1"))
        node = Node("n1", client, self.brain.running.signer.key.verify_key)
        node.session = f"s{time.time_ns()}"
        node._seq = int(time.time()) % 10**6  # ids that no node before it had
        await node.listen()
        try:
            yield node
        finally:
            await client.close()

    async def fault(self, kind: str, component: str, **data: Any) -> None:
        """One that the brain has seen, and whose state is copied to NATS."""
        async with self.node() as node:
            await node.event(kind, component, **data)
        await self.brain.until(
            lambda found: any(component.partition("/")[2] in one["scope"] for one in found["incidents"]),
            f"{component} is seen",
            "/api/v1/incidents",
        )
        await self.copied()

    async def copied(self) -> None:
        """The state in NATS is that of now."""
        until = await self.last()
        deadline = time.monotonic() + 60
        while snapshot_seq(await state_copy.read(self.client, CELL)) < until:
            assert time.monotonic() < deadline, "the state is copied"
            await asyncio.sleep(0.2)

    async def last(self) -> int:
        """The newest position of the log."""
        return int((await self.client.jetstream().stream_info(subjects.stream(CELL))).state.last_seq)

    async def scopes(self) -> list[str]:
        """Of all incidents that the history shows, closed ones too."""
        found = await self.brain.get("/api/v1/incidents?all=1")
        return sorted(one["scope"] for one in found["incidents"])


@contextlib.asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    """As above; the brain runs."""
    with nats_server(folder / "nats", nodes=["n1"]) as server:
        async with outside() as out:
            more = {"snapshot": {"every_s": 1}, "nats": {"url": server.url}, "settings": {"hold_off_s": 0}}
            brain = Lab(folder / "b1", more | out.config)
            client = await nats.connect(server.url)
            try:
                await brain.start()
                yield Site(server, brain, client, out)
            finally:
                await client.close()
                await brain.stop()


async def test_what_the_log_has_beyond_the_backup_is_in_the_history_too(tmp_path: Path) -> None:
    """The log has lost its oldest messages, and still has all that came after the backup: state and history go on from there,
    although the copy of the state in NATS is newer.
    """
    async with site(tmp_path) as here:
        await here.fault("gpu.lost", "gpu/0000:3b:00", reason="lost")
        await here.brain.stop()
        backup = tmp_path / "backup"
        shutil.copytree(here.brain.config.data_dir, backup)
        of_backup = await here.last()
        await here.brain.start()
        await here.fault("link.state", "link/eth1", up=False, admin_up=True, carrier=False)
        (link,) = [one for one in await here.brain.incidents() if one["scope"] == "link/n1/eth1"]
        assert (await here.brain.say("close", id=link["id"], why="it was the cable"))[0] == 200
        await here.copied()
        await here.brain.stop()
        await here.client.jetstream().purge_stream(subjects.stream(CELL), seq=of_backup)
        before = set(here.out.told("state_lost"))
        shutil.rmtree(here.brain.config.data_dir)
        shutil.copytree(backup, here.brain.config.data_dir)
        await here.brain.start()
        deadline = time.monotonic() + 30
        while (found := await here.scopes()) != ["gpu/n1/0000:3b:00", "link/n1/eth1"]:
            assert time.monotonic() < deadline, found
            await asyncio.sleep(0.2)
        assert set(here.out.told("state_lost")) == before

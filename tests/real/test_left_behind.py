"""A brain that was cut off until the log no longer had what it has not read: it catches up by the copy of the state."""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js.errors import NotFoundError

from agent.contract import subjects
from brain.adapters import state_copy
from tests.chaos.proxy import Proxy
from tests.real.archive_kit import say
from tests.real.brain_kit import Lab
from tests.real.nats import NatsServer, nats_server
from tests.real.test_state_outlives_log import CELL, _a_copy_of_each_snapshot, snapshot_seq

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.timeout(240)]
__all__ = ["_a_copy_of_each_snapshot"]


@pytest.fixture(name="server")
def _server(tmp_path: Path) -> Iterator[NatsServer]:
    with nats_server(tmp_path / "nats") as server:
        yield server


@pytest.fixture(name="way")
def _way(server: NatsServer) -> Iterator[Proxy]:
    way = Proxy(server.port)
    way.start()
    try:
        yield way
    finally:
        way.stop()


@pytest.mark.parametrize("copied", [True, False], ids=["with a copy", "without"])
async def test_a_standby_that_was_cut_off_knows_what_was_said_meanwhile(
    tmp_path: Path, server: NatsServer, way: Proxy, copied: bool
) -> None:
    """A hold, that is: it must stand when this brain leads. Without a copy a person is told what it has not read."""
    more: dict[str, Any] = {"snapshot": {"every_s": 1}, "lease_ttl_s": 2}
    leader = Lab(tmp_path / "b1", more | {"brain": "b1", "nats": {"url": server.url}})
    client = await nats.connect(server.url)
    try:
        await leader.start()
        cut_off = {"brain": "b2", "nats": {"url": f"nats://127.0.0.1:{way.port}"}}
        other = Lab(tmp_path / "b2", more | cut_off | {"signing_key_file": str(leader.config.signing_key)})
        await other.start(leads=False)
        try:
            await other.until(lambda found: found["caught_up"] and found["pack"], "it reads along")
            way.sever()
            await other.until(lambda found: not found["connected"], "it is cut off")
            assert (await leader.say("hold", scope="all", why="while it was away"))[0] == 200
            last = (await client.jsm().stream_info(subjects.stream(CELL))).state.last_seq
            deadline = time.monotonic() + 60
            while snapshot_seq(await state_copy.read(client, CELL)) < last:
                assert time.monotonic() < deadline, "the state is copied"
                await asyncio.sleep(0.2)
            await client.jsm().purge_stream(subjects.stream(CELL), seq=last + 1)
            await leader.stop()
            if not copied:
                await client.jetstream().delete_object_store(subjects.state_bucket(CELL))
            way.heal()
            status = await other.until(lambda found: found["leads"], "it leads")
            told = "log_gap" in (tmp_path / "b2/brain/pages.log").read_text() if not copied else False
            assert [one["why"] for one in status["holds"]] == (["while it was away"] if copied else [])
            assert told != copied
        finally:
            await other.stop()
    finally:
        await client.close()
        await leader.stop()


@pytest.mark.parametrize("disk", [True, False], ids=["with its disk", "without"])
async def test_a_log_of_which_nothing_is_left_keeps_no_brain_from_leading(
    tmp_path: Path, server: NatsServer, disk: bool
) -> None:
    """A cell that was killed, and switched off for longer than the log keeps: what the brain has not read will never come."""
    brain = Lab(tmp_path / "b1", {"nats": {"url": server.url}})
    client = await nats.connect(server.url)
    try:
        await brain.start()
        await brain.stop()
        await say(client, 0, 3)
        last = (await client.jsm().stream_info(subjects.stream(CELL))).state.last_seq
        await client.jsm().purge_stream(subjects.stream(CELL), seq=last + 1)
        if not disk:
            (brain.config.data_dir / "state.snapshot").unlink()
        with contextlib.suppress(NotFoundError):
            await client.jetstream().delete_object_store(subjects.state_bucket(CELL))
        await brain.start()
        told = (brain.config.data_dir / "pages.log").read_text()
        assert ("log_gap" if disk else "state_lost") in told
    finally:
        await client.close()
        await brain.stop()

"""The log's archive when its store is not as the brain left it: an older copy that was put back, a file that was written in the
brain's last moment, a damaged one. All that the log still has is in it again, and what is missing is told to a person.
"""

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from nats.aio.client import Client

from agent.contract import subjects
from brain.adapters import archive_reader
from brain.adapters.archive_store import ArchiveStore
from tests.real.archive_kit import Hands, connected
from tests.real.nats import make_log, nats_server
from tests.real.test_archive import each_once, kept, whole

pytestmark = pytest.mark.component("nats-server")


@contextlib.asynccontextmanager
async def log(folder: Path) -> AsyncIterator[Client]:
    """A connection to a server with an empty log."""
    with nats_server(folder / "nats") as server:
        await make_log(server.url)
        async with connected(server.url) as client:
            yield client


@pytest.mark.parametrize(
    "emptied", [False, True], ids=["an older copy", "nothing, as a share that is not mounted"]
)
async def test_a_store_that_is_put_back_under_a_leader_is_filled_up(tmp_path: Path, emptied: bool) -> None:
    """Nobody stops the brain for that. Its next file must not begin behind what is no longer there."""
    async with log(tmp_path) as client:
        hands = Hands(client, tmp_path / "archive")
        async with hands.writing():
            await hands.say_until_kept(20)
            older = shutil.copytree(hands.folder, tmp_path / "older")
            await hands.say_until_kept(20)
            await hands.say_until_kept(20)
            shutil.rmtree(hands.folder / "default")
            if not emptied:
                shutil.copytree(older, hands.folder, dirs_exist_ok=True)
            await hands.say_until_kept(20)
            last = await hands.say_until_kept(20)
        found, gaps = kept(hands.store)
        assert gaps == []
        assert [one.seq for one in found][:last] == list(range(1, last + 1))
        assert found == await whole(client, found[-1].seq)
        each_once(hands.store)
        assert hands.noted == ["archive.put_back"]


async def test_what_the_log_no_longer_has_is_a_gap_then(tmp_path: Path) -> None:
    """The older copy lacks what the log has dropped meanwhile: paged, with its positions in the archive."""
    async with log(tmp_path) as client:
        hands = Hands(client, tmp_path / "archive")
        async with hands.writing():
            reached = await hands.say_until_kept(20)
            older = shutil.copytree(hands.folder, tmp_path / "older")
            last = await hands.say_until_kept(20)
            shutil.rmtree(hands.folder / "default")
            shutil.copytree(older, hands.folder, dirs_exist_ok=True)
            await client.jsm().purge_stream(subjects.stream("default"), seq=last)
            await hands.say_until_kept(20)
        found, (gap,) = kept(hands.store)
        assert gap.first > reached - 1
        assert gap.last == last - 1
        assert found[-1].seq > last
        assert hands.noted == ["archive.put_back", "archive_gap"]


async def test_a_gap_is_told_also_when_its_file_was_the_brains_last_deed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is in the store, and the brain is killed, or its connection lost, before it has heard so. Whoever leads next tells
    the gap, once.
    """
    stored = asyncio.Event()
    loop = asyncio.get_running_loop()
    real = ArchiveStore.put

    def put(self: ArchiveStore, path: str, content: bytes, *, again: bool = False) -> bool:
        real(self, path, content, again=again)
        loop.call_soon_threadsafe(stored.set)
        time.sleep(1e6)  # for ever: no answer comes
        return True

    async with log(tmp_path) as client:
        hands = Hands(client, tmp_path / "archive")
        async with hands.writing():
            await hands.say_until_kept(20)
        kept_to = archive_reader.tail(hands.store, hands.segments()[-1]).end.last
        await hands.say(10)
        await client.jsm().purge_stream(subjects.stream("default"), seq=kept_to + 5)
        monkeypatch.setattr(ArchiveStore, "put", put)
        async with hands.writing():
            await hands.say(30)
            await asyncio.sleep(1.1)  # a file ends with its second
            await hands.say(1)
            async with asyncio.timeout(60):
                await stored.wait()
        monkeypatch.setattr(ArchiveStore, "put", real)
        assert hands.noted == []
        successor = hands.successor()
        async with successor.writing():
            await successor.say_until_kept(20)
            assert successor.noted == ["archive_gap"]
        _, (gap,) = kept(hands.store)
        assert gap.first == kept_to + 1
        async with successor.writing():  # as after a lost connection
            await successor.say_until_kept(5)
        assert successor.noted == ["archive_gap"]


async def test_a_damaged_file_that_nothing_can_make_again_is_paged(tmp_path: Path) -> None:
    """Its messages are in no file that can be read, and in no log."""
    async with log(tmp_path) as client:
        hands = Hands(client, tmp_path / "archive")
        async with hands.writing():
            await hands.say_until_kept(20)
        newest = hands.segments()[-1]
        (hands.folder / newest.path).write_bytes(b"nothing")
        await hands.say(30)
        state = (await client.jsm().stream_info(subjects.stream("default"))).state
        await client.jsm().purge_stream(subjects.stream("default"), seq=state.last_seq)
        async with hands.writing():
            await hands.say_until_kept(20)
        assert hands.noted == ["archive.damaged", "archive_gap"]

"""The log's archive in a folder and on a real S3 server: nothing is missing in it and nothing is there twice, whatever dies."""

import asyncio
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import nats
import orjson
import pytest
from nats.aio.client import Client

from agent.contract import subjects
from brain.adapters import archive_reader, archive_store
from brain.adapters.archive_store import ArchiveStore
from brain.adapters.log import Record
from brain.adapters.log_file import Damaged, Gap
from brain.adapters.log_pull import LogPull
from brain.archive_config import ArchiveConfig
from tests.e2e.stack import Stack
from tests.real.archive_kit import QUICK, Hands, connected, say
from tests.real.brain_kit import Lab, lab
from tests.real.disk_kit import fill, small_disk
from tests.real.nats import make_log, nats_server
from tests.real.s3_kit import S3Server, rclone

pytestmark = pytest.mark.component("nats-server")
on_s3 = pytest.mark.skipif(not rclone(), reason="no S3 server is packaged for this machine")


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[S3Server]:
    """A running server."""
    server = S3Server(tmp_path)
    server.start()
    try:
        yield server
    finally:
        server.kill()


async def whole(client: Client, up_to: int, after: int = 0) -> list[Record]:
    """What the log has."""
    pull = LogPull(client, "default", after)
    found: list[Record] = []
    while not found or found[-1].seq < up_to:
        found += await pull.piece(5)
    await pull.close()
    return [plain(one) for one in found if one.seq <= up_to]


def plain(record: Record) -> Record:
    """Without what the server said of its backlog."""
    return Record(record.seq, record.at, record.subject, record.body, 0)


def kept(store: ArchiveStore) -> tuple[list[Record], list[Gap]]:
    """What the newest log of an archive has: each message once, in order (archive_reader sees to that, and says Damaged)."""
    logs = store.logs("default")
    found = list(archive_reader.archive_parts(store, "default", logs[-1])) if logs else []
    return [one for one in found if isinstance(one, Record)], [one for one in found if isinstance(one, Gap)]


def each_once(store: ArchiveStore) -> None:
    """No file holds what another one holds."""
    (log,) = store.logs("default")
    last = 0
    for segment in store.segments("default", log):
        assert segment.first > last, f"{segment.path} begins within the one before it"
        last = archive_reader.tail(store, segment).end.last


async def until_kept(store: ArchiveStore, seq: int, within_s: float = 60) -> list[Record]:
    """The archive, when it has everything up to a position."""
    deadline = time.monotonic() + within_s
    while True:
        found, _ = await asyncio.to_thread(kept, store)
        if found and found[-1].seq >= seq:
            return found
        assert time.monotonic() < deadline, (
            f"{len(found)} messages, up to {found[-1].seq if found else 0}, want {seq}"
        )
        await asyncio.sleep(0.2)


@on_s3
async def test_brains_are_killed_and_take_over_in_the_middle(tmp_path: Path, s3: S3Server) -> None:
    """A leader writes a file each second and is killed at any moment; the other one goes on, is killed too, and so on. In the end
    the archive has what the log has, in order and each message once, and each file was written by one of them.
    """
    config = ArchiveConfig.model_validate(QUICK | s3.archive | {"credentials_file": s3.credentials})
    more = "[archive]\n" + "".join(
        f"{key} = {orjson.dumps(one).decode()}\n" for key, one in (QUICK | s3.archive).items()
    )
    cell = Stack(tmp_path)
    try:
        cell.nats.start()
        cell.start_receiver()
        cell.write_brain_config(f"{more}")
        await asyncio.to_thread(cell.start_brain)
        client = await nats.connect(cell.nats.url)
        said = 0
        for killed in ("brain", "standby"):
            other = "standby" if killed == "brain" else "brain"
            if other == "standby":
                await asyncio.to_thread(cell.start_standby)
            else:
                await asyncio.to_thread(cell.start_brain, leads=False)
            await say(client, said, 400)
            said += 400
            await asyncio.to_thread(cell.kill, killed)
            await say(client, said, 200)
            said += 200
            await asyncio.to_thread(
                cell.wait_for,
                lambda other=other: cell.get("/api/v1/status", cell.url_of(other)).get("leads"),
                f"{other} leads",
            )
        last = (await client.jsm().stream_info(subjects.stream("default"))).state.last_seq
        store = archive_store.opened(config)
        found = await until_kept(store, last)
        assert found == await whole(client, found[-1].seq)
        assert kept(store)[1] == []
        each_once(store)
        await client.close()
    finally:
        await asyncio.to_thread(cell.end)


@on_s3
async def test_an_archive_that_is_away_holds_nothing_up_and_is_told(tmp_path: Path, s3: S3Server) -> None:
    """S3 is down: people are paged, and the brain handles what comes. Meanwhile the log loses its oldest messages. When S3 is
    back the archive goes on behind the gap, says where it is, and people are told of both.
    """
    archive = QUICK | s3.archive | {"behind_after_s": 8}
    async with lab(tmp_path, archive=archive, brain="b1") as cell:
        client = await cell.brain_client()
        store = archive_store.opened(cell.config.archive)
        await say(client, 0, 50)
        last = await cell.until(lambda status: status["seq"] >= 50, "it has read them")
        await until_kept(store, last["seq"])
        s3.kill()
        begin = (await cell.get("/api/v1/status"))["seq"]
        await say(client, 50, 200)
        status = await cell.until(
            lambda status: "archive_behind" in [one["cause"] for one in status["troubles"]], "people are told"
        )
        (text,) = [one["text"] for one in status["troubles"] if one["cause"] == "archive_behind"]
        assert "later than it should be" in text
        assert s3.archive["url"] in text
        assert "SECRET" not in text
        assert status["leads"]
        assert status["seq"] >= begin + 200, "what came was handled"
        behind = await metric(cell, "gpuward_archive_behind_seconds")
        assert behind is not None
        assert behind >= 8
        # The log loses its oldest messages, as it does when it is full.
        cut = status["seq"] - 20
        await client.jsm().purge_stream(subjects.stream("default"), seq=cut)
        s3.start()
        await cell.until(lambda status: not status["troubles"], "people are told that it is over")
        after = (await cell.get("/api/v1/status"))["seq"]
        await until_kept(store, after)
        found, gaps = kept(store)
        assert len(gaps) == 1
        (gap,) = gaps
        assert gap.last == cut - 1
        assert [one.seq for one in found] == [
            *range(1, gap.first),
            *range(cut, found[-1].seq + 1),
        ]
        assert found[gap.first - 1 :] == await whole(client, found[-1].seq, cut - 1)
        assert await metric(cell, "gpuward_archive_missing_total") == gap.last - gap.first + 1
        assert (await metric(cell, "gpuward_archive_position") or 0) >= after
        notes = await told(cell)
        assert notes["archive_gap"] == notes["archive_behind"] == notes["archive_behind.over"] == 1
        assert notes["archive.failing"] == notes["archive.works"] == 1


async def metric(cell: Lab, name: str) -> float | None:
    """Its only sample."""
    lines = (await metrics(cell)).splitlines()
    return next((float(line.split()[-1]) for line in lines if line.split()[0] == name), None)


async def metrics(cell: Lab) -> str:
    """The page."""
    assert cell._session is not None
    async with cell._session.get("/metrics") as answer:
        return await answer.text()


async def told(cell: Lab) -> dict[str, int]:
    """How often each kind of note was written."""
    found = {}
    for line in (await metrics(cell)).splitlines():
        if line.startswith('gpuward_notes_total{kind="'):
            found[line.split('"')[1]] = int(float(line.split()[-1]))
    return found


async def test_a_damaged_file_is_made_again(tmp_path: Path) -> None:
    """The newest file was cut off while nobody wrote: whoever leads next makes it again from the log, and says so.
    When the log no longer has what was in it, it is left, and a person is told what to do.
    """
    with nats_server(tmp_path / "nats") as server:
        await make_log(server.url)
        async with connected(server.url) as client:
            hands = Hands(client, tmp_path / "archive")
            async with hands.writing():
                await hands.say_until_kept(50)
            newest = hands.segments()[-1]
            path = hands.folder / newest.path
            whole_file = path.read_bytes()
            path.write_bytes(whole_file[: len(whole_file) // 2])
            async with hands.writing():
                last = await hands.say_until_kept(50)
            found, gaps = kept(hands.store)
            assert found == await whole(client, found[-1].seq)
            assert gaps == []
            assert hands.noted == ["archive.damaged"]
            each_once(hands.store)
            newest = hands.segments()[-1]
            (hands.folder / newest.path).write_bytes(b"nothing")
            await client.jsm().purge_stream(subjects.stream("default"), seq=last)
            async with hands.writing():
                await hands.written()
            with pytest.raises(Damaged, match=newest.path):
                kept(hands.store)
            (hands.folder / newest.path).unlink()
            found, (gap,) = kept(hands.store)
            assert gap.first == newest.first
            assert found[-1].seq > gap.last


@pytest.mark.parametrize("grown", [False, True])
async def test_a_log_that_lost_its_newest_messages_is_written_anew(tmp_path: Path, grown: bool) -> None:
    """NATS was put back from an older copy, and gives positions again to other messages (`grown`: past the archive's end before
    somebody looks). What was archived stays as it was, and the log as it is now has a folder of its own.
    """
    with nats_server(tmp_path / "nats") as server:
        await make_log(server.url)
        async with connected(server.url) as client:
            hands = Hands(client, tmp_path / "archive")
            async with hands.writing():
                await hands.say_until_kept(50)
        server.stop()
        shutil.copytree(server.store, tmp_path / "older")
        server.start()
        async with connected(server.url) as client:
            hands = Hands(client, tmp_path / "archive")
            async with hands.writing():
                await hands.say_until_kept(200)
        before, _ = kept(hands.store)
        server.stop()
        shutil.rmtree(server.store)
        shutil.copytree(tmp_path / "older", server.store)
        server.start()
        async with connected(server.url) as client:
            hands = Hands(client, tmp_path / "archive")
            if grown:
                await say(client, 1000, 400)
            async with hands.writing():
                await hands.say_until_kept(10, logs=2)
            state = (await client.jsm().stream_info(subjects.stream("default"))).state
            found, gaps = kept(hands.store)
            assert found == await whole(client, found[-1].seq)
            assert gaps == []
            assert grown or state.last_seq < before[-1].seq, "it need not grow so far to be seen"
        old, new = hands.store.logs("default")
        assert new == f"{old}.2"
        parts = archive_reader.archive_parts(hands.store, "default", old)
        assert [one for one in parts if isinstance(one, Record)] == before
        assert hands.noted == ["archive.branched"]


@pytest.mark.root
async def test_a_full_disk_is_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be read and takes nothing: that is no sign that it works again. With room it catches up by itself."""
    opened: list[ArchiveConfig] = []

    def counted(config: ArchiveConfig) -> ArchiveStore:
        opened.append(config)
        return real(config)

    real = archive_store.opened
    with small_disk(tmp_path / "share") as disk, nats_server(tmp_path / "nats") as server:
        await make_log(server.url)
        async with connected(server.url) as client:
            hands = Hands(client, disk / "archive")
            async with hands.writing():
                kept_to = await hands.say_until_kept(20)
                ballast = fill(disk)
                monkeypatch.setattr(archive_store, "opened", counted)
                deadline = time.monotonic() + 60
                number = 1000
                while len(opened) < 3:  # attempts after the first that failed
                    assert time.monotonic() < deadline, hands.noted
                    await say(client, number := number + 1, 1)
                    await asyncio.sleep(0.2)
                assert hands.noted == ["archive.failing"]
                ballast.unlink()
                assert await hands.written() > kept_to
            assert hands.noted == ["archive.failing", "archive.works"]

"""The log as a file, out of a running brain and out of its archive: replayed it gives what the brain has, byte for byte."""

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from agent.contract import subjects
from brain.adapters import archive_reader, archive_store, state_copy
from brain.adapters.log import Record
from brain.adapters.log_file import Gap, Part
from brain.core.effects import Effect
from brain.core.inputs import Input
from brain.leader import log_export, replay
from tests.e2e.stack import BIN
from tests.real.brain_kit import Lab, Node
from tests.real.nats import nats_server

pytestmark = pytest.mark.component("nats-server")


class Cell:
    """A cell with a fault and a hold, whose log is in an archive; its brain runs."""

    def __init__(self, folder: Path, brain: Lab, client: Client, node: Node) -> None:
        self.folder = folder
        self.brain = brain
        self.client = client
        self.node = node
        self.archive = folder / "archive"
        self.store = archive_store.opened(brain.config.archive)

    async def gpuward(self, *args: str) -> str:
        """What a command prints."""
        url = self.brain.running.console_url if self.brain.running else ""
        done = await asyncio.to_thread(
            subprocess.run,
            [str(BIN / "gpuward"), *args],
            env=os.environ | {"GPUWARD_URL": url, "GPUWARD_TOKEN_FILE": str(self.brain.ann)},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return str(done.stdout)

    async def last(self) -> int:
        """The newest position of the log."""
        return int((await self.client.jsm().stream_info(subjects.stream("default"))).state.last_seq)

    async def archived(self, seq: int) -> int:
        """When the archive has everything up to a position: how far it reaches."""
        deadline = time.monotonic() + 60
        while True:
            for log in self.store.logs("default")[-1:]:
                if segments := self.store.segments("default", log):
                    end = archive_reader.tail(self.store, segments[-1]).end.last
                    if end >= seq:
                        return end
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)

    async def poor_copy(self) -> None:
        """When the brain has copied its state to NATS."""
        deadline = time.monotonic() + 60
        while not await state_copy.read(self.client, "default"):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def cell(folder: Path) -> AsyncIterator[Cell]:
    """As above."""
    (folder / "archive").mkdir()
    with nats_server(folder / "nats", nodes=["n1"]) as server:
        more: dict[str, Any] = {
            "nats": {"url": server.url},
            "settings": {"hold_off_s": 0},
            "archive": {"url": str(folder / "archive"), "segment_s": 1},
            "snapshot": {"every_s": 1},
        }
        brain = Lab(folder / "b1", more)
        client = await nats.connect(server.url)
        node_client = await nats.connect(server.node_url("n1"))
        try:
            await brain.start()
            assert brain.running is not None
            node = Node("n1", node_client, brain.running.signer.key.verify_key)
            await node.listen()
            await node.event("gpu.lost", "gpu/0000:3b:00", reason="lost")
            await brain.until(lambda found: found["incidents"], "the fault is seen", "/api/v1/incidents")
            assert (await brain.say("hold", scope="node/n1", why="under repair for months"))[0] == 200
            await node.event("link.state", "link/eth1", up=False, admin_up=True, carrier=False)
            yield Cell(folder, brain, client, node)
        finally:
            await node_client.close()
            await client.close()
            await brain.stop()


def up_to(parts: Iterator[Part], last: int) -> Iterator[Part]:
    """Nothing behind a position."""
    return (one for one in parts if not isinstance(one, Record) or one.seq <= last)


def played(parts: Iterator[Part]) -> tuple[list[str], bytes]:
    """All effects, and the state that is left."""
    effects: list[str] = []

    def watch(_: Input, seq: int, made: Sequence[Effect]) -> None:
        effects.extend(f"{seq} {one!r}" for one in made)

    return effects, replay.replay(parts, watch).state


def history(file: Path) -> list[list[Any]]:
    """What a read model has of the log: not what the brain itself noted."""
    with contextlib.closing(sqlite3.connect(file)) as db:
        notes = (
            "SELECT id, seq, at, kind, text, incident, run, scope, caused_by, data FROM notes WHERE seq > 0"
        )
        asked = (
            f"{notes} ORDER BY n",
            "SELECT * FROM incidents ORDER BY id",
            "SELECT * FROM runs ORDER BY id",
        )
        return [db.execute(one).fetchall() for one in asked]


async def test_a_replay_gives_what_the_brain_has(tmp_path: Path) -> None:
    """Exported from the brain, exported from its archive, read from the archive: the same effects and the same state. The whole
    log gives the brain's own snapshot and its own history.
    """
    async with cell(tmp_path) as site:
        reached = await site.archived(await site.last())
        live, kept, short = (tmp_path / name for name in ("live.ndjson", "kept.ndjson.gz", "short.ndjson"))
        said = await site.gpuward("log", "export", str(live))
        assert "messages up to" in said
        assert live.stat().st_mode & 0o777 == 0o600
        await site.gpuward("log", "export", str(kept), "--from-archive", str(site.archive))
        shown = json.loads(await site.gpuward("log", "show", str(site.archive), "--json"))
        assert shown["gaps"] == []
        assert shown["last"] >= reached
        first = json.loads(live.read_text().splitlines()[0])
        assert (first["format"], first["version"], first["cell"], first["first"]) == (
            "gpuward-log",
            1,
            "default",
            1,
        )
        (log,) = site.store.logs("default")
        of_brain = played(up_to(archive_reader.file_parts(live), reached))
        assert any("ShowIncident" in one for one in of_brain[0])
        assert of_brain == played(up_to(archive_reader.file_parts(kept), reached))
        assert of_brain == played(up_to(archive_reader.archive_parts(site.store, "default", log), reached))
        # From a time on: the messages since then.
        records = [one for one in archive_reader.file_parts(live) if isinstance(one, Record)]
        begin = next(new for old, new in itertools.pairwise(records) if new.at - old.at > 0.01)
        when = datetime.fromtimestamp(begin.at - 0.005, UTC).isoformat()
        await site.gpuward("log", "export", str(short), "--since", when)
        begins = next(one.seq for one in archive_reader.file_parts(short) if isinstance(one, Record))
        assert begins == begin.seq
        since = begin.at - 0.005
        some = archive_reader.archive_parts(site.store, "default", log, since=since)
        until = records[-2].at
        found = [one.seq for one in archive_reader.between(some, since, until) if isinstance(one, Record)]
        assert found[0] == begin.seq
        assert found == list(range(begin.seq, found[-1] + 1))
        assert found[-1] <= records[-3].seq
        await site.brain.stop()
        whole = tmp_path / "whole.ndjson.gz"
        pieces = [piece async for piece in log_export.pieces(site.client, "default", 0, 1e11)]
        whole.write_bytes(b"".join(pieces))
        said = await site.gpuward("log", "replay", str(whole), "--into", str(tmp_path / "again"))
        own, made = (
            (folder / "state.snapshot").read_bytes()
            for folder in (site.brain.config.data_dir, tmp_path / "again")
        )
        # The head says that it was replayed, and vouches for itself by a hash of what it says.
        of_own, of_made = (json.loads(one.split(b"\n", 1)[0]) for one in (own, made))
        assert of_made.pop("replayed") is True
        assert of_made.pop("head") != of_own.pop("head")
        assert of_made == of_own
        assert made.split(b"\n", 1)[1] == own.split(b"\n", 1)[1]
        assert history(tmp_path / "again/history.sqlite") == history(
            site.brain.config.data_dir / "history.sqlite"
        )


async def test_a_backtest_of_the_export_gives_the_incidents_that_the_brain_has(tmp_path: Path) -> None:
    """With their ids and states; what comes of the archive is the same."""
    async with cell(tmp_path) as site:
        await site.archived(await site.last())
        await site.brain.until(
            lambda found: len(found["incidents"]) >= 2, "both faults are seen", "/api/v1/incidents"
        )
        live, kept = tmp_path / "live.ndjson", tmp_path / "kept.ndjson.gz"
        await site.gpuward("log", "export", str(live))
        have = await site.brain.incidents()
        await site.archived(await site.last())
        await site.gpuward("log", "export", str(kept), "--from-archive", str(site.archive))
        for file in (live, kept):
            found = json.loads(await site.gpuward("backtest", str(file), "--json"))
            assert found["rules"]["from"] == "those of the log"
            keys = {(one["id"], one["cause"], one["place"], one["severity"]) for one in found["incidents"]}
            assert keys == {(one["id"], one["cause"], one["scope"], one["severity"]) for one in have}


@pytest.mark.parametrize("started", [False, True], ids=["at once", "after the page"])
async def test_a_brain_that_lost_all_but_the_archive_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: bool
) -> None:
    """The log no longer has its beginning, the brain's disk is lost, and the copy of its state too: what was open and held is
    replayed from the archive, and the brain reads on from there. Also where it was started before anybody knew: the state
    without a beginning that it has copied to NATS since is newer, and must not win over the one that a person has replayed.
    """
    monkeypatch.setattr("brain.leader.snapshots.COPY_S", 0.0)
    async with cell(tmp_path) as site:
        reached = await site.archived(await site.last())
        incident = (await site.brain.incidents())[-1]
        await site.brain.stop()
        data = site.brain.config.data_dir
        for name in ("state.snapshot", "history.sqlite", "history.sqlite-wal", "history.sqlite-shm"):
            (data / name).unlink(missing_ok=True)
        with contextlib.suppress(NotFoundError):
            await site.client.jsm().delete_stream(f"OBJ_{subjects.state_bucket('default')}")
        await site.client.jsm().purge_stream(subjects.stream("default"), seq=reached)
        source = site.archive
        if started:
            # As an archive is whose files end with each hour: the copy is newer than all that is in it.
            source = Path(shutil.copytree(site.archive, tmp_path / "an hour ago"))
            await site.brain.start()
            await site.poor_copy()
            await site.brain.stop()
            for left in (*data.glob("history.sqlite*"), data / "state.snapshot"):
                left.rename(tmp_path / left.name)
        await site.gpuward("log", "replay", str(source), "--into", str(data))
        await site.brain.start()
        status = await site.brain.until(lambda status: status["leads"], "it leads")
        assert [one["scope"] for one in status["holds"]] == ["node/n1"]
        assert "state_lost" not in str(status["troubles"])
        again = (await site.brain.incidents())[-1]
        assert (again["id"], again["opened_at"]) == (incident["id"], incident["opened_at"])
        explained = await site.brain.get(f"/api/v1/explain/{incident['id']}")
        assert explained["notes"], "with its story"
        # And the archive goes on where it was.
        await site.archived(await site.last())
        (log,) = site.store.logs("default")
        assert not [
            one for one in archive_reader.archive_parts(site.store, "default", log) if isinstance(one, Gap)
        ]

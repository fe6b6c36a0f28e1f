"""The read model is derived from the log: damaged, it is set aside and made again, whatever the damage and whenever it is met."""

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from agent.contract.errors import ConfigError
from brain.adapters.readmodel import ReadModel
from brain.console.feed import Feed
from brain.core.effects import Note
from brain.core.state import State
from brain.leader.history import HistoryLost, HistoryWriter
from tests.security.test_cell import machine

PAGE = 4096


def zero_pages(path: Path, *tables: str) -> None:
    """The first pages of these tables are lost; what they are called, and all else, is whole."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        roots = dict(database.execute("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0"))
    with path.open("r+b") as file:
        for table in tables:
            file.seek((roots[table] - 1) * PAGE)
            file.write(b"\xff" * PAGE)


@pytest.mark.component("nats-server")
def test_a_brain_with_a_damaged_history_leads_and_has_its_history_again(tmp_path: Path) -> None:
    """Met at the start, and at the first write; what was decided is shown as before, and the log of the service says why."""
    with machine(tmp_path) as whole:
        history, log = whole.data / "history.sqlite", tmp_path / "brain.log"
        whole.ask("mode", "accept-node", "auto")
        assert whole.notes().count("operator.mode") == 1
        damages: list[Callable[[], object]] = [
            lambda: zero_pages(history, "meta"),
            lambda: zero_pages(history, "notes", "incidents", "runs", "notes_cause"),
            lambda: history.write_bytes(b"\0" * history.stat().st_size),
        ]
        for times, damage in enumerate(damages, 1):
            whole.stop_brain()
            damage()
            whole.start_brain()
            whole.until(
                lambda times=times: log.read_text().count("set aside as .damaged") >= times, "it is set aside"
            )
            whole.until(lambda: "operator.mode" in whole.notes(), "it is made again from the log")
            assert whole.notes().count("operator.mode") == 1
            whole.until(lambda: whole.status().get("leads"), "the brain leads")
        assert history.with_name("history.sqlite.damaged").exists()
        assert "cannot be written" not in log.read_text()
        assert "brain_failing" not in str(whole.status())


def note(number: int) -> Note:
    """Of some length, so that there are many pages."""
    return Note(id=f"n{number}", at=float(number), kind="k", text="x" * 500)


def flipped(body: bytes, chance: random.Random) -> bytes:
    """Some bytes are others."""
    damaged = bytearray(body)
    for _ in range(chance.choice((1, 10, 200))):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return bytes(damaged)


WAYS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "bytes": flipped,
    "cut": lambda body, chance: body[: chance.randrange(len(body))],
    "a page": lambda body, chance: (
        body[: (at := chance.randrange(len(body) // PAGE) * PAGE)] + bytes(PAGE) + body[at + PAGE :]
    ),
    "doubled": lambda body, _: body + body,
    "noise": lambda body, chance: chance.randbytes(len(body)),
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_is_damaged_the_history_goes_on(tmp_path: Path, way: str) -> None:
    """Opened, written, asked and reconciled by a writer that knows no more than the file: at most one loss, and then it works."""
    for seed in range(20):
        path = tmp_path / f"{seed}.sqlite"
        model = ReadModel(path)
        model.begin("log-1")
        model.write(300, [(number, note(number)) for number in range(1, 301)])
        model.close()
        path.write_bytes(WAYS[way](path.read_bytes(), random.Random(seed)))
        model = ReadModel(path)
        reader = model.reader(lambda: None)
        writer = HistoryWriter(model, Feed())
        for number in range(301, 306):
            if writer.written < number - 1:
                writer.resume(writer.open("log-1"))
            writer.collect(number, [note(number)])
            writer.flush()
            writer.reconcile(State(), "not known")
            try:
                reader.newest_notes(1000)
            except (sqlite3.DatabaseError, ValueError) as error:
                reader.failed(error)
        writer.resume(writer.open("log-1"))
        writer.collect(400, [note(400)])
        assert writer.flush(), f"seed {seed}"
        assert reader.newest_notes(1)[0]["id"] == "n400"
        reader.close()
        model.close()


@pytest.mark.parametrize("what", ["folder", "pipe"])
@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_what_is_no_file_is_set_aside_as_well(tmp_path: Path, what: str, suffix: str) -> None:
    """A backup that was unpacked wrongly, say: SQLite calls it a file that it cannot open, as on a full disk, for which no room
    that people make would help. What was there is kept; a history beside it is whole.
    """
    path = tmp_path / "history.sqlite"
    with_history = ReadModel(path)
    with_history.begin("log-1")
    with_history.write(1, [(1, note(1))])
    with_history.close()
    odd = path.with_name(f"history.sqlite{suffix}")
    odd.with_name(f"{odd.name}.damaged").write_text("of an earlier damage")
    odd.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(odd)
    else:
        odd.mkdir()
        (odd / "history.sqlite").write_text("of a backup")
    model = ReadModel(path)
    model.begin("log-1")
    model.write(2, [(2, note(2))])
    assert [one["id"] for one in model.newest_notes(2)] == (["n1", "n2"] if suffix else ["n2"])
    model.close()
    assert path.is_file()
    kept = odd.with_name(f"{odd.name}.damaged")
    if what == "folder":
        assert (kept / "history.sqlite").read_text() == "of a backup"
    else:
        assert kept.is_fifo()


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    """To a disk that is not mounted, say: the history is there, so nothing else takes its place."""
    path = tmp_path / "history.sqlite"
    path.symlink_to(tmp_path / "large-disk/history.sqlite")
    with pytest.raises(ConfigError, match=r"is a link to \S+/large-disk/history.sqlite, .* mount"):
        ReadModel(path)
    assert path.is_symlink()


async def test_damage_that_is_met_while_it_runs_ends_the_session_once(tmp_path: Path) -> None:
    """Nothing is written until it is opened again, and then it is behind: the log is read again."""
    path = tmp_path / "history.sqlite"
    model = ReadModel(path)
    model.begin("log-1")
    model.write(1, [(1, note(1))])
    model.close()
    zero_pages(path, "notes")
    writer = HistoryWriter(ReadModel(path), Feed())
    assert writer.open("log-1") == 1
    writer.resume(1)
    for number in (2, 3):
        writer.collect(number, [note(number)])
        assert not writer.flush()
    with pytest.raises(HistoryLost):
        await writer.until_lost()
    assert writer.open("log-1") == 0


def test_no_space_is_no_damage(tmp_path: Path) -> None:
    """What passes moves no file away: another program has the file, or the disk takes nothing."""
    path = tmp_path / "history.sqlite"
    ReadModel(path).close()
    before = path.read_bytes()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode=DELETE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ConfigError, match="is locked"):
            ReadModel(path)
    assert not path.with_name("history.sqlite.damaged").exists()
    assert path.read_bytes()[100:] == before[100:]
    model = ReadModel(path)
    writer = HistoryWriter(model, Feed())
    writer.open("log-1")
    (size,) = model._db.execute("PRAGMA page_count").fetchone()
    model._db.execute(f"PRAGMA max_page_count={size}")
    writer.collect(1, [note(number) for number in range(200)])
    assert not writer.flush()
    assert not path.with_name("history.sqlite.damaged").exists()
    model._db.execute("PRAGMA max_page_count=100000")
    assert writer.flush()

"""The journal of commands: what is on the disk when, and what of it a later agent reads."""

import json
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.commands.journal import Journal, JournalEntry, Result
from agent.contract.commands import Outcome
from tests.agent.commander_kit import order

DONE = Result(
    outcome=Outcome.OK, why="looked", took_s=1.5, evidence="bundle.tar.gz", evidence_bytes=17, blind="nvml",
    data={"alike": "H100"},
)  # fmt: skip
FAILED = Result(outcome=Outcome.FAILED, why="did not help")
RAW_DONE = {
    "outcome": "ok",
    "why": "looked",
    "took_s": 1.5,
    "evidence": "bundle.tar.gz",
    "evidence_bytes": 17,
    "blind": "nvml",
    "data": {"alike": "H100"},
}
RAW_ENTRY = {
    "id": "a",
    "action": "evidence.collect",
    "params": {"component": "node"},
    "epoch": 5,
    "boot": "boot-1",
    "session": "run-1",
    "until_s": 1060.0,
    "result": None,
    "told": False,
    "sent": False,
}
ENTRY = JournalEntry(
    id="a",
    action="evidence.collect",
    params={"component": "node"},
    epoch=5,
    boot="boot-1",
    session="run-1",
    until_s=1060.0,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the journal is; the folders above it are its own to make."""
    return tmp_path / "var" / "lib" / "journal.jsonl"


def lines(path: Path) -> list[Any]:
    """What the file holds, without numbers and checksums, and the ids that follow what was accepted."""
    whole = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(isinstance(line.pop("n"), int) and len(line.pop("crc")) == 8 for line in whole)
    for line, following in pairwise(whole):
        assert ("accepted" in line) == ("id" in following)
        assert "accepted" not in line or line["accepted"]["id"] == following["id"]
    return [line for line in whole if "id" not in line]


def written(path: Path, *raw: dict[str, Any]) -> Journal:
    """The journal of an agent that finds these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in raw))
    return Journal(path)


def fill(journal: Journal, *ids: str, **changes: Any) -> None:
    """These commands are accepted."""
    for name in ids:
        journal.accept(order(id=name, **changes), "boot-1", "run-1", 1000.0)


def test_one_line_for_each_thing_that_happens(path: Path) -> None:
    """The lines as they have to stay, compact; each is in the file when its call returns."""
    journal = Journal(path)
    begins = b'{"epoch":0,"n":0,"crc":"4cf433ad"}\n{"epoch":0,"n":1,"crc":"55ef02ec"}\n'
    assert path.read_bytes() == begins
    fill(journal, "a")
    journal.finish("a", DONE)
    journal.mark_reported("a")
    journal.mark_uploaded("a")
    journal.raise_epoch(6)
    assert lines(path) == [
        {"epoch": 0},
        {"epoch": 0},
        {"accepted": RAW_ENTRY},
        {"done": "a", "result": RAW_DONE},
        {"told": "a"},
        {"sent": "a"},
        {"epoch": 6},
    ]
    texts = [line.partition(',"n":')[0] for line in path.read_text().splitlines()[3:]]
    assert texts == [
        '{"id":"a"',
        '{"done":"a","result":{"outcome":"ok","why":"looked","took_s":1.5,"evidence":"bundle.tar.gz",'
        '"evidence_bytes":17,"blind":"nvml","data":{"alike":"H100"}}',
        '{"told":"a"',
        '{"sent":"a"',
        '{"epoch":6',
    ]
    whole = replace(ENTRY, result=DONE, reported=True, uploaded=True)
    assert (journal["a"], journal.epoch) == (whole, 6)
    again = Journal(path)
    assert (again["a"], again.epoch) == (whole, 6)
    ended = {"result": RAW_DONE, "told": True, "sent": True}
    compacted = [{"epoch": 6}, {"accepted": RAW_ENTRY | ended}, {"epoch": 6}]
    assert lines(path) == compacted
    assert b" " not in path.read_bytes(), "compact"
    assert (Journal(path)["a"], lines(path)) == (whole, compacted)


def test_what_is_open(path: Path) -> None:
    """Each question about the commands, while they go from accepted to uploaded."""

    def open_in(journal: Journal) -> tuple[list[str], list[str], list[str]]:
        asked = (journal.unfinished(), journal.unreported(), journal.to_upload())
        unfinished, unreported, upload = ([entry.id for entry in entries] for entries in asked)
        return unfinished, unreported, upload

    def still(*wanted: list[str]) -> None:
        assert open_in(journal) == wanted
        assert open_in(Journal(path)) == wanted, "after a restart too"

    journal = Journal(path)
    fill(journal, "a", "b", "c")
    still(["a", "b", "c"], [], [])
    journal.finish("b", FAILED)
    journal.finish("a", DONE)
    still(["c"], ["a", "b"], ["a"])
    journal.mark_reported("a")
    still(["c"], ["b"], ["a"])
    journal.mark_uploaded("a")
    journal.mark_reported("b")
    still(["c"], [], [])
    journal.mark_reported("forgotten")
    journal.mark_uploaded("forgotten")
    still(["c"], [], [])
    assert "forgotten" not in journal


def test_when_the_time_of_a_command_is_over(path: Path) -> None:
    """Its time runs from its acceptance, by the clock of that boot."""
    journal = Journal(path)
    journal.accept(order(timeout_s=60.0), "boot-1", "run-1")
    assert journal[order().id].until_s == 60.0
    fill(journal, "later", timeout_s=5.0)
    assert journal["later"].until_s == 1005.0


def test_the_epoch_never_falls(path: Path) -> None:
    """By commands and by word of a newer leader; over restarts."""
    journal = Journal(path)
    for epoch, highest in ((7, 7), (3, 7), (8, 8)):
        fill(journal, f"e{epoch}", epoch=epoch)
        assert journal.epoch == Journal(path).epoch == highest
    for epoch, highest in ((5, 8), (9, 9), (2, 9)):
        journal.raise_epoch(epoch)
        assert journal.epoch == highest
    assert Journal(path).epoch == 9


def test_what_follows_from_a_line_waits_for_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accepted, done and a new epoch are synced, with their line whole; that something was told or sent may be lost."""
    synced: list[Any] = []
    really = os.fsync

    def sync(fd: int) -> None:
        really(fd)
        synced.append(lines(path)[-1] if path.exists() else None)

    journal = Journal(path)
    monkeypatch.setattr("agent.commands.journal.os.fsync", sync)
    fill(journal, "a")
    journal.finish("a", FAILED)
    journal.mark_reported("a")
    journal.mark_uploaded("a")
    journal.raise_epoch(6)
    assert [next(iter(line)) for line in synced] == ["accepted", "done", "epoch"]
    synced.clear()
    Journal(path)
    assert synced, "nor may a power cut lose the file that is rewritten at start"


def test_half_a_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails half way is not done, and spoils no other line; what happened is known in memory all the same."""
    journal = Journal(path)
    fill(journal, "a")

    def tear(fd: int) -> None:
        os.ftruncate(fd, os.fstat(fd).st_size - 60)
        raise OSError(28, "no space left")

    with monkeypatch.context() as full:
        full.setattr("agent.commands.journal.os.fsync", tear)
        with pytest.raises(OSError, match="no space"):
            fill(journal, "b", epoch=9)
        assert "b" not in journal
        assert journal.epoch == 5
        with pytest.raises(OSError, match="no space"):
            journal.finish("a", DONE)
        assert journal["a"].result == DONE
    fill(journal, "c")
    fill(journal, "d")
    again = Journal(path)
    assert [entry.id for entry in again.unfinished()] == ["a", "c", "d"]
    assert again.epoch == 5


def test_a_line_that_follows_half_a_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins on a line of its own; the next one needs no more of that."""
    journal = Journal(path)

    def fail(_: int) -> None:
        raise OSError(5, "I/O error")

    with monkeypatch.context() as broken:
        broken.setattr("agent.commands.journal.os.fsync", fail)
        with pytest.raises(OSError, match="I/O"):
            journal.raise_epoch(6)
    journal.raise_epoch(7)
    journal.raise_epoch(8)
    assert [line.partition(b',"n"')[0] for line in path.read_bytes().splitlines()[2:]] == [
        b'{"epoch":6',
        b"",
        b'{"epoch":7',
        b'{"epoch":8',
    ]


@pytest.mark.parametrize(
    "rubbish",
    [
        b"\xff\xfe",
        b"[1]",
        b'"accepted"',
        b'{"accepted": {"id": 3}}',
        b'{"accepted": null}',
        b'{"accepted": "a"}',
        b'{"accepted": {"id": "x", "action": "x", "epoch": 1, "boot": "b", "session": "s", "result": "ok"}}',
        b'{"epoch": []}',
        b'{"epoch": "newest"}',
        b'{"done": "a"}',
        b'{"done": "a", "result": {}}',
        b'{"done": "a", "result": {"outcome": "splendid", "why": "", "took_s": 0, "evidence": ""}}',
        b'{"done": "nobody", "result": {}}',
        b'{"told": "nobody"}',
        b'{"sent": "nobody"}',
        b'{"more": "than we know"}',
        b'{"done": "b", "resu',
        b"",
    ],
)
def test_a_line_that_nobody_can_read(path: Path, rubbish: bytes) -> None:
    """It is passed over alone: the lines before and behind it count."""
    fill(Journal(path), "a")
    with path.open("ab") as sink:
        sink.write(rubbish + b'\n{"accepted":{"id":"b","action":"x","epoch":6,"boot":"b","session":"s"}}\n')
    again = Journal(path)
    assert [entry.id for entry in again.unfinished()] == ["a", "b"]
    assert again.epoch == 6
    assert again["a"] == ENTRY


def test_the_lines_of_an_older_agent(path: Path) -> None:
    """What it did not write has its default."""
    old = {"id": "a", "action": "x", "epoch": 3, "boot": "b", "session": "s"}
    raw = {"outcome": "ok", "why": "w", "took_s": 2.0, "evidence": "e"}
    journal = written(path, {"accepted": old}, {"accepted": old | {"id": "b", "result": raw}})
    assert journal["a"] == JournalEntry(id="a", action="x", epoch=3, boot="b", session="s")
    assert journal["b"].result == Result(outcome=Outcome.OK, why="w", took_s=2.0, evidence="e")
    assert (journal["b"].reported, journal["b"].uploaded) == (False, False)
    assert (journal["a"].params, journal["a"].until_s) == ({}, 0.0)
    assert Result(outcome=Outcome.OK, why="") == Result(
        outcome=Outcome.OK, why="", took_s=0.0, evidence="", evidence_bytes=0
    )


def test_old_ids_are_forgotten(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest stay, in order, in memory and on the disk; their number is the limit."""
    monkeypatch.setattr("agent.commands.journal.MAX_IDS", 5)
    fill(Journal(path), *(f"n{n}" for n in range(5)))
    assert [entry.id for entry in Journal(path).unfinished()] == ["n0", "n1", "n2", "n3", "n4"]
    fill(Journal(path), "n5", "n6", epoch=9)
    small = Journal(path)
    assert [entry.id for entry in small.unfinished()] == ["n2", "n3", "n4", "n5", "n6"]
    assert "n1" not in small
    assert len(lines(path)) == 7


def test_a_disk_that_is_full_at_the_start(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file serves."""
    fill(Journal(path), "a")
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr("agent.commands.journal.files.write", full)
    assert Journal(path)["a"] == ENTRY
    assert path.read_bytes() == before


def test_a_journal_that_cannot_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is accepted, for nobody knows what was done before; and nothing is written over it."""
    fill(Journal(path), "a")
    before = path.read_bytes()

    def broken(_: Path) -> bytes:
        raise OSError(5, "I/O error")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "read_bytes", broken)
        journal = Journal(path)
    assert path.read_bytes() == before
    assert journal.unfinished() == []
    with pytest.raises(OSError, match=r"journal\.jsonl cannot be read: .*I/O error"):
        fill(journal, "b")
    assert path.read_bytes() == before
    fill(Journal(path), "b")


DEEP = b"[" * 100_000
DAMAGES = {
    "lists in lists": DEEP,
    "an object in an object": b'{"epoch":' * 100_000,
    "lists in a line of ours": b'{"accepted": ' + DEEP + b"]" * 100_000 + b"}",
    "zeros": b"\0" * 200,
    "no text": b"\xff\xfe\x00",
    "a number without end": b'{"epoch":1e999}',
    "another type": b'{"epoch":{}}',
    "a list": b"[1]",
}


@pytest.mark.parametrize("what", DAMAGES)
def test_damaged_lines_are_passed_over_and_kept_aside(
    path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The agent starts, knows what can be read, and says that something could not; a last line that is torn is nothing to say."""
    fill(Journal(path), "a")
    whole = path.read_bytes()
    path.write_bytes(whole + DAMAGES[what] + b"\n" + b'{"epoch":7}\n{"epo')
    journal = Journal(path)
    assert ("a" in journal, journal.epoch) == (True, 7)
    assert "1 line damaged and passed over" in caplog.text
    assert "1 line damaged and passed over" in journal.trouble
    assert DAMAGES[what] in path.with_name("journal.jsonl.damaged").read_bytes()
    caplog.clear()
    path.write_bytes(path.read_bytes() + b'{"epo')
    assert "a" in Journal(path)
    assert not caplog.text
    assert not Journal(path).trouble

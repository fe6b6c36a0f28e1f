"""A brain tries its own disk: real folders where the kernel allows it, scripted trials where it takes time."""

import asyncio
import os
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.shared.tasks import Tasks
from brain.adapters.disk import NAME, DiskState, DiskTrial, try_disk
from brain.adapters.log import LogClock
from brain.adapters.readmodel import ReadModel
from brain.console.feed import Feed
from brain.core.effects import Note
from brain.leader import disk_watch, history
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.disk_watch import DISK, DiskWatch
from brain.leader.history import HistoryLost, HistoryWriter
from brain.leader.notes import BrainNotes
from brain.notify.notifier import build
from tests.real.disk_kit import fill, looped_disk, shut_down, small_disk

ROOT = pytest.mark.root


@pytest.fixture(name="disk")
def _disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as folder:
        yield folder


def test_a_disk_that_is_well(tmp_path: Path) -> None:
    """It leaves one file, which it replaces, and nobody else can read it."""
    for _ in range(2):
        found = try_disk(tmp_path)
        assert (found.state, found.why, found.readable) == (DiskState.WELL, "", True)
        assert found.free_bytes
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert (tmp_path / NAME).stat().st_mode & 0o077 == 0


@ROOT
def test_a_disk_that_is_full(disk: Path) -> None:
    """It says so, leaves no part of a file behind, and what is on it can be read."""
    assert try_disk(disk).state is DiskState.WELL
    ballast = fill(disk)
    found = try_disk(disk)
    assert (found.state, found.readable) == (DiskState.FULL, True)
    assert sorted(path.name for path in disk.iterdir()) == [ballast.name, NAME]
    ballast.unlink()
    assert try_disk(disk).state is DiskState.WELL


@ROOT
def test_a_disk_that_can_only_be_read(disk: Path) -> None:
    """Also where nothing was tried on it before."""
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    found = try_disk(disk)
    assert (found.state, found.readable) == (DiskState.READ_ONLY, True)


@ROOT
def test_a_disk_that_was_pulled_out(tmp_path: Path) -> None:
    """Nothing on it can be read."""
    with looped_disk(tmp_path / "disk") as folder:
        assert try_disk(folder).state is DiskState.WELL
        shut_down(folder)
        found = try_disk(folder)
        assert (found.state, found.readable) == (DiskState.FAILING, False)
        assert found.why == "Input/output error"


def test_what_is_read_back_is_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails, though nobody has refused anything."""
    monkeypatch.setattr(os, "read", lambda _handle, _most: b"\0" * 4096)
    found = try_disk(tmp_path)
    assert (found.state, found.readable) == (DiskState.FAILING, False)


@dataclass(slots=True, kw_only=True)
class Watched:
    """A watch, and what its next trials find."""

    watch: DiskWatch
    alerts: BrainAlerts
    writer: HistoryWriter
    model: ReadModel
    found: list[DiskTrial]
    # a trial does not return while this is clear
    free: threading.Event

    def told(self) -> str:
        """The text of the open alert; empty: there is none."""
        return next((one.text for one in self.alerts.open_now if one.cause == DISK), "")


@pytest.fixture(name="watched")
async def _watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    monkeypatch.setattr(disk_watch, "TELL_AFTER_S", 0.0)
    monkeypatch.setattr(disk_watch, "HANGS_S", 0.2)
    monkeypatch.setattr(disk_watch, "AGAIN_S", 0.05)
    model = ReadModel(tmp_path / "history.sqlite")
    writer = HistoryWriter(model, Feed())
    writer.open("log-1")
    found, free = [DiskTrial(state=DiskState.WELL)], threading.Event()
    free.set()

    def trial(_: Path) -> DiskTrial:
        assert free.wait(60)
        return found[0]

    async with Tasks() as background:
        alerts = BrainAlerts(
            brain="b1",
            notifier=build({}, {}, tmp_path),
            notes=BrainNotes("b1", LogClock(), writer),
            background=background,
            file=tmp_path / "alerts.json",
        )
        watch = DiskWatch(tmp_path, history=writer, alerts=alerts, with_log=False, trial=trial)
        yield Watched(watch=watch, alerts=alerts, writer=writer, model=model, found=found, free=free)
        free.set()
    await writer.close()


@pytest.mark.parametrize(
    ("state", "words", "todo"),
    [
        (DiskState.FULL, "is full (why)", "Make room on it"),
        (DiskState.READ_ONLY, "can only be read (why)", "mount it for writing again"),
        (DiskState.FAILING, "fails (why)", "replace the disk"),
    ],
)
async def test_one_page_says_what_is_wrong_and_who_must_do_what(
    watched: Watched, state: DiskState, words: str, todo: str
) -> None:
    """And it is over when the disk is well."""
    watched.found[0] = DiskTrial(state=state, why="why")
    for _ in range(3):
        await watched.watch.look()
    assert len(watched.alerts.open_now) == 1
    assert words in watched.told()
    assert todo in watched.told()
    assert "healed and paged all the same" in watched.told()
    assert watched.watch.states[state.value]
    watched.found[0] = DiskTrial(state=DiskState.WELL)
    await watched.watch.look()
    assert not watched.alerts.open_now
    assert watched.watch.states["well"]


async def test_a_trial_that_does_not_return_is_a_disk_that_hangs(watched: Watched) -> None:
    """One thread waits for it, however long it takes."""
    watched.free.clear()
    for _ in range(4):
        await watched.watch.look()
    assert watched.watch.states["hanging"]
    assert "hangs: no write has returned for" in watched.told()
    assert trials() == 1
    watched.free.set()
    await until(lambda: not trials())
    await watched.watch.look()
    assert not watched.told()


async def test_what_passes_by_itself_is_no_page(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that was full for a moment."""
    monkeypatch.setattr(disk_watch, "TELL_AFTER_S", 60.0)
    watched.found[0] = DiskTrial(state=DiskState.FULL, why="why")
    await watched.watch.look()
    assert watched.watch.trouble
    assert not watched.told()


def note(seq: int) -> Note:
    """One of the engine."""
    return Note(id=f"n{seq}", at=float(seq), kind="x", text=str(seq))


async def test_too_much_waits_for_the_disk(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is kept; once the disk takes something the session ends, and the history says truly up to where it is complete."""
    monkeypatch.setattr(history, "MOST_WAITING", 10)
    put = ReadModel.put
    gate = threading.Event()
    monkeypatch.setattr(ReadModel, "put", lambda self, *args: (gate.wait(60), put(self, *args))[1])
    writer, model = watched.writer, watched.model
    writer.collect(1, [note(1)])
    first = asyncio.create_task(writer.write_out())
    for seq in range(2, 40):
        await asyncio.sleep(0)
        writer.collect(seq, [note(seq)])
    assert writer.behind == 39
    gate.set()
    assert await first
    assert writer.written == 1
    with pytest.raises(HistoryLost):
        await writer.until_lost()
    assert writer.open("log-1") == 1
    writer.resume(1)
    for seq in range(2, 5):
        writer.collect(seq, [note(seq)])
    assert await writer.write_out()
    assert {f"n{seq}" for seq in range(1, 5)} <= {one["id"] for one in model.newest_notes(100)}


async def test_a_write_that_hangs_holds_up_nobody(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes meanwhile is collected, and written behind it, in order; who waits for a position hears that it is not there."""
    put = ReadModel.put
    gate = threading.Event()
    monkeypatch.setattr(ReadModel, "put", lambda self, *args: (gate.wait(60), put(self, *args))[1])
    writer = watched.writer
    writer.collect(1, [note(1)])
    assert not await writer.written_up_to(1, 0.1)
    writer.collect(2, [note(2)])
    assert not await writer.reached(2, 0.1)
    assert not await writer.written_up_to(2, 0.1)
    gate.set()
    assert await writer.written_up_to(2, 30)
    assert [one["id"] for one in watched.model.newest_notes(10)] == ["n1", "n2"]


def trials() -> int:
    """Threads in which a disk is tried."""
    return sum(one.name == "disk" for one in threading.enumerate())


async def until(look: Callable[[], bool]) -> None:
    """Until it is so."""
    async with asyncio.timeout(30):
        while not look():
            await asyncio.sleep(0.01)

"""A brain is started whose folder takes nothing: what people hear, what goes on, and what is refused at once."""

import asyncio
import errno
import os
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.contract.errors import ConfigError
from agent.shared.tasks import Tasks
from brain.adapters.disk import DiskState, DiskTrial, try_folder
from brain.adapters.files import FolderTaken, exclusive
from brain.adapters.log import LogClock
from brain.leader import disk_watch, start_folder
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.disk_watch import DISK
from brain.leader.notes import BrainNotes
from brain.leader.start_folder import when_writable
from brain.notify.notifier import build
from tests.real.disk_kit import small_disk

NOBODY = 65534
FULL = DiskTrial(state=DiskState.FULL, why="why")
WELL = DiskTrial(state=DiskState.WELL)


@dataclass(slots=True, kw_only=True)
class Start:
    """A brain that is being started."""

    folder: Path
    alerts: BrainAlerts
    stop: asyncio.Event

    def told(self) -> str:
        """The text of the open alert; empty: there is none."""
        return next((one.text for one in self.alerts.open_now if one.cause == DISK), "")

    async def until_told(self) -> str:
        """The text of the alert, once it is open."""
        async with asyncio.timeout(30):
            while not self.told():
                await asyncio.sleep(0.01)
        return self.told()

    async def opened(self, opening: Callable[[], str]) -> str | None:
        """As the brain opens it."""
        return await when_writable(self.folder, opening, self.alerts, self.stop)


@pytest.fixture(name="start")
async def _start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    monkeypatch.setattr(disk_watch, "TELL_AFTER_S", 0.05)
    monkeypatch.setattr(disk_watch, "HANGS_S", 0.1)
    monkeypatch.setattr(disk_watch, "AGAIN_S", 0.02)
    async with Tasks() as background:
        alerts = BrainAlerts(
            brain="b1",
            notifier=build({}, {}, tmp_path),
            notes=BrainNotes("b1", LogClock()),
            background=background,
            file=tmp_path / "alerts.json",
        )
        yield Start(folder=tmp_path, alerts=alerts, stop=asyncio.Event())


@pytest.mark.parametrize(
    ("state", "words", "todo"),
    [
        (DiskState.FULL, "is full (why)", "Make room on it"),
        (DiskState.READ_ONLY, "can only be read (why)", "ReadWritePaths="),
        (DiskState.DENIED, "is not this brain's to write (why)", "chown -R"),
        (DiskState.FAILING, "fails (why)", "replace the disk"),
    ],
)
async def test_one_page_says_who_must_do_what_and_it_goes_on_by_itself(
    start: Start, monkeypatch: pytest.MonkeyPatch, state: DiskState, words: str, todo: str
) -> None:
    """What is opened runs beside the event loop."""
    ill, threads = True, []
    monkeypatch.setattr(start_folder, "try_folder", lambda *_: DiskTrial(state=state, why="why"))

    def opening() -> str:
        threads.append(threading.get_ident())
        if ill:
            raise ConfigError("no")
        return "open"

    opened = asyncio.create_task(start.opened(opening))
    text = await start.until_told()
    assert f"{start.folder} {words}, and the brain cannot start" in text
    assert todo in text
    ill = False
    assert await opened == "open"
    assert threading.get_ident() not in threads


async def test_one_that_hangs_holds_up_nothing(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """People hear of it, and with the disk it goes on: it is opened once."""
    free, calls = threading.Event(), []

    def opening() -> str:
        calls.append(free.wait(60))
        return "open"

    def trial(*_: object) -> DiskTrial:
        assert free.wait(60)
        return WELL

    monkeypatch.setattr(start_folder, "try_folder", trial)
    opened = asyncio.create_task(start.opened(opening))
    assert "hangs: no write has returned for" in await start.until_told()
    free.set()
    assert await opened == "open"
    assert calls == [True]


async def test_one_that_takes_its_time_is_no_page(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when an upgrade fills a new table of the history: the disk answers meanwhile."""
    tried, enough = [], threading.Event()

    def trial(*_: object) -> DiskTrial:
        tried.append(1)
        if len(tried) == 3:
            enough.set()
        return WELL

    monkeypatch.setattr(start_folder, "try_folder", trial)
    assert await start.opened(lambda: "open" if enough.wait(60) else "") == "open"
    assert not start.told()


async def test_who_asks_it_to_stop_is_obeyed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is tried again just then, or hangs."""
    monkeypatch.setattr(start_folder, "try_folder", lambda *_: FULL)
    free = threading.Event()

    def full() -> str:
        raise ConfigError("no")

    def hangs() -> str:
        free.wait(60)
        return "open"

    for opening in (full, hangs):
        start.stop.clear()
        opened = asyncio.create_task(start.opened(opening))
        await start.until_told()
        start.stop.set()
        assert await opened is None
    free.set()


async def test_what_has_another_reason_is_refused_at_once(start: Start) -> None:
    """The folder is well, or there is none: whoever types the command is told, and nobody is paged."""

    def opening() -> str:
        raise ConfigError("port 4222 is taken")

    with pytest.raises(ConfigError, match="4222"):
        await start.opened(opening)
    nowhere = start.folder / "file/data"
    nowhere.parent.write_text("no folder")
    with pytest.raises(ConfigError, match="give a folder that gpuward may write"):
        await when_writable(nowhere, lambda: exclusive(nowhere).__enter__(), start.alerts, start.stop)
    assert not start.alerts.open_now


@pytest.mark.root
async def test_a_folder_in_use_is_refused_also_where_nothing_can_be_written(start: Start) -> None:
    """The brain that runs there has paged; the second one has nothing to wait for."""
    read_only = start.folder / "read-only"
    read_only.mkdir()
    with small_disk(start.folder / "disk") as disk, exclusive(disk, "b:1"):
        subprocess.run(["mount", "--bind", str(disk), str(read_only)], check=True)
        try:
            subprocess.run(["mount", "-o", "remount,ro,bind", str(read_only)], check=True)
            with pytest.raises(FolderTaken):
                await when_writable(
                    read_only, lambda: exclusive(read_only).__enter__(), start.alerts, start.stop
                )
        finally:
            subprocess.run(["umount", str(read_only)], check=True)


@pytest.fixture(name="shared")
def _shared() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:  # which every user can reach
        Path(folder).chmod(0o755)
        yield Path(folder)


def as_nobody(look: Callable[[], str]) -> str:
    """What it returns in a process of another user."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            os.write(writes, look().encode())
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as source:
        said = source.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.mark.root
def test_a_folder_of_another_user(shared: Path) -> None:
    """All of it, or a file in it that root has put back from a backup."""

    def look() -> str:
        try:
            with exclusive(shared):
                found = try_folder(shared, None)
        except ConfigError as error:
            found = try_folder(shared, error)
        return f"{found.state} {found.why}"

    assert as_nobody(look) == f"denied {shared}/lock: Permission denied"
    os.chown(shared, NOBODY, NOBODY)
    history = shared / "history.sqlite"
    history.touch(mode=0o600)
    assert as_nobody(look) == f"denied {history}: Permission denied"
    os.chown(history, NOBODY, NOBODY)
    assert as_nobody(look) == "well "
    below = shared / "cell"
    below.mkdir(mode=0o700)
    assert as_nobody(look) == f"denied {below}: Permission denied"
    os.chown(below, NOBODY, NOBODY)
    registry = below / "registry.json"
    registry.touch(mode=0o600)
    assert as_nobody(look) == f"denied {registry}: Permission denied"
    os.chown(registry, NOBODY, NOBODY)
    (shared / "lost+found").mkdir(mode=0o700)
    assert as_nobody(look) == "well "
    shared.chmod(0o700)
    os.chown(shared, 0, 0)
    assert as_nobody(look).startswith("denied ")


@pytest.mark.root
def test_a_folder_below_one_of_another_user(shared: Path) -> None:
    """It is there, and nobody may look: that is no folder that is missing."""
    mine = shared / "mine"
    mine.mkdir()
    os.chown(mine, NOBODY, NOBODY)
    shared.chmod(0o700)

    def look() -> str:
        try:
            with exclusive(mine):
                return "open"
        except ConfigError as error:
            return f"{try_folder(mine, error).state}"

    assert as_nobody(look) == "denied"


def test_a_file_server_that_has_forgotten_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails, and is not missing: a brain that ended over and over would tell nobody."""
    stale = OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    def forgotten(*_: object, **__: object) -> None:
        raise stale

    monkeypatch.setattr(Path, "stat", forgotten)
    monkeypatch.setattr(os, "open", forgotten)
    found = try_folder(tmp_path, stale)
    assert (found.state, found.why) == (DiskState.FAILING, os.strerror(errno.ESTALE))


def test_a_program_that_may_not_be_run_is_no_matter_of_the_folder(tmp_path: Path) -> None:
    """`nats-server` on a disk that is mounted noexec: whoever gave the folder back would wait for ever."""
    for named, state in (
        ("/usr/bin/nats-server", DiskState.WELL),
        (str(tmp_path / "lock"), DiskState.DENIED),
    ):
        error = PermissionError(errno.EACCES, os.strerror(errno.EACCES), named)
        assert try_folder(tmp_path, error).state is state


def test_a_link_that_leads_nowhere_is_said(tmp_path: Path) -> None:
    """The disk that it leads to is not mounted."""
    link = tmp_path / "data"
    link.symlink_to(tmp_path / "disk")
    with pytest.raises(ConfigError, match=f"leads to {tmp_path}/disk, which is not there: mount its disk"):
        exclusive(link).__enter__()

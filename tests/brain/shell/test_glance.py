"""What the event loop learns of files whose disk hangs: what was read last, after a moment; the newest as soon as it answers."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from agent.contract.errors import ConfigError
from brain import aside, glance
from brain.aside import aside as beside
from brain.glance import FileHangs, Glance, Latest
from brain.locked_file import LockedFile

FILE = Path("/somewhere/file")
WELL_WITHIN_S = 30.0


class Disk:
    """A file's content, behind a disk that hangs from `stop` to `go_on`. What is tested is who waits for it, not the kernel:
    tests/e2e/test_file_server_hangs.py has a real one.
    """

    def __init__(self) -> None:
        self.content = "first"
        self.error: Exception | None = None
        self._answers = threading.Event()
        self._answers.set()

    def stop(self) -> None:
        """Nothing returns."""
        self._answers.clear()

    def go_on(self) -> None:
        """It answers."""
        self._answers.set()

    def read(self) -> str:
        """Waits as long as it hangs."""
        self._answers.wait()
        if self.error is not None:
            raise self.error
        return self.content


async def until(latest: Latest[str], wanted: str) -> None:
    """Until it says so."""
    async with asyncio.timeout(WELL_WITHIN_S):
        while latest() != wanted:
            await asyncio.sleep(0.01)


async def test_the_newest_counts_at_once_while_the_disk_answers() -> None:
    """Each call looks."""
    disk = Disk()
    latest = Latest(disk.read, FILE)
    assert latest() == "first"
    disk.content = "second"
    await until(latest, "second")


async def test_what_was_read_last_counts_while_the_disk_hangs() -> None:
    """The loop waits once, and not for long; then the newest counts."""
    disk = Disk()
    latest = Latest(disk.read, FILE)
    await until(latest, "first")
    disk.stop()
    disk.content = "second"
    assert latest() == "first"
    began_s = time.monotonic()
    for _ in range(1000):
        assert latest() == "first"
    assert time.monotonic() - began_s < glance.ONCE_S, "a thousand more cost nothing"
    disk.go_on()
    await until(latest, "second")


async def test_many_files_share_one_wait() -> None:
    """All that a status asks lie on the disk that hangs."""
    disk = Disk()
    files = [Latest(disk.read, FILE) for _ in range(20)]
    for latest in files:
        await until(latest, "first")
    disk.stop()
    began_s = time.monotonic()
    for latest in files:
        assert latest() == "first"
    took_s = time.monotonic() - began_s
    assert took_s < len(files) * glance.ONCE_S / 2, took_s
    disk.go_on()
    disk.content = "second"
    for latest in files:
        await until(latest, "second")


async def test_a_file_that_was_never_read_says_who_must_do_what() -> None:
    """And is read as soon as the disk answers."""
    disk = Disk()
    disk.stop()
    latest = Latest(disk.read, FILE)
    with pytest.raises(
        FileHangs, match=r"/somewhere/file: its disk does not answer: see `dmesg`, and the storage"
    ):
        latest()
    disk.go_on()
    async with asyncio.timeout(WELL_WITHIN_S):
        while True:
            try:
                assert latest() == "first"
                break
            except FileHangs:
                await asyncio.sleep(0.01)


async def test_a_disk_that_hangs_does_not_keep_another_one_from_being_read() -> None:
    """A user who leaves brain.toml has left, though the data folder hangs."""
    hung, well = Disk(), Disk()
    first, second = Latest(hung.read, FILE), Latest(well.read, FILE)
    await until(first, "first")
    await until(second, "first")
    hung.stop()
    assert first() == "first"
    well.content = "second"
    await until(second, "second")
    hung.go_on()


async def test_what_reading_raises_is_raised_in_whoever_asks() -> None:
    """An error of the file as it is; a bug too, and the thread lives on."""
    disk = Disk()
    latest = Latest(disk.read, FILE)
    for error in (ConfigError("damaged"), OSError(5, "Input/output error"), KeyError("a bug")):
        disk.error = error

        def asked_again() -> None:
            """The first may be late on a loaded machine."""
            for _ in range(1000):
                latest()

        with pytest.raises(type(error)):
            asked_again()
    disk.error = None
    await until(latest, "first")


def test_elsewhere_than_on_an_event_loop_whoever_looks_waits() -> None:
    """The command line has nothing else to do."""
    disk = Disk()
    disk.stop()
    threading.Timer(2 * glance.ONCE_S, disk.go_on).start()
    assert Latest(disk.read, FILE)() == "first"


async def test_a_late_look_does_not_undo_a_change(tmp_path: Path) -> None:
    """A thread has begun to read before the change, and goes on after it: what it has read is old."""
    reads = threading.Event()
    goes_on = threading.Event()
    held = [False]

    def parse(body: bytes) -> str:
        if held[0] and threading.current_thread().name == "look":
            reads.set()
            goes_on.wait(WELL_WITHIN_S)
        return body.decode()

    file = LockedFile(tmp_path / "file", parse=parse, dump=str.encode, empty=str)
    file.change(lambda _: "first")
    assert file.value() == "first"
    (tmp_path / "file").write_text("second")
    held[0] = True
    assert file.value() == "first", "its disk hangs"
    assert reads.wait(WELL_WITHIN_S)
    held[0] = False
    await asyncio.to_thread(file.change, lambda _: "third, and longer")
    assert file.last == "third, and longer"
    goes_on.set()
    async with asyncio.timeout(WELL_WITHIN_S):
        while True:
            try:
                file.trouble()
                break
            except FileHangs:
                await asyncio.sleep(0.01)
    assert file.value() == "third, and longer"


async def test_what_hangs_beside_the_loop_is_given_up_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits hears it; beyond so many nothing more is begun; and all are free when the disk answers."""
    monkeypatch.setattr(aside, "WITHIN_S", 0.05)
    disk = Disk()
    assert await beside(disk.read, FILE) == "first"
    disk.stop()
    hung = [asyncio.ensure_future(beside(disk.read, FILE)) for _ in range(aside.MOST)]
    for error in await asyncio.gather(*hung, return_exceptions=True):
        assert isinstance(error, FileHangs)
    began: list[str] = []
    with pytest.raises(FileHangs):
        await beside(lambda: began.append("begun"), FILE)
    assert began == []
    disk.go_on()
    monkeypatch.setattr(aside, "WITHIN_S", WELL_WITHIN_S)
    async with asyncio.timeout(WELL_WITHIN_S):
        while not began:
            try:
                await beside(lambda: began.append("begun"), FILE)
            except FileHangs:
                await asyncio.sleep(0.01)


async def test_a_glance_says_whether_the_disk_has_answered() -> None:
    """Its owner keeps what was seen."""
    disk, seen = Disk(), []
    look = Glance(lambda: seen.append(disk.read()))
    async with asyncio.timeout(WELL_WITHIN_S):
        while not look():
            await asyncio.sleep(0.01)
    disk.stop()
    assert not look()
    assert not look()
    disk.go_on()
    async with asyncio.timeout(WELL_WITHIN_S):
        while not look():
            await asyncio.sleep(0.01)
    assert seen[-1] == "first"

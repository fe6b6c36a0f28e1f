"""The brain's own disk is full, takes nothing any more, or is last week's: it leads, says so, and nothing is lost."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.stack import Stack
from tests.real.disk_kit import fill, small_disk

pytestmark = [pytest.mark.root, pytest.mark.component("nats-server"), pytest.mark.timeout(300)]
BOOKS = ("accept-node", "connect-rdma", "cool-gpu")
OFTEN = "[snapshot]\nevery_s = 1\n"


@pytest.fixture(name="whole")
def _whole(tmp_path: Path) -> Iterator[Stack]:
    """A brain that leads, with a disk of its own; the log is on another one."""
    whole = Stack(tmp_path)
    with small_disk(tmp_path / "brain"):
        try:
            whole.nats.start()
            whole.start_receiver()
            whole.write_brain_config(OFTEN)
            whole.start_brain()
            yield whole
        finally:
            whole.end()


def snapshot_is_newer(whole: Stack, than: float) -> None:
    """Until it is."""
    path = whole.folder / "brain/state.snapshot"
    whole.wait_for(lambda: path.exists() and path.stat().st_mtime > than, "a snapshot is written")


def say(whole: Stack, runbook: str) -> None:
    """Ann says something that only the state knows from then on."""
    whole.gpuward("mode", runbook, "approve")


def known(whole: Stack) -> list[str]:
    """The runbooks of which she has said it, as the state has them."""
    return sorted(one["runbook"] for one in whole.get("/api/v1/status").get("modes", ()) if one["who"])


def told(whole: Stack) -> list[str]:
    """The same, as the history for people has them."""
    notes = whole.get("/api/v1/notes?limit=1000").get("notes", ())
    return sorted(
        book for note in notes if note["kind"] == "operator.mode" for book in BOOKS if book in note["text"]
    )


def paged(whole: Stack) -> list[str]:
    """What people were told of it."""
    return [page["what"] for page in whole.pages() if page["cause"] == "brain_disk"]


def test_a_disk_that_is_full(whole: Stack) -> None:
    """People hear of it, and that it is over; the brain can die and start on it; with room again the history has it all."""
    say(whole, BOOKS[0])
    snapshot_is_newer(whole, 0)
    ballast = fill(whole.folder / "brain")
    say(whole, BOOKS[1])
    whole.wait_for(lambda: paged(whole) == ["open"], "people hear of it")
    status = whole.get("/api/v1/status")
    assert status["leads"]
    assert [one["cause"] for one in status["troubles"]] == ["brain_disk"]
    log = (whole.folder / "brain.log").read_text()
    assert log.count("the read model cannot be written: database or disk is full") == 1, (
        "once, not each second"
    )
    ballast.unlink()
    whole.wait_for(lambda: paged(whole)[-1] == "resolve", "people hear that it is over")
    ballast = fill(whole.folder / "brain")
    say(whole, BOOKS[2])
    whole.kill("brain")
    whole.start_brain()
    assert known(whole) == list(BOOKS)
    ballast.unlink()
    whole.wait_for(lambda: told(whole) == list(BOOKS), "the history is whole")
    assert known(whole) == list(BOOKS)


def test_a_disk_that_can_only_be_read(whole: Stack) -> None:
    """It waits for it and names it, so that the other brain leads; written to again, it goes on and knows everything."""
    say(whole, BOOKS[0])
    whole.kill("brain")
    disk = whole.folder / "brain"
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    whole.start_brain(says=f"this brain's folder {disk} can only be read")
    assert "Traceback" not in whole.log("brain")
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    whole.wait_for(lambda: whole.get("/api/v1/status").get("caught_up"), "it goes on")
    assert known(whole) == list(BOOKS[:1])


def test_last_weeks_disk_is_put_back(whole: Stack) -> None:
    """All of it, history and snapshot and marks: what came since is on the log."""
    disk = whole.folder / "brain"
    say(whole, BOOKS[0])
    snapshot_is_newer(whole, 0)
    whole.kill("brain")
    shutil.copytree(disk, whole.folder / "backup")
    whole.start_brain()
    say(whole, BOOKS[1])
    whole.stop("brain")
    for path in disk.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(whole.folder / "backup", disk, dirs_exist_ok=True)
    whole.start_brain()
    assert known(whole) == list(BOOKS[:2])
    whole.wait_for(lambda: told(whole) == list(BOOKS[:2]), "the history is whole")

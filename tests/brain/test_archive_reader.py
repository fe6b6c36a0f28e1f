"""An archive in a folder, as it is read: what lies in the wrong place is told, and no clock leaves messages out."""

import os
from pathlib import Path

import pytest

from brain.adapters import archive_reader, archive_store
from brain.adapters.archive_store import ArchiveStore
from brain.adapters.log import Record
from brain.adapters.log_file import Damaged, LogFileWriter, LogName
from brain.archive_config import ArchiveConfig

OURS = LogName(cell="default", log="2026-01-01 00:00:00+00:00")
FOLDER = archive_store.folder_name(OURS)
BEGAN = 1.7e9


def put(archive: Path, name: LogName, first: int, *, dated: float) -> None:
    """A file of ten messages, a second each, in the folder of our log."""
    path = archive / archive_store.path_of("default", FOLDER, first)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as sink:
        made = LogFileWriter(sink.write, name, first)
        for seq in range(first, first + 10):
            made.add(Record(seq, BEGAN + seq, "ward.default.event.n1", b"{}", 0))
        made.finish()
    os.utime(path, (dated, dated))


def opened(archive: Path) -> ArchiveStore:
    """As a command opens it."""
    return archive_store.opened(ArchiveConfig(url=str(archive)))


@pytest.mark.parametrize(
    "other",
    [LogName(cell="default", log="2025-01-01 00:00:00+00:00"), LogName(cell="west", log=OURS.log)],
    ids=["log", "cell"],
)
def test_a_file_of_another_log_is_not_read_as_this_ones(tmp_path: Path, other: LogName) -> None:
    """Somebody has put it there, when files were moved."""
    put(tmp_path, OURS, 1, dated=BEGAN + 10)
    put(tmp_path, other, 11, dated=BEGAN + 20)
    put(tmp_path, OURS, 21, dated=BEGAN + 30)
    with pytest.raises(Damaged, match=f"is of {other.cell}/"):
        list(archive_reader.archive_parts(opened(tmp_path), "default", FOLDER))


def test_a_store_whose_clock_is_behind_leaves_nothing_out(tmp_path: Path) -> None:
    """By an hour: its files look older than what is in them."""
    for first in (1, 11, 21):
        put(tmp_path, OURS, first, dated=BEGAN + first + 10 - 3600)
    since = BEGAN + 5
    parts = archive_reader.archive_parts(opened(tmp_path), "default", FOLDER, since=since)
    found = [one.seq for one in archive_reader.between(parts, since, BEGAN + 1000) if isinstance(one, Record)]
    assert found == list(range(5, 31))


def test_files_of_long_before_are_not_read(tmp_path: Path) -> None:
    """A year of files is gigabytes."""
    put(tmp_path, OURS, 1, dated=BEGAN + 10 - 3 * archive_reader.CLOCKS_S)
    put(tmp_path, OURS, 11, dated=BEGAN + 20)
    parts = archive_reader.archive_parts(opened(tmp_path), "default", FOLDER, since=BEGAN)
    assert [one.seq for one in parts if isinstance(one, Record)] == list(range(11, 21))

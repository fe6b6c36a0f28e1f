"""Small files that a process keeps over its restarts: never half written, never trusted."""

import json
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent.shared import files

WRITER = """
import sys
from pathlib import Path
from agent.shared import files
path, sync, number = Path(sys.argv[1]), sys.argv[2] == "sync", 0
while True:
    number += 1
    files.write_json(path, {"number": number, "pad": "x" * 200_000, "again": number}, sync=sync)
"""


@pytest.mark.parametrize("sync", ["sync", "no"])
def test_a_reader_never_sees_a_part(tmp_path: Path, sync: str) -> None:
    """Real writes of a process that is killed at an arbitrary moment: whatever is read is whole and newer than before."""
    path = tmp_path / "kept.json"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), sync], cwd=Path.cwd())
    newest, reads = 0, 0
    try:
        deadline = time.monotonic() + 120
        while reads < 200:
            assert time.monotonic() < deadline
            found = files.read_json(path)
            if found is not None:
                assert found["number"] == found["again"] >= newest
                newest, reads = found["number"], reads + 1
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    found = json.loads(path.read_text())
    assert found["number"] == found["again"] >= newest > 1


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"a": 1', b"\xff\xfe", b"nothing"])
def test_a_missing_or_damaged_file_reads_as_none(tmp_path: Path, content: bytes | None) -> None:
    """Nothing raises: a process must start with what is left."""
    path = tmp_path / "kept.json"
    if content is not None:
        path.write_bytes(content)
    assert files.read_json(path) is None
    assert files.read_json(tmp_path) is None, "a folder is no file"


def test_a_write_that_fails_leaves_the_old_content(tmp_path: Path) -> None:
    """The caller gets the OSError, and the file is as it was."""
    path = tmp_path / "kept.json"
    files.write_json(path, [1])
    (tmp_path / "kept.json.part").mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        files.write_json(path, [2])
    assert files.read_json(path) == [1]
    with pytest.raises(FileNotFoundError):
        files.write_json(tmp_path / "none" / "kept.json", [1])


def test_a_secret_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    """The mode holds for the file that is being written, and so for the one that replaces the old."""
    files.write(tmp_path / "key", b"secret\n", sync=True, mode=0o600)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_an_error_names_the_file_that_people_know(tmp_path: Path) -> None:
    """Not the one that is written beside it, which is not there afterwards."""
    file = tmp_path / "nats.conf"
    (file / "x").mkdir(parents=True)
    with pytest.raises(IsADirectoryError) as replaced:
        files.write(file, b"x")
    file_of_none = tmp_path / "gone/nats.conf"
    with pytest.raises(FileNotFoundError) as opened:
        files.write(file_of_none, b"x")
    assert [str(caught.value.filename) for caught in (replaced, opened)] == [str(file), str(file_of_none)]
    assert str(replaced.value).count(str(tmp_path)) == 1

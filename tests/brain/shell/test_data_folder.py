"""The lock of a brain's data folder, and what it says of the run before."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.contract.errors import ConfigError
from brain.adapters import files
from brain.adapters.files import exclusive

ROOT = Path(__file__).resolve().parents[3]


def test_a_run_learns_which_one_was_before(tmp_path: Path) -> None:
    """The first one of none; one that runs keeps others out, and they change nothing."""
    folder = tmp_path / "data"
    with exclusive(folder, "b:1") as before:
        assert before == ""
        with pytest.raises(ConfigError, match="in use by another brain"), exclusive(folder, "b:2"):
            pass
    with exclusive(folder, "b:3") as before:
        assert before == "b:1"
    with exclusive(folder) as before:
        assert before == "b:3"
    with exclusive(folder, "b:4") as before:
        assert before == "", "the one before had no name"


def test_one_that_was_killed_is_known_too(tmp_path: Path) -> None:
    """It could say nothing at its end."""
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, pathlib, sys\n"
            "from brain.adapters.files import exclusive\n"
            "with exclusive(pathlib.Path(sys.argv[1]), 'b:1'): os.kill(os.getpid(), 9)\n",
            str(tmp_path),
        ],
        cwd=ROOT,
        check=False,
    )
    with exclusive(tmp_path, "b:2") as before:
        assert before == "b:1"


def test_a_copy_and_another_boot_say_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose run it names may be alive: where the folder was copied from, or on the machine that shares it."""
    with exclusive(tmp_path / "one", "b:1"):
        shutil.copytree(tmp_path / "one", tmp_path / "copy")
        with exclusive(tmp_path / "copy", "b:2") as before:
            assert before == ""
    boot = tmp_path / "boot_id"
    boot.write_text("another\n")
    monkeypatch.setattr(files, "_BOOT_ID", boot)
    with exclusive(tmp_path / "one", "b:3") as before:
        assert before == ""
    monkeypatch.setattr(files, "_BOOT_ID", tmp_path / "none")
    with exclusive(tmp_path / "one", "b:4") as before:
        assert before == ""


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"b:1", b"b:1\n", b"x" * 10_000])
def test_a_lock_that_holds_something_else_is_one_as_well(tmp_path: Path, content: bytes) -> None:
    """An empty one is of an earlier version."""
    (tmp_path / "lock").write_bytes(content)
    with exclusive(tmp_path, "b:2") as before:
        assert before == ""


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_a_lock_that_is_no_file_is_named(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """Another data_dir, for which it asked, would be a brain without its keys."""
    make(tmp_path / "lock")
    with pytest.raises(ConfigError, match="/lock: it is no file: remove it"), exclusive(tmp_path):
        pass


def test_a_backup_that_is_put_back_over_a_running_brain_lets_no_other_in(tmp_path: Path) -> None:
    """tar removes the lock and makes another one; also by another path to the folder, and after the first has been killed."""
    (tmp_path / "link").symlink_to("data")
    with exclusive(tmp_path / "data", "b:1"):
        for _ in range(2):
            (tmp_path / "data/lock").unlink(missing_ok=True)
            for path in (tmp_path / "data", tmp_path / "link"):
                with pytest.raises(ConfigError, match="in use by another brain"), exclusive(path, "b:2"):
                    pass
    with exclusive(tmp_path / "link", "b:3"):
        pass

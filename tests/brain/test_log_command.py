"""`gpuward log` of what somebody has named by mistake: what is wrong, and what to name instead."""

import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import orjson
import pytest

from agent.contract import subjects
from brain.adapters.archive_store import folder_name, path_of
from brain.adapters.files import exclusive
from brain.adapters.log import Record
from brain.adapters.log_file import LogFileWriter, LogName
from brain.cli.main import group, run

LOG = LogName(cell="east", log="2026-11-25 16:57:51.534778+00:00")


def log_file(file: Path, messages: int) -> None:
    """With so many pulses."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as sink:
        made = LogFileWriter(sink.write, LOG, 1, packed=file.suffix == ".gz")
        for seq in range(1, messages + 1):
            made.add(Record(seq, 1.7e9 + seq, subjects.event("east", "n1"), orjson.dumps({}), 0))
        made.finish()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Of one cell, beside folders that are no cells."""
    folder = tmp_path / "archive"
    log_file(folder / path_of("east", folder_name(LOG), 1), 3)
    for other in ("lost+found", "notes/2026", ".snapshot/hourly.0"):
        (folder / other).mkdir(parents=True)
    return folder


def said(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[object, str]:
    """The exit status, and what is printed."""
    with pytest.raises(SystemExit) as left:
        run({}, ["log", *args])
    told = capsys.readouterr()
    return left.value.code, told.out + told.err


def test_folders_that_are_no_cells_are_not_asked_about(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The only cell is the only cell, whatever a file system or a person has put beside it."""
    code, text = said(capsys, "show", str(archive))
    assert (code, text.splitlines()[0]) == (0, f"cell east, log of {LOG.log}: messages 1 to 3, 3")
    assert text.endswith(" in 1 file\n")


@pytest.mark.parametrize("where", [".", "archive/east", "archive/notes"])
def test_a_folder_beside_the_archive_is_told(
    archive: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    """One too high, one too deep, another one."""
    code, text = said(capsys, "show", str(archive.parent / where))
    assert code == 2
    assert "name it as `url` of [archive] in brain.toml does, without CELL/LOG below it" in text


def test_a_time_that_is_turned_round_makes_no_empty_file(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--since 1h --until 2h` reads well, and means nothing."""
    file = archive.parent / "some.ndjson"
    code, text = said(capsys, "export", str(file), "--from-archive", str(archive), "--since", "1h", "--until", "2h")  # fmt: skip
    assert code == 2
    assert "--since must be before --until" in text
    assert not file.exists()


def test_a_file_without_a_message_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And no range from nothing to nothing."""
    log_file(tmp_path / "none.ndjson", 0)
    code, text = said(capsys, "show", str(tmp_path / "none.ndjson"))
    assert code == 0
    assert text.startswith(f"cell east, log of {LOG.log}: no message; ")


@pytest.mark.parametrize("missing", ["4", "0", "-1"])
def test_a_position_to_skip_that_the_log_does_not_have_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    """A slip of the finger would replay the message that crashed the brain, or leave out none, and say nothing."""
    log_file(tmp_path / "three.ndjson", 3)
    into = tmp_path / "into"
    args = ("replay", str(tmp_path / "three.ndjson"), "--into", str(into))
    code, text = said(capsys, *args, "--skip", "2", "--skip", missing)
    assert code == 2
    assert f"--skip {missing}: " in text
    assert "messages 1 to 3" in text
    assert not (into / "state.snapshot").exists()
    assert said(capsys, *args, "--skip", "2")[0] == 0


def test_a_replay_does_not_go_into_the_folder_of_a_brain_that_is_started_meanwhile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does a brain start there: the one's files would take the place of the other's under its hands."""
    log_file(tmp_path / "log.ndjson", 3)
    into = tmp_path / "brain"
    with exclusive(into, "b:1"):
        code, text = said(capsys, "replay", str(tmp_path / "log.ndjson"), "--into", str(into))
        assert (code, "in use by another brain" in text) == (2, True)
        assert {one.name for one in into.iterdir()} == {"lock"}
    assert said(capsys, "replay", str(tmp_path / "log.ndjson"), "--into", str(into))[0] == 0


def test_a_replay_that_is_killed_leaves_nothing_for_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """kill -9 at many moments: never one file without the other but at the last step, which is said; the next one tidies up."""
    file, into = tmp_path / "log.ndjson", tmp_path / "brain"
    log_file(file, 2000)
    command = [sys.executable, "-m", "brain", "log", "replay", str(file), "--into", str(into)]
    left = 0
    for moment in range(6):
        with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as process:
            until = time.monotonic() + 60
            while not list(into.glob(".replay-*/history.sqlite*")) and process.poll() is None:
                assert time.monotonic() < until
                time.sleep(0.002)
            time.sleep(moment * 0.02)
            process.kill()
        left += bool(list(into.glob(".replay-*")))
        whole = {one.name for one in into.iterdir()} & {"history.sqlite", "state.snapshot"}
        if whole:
            assert whole == {"history.sqlite", "state.snapshot"}
            shutil.rmtree(into)
    assert left, "some came while it was at work"
    assert said(capsys, "replay", str(file), "--into", str(into))[0] == 0
    assert {one.name for one in into.iterdir()} == {"lock", "history.sqlite", "state.snapshot"}


def _commands(ctx: click.Context) -> Iterator[click.Context]:
    """Every command below."""
    found = ctx.command
    if not isinstance(found, click.Group):
        yield ctx
        return
    for name in found.list_commands(ctx):
        below = found.get_command(ctx, name)
        assert below is not None
        yield from _commands(click.Context(below, info_name=name, parent=ctx))


def test_no_two_options_of_a_command_fill_in_the_same() -> None:
    """`gpuward log export --url http://brain` took the brain for an archive: both options were called url."""
    several = {
        ctx.command_path: twice
        for ctx in _commands(click.Context(group({}), info_name="gpuward"))
        if (twice := [name for name, n in Counter(one.name for one in ctx.command.params).items() if n > 1])
    }
    assert several == {}


def test_a_log_is_exported_from_the_brain_that_is_named_behind_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody listens there."""
    _, text = said(capsys, "export", str(tmp_path / "log.ndjson"), "--url", "http://127.0.0.1:9")
    assert "no brain answers at http://127.0.0.1:9" in text

"""Job logs: how files are followed while they grow, move and vanish, and what was written while no agent ran."""

import os
import time
from pathlib import Path

import pytest

from agent.collectors.joblog import JobLogOptions
from agent.collectors.samples import Checkpoint, JobLine
from agent.host import Host
from agent.sources.joblog import JobLogSource, JobLogSourceOptions
from agent.sources.tail import MAX_LINE_BYTES, MAX_MISSED_BYTES
from tests.agent.following import Emitted, following, once


class Logs:
    """A folder of job logs and a source that follows it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "var/log/jobs"
        self.folder.mkdir(parents=True)

    def source(self, markers: tuple[str, ...] = ()) -> JobLogSource:
        return JobLogSource(
            Host(root=self.root),
            JobLogSourceOptions(job_logs=("/var/log/jobs/*.log",)),
            poll_s=0.01,
            markers=markers,
        )

    def append(self, name: str, data: bytes) -> None:
        with (self.folder / name).open("ab") as log:
            log.write(data)


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Logs:
    monkeypatch.setattr("agent.sources.log_files._RESCAN_S", 0.02)
    return Logs(tmp_path)


def texts(emitted: Emitted) -> list[str]:
    return [sample.text for sample in emitted if isinstance(sample, JobLine)]


async def settled(source: JobLogSource, emitted: Emitted) -> None:
    await emitted.until(lambda _: source._files is not None)


async def test_old_lines_are_history_and_new_files_are_read_whole(logs: Logs) -> None:
    """A file that is there at start is followed from its end, a later one from its beginning."""
    logs.append("1.log", b"old\n")
    source = logs.source()
    async with following(source) as emitted:
        await settled(source, emitted)
        logs.append("1.log", b"new\n")
        logs.append("2.log", b"first\r\nsecond\n")
        await emitted.until(lambda h: len(texts(h)) == 3)
    assert sorted(texts(emitted)) == ["first", "new", "second"]
    assert {(r.file, r.job) for r in emitted if isinstance(r, JobLine)} == {
        ("/var/log/jobs/1.log", "1"),
        ("/var/log/jobs/2.log", "2"),
    }


async def test_the_job_is_the_first_number_of_the_file_s_name(tmp_path: Path) -> None:
    """As the agent is configured by default; numbers in the folders above it are not its own."""
    folder = tmp_path / "lustre2/home7/exp-13"
    folder.mkdir(parents=True)
    for name in ("slurm-4711.out", "4712_rank0.out", "train.out"):
        (folder / name).write_text("a line\n")
    source = JobLogSource(
        Host(root=tmp_path),
        JobLogSourceOptions(job_logs=("/lustre2/home7/*/*.out",)),
    )
    jobs = {sample.job for sample in await once(source) if isinstance(sample, JobLine)}
    assert jobs == {"4711", "4712", ""}


async def test_a_line_is_reported_when_it_is_complete(logs: Logs) -> None:
    """A last line without its end waits for the rest; invalid UTF-8 is replaced."""
    source = logs.source()
    async with following(source) as emitted:
        await settled(source, emitted)
        logs.append("1.log", b"one\ntw")
        await emitted.until(lambda h: len(texts(h)) == 1)
        logs.append("1.log", b"o caf\xe9\n")
        await emitted.until(lambda h: len(texts(h)) == 2)
    assert texts(emitted) == ["one", "two caf\ufffd"]


async def test_a_rotated_file_loses_nothing(logs: Logs) -> None:
    """Lines written before and after a rename are both emitted, and the new file is read from its beginning."""
    source = logs.source()
    async with following(source) as emitted:
        await settled(source, emitted)
        logs.append("1.log", b"a\n")
        await emitted.until(lambda h: len(texts(h)) == 1)
        logs.append("1.log", b"b\nunfinished")
        (logs.folder / "1.log").rename(logs.folder / "1.log.1")
        logs.append("1.log", b"c\n")
        await emitted.until(lambda h: len(texts(h)) == 4)
    assert texts(emitted) == ["a", "b", "unfinished", "c"]


async def test_a_truncated_file_is_read_again(logs: Logs) -> None:
    """A file that became shorter was begun again."""
    source = logs.source()
    async with following(source) as emitted:
        await settled(source, emitted)
        logs.append("1.log", b"a long first line\n")
        await emitted.until(lambda h: len(texts(h)) == 1)
        os.truncate(logs.folder / "1.log", 0)
        await emitted.until(lambda _: all(tail.offset == 0 for tail in source._followed))
        logs.append("1.log", b"b\n")
        await emitted.until(lambda h: len(texts(h)) == 2)
    assert texts(emitted) == ["a long first line", "b"]


async def test_a_line_of_a_megabyte_is_cut_and_the_next_is_whole(logs: Logs) -> None:
    """One piece of bounded length, then nothing until its end."""
    source = logs.source()
    async with following(source) as emitted:
        await settled(source, emitted)
        logs.append("1.log", b"x" * 3_000_000)
        await emitted.until(lambda h: len(texts(h)) == 1)
        logs.append("1.log", b"y\nnext\n")
        await emitted.until(lambda h: len(texts(h)) == 2)
    assert [len(text) for text in texts(emitted)] == [MAX_LINE_BYTES, 4]


async def test_a_vanished_file_is_forgotten(logs: Logs) -> None:
    """A deleted log is closed and dropped; a new one of its name is read from its beginning."""
    source = logs.source()
    async with following(source) as emitted:
        await settled(source, emitted)
        logs.append("1.log", b"a\n")
        await emitted.until(lambda h: len(texts(h)) == 1)
        (logs.folder / "1.log").unlink()
        await emitted.until(lambda _: source._files == {})
        logs.append("1.log", b"b\n")
        await emitted.until(lambda h: len(texts(h)) == 2)
    assert texts(emitted) == ["a", "b"]


async def test_only_lines_with_a_marker_are_handed_on(logs: Logs) -> None:
    """With markers, a talkative job costs no more than reading its log."""
    source = logs.source(JobLogOptions().markers)
    async with following(source) as emitted:
        await settled(source, emitted)
        logs.append("1.log", b"step 1\n" * 10_000 + b"CUDA error: unknown error\n" + b"step 2\n" * 10_000)
        await emitted.until(lambda h: len(texts(h)) == 1)
    assert texts(emitted) == ["CUDA error: unknown error"]


async def stopped(
    logs: Logs, until: int, checkpoints: dict[str, str] | None = None
) -> tuple[list[JobLine], dict[str, str]]:
    """A run that ends after so many lines: these, and the checkpoints that it leaves."""
    source = JobLogSource(
        Host(root=logs.root),
        JobLogSourceOptions(job_logs=("/var/log/jobs/*.log",)),
        poll_s=0.01,
        checkpoints=checkpoints,
        markers=("x",),
    )
    async with following(source) as emitted:
        await settled(source, emitted)
        await emitted.until(lambda h: len(lines(h)) >= until)
        await emitted.until(lambda h: any(isinstance(r, Checkpoint) and r.key == "joblog " for r in h))
    left = dict(checkpoints or {})
    for sample in emitted:
        if isinstance(sample, Checkpoint):
            left[sample.key] = sample.value
    return lines(emitted), {key: value for key, value in left.items() if value}


def lines(emitted: Emitted) -> list[JobLine]:
    return [sample for sample in emitted if isinstance(sample, JobLine)]


async def test_what_was_written_while_no_agent_ran_is_read_by_the_next_one(logs: Logs) -> None:
    """Exactly what was not read: in a file that was followed, a new one, a rotated one; its age is that of the file."""
    logs.append("1.log", b"x history\n")
    logs.append("2.log", b"x history\n")
    _, checkpoints = await stopped(logs, 0)
    logs.append("1.log", b"x missed\nnothing\nx half")
    logs.append("3.log", b"x new\n")
    (logs.folder / "2.log").rename(logs.folder / "2.old")
    logs.append("2.log", b"x rotated\n")
    an_hour_ago = time.time() - 3600
    os.utime(logs.folder / "1.log", (an_hour_ago, an_hour_ago))
    found, checkpoints = await stopped(logs, 3, checkpoints)
    assert sorted(line.text for line in found) == ["x missed", "x new", "x rotated"]
    ages = {line.text: time.monotonic() - line.mono_s for line in found}
    assert 3590 < ages["x missed"] < 3700
    assert ages["x new"] < 60
    logs.append("1.log", b" whole\n")
    (logs.folder / "3.log").unlink()
    found, checkpoints = await stopped(logs, 1, checkpoints)
    assert [line.text for line in found] == ["x half whole"]
    assert sorted(checkpoints) == ["joblog ", *(f"joblog {logs.folder}/{name}.log" for name in (1, 2))]


async def test_of_much_that_was_missed_the_last_megabyte_is_read(logs: Logs) -> None:
    """From the beginning of a line on; and with other globs than before nothing: those files were not followed."""
    logs.append("1.log", b"")
    _, checkpoints = await stopped(logs, 0)
    logs.append("1.log", b"x first\n" + b"y" * 99 + b"\n" + b"y" * MAX_MISSED_BYTES + b"x\nx last\n")
    found, _ = await stopped(logs, 1, checkpoints)
    assert [line.text for line in found] == ["x last"]
    found, _ = await stopped(logs, 0, checkpoints | {"joblog ": "/elsewhere/*"})
    assert found == []


async def test_once_reads_everything(logs: Logs) -> None:
    """`once` emits every line that there is, the unfinished last one too; what is no file is ignored."""
    logs.append("1.log", b"a\nb")
    logs.append("7.log", b"x\n" * 600_000 + b"CUDA error: last\n")
    (logs.folder / "dir.log").mkdir()
    assert texts(await once(logs.source(("CUDA", "b")))) == ["b", "CUDA error: last"]

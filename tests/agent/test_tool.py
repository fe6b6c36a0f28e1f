"""Tools are run with a deadline, bounded output and a clean environment, and none of their processes stays behind."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from agent.contract.errors import Refused
from agent.shared import tool

SH = "/bin/sh"


async def test_output_and_status() -> None:
    """Both streams, the exit status, and the last line for people."""
    ran = await tool.run([SH, "-c", "echo out; echo one >&2; echo two >&2; exit 3"], deadline_s=60)
    assert (ran.status, ran.out, ran.err, ran.last_line) == (3, "out\n", "one\ntwo\n", "two")
    assert (await tool.run([SH, "-c", "exit 4"], deadline_s=60)).last_line == "exit status 4"


async def test_a_clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of ours reaches the tool but those named for it; standard input is empty; it runs in the root folder."""
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("LD_PRELOAD", "")
    ran = await tool.run([SH, "-c", "/usr/bin/env; pwd; cat"], deadline_s=60, env={"MORE": "1"})
    lines = ran.out.splitlines()
    assert {line.partition("=")[0] for line in lines} == {
        *("PATH", "LC_ALL", "LANG", "HOME", "MORE", "PWD", "/"),
    }
    assert {"MORE=1", "LC_ALL=C"} <= set(lines)


async def test_endless_output_is_cut() -> None:
    """What exceeds the limit is thrown away, and the tool is not held up."""
    ran = await tool.run([sys.executable, "-c", "print('x' * 5_000_000)"], deadline_s=60, max_bytes=1000)
    assert (ran.status, ran.out) == (0, "x" * 1000)


@pytest.mark.parametrize("path", ["nvidia-smi", "/nowhere/nvidia-smi", "/etc/passwd"])
async def test_a_tool_that_cannot_be_started_is_refused(path: str) -> None:
    """Relative (a bare name could be found anywhere), missing, or not a program: nothing was done, and the operator must
    correct the configuration.
    """
    with pytest.raises(Refused, match=path):
        await tool.run([path], deadline_s=1)


@pytest.mark.parametrize("cancel", [False, True])
async def test_its_whole_process_group_ends(tmp_path: Path, cancel: bool) -> None:
    """On time-out and on cancellation: SIGTERM first (it may call something off), then SIGKILL, children too. What it had
    printed until its deadline is kept.
    """
    script = (
        f"trap 'echo asked > {tmp_path}/asked' TERM; sleep 60 & echo $! > {tmp_path}/part; "
        f"mv {tmp_path}/part {tmp_path}/child; echo printed; while :; do wait; done"
    )
    work = asyncio.create_task(tool.run([SH, "-c", script], deadline_s=60 if cancel else 2, grace_s=0.2))
    child = await _pid(tmp_path / "child")
    if cancel:
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    else:
        with pytest.raises(tool.Late) as late:
            await work
        assert (late.value.ran.status, late.value.ran.out) == (None, "printed\n")
    assert (tmp_path / "asked").exists()
    await _until_ended(child)


async def test_a_tool_that_is_cancelled_while_it_starts_is_killed_whole(tmp_path: Path) -> None:
    """At whatever moment of its start: the cancellation does not wait for the child that holds the output open, and no
    process is left.
    """
    argv = [SH, "-c", f"sleep 60 & echo $! >> {tmp_path}/pids; wait"]
    for moment in range(30):
        task = asyncio.create_task(tool.run(argv, deadline_s=60))
        for _ in range(moment):
            await asyncio.sleep(0)
        task.cancel()
        async with asyncio.timeout(60):
            with pytest.raises(asyncio.CancelledError):
                await task
    pids = tmp_path / "pids"
    for pid in pids.read_text().split() if pids.exists() else []:
        await _until_ended(int(pid))


async def test_a_tool_that_leaves_its_output_to_a_daemon(tmp_path: Path) -> None:
    """It has ended, with what it printed; and nothing of it stays open here, though the daemon, in a session of its own, does."""
    script = f"setsid sh -c 'echo $$ >> {tmp_path}/pids; exec sleep 60' & echo printed; exit 3"
    open_before = _open_files()
    try:
        for _ in range(3):
            ran = await tool.run([SH, "-c", script], deadline_s=1, grace_s=0.1)
            assert (ran.status, ran.out) == (3, "printed\n")
        async with asyncio.timeout(60):
            while _open_files() > open_before:
                await asyncio.sleep(0.01)
    finally:
        for pid in (tmp_path / "pids").read_text().split():
            os.kill(int(pid), signal.SIGKILL)


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def _pid(path: Path) -> int:
    async with asyncio.timeout(60):
        while not path.exists():
            await asyncio.sleep(0.01)
    return int(path.read_text())


async def _until_ended(pid: int) -> None:
    end_s = time.monotonic() + 60
    while _alive(pid) and time.monotonic() < end_s:
        await asyncio.sleep(0.01)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # A zombie has ended: only the machine's first process has yet to collect it.
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False

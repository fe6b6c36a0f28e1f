"""Tools are run with a deadline, bounded output and a clean environment, and nothing of them stays behind."""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from agent.actions import tool
from agent.contract.errors import Refused, TimedOut

SH = "/bin/sh"


async def test_what_it_said() -> None:
    """Both streams, the exit status, and the last line for people."""
    ran = await tool.run([SH, "-c", "echo out; echo one >&2; echo two >&2; exit 3"], deadline_s=10)
    assert (ran.status, ran.out, ran.err, ran.says) == (3, "out\n", "one\ntwo\n", "two")
    assert (await tool.run([SH, "-c", "exit 4"], deadline_s=10)).says == "exit status 4"


async def test_a_clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of ours leaks in; standard input is empty; it runs in the root folder."""
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("LD_PRELOAD", "")
    ran = await tool.run([SH, "-c", "/usr/bin/env; pwd; cat"], deadline_s=10, env={"MORE": "1"})
    assert {line.partition("=")[0] for line in ran.out.splitlines()} == {
        *("PATH", "LC_ALL", "LANG", "HOME", "MORE", "PWD", "/"),
    }


async def test_a_flood_is_cut() -> None:
    """What is beyond the limit is forgotten, and the tool is not held up."""
    ran = await tool.run([sys.executable, "-c", "print('x' * 5_000_000)"], deadline_s=20, max_bytes=1000)
    assert (ran.status, ran.out) == (0, "x" * 1000)


@pytest.mark.parametrize("path", ["nvidia-smi", "/nonexistent/nvidia-smi", "/etc/passwd"])
async def test_what_cannot_be_started_is_refused(path: str) -> None:
    """Nothing was done, and asking again does not help; a bare name would be looked for who knows where."""
    with pytest.raises(Refused):
        await tool.run([path], deadline_s=1)


@pytest.mark.parametrize("cancel", [False, True])
async def test_its_whole_group_is_ended(
    tmp_path: Path, cancel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On time-out and on cancellation: first asked (it may call something off), then killed, its children too."""
    monkeypatch.setattr(tool, "_GRACE_S", 0.2)
    script = f"trap 'echo asked > {tmp_path}/asked' TERM; sleep 60 & echo $! > {tmp_path}/child; while :; do wait; done"
    work = asyncio.create_task(tool.run([SH, "-c", script], deadline_s=60 if cancel else 0.5))
    while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text():
        await asyncio.sleep(0.01)
    child = int((tmp_path / "child").read_text())
    if cancel:
        work.cancel()
    with pytest.raises(asyncio.CancelledError if cancel else TimedOut):
        await work
    assert (tmp_path / "asked").exists()
    end_s = time.monotonic() + 5
    while _alive(child) and time.monotonic() < end_s:
        await asyncio.sleep(0.01)
    assert not _alive(child)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False

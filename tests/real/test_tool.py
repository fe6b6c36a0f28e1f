"""Tools of the brain's machine: nothing of them outlives the wait, whatever they do."""

import asyncio
import os
from pathlib import Path

import pytest

from agent.contract.errors import Refused
from brain.actions import tool


def script(folder: Path, text: str) -> str:
    """An executable shell script."""
    path = folder / "tool"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def gone(pid_file: Path) -> bool:
    """Has the process ended?"""
    try:
        os.kill(int(pid_file.read_text()), 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{int(pid_file.read_text())}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "Z"  # ended; the machine's first process has yet to take note


async def test_output_and_status(tmp_path: Path) -> None:
    """Both streams; the environment is ours and holds no secrets of the brain's."""
    os.environ["GPUWARD_TEST_SECRET"] = "x"
    try:
        ran = await tool.run([script(tmp_path, "env; echo bad >&2; exit 3")], deadline_s=5, env={"A": "b"})
    finally:
        del os.environ["GPUWARD_TEST_SECRET"]
    assert (ran.status, ran.err, ran.says) == (3, "bad\n", "bad")
    assert "A=b" in ran.out
    assert "LC_ALL=C" in ran.out
    assert "SECRET" not in ran.out


async def test_the_whole_group_dies_at_the_deadline_and_what_was_said_is_kept(tmp_path: Path) -> None:
    """A child in the background, too."""
    argv = [script(tmp_path, f"sleep 60 & echo $! > {tmp_path}/pid; echo said; wait")]
    with pytest.raises(tool.Late) as late:
        await tool.run(argv, deadline_s=0.5)
    assert (late.value.ran.status, late.value.ran.out) == (None, "said\n")
    async with asyncio.timeout(5):
        while not gone(tmp_path / "pid"):
            await asyncio.sleep(0.02)


async def test_the_whole_group_dies_with_a_cancellation(tmp_path: Path) -> None:
    """Nobody waits for it any more."""
    argv = [
        script(
            tmp_path, f"sleep 60 & echo $! > {tmp_path}/pid.part; mv {tmp_path}/pid.part {tmp_path}/pid; wait"
        )
    ]
    task = asyncio.create_task(tool.run(argv, deadline_s=60))
    async with asyncio.timeout(5):
        while not (tmp_path / "pid").exists():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not gone(tmp_path / "pid"):
            await asyncio.sleep(0.02)


async def test_a_tool_that_is_cancelled_while_it_starts_is_killed_whole(tmp_path: Path) -> None:
    """At whatever moment of its start: nobody waits for the child that holds its output, and nobody is left."""
    argv = [script(tmp_path, f"sleep 60 & echo $! >> {tmp_path}/pids; wait")]
    for moment in range(30):
        task = asyncio.create_task(tool.run(argv, deadline_s=60))
        for _ in range(moment):
            await asyncio.sleep(0)
        task.cancel()
        async with asyncio.timeout(5):
            with pytest.raises(asyncio.CancelledError):
                await task
    pids = tmp_path / "pids"
    (tmp_path / "pid").write_text("")
    for pid in pids.read_text().split() if pids.exists() else []:
        (tmp_path / "pid").write_text(pid)
        async with asyncio.timeout(5):
            while not gone(tmp_path / "pid"):
                await asyncio.sleep(0.02)


async def test_endless_output_is_cut(tmp_path: Path) -> None:
    """And does not fill the memory."""
    ran = await tool.run([script(tmp_path, "head -c 5000000 /dev/zero")], deadline_s=10, max_bytes=100_000)
    assert ran.status == 0
    assert len(ran.out) == 100_000


@pytest.mark.parametrize("path", ["tool", "/nowhere/tool", "/etc/passwd"])
async def test_a_tool_that_cannot_be_run_is_refused(path: str) -> None:
    """Relative, missing, or not a program: the operator must act, nothing was done."""
    with pytest.raises(Refused, match=path):
        await tool.run([path], deadline_s=1)

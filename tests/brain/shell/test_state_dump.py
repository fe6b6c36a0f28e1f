"""A copy of the process makes a snapshot: the brain goes on, and what is written is the state of the moment in which it began."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brain.adapters import state_dump
from brain.adapters.snapshot import dump
from brain.adapters.state_dump import StateDump
from brain.core.state import Node, State


def cell(nodes: int) -> State:
    state = State()
    for number in range(nodes):
        name = f"n{number}"
        state.nodes[name] = Node(name=name, started_at=1000.0 + number)
    return state


def test_it_is_the_state_of_the_moment() -> None:
    state = cell(2000)
    before = dump(state)
    taken = StateDump(state)
    state.nodes.clear()
    state.now = 5.0
    assert taken.body() == before


def test_a_copy_that_is_killed_is_an_error_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(_: State) -> bytes:
        time.sleep(60)  # it is ended before that
        raise AssertionError

    files = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr(state_dump, "dump", hangs)
    taken = StateDump(cell(1))
    os.kill(taken._copy, signal.SIGKILL)
    with pytest.raises(OSError, match="ended with status -9"):
        taken.body()
    with pytest.raises(ChildProcessError):
        os.waitpid(taken._copy, 0)  # nobody waits for it any more
    assert len(list(Path("/proc/self/fd").iterdir())) == files


def test_a_copy_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_dump, "PATIENCE_S", 0.05)
    monkeypatch.setattr(state_dump, "dump", lambda _: time.sleep(60))
    with pytest.raises(OSError, match="ended with status -9"):
        StateDump(cell(1)).body()


def test_an_error_in_the_copy_runs_nothing_of_the_brain_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It would say goodbye on the brain's connections."""
    told = tmp_path / "told"

    def fails(_: State) -> bytes:
        raise ValueError("no state")

    monkeypatch.setattr(state_dump, "dump", fails)
    try:
        with pytest.raises(OSError, match="ended with status 1"):
            StateDump(cell(1)).body()
    finally:
        with told.open("a") as lines:
            lines.write(f"{os.getpid()}\n")
    assert told.read_text() == f"{os.getpid()}\n"


def test_without_room_for_a_process_the_brain_does_it_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room() -> int:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", no_room)
    state = cell(3)
    assert StateDump(state).body() == dump(state)


_BRAIN = """
import sys, time
from brain.adapters import state_dump
from brain.core.state import State
state_dump.dump = lambda _: time.sleep(600)
print(state_dump.StateDump(State())._copy, flush=True)
time.sleep(600)
"""


def gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def waits_for(condition: Callable[[], Any], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_ends_with_the_brain() -> None:
    """Else it would hold the lock of the data folder against the brain that systemd starts next."""
    with subprocess.Popen([sys.executable, "-c", _BRAIN], stdout=subprocess.PIPE, text=True) as brain:
        assert brain.stdout is not None
        copy = int(brain.stdout.readline())
        assert not gone(copy)
        brain.kill()
        waits_for(lambda: gone(copy))


def test_the_brain_is_held_up_for_less_than_it_takes_to_encode() -> None:
    state = cell(40_000)
    began = time.perf_counter()
    dump(state)
    encoded_s = time.perf_counter() - began
    held_up = []
    for _ in range(3):
        began = time.perf_counter()
        taken = StateDump(state)
        held_up.append(time.perf_counter() - began)
        taken.body()
    assert min(held_up) < encoded_s

"""Processes that no signal ends and that hold a GPU: what the kernel says of them, and from when on it is told."""

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from agent.collectors.holders import WINDOW_S, HoldersCollector
from agent.collectors.samples import Gpu, GpuProcess
from agent.contract import kinds
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.process_owner import stuck_state

BDF = "0000:3b:00"
IDLE = Gpu(index=0, bdf=BDF, uuid="GPU-1", utilization=0, holders_known=True)
# A parent waits in the kernel, in state D, until the child that it has made by vfork ends.
WAITS = "#include <unistd.h>\nint main(void) { if (vfork() == 0) { pause(); _exit(0); } return 0; }\n"
WITHIN_S = 60.0


def held(second: float, *processes: tuple[int, str], utilization: int = 0) -> Gpu:
    """A sample with these processes: pid, state."""
    found = tuple(
        GpuProcess(pid=pid, memory_mb=9, name="python3", job="7", state=state) for pid, state in processes
    )
    return replace(IDLE, processes=found, utilization=utilization, mono_s=second)


def told(samples: Iterable[Gpu]) -> list[UnsentEvent]:
    collector = HoldersCollector()
    return [kinds.check(event) for sample in samples for event in collector.feed(sample, sample.mono_s)]


def becomes(pid: int, state: str) -> None:
    """Waits until the kernel shows this state."""
    deadline = time.monotonic() + WITHIN_S
    while stuck_state(Host(), pid) != state:
        assert time.monotonic() < deadline, Path(f"/proc/{pid}/stat").read_text()
        time.sleep(0.02)  # before it looks again, until the deadline


@contextmanager
def waiting(folder: Path) -> Iterator[int]:
    """A process in state D."""
    (folder / "waits.c").write_text(WAITS)
    subprocess.run(
        ["gcc", "-o", str(folder / "waits"), str(folder / "waits.c")], check=True, capture_output=True
    )
    with subprocess.Popen([str(folder / "waits")], start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_the_kernels_own_words(tmp_path: Path) -> None:
    """A process in state D, a zombie, one that works, one that is gone; and a name with brackets in it."""
    assert stuck_state(Host(), os.getpid()) == ""
    with waiting(tmp_path) as pid:
        becomes(pid, "D")
    assert stuck_state(Host(), pid) == ""
    child = subprocess.Popen(["true"])
    becomes(child.pid, "Z")
    child.wait()
    assert stuck_state(Host(), child.pid) == ""
    (tmp_path / "proc/9").mkdir(parents=True)
    (tmp_path / "proc/9/stat").write_text("9 (a) R (b) D 1 9 9 0 -1\n")
    assert stuck_state(Host(root=tmp_path), 9) == "D"


def test_five_minutes_of_every_sample() -> None:
    """One in which it works begins anew; the process, and not the GPU, must have been so."""
    at = range(0, int(WINDOW_S), 10)
    assert told(held(n, (7, "D")) for n in at) == []
    (event,) = told(held(n, (7, "D"), (8, "")) for n in (*at, WINDOW_S))
    assert event.data == {
        "active": True, "processes": 1, "lasted_s": 300.0, "pid": 7, "process": "python3", "state": "D", "job": "7",
    }  # fmt: skip
    again = [*(held(n, (7, "D")) for n in at), held(300, (7, "")), *(held(n + 310, (7, "D")) for n in at)]
    assert told(again) == []
    assert told(held(n, (n // 100, "D")) for n in range(0, 1000, 10)) == []


def test_again_and_over() -> None:
    """Told every 300 s while it lasts, and when it is gone or the GPU works; a gap in the samples proves nothing."""
    lasting = [held(n, (7, "Z")) for n in range(0, 910, 10)]
    assert [e.data["active"] for e in told([*lasting, held(910)])] == [True, True, True, False]
    assert [e.data["active"] for e in told([*lasting[:40], held(400, (7, ""), utilization=90)])] == [
        True,
        False,
    ]
    assert told([held(0, (7, "D")), held(WINDOW_S, (7, "D"))]) == []
    assert told([*lasting[:29], replace(IDLE, lost="lost", mono_s=290.0)]) == []

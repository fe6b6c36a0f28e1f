"""process.signal on real processes, in real cgroups and with a job's environment."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.actions.process_signal import ProcessSignal
from agent.contract.errors import ActionError, Refused
from agent.host import Host

# A job of our own: nobody else's processes have this id.
JOB = f"77{os.getpid()}"
OTHER = f"88{os.getpid()}"
SLEEPER = "import time; print('ready', flush=True); time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPER
HELPER = "open('/proc/self/comm', 'w').write('slurmstepd'); " + SLEEPER
HANDLER = "import signal; signal.signal(signal.SIGUSR1, lambda *_: print('dump', flush=True)); " + SLEEPER


@contextlib.contextmanager
def process(job: str, code: str = SLEEPER) -> Iterator[subprocess.Popen[str]]:
    """A process whose environment names a job; not our child's child. It has begun."""
    argv = [sys.executable, "-c", code]
    # Reparented: the agent never signals its own children, and we are the agent here.
    script = 'exec 3>&1; ("$@" >&3 & echo $! >&2); wait'
    with contextlib.ExitStack() as undo:
        shell = undo.enter_context(
            subprocess.Popen(
                ["/bin/sh", "-c", script, "sh", *argv],
                env={"SLURM_JOB_ID": job, "PATH": "/usr/bin"},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        assert shell.stdout
        assert shell.stderr
        shell.pid = int(shell.stderr.readline())
        undo.callback(_end, shell.pid)
        assert shell.stdout.readline() == "ready\n"
        yield shell


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.fixture
def action() -> ProcessSignal:
    return ProcessSignal(Host(), end_s=60.0)


async def test_all_processes_of_a_job(action: ProcessSignal) -> None:
    """They end, and nobody else does; the plan names them and does nothing."""
    with process(JOB) as first, process(JOB) as second, process(OTHER) as other:
        plan = await action.plan({"job": JOB})
        assert [line.startswith("send SIGTERM to python") for line in plan] == [True, True]
        assert alive(first.pid)
        done = await action.run({"job": f"job/{JOB}"})
        assert done.text == f"SIGTERM sent to 2 processes of job {JOB}; they ended"
        assert not alive(first.pid)
        assert not alive(second.pid)
        assert alive(other.pid)


async def test_one_process_of_a_job(action: ProcessSignal) -> None:
    """`pid` picks it; one of another job, or of none, is refused."""
    with process(JOB) as first, process(JOB) as second, process(OTHER) as other:
        for pid in (other.pid, os.getpid(), 2**22 - 1):
            with pytest.raises(Refused, match=f"process {pid} is not one of job {JOB}"):
                await action.run({"job": JOB, "pid": pid})
        for pid in (1, 0, -1):
            with pytest.raises(Refused, match="never signalled"):
                await action.run({"job": JOB, "pid": pid})
        await action.run({"job": JOB, "pid": first.pid, "signal": "KILL"})
        assert not alive(first.pid)
        assert alive(second.pid)
        assert alive(other.pid)


async def test_a_signal_that_asks_for_a_dump(action: ProcessSignal) -> None:
    """SIGUSR1 ends nothing that handles it."""
    with process(JOB, HANDLER) as one:
        done = await action.run({"job": JOB, "signal": "USR1"})
        assert done.text == f"SIGUSR1 sent to 1 processes of job {JOB}"
        assert one.stdout
        assert one.stdout.readline() == "dump\n"
        assert alive(one.pid)


async def test_one_that_does_not_end(action: ProcessSignal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ignores the signal is a failure that names it; SIGKILL helps."""
    action._end_s = 0.2
    with process(JOB, STUBBORN) as one:
        with pytest.raises(
            ActionError, match=rf"1 of 1 processes are still alive .* after SIGTERM: .*pid {one.pid}, S"
        ):
            await action.run({"job": JOB})
        action._end_s = 60.0
        await action.run({"job": JOB, "signal": "SIGKILL"})
        assert not alive(one.pid)


async def test_nobody_to_signal(action: ProcessSignal) -> None:
    """No such job, no job at all, and no signal that is not on the list."""
    for job in (JOB, "*", "job/"):
        with pytest.raises(Refused):
            await action.run({"job": job})
    with pytest.raises(Refused, match="no job is named"):
        await action.run({"job": ""})
    for name in ("HUP", "STOP", "9", ""):
        with pytest.raises(Refused, match="signal must be one of"):
            await action.run({"job": JOB, "signal": name})


async def test_the_schedulers_helpers_are_left_alone(action: ProcessSignal) -> None:
    """Slurm's step daemon is in the job's cgroup, and cleans up after it."""
    with process(JOB, HELPER) as helper, process(JOB) as rank:
        await action.run({"job": JOB, "signal": "KILL"})
        assert alive(helper.pid)
        assert not alive(rank.pid)


async def test_the_agent_is_never_signalled(tmp_path: Path) -> None:
    """Even when it was started from the shell of that job: neither itself, nor what it stands on, nor its children."""
    code = (
        "import asyncio, subprocess, sys\n"
        "from agent.actions.process_signal import ProcessSignal\n"
        "from agent.host import Host\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"try: print(asyncio.run(ProcessSignal(Host()).run({{'job': '{JOB}', 'signal': 'KILL'}})))\n"
        "except Exception as error: print(type(error).__name__, error)\n"
        "print(child.poll()); child.kill()\n"
    )
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@"; echo shell lives', "sh", sys.executable, "-c", code],
        env=os.environ | {"SLURM_JOB_ID": JOB},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout.splitlines() == [
        f"Refused there is no process of job {JOB} on this node",
        "None",
        "shell lives",
    ]


async def test_a_pid_that_changes_hands(action: ProcessSignal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends and its pid becomes another's between our look and the signal: that other one lives."""
    with process(JOB) as one, process(OTHER) as other:
        opened = os.pidfd_open

        def late(pid: int, flags: int = 0) -> int:
            fd = opened(pid, flags)
            _end(one.pid)
            _wait(lambda: not alive(one.pid))
            return fd

        monkeypatch.setattr("agent.actions.process_signal.os.pidfd_open", late)
        with pytest.raises(Refused):
            await action.run({"job": JOB, "signal": "KILL"})
        assert alive(other.pid)


@pytest.fixture
def cgroup() -> Iterator[Callable[[str], Path]]:
    """Makes cgroups below system.slice, as Slurm and Kubernetes do; removed at the end."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    root = next(Path(words[1]) for words in mounts if words[2] == "cgroup2")
    made: list[Path] = []

    def make(path: str) -> Path:
        folder = root
        for part in path.split("/"):
            folder /= part
            if not folder.exists():
                folder.mkdir()
                made.append(folder)
        return folder

    yield make
    for folder in reversed(made):
        _wait(lambda folder=folder: not (folder / "cgroup.procs").read_text())  # type: ignore[misc]
        folder.rmdir()


@pytest.mark.root
@pytest.mark.parametrize(
    ("path", "job"),
    [
        (f"system.slice/slurmstepd.scope/job_{JOB}/step_0/user/task_0", JOB),
        (
            "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_1111_2222_3333_444455556666"
            ".slice/cri-containerd-ab12.scope",
            "0a1b2c3d-1111-2222-3333-444455556666",
        ),
    ],
    ids=["slurm", "kubernetes"],
)
async def test_the_cgroup_decides(
    action: ProcessSignal, cgroup: Callable[[str], Path], path: str, job: str
) -> None:
    """A process that claims to be of another job by its environment is its cgroup's."""
    folder = cgroup(path)
    with process(OTHER) as inside, process(OTHER) as outside:
        (folder / "cgroup.procs").write_text(str(inside.pid))
        assert (await action.run({"job": job, "signal": "TERM"})).text.startswith("SIGTERM sent to 1 ")
        assert not alive(inside.pid)
        assert alive(outside.pid)


def _wait(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)

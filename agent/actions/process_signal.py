"""process.signal: sends a signal to the processes of one job on this node, and to no other.

The owner of a process is found by its cgroup, else by its environment (agent/contract/owner.py). A pidfd is opened before
the owner is read, so that a pid which is given to another process meanwhile cannot be hit. Never signalled: process 1, the
agent with its parents and children, and the scheduler's helpers in the job's own cgroup, which clean up after it.
"""

import asyncio
import contextlib
import errno
import os
import select
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params
from agent.contract.errors import ActionError, Refused
from agent.host import Host
from agent.process_owner import owner_of

SIGNALS = {name: signal.Signals[f"SIG{name}"] for name in ("ABRT", "INT", "TERM", "KILL", "USR1")}
END_S = 10.0  # for the processes to end; the core dump of a rank takes seconds
_LOOK_S = 0.05
_ROUNDS = 3  # SIGKILL is sent again to processes that were forked meanwhile
_HELPERS = (
    "slurmstepd",
    "pause",
)  # Slurm's step daemon; the process that holds a Kubernetes pod's namespaces


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    pid: int
    name: str
    # Nothing but its own environment says that it is of the job
    claimed: bool
    # Its pidfd.
    fd: int


class ProcessSignal(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "process.signal"

    def __init__(self, host: Host, *, end_s: float = END_S) -> None:
        """`end_s`: how long the processes may take to end."""
        self._host = host
        self._end_s = end_s

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.host)

    async def plan(self, params: Params) -> list[str]:
        """One line for each process."""
        job, only, number = _checked(params)
        with self._targets(job, only) as targets:
            return [
                f"send SIG{_short(number)} to {one.name} (pid {one.pid}{f', which says that it is of job {job}' * one.claimed})"
                for one in targets
            ]

    async def run(self, params: Params) -> Done:
        """Sends the signal, and waits until the processes have ended (not after USR1, which ends none)."""
        job, only, number = _checked(params)
        count = 0
        for again in range(_ROUNDS if number is signal.SIGKILL else 1):
            try:
                with self._targets(job, only) as targets:
                    count += self._send(targets, number)
                    if number is not signal.SIGUSR1:
                        await self._until_ended(targets, number)
            except Refused:
                if again:  # none is left
                    break
                raise
        text = f"SIG{_short(number)} sent to {count} processes of job {job}"
        return Done(text=text if number is signal.SIGUSR1 else f"{text}; they ended")

    async def recover(self, params: Params) -> None:
        """Nothing to repair: a signal cannot be taken back."""

    @contextlib.contextmanager
    def _targets(self, job: str, only: int | None) -> Iterator[list[_Target]]:
        """The job's processes; Refused when there are none, or when `only` is not one of them."""
        with contextlib.ExitStack() as opened:
            found = []
            never = self._never()
            pids = (
                [only]
                if only is not None
                else [int(name) for name in self._host.listdir("/proc") if name.isdigit()]
            )
            for pid in pids:
                # Checked before, so that few pidfds are open, and again after, so that the answer is about this process.
                if pid in never or not self._of(job, pid):
                    continue
                try:
                    fd = os.pidfd_open(pid)
                except ProcessLookupError:
                    continue  # it ended meanwhile
                except OSError as error:
                    if error.errno == errno.EINVAL:  # it is a thread
                        continue
                    raise
                opened.callback(os.close, fd)
                if self._of(job, pid) and not _ended(fd):
                    name = self._host.read(f"/proc/{pid}/comm")
                    claimed = owner_of(self._host, pid).claimed
                    found.append(_Target(pid=pid, name=name, claimed=claimed, fd=fd))
            if not found:
                raise Refused(
                    f"process {only} is not one of job {job} on this node that may be signalled"
                    if only is not None
                    else f"there is no process of job {job} on this node"
                )
            yield found

    def _of(self, job: str, pid: int) -> bool:
        return owner_of(self._host, pid).job == job and self._host.read(f"/proc/{pid}/comm") not in _HELPERS

    def _send(self, targets: list[_Target], number: signal.Signals) -> int:
        sent = 0
        for one in targets:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(one.fd, number)
                sent += 1
        return sent

    async def _until_ended(self, targets: list[_Target], number: signal.Signals) -> None:
        end_s = self._host.mono_s() + self._end_s
        while left := [one for one in targets if not _ended(one.fd)]:
            if self._host.mono_s() > end_s:
                texts = ", ".join(f"{one.name} (pid {one.pid}, {self._state(one.pid)})" for one in left[:10])
                raise ActionError(
                    f"{len(left)} of {len(targets)} processes are still alive {self._end_s:g} s after "
                    f"SIG{_short(number)}: {texts}"
                )
            await asyncio.sleep(_LOOK_S)

    def _never(self) -> set[int]:
        """Process 1, and the agent with its children and all that it descends from."""
        never = {0, 1}
        pid = os.getpid()
        while pid > 1:
            never.add(pid)
            pid = self._parent(pid)
        own = os.getpid()
        never |= {
            int(name)
            for name in self._host.listdir("/proc")
            if name.isdigit() and self._parent(int(name)) == own
        }
        return never

    def _parent(self, pid: int) -> int:
        for line in self._host.read(f"/proc/{pid}/status").splitlines():
            if line.startswith("PPid:"):
                return int(line[5:])
        return 0

    def _state(self, pid: int) -> str:
        """As the kernel writes it; `D (disk sleep)` is a process that hangs in the kernel."""
        for line in self._host.read(f"/proc/{pid}/status").splitlines():
            if line.startswith("State:"):
                return line[6:].strip()
        return "gone"


def _checked(params: Params) -> tuple[str, int | None, signal.Signals]:
    job = str(params["job"]).removeprefix("job/")
    if not job:  # most processes belong to no job
        raise Refused("no job is named")
    wanted = str(params.get("signal", "TERM")).removeprefix("SIG")
    if wanted not in SIGNALS:
        raise Refused(f"signal must be one of {', '.join(SIGNALS)}, not {wanted[:20]!r}")
    only = params.get("pid")
    if only is not None and int(only) <= 1:
        raise Refused(f"process {only} is never signalled")
    return job, None if only is None else int(only), SIGNALS[wanted]


def _short(number: signal.Signals) -> str:
    return number.name.removeprefix("SIG")


def _ended(fd: int) -> bool:
    """A pidfd is readable once its process has ended, even before the parent has collected it."""
    return bool(select.select([fd], [], [], 0)[0])

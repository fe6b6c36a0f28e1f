"""The NVML child as a process: started, watched, killed; how many may stay behind when they cannot be killed."""

import asyncio
import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from agent.host import Host
from agent.nvml.wire import BOARD, BOARD_BYTES, LOOK, SAMPLED, SAMPLED_AT
from agent.shared.rhythm import until_next

_CHILD = Path(__file__).resolve().with_name("start.py")
MAX_UNKILLABLE = 3  # children that survive SIGKILL; with as many, no new one is started

Kill = Callable[[asyncio.subprocess.Process], None]
# Calls that are not made for a while: NVML index, call, seconds.
Skips = list[tuple[int, str, float]]


class Hung(Exception):  # not an error of ours: the driver does not answer
    """A call did not return in time; the child was killed."""

    def __init__(self, call: str, index: int, waited_s: float) -> None:
        super().__init__(call)
        self.call, self.index, self.waited_s = call, index, waited_s


class Absent(Exception):  # not an error: a machine without GPUs
    """The child could not open NVML: mostly there is no library or no driver."""

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code  # nvmlReturn_t


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How often the child samples, and how it is watched."""

    # Between samples.
    interval_s: float = 1.0
    # For one call.
    deadline_s: float = 10.0
    # How often a silent child is checked.
    look_s: float = 2.0
    # Until a missing library is looked for again.
    retry_s: float = 60.0
    # Power, temperature, processes and counters are in each n-th sample.
    slow_every: int = 5
    # Modes, limits, PCIe and NVLink state are in each n-th sample.
    rare_every: int = 30
    # How long nothing must have happened until these come less often (agent/nvml/pace.py).
    calm_s: float = 60.0
    # The SM clock is read with the counters, and the model with the modes.
    clocks: bool = False
    # A call that hung on one GPU is not made again for the first, second, ... of these, so that the others are sampled.
    skip_s: tuple[float, ...] = (60.0, 300.0, 1800.0)
    # Until a GPU that NVML never showed counts as lost: drivers load one after another.
    settle_s: float = 30.0


def kill(process: asyncio.subprocess.Process) -> None:
    """SIGKILL; a process in an uninterruptible call dies only when the driver lets go."""
    with suppress(ProcessLookupError):
        os.kill(
            process.pid, signal.SIGKILL
        )  # process.kill() would reap it before asyncio does (agent/shared/tool.py)


@dataclass(slots=True, kw_only=True)
class Unkillable:
    """Children that were killed and have not died."""

    kill: Kill = kill
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)

    def count(self) -> int:
        """How many there are now."""
        self.processes[:] = [process for process in self.processes if process.returncode is None]
        return len(self.processes)

    async def end(self, process: asyncio.subprocess.Process) -> None:
        """Kills `process`; it is left behind when it does not die within a second."""
        if process.returncode is not None:
            return
        self.kill(process)
        try:
            async with asyncio.timeout(1.0):
                await process.wait()
        except TimeoutError:
            self.processes.append(process)


class Child:
    """One child process, watched."""

    def __init__(
        self,
        timing: Timing,
        env: Mapping[str, str],
        unkillable: Unkillable,
        skips: Skips,
        answered: Iterable[str] = (),
    ) -> None:
        """`answered`: addresses, as NVML writes them, of the GPUs that have answered something."""
        self._timing, self._env, self._unkillable, self._skips = timing, env, unkillable, skips
        self._answered = ",".join(answered)
        self._last_s = 0.0

    async def __aenter__(self) -> "Child":
        fd = os.memfd_create("nvml-board")
        try:
            os.ftruncate(fd, BOARD_BYTES)
            self._board = mmap.mmap(fd, BOARD_BYTES)
            self._last_s = now_s()
            # The start counts as a call, so that a library that hangs while it is loaded is noticed too.
            BOARD.pack_into(self._board, 0, int(self._last_s * 1e9), -1, b"start")
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                str(_CHILD),
                str(fd),
                str(self._timing.interval_s),
                str(self._timing.slow_every),
                str(self._timing.rare_every),
                str(self._timing.calm_s),
                str(int(self._timing.clocks)),
                self._answered,
                *(f"{index}:{call}:{for_s}" for index, call, for_s in self._skips),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                pass_fds=(fd,),
                start_new_session=True,  # Ctrl-C is for the agent; the child ends with it
                env={**os.environ, **self._env},
                limit=1024 * 1024,
            )
        finally:
            os.close(fd)
        return self

    def look(self, number: int) -> None:
        """Asks for a sample of everything; the message that has it says `look`: `number`."""
        LOOK.pack_into(self._board, BOARD.size, number)

    async def receive(self) -> dict[str, Any]:
        """The next sample or event. Hung, Absent, or OSError when the child died."""
        assert self._process.stdout is not None  # noqa: S101  # PIPE above
        while True:
            try:
                async with asyncio.timeout(until_next(min(self._timing.look_s, self._timing.deadline_s / 4))):
                    line = await self._process.stdout.readline()
            except TimeoutError:
                self._check_hung(now_s())
                continue
            if not line:
                raise OSError(f"the NVML child ended with status {await self._process.wait()}")
            self._last_s = now_s()
            message: dict[str, Any] = orjson.loads(line)
            if "absent" in message:
                raise Absent(message["absent"], message["code"])
            return message

    def _check_hung(self, at_s: float) -> None:
        """Hung when a call exceeds its deadline, or when the child has neither sent nor sampled for three deadlines."""
        since_ns, index, name = BOARD.unpack_from(self._board)
        waited_s = at_s - since_ns / 1e9
        (sampled_ns,) = SAMPLED.unpack_from(self._board, SAMPLED_AT)
        silent_s = at_s - max(self._last_s, sampled_ns / 1e9)
        if since_ns and waited_s > self._timing.deadline_s and BOARD.unpack_from(self._board)[0] == since_ns:
            raise Hung(name.rstrip(b"\0").decode(errors="replace"), index, waited_s)
        if silent_s > self._timing.interval_s + 3 * self._timing.deadline_s:
            raise Hung(name.rstrip(b"\0").decode(errors="replace") or "none", index, silent_s)

    async def __aexit__(self, *_: object) -> None:
        self._board.close()
        await self._unkillable.end(self._process)


def now_s() -> float:
    """CLOCK_MONOTONIC of this machine, which the board carries, whichever machine is watched."""
    return Host().mono_s()

"""The NVML child as a process: started, watched, killed; how many may stay behind unkillable.

Not a source: what agent/sources/nvml.py stands on.
"""

import asyncio
import mmap
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from agent.host import Host
from agent.nvml_words import BOARD

_CHILD = Path(__file__).resolve().parents[1] / "nvml_start.py"
MOST_UNDEAD = 3  # killed children that the kernel does not let die; above, no new one is started

Kill = Callable[[asyncio.subprocess.Process], None]
Skips = list[tuple[int, str, float]]  # NVML index, call, seconds


class Hung(Exception):  # it is not our error: the driver does not answer
    """A call did not return in time; the child was killed."""

    def __init__(self, call: str, index: int, waited_s: float) -> None:
        super().__init__(call)
        self.call, self.index, self.waited_s = call, index, waited_s


class Absent(Exception):  # not an error: a machine without GPUs
    """The child found no library or no driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How the child is asked and watched, seconds."""

    interval_s: float = 1.0  # between samples
    deadline_s: float = 10.0  # for one call
    look_s: float = 2.5  # how often a silent child is looked at
    retry_s: float = 60.0  # until a missing library is looked for again
    slow_every: int = 5  # samples: power, temperature, processes and counters are asked in each n-th one
    rare_every: int = 30  # samples: modes, limits, PCIe and NVLink state are asked in each n-th one
    # A call that hung on one GPU is not made again for the first, second, ... pause, so that the others are sampled.
    skip_s: tuple[float, ...] = (60.0, 300.0, 1800.0)
    settle_s: float = (
        30.0  # until a GPU that NVML never showed counts as lost: drivers load one after another
    )


def kill(process: asyncio.subprocess.Process) -> None:
    """SIGKILL; a process in an uninterruptible call dies only when the driver lets go."""
    process.kill()


@dataclass(slots=True, kw_only=True)
class Undead:
    """Children that were killed and live."""

    kill: Kill = kill
    left: list[asyncio.subprocess.Process] = field(default_factory=list)

    def count(self) -> int:
        """How many there are now."""
        self.left[:] = [process for process in self.left if process.returncode is None]
        return len(self.left)

    async def end(self, process: asyncio.subprocess.Process) -> None:
        """Kills `process`; it is left behind when it does not die within a second."""
        if process.returncode is not None:
            return
        self.kill(process)
        try:
            async with asyncio.timeout(1.0):
                await process.wait()
        except TimeoutError:
            self.left.append(process)


class Child:
    """One child process, watched."""

    def __init__(self, timing: Timing, env: Mapping[str, str], undead: Undead, skips: Skips) -> None:
        self._timing, self._env, self._undead, self._skips = timing, env, undead, skips
        self._last_s = 0.0

    async def __aenter__(self) -> "Child":
        fd = os.memfd_create("nvml-board")
        try:
            os.ftruncate(fd, BOARD.size)
            self._board = mmap.mmap(fd, BOARD.size)
            self._last_s = now_s()
            # Its start counts as a call: a library that hangs while it is loaded is noticed too.
            BOARD.pack_into(self._board, 0, int(self._last_s * 1e9), -1, b"start")
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                str(_CHILD),
                str(fd),
                str(self._timing.interval_s),
                str(self._timing.slow_every),
                str(self._timing.rare_every),
                *(f"{index}:{call}:{for_s}" for index, call, for_s in self._skips),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                pass_fds=(fd,),
                start_new_session=True,  # Ctrl-C is the agent's; the child ends with it
                env={**os.environ, **self._env},
                limit=1024 * 1024,
            )
        finally:
            os.close(fd)
        return self

    async def said(self) -> dict[str, Any]:
        """The next sample or event. Hung, Absent, or OSError when the child died."""
        assert self._process.stdout is not None  # noqa: S101  # PIPE above
        while True:
            try:
                async with asyncio.timeout(min(self._timing.look_s, self._timing.deadline_s / 4)):
                    line = await self._process.stdout.readline()
            except TimeoutError:
                self._judge(now_s())
                continue
            if not line:
                raise OSError(f"the NVML child ended with status {await self._process.wait()}")
            self._last_s = now_s()
            said: dict[str, Any] = orjson.loads(line)
            if "absent" in said:
                raise Absent(said["absent"])
            return said

    def _judge(self, at_s: float) -> None:
        """Hung when a call is over its deadline, or when nothing was said for three of them."""
        since_ns, index, name = BOARD.unpack_from(self._board)
        waited_s = at_s - since_ns / 1e9
        silent_s = at_s - self._last_s
        if since_ns and waited_s > self._timing.deadline_s and BOARD.unpack_from(self._board)[0] == since_ns:
            raise Hung(name.rstrip(b"\0").decode(errors="replace"), index, waited_s)
        if silent_s > self._timing.interval_s + 3 * self._timing.deadline_s:
            raise Hung(name.rstrip(b"\0").decode(errors="replace") or "none", index, silent_s)

    async def __aexit__(self, *_: object) -> None:
        self._board.close()
        await self._undead.end(self._process)


def now_s() -> float:
    """The board carries CLOCK_MONOTONIC of this machine, whichever machine is watched."""
    return Host().mono_s()

"""NVML through a child process (agent/nvml_child.py): a hung driver costs a child, never the agent."""

import asyncio
import json
import mmap
import os
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from agent.collectors.readings import Gpu, GpuEvent, GpuProcess, NvmlState
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.owner import Owner, owner
from agent.host import Host
from agent.sources.base import Emit

# As in nvml_child.py, which imports nothing of ours and whose import would bring pynvml here.
BOARD = struct.Struct("=Qi52s")  # start of the call in ns (0: none), NVML index (-1: none), name
_CHILD = Path(__file__).resolve().parents[1] / "nvml_child.py"
_MOST_UNDEAD = 3  # killed children that the kernel does not let die; above, no new one is started
_PAUSES_S = (0.5, 2.0, 10.0, 30.0, 60.0)  # after the first, second, ... hang without an answer between


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
    retry_s: float = 60.0  # until a missing library is looked for again
    slow_every: int = 5  # samples: power, temperature and processes are asked in each n-th one


class NvmlSource:
    """Gpu, GpuEvent and NvmlState readings of this machine."""

    name: ClassVar[str] = "nvml"
    needs: ClassVar[str] = "libnvidia-ml.so.1 and the NVIDIA driver; says once when they are absent"

    def __init__(
        self, host: Host, *, timing: Timing | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        """`env`: added to the child's environment (a library path)."""
        self._host = host
        self._timing = timing or Timing()
        self._env = dict(env or {})
        self._undead: list[asyncio.subprocess.Process] = []
        self._known: dict[str, Gpu] = {}  # address -> last reading; survives the child
        self._owners: dict[int, tuple[str, Owner]] = {}
        self._state = ""

    async def run(self, emit: Emit) -> None:
        """Follows NVML; OSError when the child cannot be started or dies by itself."""
        if not self._host.live:
            await asyncio.get_running_loop().create_future()
        hangs = 0
        while True:
            try:
                async with _Child(self._timing, self._env, self._undead) as child:
                    while True:
                        self._take(await child.said(), emit)
                        hangs = 0
            except Absent as absent:
                if self._state != "absent":
                    self._say(emit, "absent", reason=str(absent))
                await asyncio.sleep(self._timing.retry_s)
            except Hung as hung:
                self._hung(hung, emit)
                await asyncio.sleep(_PAUSES_S[min(hangs, len(_PAUSES_S) - 1)])
                hangs += 1
            while len(self._undead) >= _MOST_UNDEAD:
                await asyncio.sleep(1.0)
                self._undead[:] = [process for process in self._undead if process.returncode is None]

    async def once(self, emit: Emit) -> None:
        """One sample. A recorded machine has no NVML: nothing is said."""
        if not self._host.live:
            return
        try:
            async with _Child(self._timing, self._env, self._undead) as child:
                self._take(await child.said(), emit)
        except Absent as absent:
            self._say(emit, "absent", reason=str(absent))
        except Hung as hung:
            self._hung(hung, emit)

    def _hung(self, hung: Hung, emit: Emit) -> None:
        gpu = next((gpu for gpu in self._known.values() if gpu.index == hung.index), None)
        reason = "" if hung.index < 0 else f"on GPU {hung.index}{f' {gpu.bdf}' if gpu else ''}"
        self._say(emit, "hung", reason=reason, call=hung.call, waited_s=hung.waited_s)

    def _say(
        self,
        emit: Emit,
        state: str,
        *,
        reason: str = "",
        call: str = "",
        waited_s: float = 0.0,
        gpus: int = 0,
    ) -> None:
        self._state = state
        emit(
            NvmlState(
                state=state,
                reason=reason,
                call=call,
                waited_s=waited_s,
                gpus=gpus,
                mono_s=self._host.mono_s(),
            )
        )

    def _take(self, said: dict[str, Any], emit: Emit) -> None:
        if "event" in said:
            address, kind, data = said["event"]
            if bdf := _bdf(address):
                emit(GpuEvent(bdf=bdf, type=kind, data=data, mono_s=said["at"]))
            return
        if self._state not in ("ready", "answers"):
            self._say(emit, "answers" if self._state == "hung" else "ready", gpus=len(said["gpus"]))
        present: dict[str, dict[str, Any]] = {}
        nameless: dict[int, dict[str, Any]] = {}  # lost so early that NVML did not say which one it is
        for raw in said["gpus"]:
            if bdf := _bdf(raw["bdf"]):
                present[bdf] = raw
            else:
                nameless[raw["index"]] = raw
        for bdf, gpu in self._known.items():
            if bdf not in present:
                lost = nameless.get(gpu.index, {}).get("lost") or "not_found"
                emit(Gpu(index=gpu.index, bdf=bdf, uuid=gpu.uuid, lost=lost, mono_s=said["at"]))
        pids = {pid for raw in present.values() for pid, _ in raw["procs"]}
        self._owners = {pid: known for pid, known in self._owners.items() if pid in pids}
        for bdf, raw in present.items():
            self._known[bdf] = self._gpu(bdf, raw, said["at"])
            emit(self._known[bdf])

    def _gpu(self, bdf: str, raw: dict[str, Any], at_s: float) -> Gpu:
        return Gpu(
            index=raw["index"],
            bdf=bdf,
            uuid=raw["uuid"],
            lost=raw["lost"],
            utilization=raw["util"],
            memory_used_mb=raw["mem"],
            power_w=raw["power"],
            temperature_c=raw["temp"],
            processes=tuple(self._process(pid, memory_mb) for pid, memory_mb in raw["procs"]),
            mono_s=at_s,
        )

    def _process(self, pid: int, memory_mb: int) -> GpuProcess:
        if pid not in self._owners:
            found = owner(cgroup := self._host.read(f"/proc/{pid}/cgroup"))
            if not found.job:
                found = owner(cgroup, self._host.read(f"/proc/{pid}/environ"))
            self._owners[pid] = self._host.read(f"/proc/{pid}/comm"), found
        name, found = self._owners[pid]
        return GpuProcess(pid=pid, memory_mb=memory_mb, name=name, job=found.job, unit=found.unit)


class _Child:
    """One child process, watched."""

    def __init__(
        self, timing: Timing, env: Mapping[str, str], undead: list[asyncio.subprocess.Process]
    ) -> None:
        self._timing, self._env, self._undead = timing, env, undead
        self._last_s = 0.0

    async def __aenter__(self) -> "_Child":
        fd = os.memfd_create("nvml-board")
        try:
            os.ftruncate(fd, BOARD.size)
            self._board = mmap.mmap(fd, BOARD.size)
            self._last_s = _now_s()
            # Its start counts as a call: a library that hangs while it is loaded is noticed too.
            BOARD.pack_into(self._board, 0, int(self._last_s * 1e9), -1, b"start")
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                str(_CHILD),
                str(fd),
                str(self._timing.interval_s),
                str(self._timing.slow_every),
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
                async with asyncio.timeout(min(1.0, self._timing.deadline_s / 4)):
                    line = await self._process.stdout.readline()
            except TimeoutError:
                self._judge(_now_s())
                continue
            if not line:
                raise OSError(f"the NVML child ended with status {await self._process.wait()}")
            self._last_s = _now_s()
            said: dict[str, Any] = json.loads(line)
            if "absent" in said:
                raise Absent(said["absent"])
            return said

    def _judge(self, now_s: float) -> None:
        """Hung when a call is over its deadline, or when nothing was said for three of them."""
        since_ns, index, name = BOARD.unpack_from(self._board)
        waited_s = now_s - since_ns / 1e9
        silent_s = now_s - self._last_s
        if since_ns and waited_s > self._timing.deadline_s and BOARD.unpack_from(self._board)[0] == since_ns:
            raise Hung(name.rstrip(b"\0").decode(errors="replace"), index, waited_s)
        if silent_s > self._timing.interval_s + 3 * self._timing.deadline_s:
            raise Hung(name.rstrip(b"\0").decode(errors="replace") or "none", index, silent_s)

    async def __aexit__(self, *_: object) -> None:
        self._board.close()
        if self._process.returncode is not None:
            return
        self._process.kill()
        try:
            async with asyncio.timeout(1.0):
                await self._process.wait()
        except TimeoutError:  # in an uninterruptible call: it dies when the driver lets go
            self._undead.append(self._process)


def _bdf(address: str) -> str:
    try:
        return components.bdf(address)
    except ContractError:
        return ""


def _now_s() -> float:
    # The board carries CLOCK_MONOTONIC of this machine, whichever machine is watched.
    return Host().mono_s()

"""NVML through a child process (agent/nvml_child.py): a hung driver costs a child, never the agent."""

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from agent.collectors.readings import Gpu, GpuCount, GpuEvent, GpuHealth, GpuProcess, NvmlState
from agent.contract.owner import Owner, owner
from agent.host import Host
from agent.sources.base import Emit
from agent.sources.nvml_bus import address, gpus_on_bus
from agent.sources.nvml_process import MOST_UNDEAD, Absent, Child, Hung, Kill, Skips, Timing, Undead, kill

_PAUSES_S = (0.5, 2.0, 10.0, 30.0, 60.0)  # after the first, second, ... hang without an answer between
_BUS_EVERY_S = 300.0  # between looks at the PCI bus; udev says at once what leaves it


class NvmlSource:
    """Gpu, GpuHealth, GpuCount, GpuEvent and NvmlState readings of this machine."""

    name: ClassVar[str] = "nvml"
    needs: ClassVar[str] = "libnvidia-ml.so.1 and the NVIDIA driver; says once when they are absent"

    def __init__(
        self,
        host: Host,
        *,
        timing: Timing | None = None,
        expected: int = 0,
        env: Mapping[str, str] | None = None,
        bus: Host | None = None,
        kill: Kill = kill,
    ) -> None:
        """`expected`: GPUs that this node should have, 0: those on the PCI bus or ever seen.

        For tests: `env` is added to the child's environment (a library path), `bus` has the PCI bus, `kill` kills.
        """
        self._host, self._bus_host = host, bus or host
        self._timing = timing or Timing()
        self._env = dict(env or {})
        self._expected = expected
        self._undead = Undead(kill=kill)
        self._known: dict[str, Gpu] = {}  # address -> last reading; survives the child
        self._health: dict[str, dict[str, Any]] = {}  # address -> all that was said of it
        self._owners: dict[int, tuple[str, Owner]] = {}
        self._state = ""
        self._skips: dict[tuple[int, str], tuple[int, float]] = {}  # call -> hangs, not made until
        self._bus: dict[str, str] = {}
        self._bus_s: float | None = None
        self._unseen_s: dict[str, float] = {}  # on the bus, never shown by NVML -> since when
        self._count = (0, 0, 0)
        self._count_s: float | None = None  # since when; None: it was said

    async def run(self, emit: Emit) -> None:
        """Follows NVML; OSError when the child cannot be started or dies by itself."""
        if not self._host.live:
            await asyncio.get_running_loop().create_future()
        hangs = 0
        while True:
            try:
                async with Child(self._timing, self._env, self._undead, self._skip_list()) as child:
                    while True:
                        self._take(await child.said(), emit)
                        hangs = 0
            except Absent as absent:
                self._skips = {}
                if self._state != "absent":
                    self._say(emit, "absent", reason=str(absent))
                await asyncio.sleep(self._timing.retry_s)
            except Hung as hung:
                self._hung(hung, emit)
                if self._undead.count() < MOST_UNDEAD:
                    await asyncio.sleep(_PAUSES_S[min(hangs, len(_PAUSES_S) - 1)])
                hangs += 1
            while (undead := self._undead.count()) >= MOST_UNDEAD:
                if self._state != "blind":
                    self._say(emit, "blind", reason=f"{undead} killed children do not die")
                await asyncio.sleep(min(1.0, self._timing.retry_s))

    async def once(self, emit: Emit) -> None:
        """One sample. A recorded machine has no NVML: nothing is said."""
        if not self._host.live:
            return
        try:
            async with Child(self._timing, self._env, self._undead, []) as child:
                self._take(await child.said(), emit, at_once=True)
        except Absent as absent:
            self._say(emit, "absent", reason=str(absent))
        except Hung as hung:
            self._hung(hung, emit)

    def _hung(self, hung: Hung, emit: Emit) -> None:
        gpu = next((gpu for gpu in self._known.values() if gpu.index == hung.index), None)
        reason = "" if hung.index < 0 else f"on GPU {hung.index}{f' {gpu.bdf}' if gpu else ''}"
        # Without events, or without one value of one GPU, the rest can be asked; without nvmlInit nothing.
        if hung.index >= 0 or hung.call.startswith("nvmlEventSet"):
            times = self._skips.get((hung.index, hung.call), (0, 0.0))[0]
            pause_s = self._timing.skip_s[min(times, len(self._timing.skip_s) - 1)]
            self._skips[hung.index, hung.call] = (times + 1, self._host.mono_s() + pause_s)
        self._say(
            emit, "hung", reason=reason, call=hung.call, waited_s=hung.waited_s, bdf=gpu.bdf if gpu else ""
        )

    def _skip_list(self) -> Skips:
        now_s = self._host.mono_s()
        return [
            (index, call, max(0.0, until_s - now_s)) for (index, call), (_, until_s) in self._skips.items()
        ]

    def _say(
        self,
        emit: Emit,
        state: str,
        *,
        reason: str = "",
        call: str = "",
        waited_s: float = 0.0,
        gpus: int = 0,
        bdf: str = "",
    ) -> None:
        self._state = state
        mono_s = self._host.mono_s()
        emit(
            NvmlState(
                state=state, reason=reason, call=call, waited_s=waited_s, gpus=gpus, bdf=bdf, mono_s=mono_s
            )
        )

    def _take(self, said: dict[str, Any], emit: Emit, *, at_once: bool = False) -> None:
        if "event" in said:
            where, kind, data, count = said["event"]
            if bdf := address(where):
                emit(GpuEvent(bdf=bdf, type=kind, data=data, count=count, mono_s=said["at"]))
            return
        skipped = {(index, call) for index, call in said["skipped"]}
        self._skips = {call: since for call, since in self._skips.items() if call in skipped}
        if self._state in ("", "absent"):
            self._say(emit, "ready", gpus=len(said["gpus"]))
        elif self._state in ("hung", "blind") and not self._skips:
            self._say(emit, "answers", gpus=len(said["gpus"]))
        present: dict[str, dict[str, Any]] = {}
        nameless: dict[int, str] = {}  # index -> why; those of which NVML did not say which one they are
        for raw in said["gpus"]:
            if bdf := address(raw["bdf"]):
                present[bdf] = raw
            else:
                nameless[raw["index"]] = raw["lost"]
        for bdf, gpu in self._known.items():
            if bdf not in present:
                lost = nameless.pop(gpu.index, "not_found")
                if lost:  # else a call that hung is not made: nobody knows
                    self._known[bdf] = Gpu(
                        index=gpu.index, bdf=bdf, uuid=gpu.uuid, lost=lost, mono_s=said["at"]
                    )
                    emit(self._known[bdf])
        pids = {pid for raw in present.values() for pid, _ in raw["procs"] or ()}
        self._owners = {pid: known for pid, known in self._owners.items() if pid in pids}
        for bdf, raw in present.items():
            self._known[bdf] = self._gpu(bdf, raw, said["at"])
            emit(self._known[bdf])
            if raw["health"]:
                emit(self._merged(bdf, raw, said["at"]))
        unseen = self._unseen(nameless, said["at"], emit, at_once=at_once)
        self._counted(unseen, said["at"], emit, at_once=at_once)

    def _merged(self, bdf: str, raw: dict[str, Any], at_s: float) -> GpuHealth:
        merged = self._health.get(bdf, {}) | raw["health"]
        # A new dict each time: what was handed out does not change any more.
        self._health[bdf] = {key: value for key, value in merged.items() if value is not None}
        return GpuHealth(index=raw["index"], bdf=bdf, values=self._health[bdf], mono_s=at_s)

    def _unseen(self, nameless: Mapping[int, str], at_s: float, emit: Emit, *, at_once: bool) -> int:
        """GPUs on the bus that NVML never showed; each is said to be lost when it had time to appear."""
        if self._bus_s is None or at_s - self._bus_s >= _BUS_EVERY_S:
            self._bus, self._bus_s = gpus_on_bus(self._bus_host), at_s
        unseen = sorted(bdf for bdf in self._bus if bdf not in self._known)
        self._unseen_s = {bdf: self._unseen_s.get(bdf, at_s) for bdf in unseen}
        if not all(nameless.values()):  # one whose name was not asked for; it may be this one
            return 0
        late = [bdf for bdf in unseen if at_once or at_s - self._unseen_s[bdf] >= self._timing.settle_s]
        reasons = list(nameless.values())
        for number, bdf in enumerate(late):
            why = reasons[number] if len(reasons) == len(unseen) else "not_found"
            if not self._bus[bdf]:
                why = "unbound"
            emit(Gpu(index=-1, bdf=bdf, uuid="", lost=why, mono_s=at_s))
        return len(late)

    def _counted(self, unseen: int, at_s: float, emit: Emit, *, at_once: bool) -> None:
        lost = sum(1 for gpu in self._known.values() if gpu.lost) + unseen
        answering = sum(1 for gpu in self._known.values() if not gpu.lost)
        expected = self._expected or len(self._bus.keys() | self._known.keys())
        count = (answering, lost, expected)
        if count != self._count:
            self._count, self._count_s = count, at_s
        if self._count_s is None or (at_s - self._count_s < self._timing.settle_s and not at_once):
            return
        self._count_s = None
        basis = "config" if self._expected else "pci" if self._bus else "seen"
        emit(GpuCount(answering=answering, lost=lost, expected=expected, basis=basis, mono_s=at_s))

    def _gpu(self, bdf: str, raw: dict[str, Any], at_s: float) -> Gpu:
        return Gpu(
            index=raw["index"],
            bdf=bdf,
            uuid=raw["uuid"],
            serial=raw["serial"],
            lost=raw["lost"],
            utilization=raw["util"],
            memory_used_mb=raw["mem"],
            power_w=raw["power"],
            temperature_c=raw["temp"],
            slowdowns=raw["reasons"],
            holders_known=raw["procs"] is not None,
            processes=tuple(self._process(pid, memory_mb) for pid, memory_mb in raw["procs"] or ()),
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

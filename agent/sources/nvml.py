"""NVML through a child process (agent/nvml/child.py): a hung driver costs a child, never the agent."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors.gpu_minute import GpuMinuteOptions
from agent.collectors.samples import (
    Gpu,
    GpuEvent,
    GpuHealth,
    GpuProcess,
    GpuTemperatures,
    NvmlState,
)
from agent.contract.owner import Owner
from agent.host import Host
from agent.nvml.bus import address
from agent.nvml.pause import NvmlPause
from agent.nvml.process import MAX_UNKILLABLE, Absent, Child, Hung, Kill, Skips, Timing, Unkillable, kill
from agent.nvml.roll import Roll
from agent.options import option
from agent.process_owner import owner_of, stuck_state
from agent.sources.base import Emit, Source, SourceSetup
from agent.sources.pci_bus import ExpectedGpus, others_on_bus

_PAUSES_S = (0.5, 2.0, 10.0, 30.0, 60.0)  # after the first, second, ... hang without an answer in between
_LIKE_READY = ("ready", "answers")
_CLOSED = ("absent", "refused")
_TEMPERATURES = {"margin", "memory_temp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlSourceOptions:
    """What an operator can set."""

    nvml_interval_s: float = option(1.0, "pause between NVML samples", unit="s", least=0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """A sample of everything that was asked for."""

    number: int
    emit: Emit
    done: asyncio.Future[None]

    def fail(self, why: str) -> None:
        if not self.done.done():
            self.done.set_exception(OSError(f"nvml: {why}"))


class NvmlSource(Source):
    """Emits Gpu, GpuHealth, GpuCount, GpuEvent and NvmlState of this machine."""

    name: ClassVar[str] = "nvml"
    needs: ClassVar[str] = "libnvidia-ml.so.1 and the NVIDIA driver; reports once when they are absent"
    options: ClassVar[tuple[type[Any], ...]] = (NvmlSourceOptions, ExpectedGpus, GpuMinuteOptions)

    def __init__(
        self,
        host: Host,
        *,
        timing: Timing | None = None,
        expected: int = 0,
        env: Mapping[str, str] | None = None,
        bus: Host | None = None,
        kill: Kill = kill,
        pause: NvmlPause | None = None,
    ) -> None:
        """`expected`: GPUs that this node should have, 0: those on the PCI bus or ever seen. `pause`: for actions that
        must have the driver for themselves.

        For tests: `env` is added to the child's environment (a library path), `bus` has the PCI bus, `kill` kills.
        """
        self._host = host
        self._timing = timing or Timing()
        self._env = dict(env or {})
        self.expected = expected
        self._roll = Roll(bus or host, expected=expected, settle_s=self._timing.settle_s)
        self._pause = pause or NvmlPause()
        self._unkillable = Unkillable(kill=kill)
        # Address → last sample; survives the child.
        self._known: dict[str, Gpu] = {}
        # Address → everything that was reported about it.
        self._health: dict[str, dict[str, Any]] = {}
        # Addresses, as NVML writes them, of those that have answered something.
        self._answered: set[str] = set()
        # pid → name of the process and its owner.
        self._owners: dict[int, tuple[str, Owner]] = {}
        self._state = ""
        # Call → how often it hung, and until when it is not made.
        self._skips: dict[tuple[int, str], tuple[int, float]] = {}
        self._look: _Look | None = None
        self._looks = 0
        # Ends the pause after a hang, or until a missing library is looked for again.
        self._wake = asyncio.Event()
        self._following = False
        self._child: Child | None = None

    @classmethod
    def of(cls, setup: SourceSetup) -> Self:
        """See Source."""
        options = setup.options(NvmlSourceOptions)
        return cls(
            setup.host,
            timing=Timing(
                interval_s=options.nvml_interval_s, clocks=setup.options(GpuMinuteOptions).compare_gpus
            ),
            # Of other makers' accelerators their own source says how many there should be.
            expected=0 if others_on_bus(setup.host) else setup.options(ExpectedGpus).expected_gpus,
            pause=setup.pause,
        )

    async def run(self, emit: Emit) -> None:
        """Follows NVML; OSError when the child cannot be started or dies by itself."""
        if not self._host.live:
            await asyncio.get_running_loop().create_future()
        await self._pause.run_between_pauses(lambda: self._follow(emit))

    async def look(self, emit: Emit) -> None:
        """See Source. A child that hung is tried again; of calls that are left out because they hang nothing is known."""
        if not self._following:
            raise OSError("nvml: an action has the driver for itself")
        self._looks += 1
        look = self._look = _Look(
            number=self._looks, emit=emit, done=asyncio.get_running_loop().create_future()
        )
        self._roll.look_again()
        self._wake.set()
        if self._child is not None:
            self._child.look(look.number)
        try:
            await look.done
        finally:
            self._look = None

    async def _follow(self, emit: Emit) -> None:
        self._following = True
        self._roll.begin_anew()
        try:
            await self._follow_children(emit)
        finally:
            self._following = False
            self._cannot_look("an action has the driver for itself, or the source broke")

    async def _follow_children(self, emit: Emit) -> None:
        hangs = 0
        while True:
            try:
                async with self._new_child() as child:
                    with self._looking_through(child):
                        while True:
                            self._take(await child.receive(), emit)
                            hangs = 0
            except Absent as absent:
                self._skips = {}
                settling_s = self._absent(absent, emit)
                self._nothing_to_look_at(str(absent))
                await self._sleep(min(self._timing.retry_s, settling_s or self._timing.retry_s))
            except Hung as hung:
                self._hung(hung, emit)
                self._cannot_look(f"{hung.call} did not return within {hung.waited_s:.1f} s")
                if self._unkillable.count() < MAX_UNKILLABLE:
                    await self._sleep(_PAUSES_S[min(hangs, len(_PAUSES_S) - 1)])
                hangs += 1
            while (unkillable := self._unkillable.count()) >= MAX_UNKILLABLE:
                why = f"{unkillable} killed children do not die"
                if self._state != "blind":
                    self._emit_state(emit, "blind", reason=why)
                self._cannot_look(why)
                await asyncio.sleep(min(1.0, self._timing.retry_s))

    @contextmanager
    def _looking_through(self, child: Child) -> Iterator[None]:
        self._child = child
        if self._look is not None:
            child.look(self._look.number)
        try:
            yield
        finally:
            self._child = None

    async def _sleep(self, pause_s: float) -> None:
        """For `pause_s`, or until somebody wants to look."""
        self._wake.clear()
        if self._look is None or self._look.done.done():
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()

    def _cannot_look(self, why: str) -> None:
        if self._look is not None:
            self._look.fail(why)

    def _nothing_to_look_at(self, why: str) -> None:
        """Without a library there is nothing to miss, unless there are GPUs."""
        if self._look is None:
            return
        if self._known or self._roll.on_bus():
            self._look.fail(why)
        elif not self._look.done.done():
            self._look.done.set_result(None)

    async def once(self, emit: Emit) -> None:
        """One sample. A recorded machine has no NVML: nothing is emitted."""
        if not self._host.live:
            return
        try:
            async with Child(self._timing, self._env, self._unkillable, []) as child:
                self._take(await child.receive(), emit, at_once=True)
        except Absent as absent:
            self._absent(absent, emit, at_once=True)
        except Hung as hung:
            self._hung(hung, emit)

    def _absent(self, absent: Absent, emit: Emit, *, at_once: bool = False) -> float:
        """What a driver that has GPUs and lets nobody in means; the seconds that it still has to load, where it has GPUs."""
        if self._state not in _CLOSED:
            self._emit_state(emit, "absent", reason=str(absent))
        at_s = self._host.mono_s()
        closed_s = self._roll.closed(at_s)
        settling_s = self._timing.settle_s - closed_s
        if settling_s > 0 and not at_once:
            return settling_s if self._roll.on_bus() else 0.0
        if gpus := self._roll.refused(absent.code):
            self._emit_state(
                emit, "refused", reason=str(absent), code=absent.code, waited_s=closed_s, gpus=gpus
            )
        if count := self._roll.none_answers(self._known, at_s):
            emit(count)
        return 0.0

    def _hung(self, hung: Hung, emit: Emit) -> None:
        gpu = next((gpu for gpu in self._known.values() if gpu.index == hung.index), None)
        reason = "" if hung.index < 0 else f"on GPU {hung.index}{f' {gpu.bdf}' if gpu else ''}"
        # Without events, or without one value of one GPU, the rest can be queried; without nvmlInit nothing.
        if hung.index >= 0 or hung.call.startswith("nvmlEventSet"):
            times = self._skips.get((hung.index, hung.call), (0, 0.0))[0]
            pause_s = self._timing.skip_s[min(times, len(self._timing.skip_s) - 1)]
            self._skips[hung.index, hung.call] = (times + 1, self._host.mono_s() + pause_s)
        self._emit_state(
            emit, "hung", reason=reason, call=hung.call, waited_s=hung.waited_s, bdf=gpu.bdf if gpu else ""
        )

    def _new_child(self) -> Child:
        return Child(self._timing, self._env, self._unkillable, self._skip_list(), self._answered)

    def _skip_list(self) -> Skips:
        now_s = self._host.mono_s()
        return [
            (index, call, max(0.0, until_s - now_s)) for (index, call), (_, until_s) in self._skips.items()
        ]

    def _emit_state(
        self,
        emit: Emit,
        state: str,
        *,
        reason: str = "",
        call: str = "",
        waited_s: float = 0.0,
        code: int = 0,
        gpus: int = 0,
        bdf: str = "",
    ) -> None:
        self._state = state
        emit(
            NvmlState(
                state=state,
                reason=reason,
                call=call,
                waited_s=waited_s,
                code=code,
                gpus=gpus,
                bdf=bdf,
                mono_s=self._host.mono_s(),
            )
        )

    def _take(self, message: dict[str, Any], emit: Emit, *, at_once: bool = False) -> None:
        if "event" in message:
            where, kind, data, count = message["event"]
            if bdf := address(where):
                emit(GpuEvent(bdf=bdf, type=kind, data=data, count=count, mono_s=message["at"]))
            return
        look = self._look
        if look is not None and (look.done.done() or message["look"] < look.number):
            look = None
        emit = emit if look is None else look.emit
        skipped = {(index, call) for index, call in message["skipped"]}
        self._skips = {call: since for call, since in self._skips.items() if call in skipped}
        if self._state in ("", *_CLOSED):
            self._emit_state(emit, "ready", gpus=len(message["gpus"]))
        elif self._state in ("hung", "blind") and not self._skips:
            self._emit_state(emit, "answers", gpus=len(message["gpus"]))
        elif look is not None and self._state in _LIKE_READY:
            emit(NvmlState(state="answers", gpus=len(message["gpus"]), mono_s=message["at"]))
        present: dict[str, dict[str, Any]] = {}
        # Index → why; GPUs whose address NVML did not report.
        nameless: dict[int, str] = {}
        for raw in message["gpus"]:
            if bdf := address(raw["bdf"]):
                present[bdf] = raw
            else:
                nameless[raw["index"]] = raw["lost"]
        self._roll.opened(present, message["at"])
        doubtful: list[str] = []
        for bdf, gpu in self._known.items():
            if bdf not in present:
                not_found = "" if self._roll.may_come(bdf, message["at"]) else "not_found"
                lost = nameless.pop(gpu.index, not_found) or gpu.lost
                if not lost:  # it still loads or is not opened, or the call is skipped because it hung: nothing is known
                    doubtful.append(bdf)
                else:
                    self._known[bdf] = Gpu(
                        index=gpu.index,
                        bdf=bdf,
                        uuid=gpu.uuid,
                        lost=lost,
                        answers=False,
                        mono_s=message["at"],
                    )
                    emit(self._known[bdf])
        pids = {pid for raw in present.values() for pid, _ in raw["procs"] or ()}
        self._owners = {pid: known for pid, known in self._owners.items() if pid in pids}
        unasked = {index for index, _ in skipped}
        self._answered |= {raw["bdf"] for raw in present.values() if raw["answers"]}
        for bdf, raw in present.items():
            before = self._known.get(bdf)
            if before is not None and before.lost and not raw["lost"]:
                # A new child, or NVML opened again, knows nothing of it; what is not called since it hung may still fail.
                still = not raw["answers"] or raw["index"] in unasked
                raw |= {"lost": before.lost if still else "", "answers": not still}
            if raw["answers"] is False and not raw["lost"]:
                doubtful.append(bdf)
            self._known[bdf] = self._gpu(bdf, raw, message["at"])
            emit(self._known[bdf])
            if raw["health"] or (look is not None and not raw["lost"]):
                emit(self._merged(bdf, raw, message["at"], whole=look is not None))
        unseen = self._roll.unseen(self._known, nameless, message["at"], at_once=at_once)
        for gpu in unseen:
            emit(gpu)
        again = look is not None
        if count := self._roll.counted(self._known, len(unseen), message["at"], at_once=at_once, again=again):
            emit(count)
        if look is not None and self._skips:
            look.fail(f"not called, as it hung: {', '.join(sorted({call for _, call in self._skips}))}")
        elif look is not None and doubtful:
            look.fail(f"answers too little of what it is asked: {', '.join(sorted(doubtful))}")
        elif look is not None:
            look.done.set_result(None)

    def _merged(
        self, bdf: str, raw: dict[str, Any], at_s: float, *, whole: bool
    ) -> GpuHealth | GpuTemperatures:
        merged = self._health.get(bdf, {}) | raw["health"]
        # A new dict each time: what was emitted must not change.
        self._health[bdf] = {key: value for key, value in merged.items() if value is not None}
        made = GpuHealth if whole or raw["health"].keys() - _TEMPERATURES else GpuTemperatures
        return made(index=raw["index"], bdf=bdf, values=self._health[bdf], mono_s=at_s)

    def _gpu(self, bdf: str, raw: dict[str, Any], at_s: float) -> Gpu:
        return Gpu(
            index=raw["index"],
            bdf=bdf,
            uuid=raw["uuid"],
            serial=raw["serial"],
            lost=raw["lost"],
            answers=bool(raw["answers"]),
            utilization_now=raw["now"],
            utilization=raw["util"],
            utilization_least=raw["least"],
            memory_used_mb=raw["mem"],
            power_w=raw["power"],
            sm_clock_mhz=raw["clock"],
            temperature_c=raw["temp"],
            slowdowns=raw["reasons"],
            holders_known=raw["procs"] is not None,
            processes=tuple(self._process(*one, idle=raw["util"] == 0) for one in raw["procs"] or ()),
            mono_s=at_s,
        )

    def _process(self, pid: int, memory_mb: int, *, idle: bool) -> GpuProcess:
        if pid not in self._owners:
            self._owners[pid] = self._host.read(f"/proc/{pid}/comm"), owner_of(self._host, pid)
        name, found = self._owners[pid]
        state = stuck_state(self._host, pid) if idle else ""
        return GpuProcess(
            pid=pid, memory_mb=memory_mb, name=name, job=found.job, unit=found.unit, state=state
        )

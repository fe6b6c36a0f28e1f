"""Huawei's Ascend NPUs, by npu-smi and hccn_tool: their driver shows nothing of them under /sys.

A tool that does not end within its deadline is killed, with all that it has started, and told; the next turn asks it again, but
not while the kernel does not let the last one die: one process that hangs in the driver is left, not one more each minute.
All NPUs are asked together (`npu-smi info`); the counters and the network port of one NPU are asked for in each turn, so that the
cost of a turn is bounded however many there are, and why it is not well is asked of each that is not.
"""

import asyncio
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from agent.collectors.samples import Gpu, GpuCount, GpuHealth, GpuProcess
from agent.collectors.samples_node import NpuFaults, ToolState
from agent.contract.accelerators import ASCEND
from agent.contract.errors import Refused
from agent.host import Host
from agent.options import absolute_path, off_or, option
from agent.process_owner import owner_of
from agent.shared import npu_smi, tool
from agent.shared.npu_smi import Npu
from agent.shared.rhythm import pause
from agent.sources.base import Emit, Source, SourceSetup
from agent.sources.pci_bus import PCI, ExpectedGpus, driver_of, off_bus, on_bus

RECORDED = "/recorded"  # of a recorded machine: what its tools printed, a file each
_DEADLINE_S = 20.0
_MOST_BYTES = 128 * 1024
# An NPU that npu-smi does not show so often in a row is lost. Huawei's own device plugin resets NPUs, which takes minutes.
_UNSHOWN_TURNS = 6
_SILENT_TURNS = 3  # turns in which npu-smi fails until the source says that it is broken
_LIBRARIES = "/usr/local/Ascend/driver/lib64"
_ENV = {"LD_LIBRARY_PATH": f"{_LIBRARIES}/driver:{_LIBRARIES}/common:{_LIBRARIES}"}
# Tool, arguments → what it printed; None: it failed.
Ask = Callable[[str, Sequence[str]], Awaitable[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AscendSourceOptions:
    """What an operator can set."""

    ascend_interval_s: float = option(
        30.0,
        "pause between samples of Ascend NPUs; 0: they are not sampled",
        unit="s",
        least=0,
        check=off_or(5),  # each turn starts processes
    )
    npu_smi: Path = option(
        Path("/usr/local/sbin/npu-smi"), "npu-smi, of Ascend's driver", check=absolute_path
    )
    hccn_tool: Path = option(
        Path("/usr/local/Ascend/driver/tools/hccn_tool"),
        "hccn_tool, of Ascend's driver; left out where it is not",
        check=absolute_path,
    )


@dataclass(slots=True)
class _Chip:
    """What is known of one NPU."""

    # By which its driver, npu-smi and hccn_tool name it, and people exchange it; -1: none of them has shown it yet.
    index: int
    function: str
    npu: Npu | None = None
    unshown: int = 0
    values: dict[str, int | float | str] = field(default_factory=dict)
    told: dict[str, int | float | str] = field(default_factory=dict)


class AscendSource(Source):
    """Emits Gpu, GpuHealth, NpuFaults, GpuCount and ToolState of the NPUs on the PCI bus."""

    name: ClassVar[str] = "ascend"
    needs: ClassVar[str] = (
        "an Ascend NPU, and npu-smi, which root or the group of Ascend's driver may run (gpuward-agent.service.d/ascend.conf or "
        "hands.conf); left out without an NPU"
    )
    options: ClassVar[tuple[type[Any], ...]] = (AscendSourceOptions, ExpectedGpus)

    def __init__(
        self,
        host: Host,
        options: AscendSourceOptions,
        *,
        expected: int = 0,
        ask: Ask | None = None,
        deadline_s: float = _DEADLINE_S,
    ) -> None:
        """`expected`: NPUs that this node should have; 0: those on the PCI bus, or ever seen. For tests: `ask`, `deadline_s`."""
        self._host, self._options, self._expected = host, options, expected
        self._ask = ask or (self._run if host.live else self._recorded)
        self._deadline_s = deadline_s
        self._chips: dict[str, _Chip] = {}
        self._turn = asyncio.Lock()
        self._next = self._silent = 0
        # Tool → with which arguments it hung, and in which turn last.
        self._hung: dict[str, dict[Sequence[str], int]] = {}
        # Tools that hung in this turn: one hang costs one deadline, however many NPUs there are.
        self._late: set[str] = set()
        # Tool → its process that could not be killed.
        self._left: dict[str, Process] = {}
        self._count = (0, 0)
        self._emit: Emit = lambda _: None

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """None where no NPU is on the PCI bus."""
        options, expected = setup.options(AscendSourceOptions), setup.options(ExpectedGpus).expected_gpus
        if not options.ascend_interval_s or not on_bus(setup.host, ASCEND):
            return None
        return cls(setup.host, options, expected=expected)

    async def run(self, emit: Emit) -> None:
        """Sample until cancelled."""
        while True:
            await self.turn(emit)
            await pause(self._options.ascend_interval_s)

    async def look(self, emit: Emit) -> None:
        """See Source: all of every NPU. OSError where npu-smi does not answer."""
        await self.turn(emit, whole=True)
        if self._hung or self._silent:
            raise OSError("npu-smi does not answer")

    async def once(self, emit: Emit) -> None:
        """All of every NPU, as it is."""
        await self.turn(emit, whole=True, settled=True)

    async def turn(self, emit: Emit, *, whole: bool = False, settled: bool = False) -> None:
        """One round. `whole`: everything is asked for and emitted; `settled`: nothing is waited for."""
        async with self._turn:
            self._emit = emit
            self._late.clear()
            present = on_bus(self._host, ASCEND)
            for bdf, function in present.items():
                chip = self._chips.setdefault(bdf, _Chip(-1, function))
                if chip.index < 0 and (number := self._host.read(f"{PCI}/{function}/dev_id")).isdigit():
                    chip.index = int(number[:4])
            text = await self._ask("npu-smi", ("info",))
            shown = {npu.bdf: npu for npu in npu_smi.info(text or "")}
            self._silent = 0 if shown else self._silent + 1
            if present and self._silent >= _SILENT_TURNS and not self._hung:
                raise OSError(
                    f"{self._options.npu_smi} info shows no NPU, though the PCI bus has {len(present)}; if the agent may "
                    "not ask: gpuward-agent.service.d/ascend.conf"
                )
            lost = 0
            for bdf, chip in self._chips.items():
                why = self._lost(bdf, chip, bdf in present, shown, settled=settled)
                lost += bool(why)
                chip.npu = shown.get(bdf)
                chip.index = chip.npu.device if chip.npu else chip.index
                emit(self._gpu(bdf, chip, why))
            await self._details(whole=whole)
            if settled or (len(self._chips) - lost, lost) == self._count:
                emit(self._counted(lost))
            self._count = (len(self._chips) - lost, lost)

    def _lost(self, bdf: str, chip: _Chip, present: bool, shown: Mapping[str, Npu], *, settled: bool) -> str:
        if not present:
            return "not_found"
        if off_bus(self._host, chip.function):
            return "lost"
        if bdf in shown or not shown:  # where npu-smi shows none of them, it is not known which of them works
            chip.unshown = 0
            return ""
        chip.unshown += 1
        if chip.unshown < _UNSHOWN_TURNS and not settled:
            return ""
        return "not_found" if driver_of(self._host, chip.function) else "no_driver"

    async def _details(self, *, whole: bool) -> None:
        """What npu-smi says of one NPU at a time."""
        chips = list(self._chips.items())
        for number, (bdf, chip) in enumerate(chips):
            npu = chip.npu
            if npu is None:
                continue
            if whole or number == self._next % len(chips):
                await self._counters(chip, npu)
            if npu.health != "OK":
                where = ("info", "-t", "health", "-i", str(npu.card), "-c", str(npu.chip))
                codes, said = npu_smi.health(await self._ask("npu-smi", where) or "") or (None, "")
                self._emit(self._faults(bdf, chip, npu, codes, said))
            else:
                self._emit(self._faults(bdf, chip, npu, (), ""))
            if chip.values and (whole or chip.values != chip.told):
                chip.told = dict(chip.values)
                self._emit(GpuHealth(index=chip.index, bdf=bdf, values=chip.told, mono_s=self._host.mono_s()))
        self._next += 1
        for name in list(self._hung):
            self._answered(name)

    async def _counters(self, chip: _Chip, npu: Npu) -> None:
        text = await self._ask("npu-smi", ("info", "-t", "ecc", "-i", str(npu.card), "-c", str(npu.chip)))
        chip.values = {**chip.values, **npu_smi.ecc(text or "")}
        up = npu_smi.link(await self._ask("hccn_tool", ("-i", str(npu.device), "-link", "-g")) or "")
        if up is not None:
            chip.values["link.roce.0.state"] = int(up)

    def _faults(self, bdf: str, chip: _Chip, npu: Npu, codes: tuple[str, ...] | None, said: str) -> NpuFaults:
        return NpuFaults(
            bdf=bdf,
            index=chip.index,
            health=npu.health,
            codes=codes,
            said=said,
            mono_s=self._host.mono_s(),
        )

    def _gpu(self, bdf: str, chip: _Chip, lost: str) -> Gpu:
        npu = None if lost else chip.npu
        return Gpu(
            index=chip.index,
            bdf=bdf,
            uuid="",
            by="npu-smi",
            lost=lost,
            answers=npu is not None,
            utilization_now=npu.busy if npu else None,
            utilization=npu.busy if npu else None,
            memory_used_mb=npu.memory_used_mb if npu else None,
            power_w=npu.power_w if npu else None,
            temperature_c=npu.temperature_c if npu else None,
            processes=tuple(self._process(*one) for one in npu.processes) if npu else (),
            # The memory that the driver itself has (some GiB) stands in the same figure, and containers' processes may be hidden.
            holders_known=bool(npu and npu.processes),
            mono_s=self._host.mono_s(),
        )

    def _process(self, pid: int, name: str, memory_mb: int) -> GpuProcess:
        owner = owner_of(self._host, pid)
        return GpuProcess(pid=pid, memory_mb=memory_mb, name=name, job=owner.job, unit=owner.unit)

    def _counted(self, lost: int) -> GpuCount:
        return GpuCount(
            answering=len(self._chips) - lost,
            lost=lost,
            expected=self._expected or len(self._chips),
            basis="config" if self._expected else "pci",
            by="npu-smi",
            mono_s=self._host.mono_s(),
        )

    async def _recorded(self, name: str, args: Sequence[str]) -> str | None:
        return self._host.read(f"{RECORDED}/{name} {' '.join(args)}") or None

    async def _run(self, name: str, args: Sequence[str]) -> str | None:
        path = self._options.npu_smi if name == "npu-smi" else self._options.hccn_tool
        if name in self._late or (name != "npu-smi" and not path.exists()):
            return None
        if (left := self._left.get(name)) is not None and left.returncode is None:
            self._hangs(name, args)
            return None
        try:
            ran = await tool.run(
                (str(path), *args), deadline_s=self._deadline_s, env=_ENV, max_bytes=_MOST_BYTES
            )
        except tool.Late as late:
            if late.left is not None:
                self._left[name] = late.left
            self._hangs(name, args)
            return None
        except Refused as error:
            raise OSError(str(error)) from error
        self._hung.get(name, {}).pop(args, None)
        self._answered(name)
        return ran.out if ran.status == 0 else None

    def _hangs(self, name: str, args: Sequence[str]) -> None:
        self._late.add(name)
        self._hung.setdefault(name, {})[args] = self._next
        self._state(name, "hung", " ".join(args))

    def _answered(self, name: str) -> None:
        """It answers again when it has answered all that it hung at, or a round through all NPUs did without that: it may hang at
        one of them, and answer for the others in each turn.
        """
        hung = self._hung.get(name)
        if hung is None:
            return
        for args in [args for args, turn in hung.items() if self._next - turn > max(1, len(self._chips))]:
            del hung[args]
        if not hung:
            del self._hung[name]
            self._state(name, "answers", "")

    def _state(self, name: str, state: str, args: str) -> None:
        self._emit(
            ToolState(
                tool=name, state=state, args=args, waited_s=self._deadline_s, mono_s=self._host.mono_s()
            )
        )

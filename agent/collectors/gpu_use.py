"""GPUs that compute nothing: fully used at idle power, or with memory that belongs to nobody."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from agent.collectors.drafts import of_gpu
from agent.collectors.readings import Gpu, GpuHealth, Reading
from agent.contract.messages import Draft, Scalar, Severity, clip

_GAP_S = 60.0  # a longer pause between samples was not watched: the window begins anew
_REPEAT_S = 300.0
_FULL = 95  # % utilisation
# A kernel that only waits (NCCL's, when a peer hangs) keeps the GPU "busy" near its idle power: about 15 % of the limit.
_IDLE_POWER = 0.25
_ORPHANED_MB = 2048  # more than the driver itself reserves on an empty GPU


@dataclass(slots=True)
class _Spell:
    since_s: float
    seen_s: float
    said_s: float | None = None
    reported: bool = False


class GpuUseCollector:
    """gpu.spinning and gpu.orphaned after a whole window, again every 300 s, and their ends."""

    name: ClassVar[str] = "gpu_use"
    wants: ClassVar[tuple[type, ...]] = (Gpu, GpuHealth)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.spinning", "gpu.orphaned")

    def __init__(self, *, idle_window_s: float = 600.0) -> None:
        """`idle_window_s`: seconds until it is said."""
        self._window_s = idle_window_s
        self._limit_w: dict[str, float] = {}
        self._spells: dict[tuple[str, str], _Spell] = {}

    def feed(self, reading: Reading, now_s: float) -> Iterable[Draft]:
        """See Collector."""
        if isinstance(reading, GpuHealth):
            limit_mw = reading.values.get("power_limit")
            if isinstance(limit_mw, int | float):
                self._limit_w[reading.bdf] = limit_mw / 1000
            return []
        if not isinstance(reading, Gpu) or reading.lost or reading.utilization is None:
            return []
        return [*self._spinning(reading, now_s), *self._orphaned(reading, now_s)]

    def _spinning(self, gpu: Gpu, now_s: float) -> list[Draft]:
        limit_w = self._limit_w.get(gpu.bdf, 0.0)
        if gpu.power_w is None or not limit_w or gpu.utilization is None:
            return []
        so = gpu.utilization >= _FULL and gpu.power_w < _IDLE_POWER * limit_w and bool(gpu.processes)
        lasted_s = self._lasts(gpu, "gpu.spinning", so)
        if lasted_s is None:
            return []
        data: dict[str, Scalar] = {
            "active": so,
            "lasted_s": lasted_s,
            "utilization": gpu.utilization,
            "power_w": gpu.power_w,
            "limit_w": limit_w,
            "job": clip(next((process.job for process in gpu.processes if process.job), "")),
            "unit": clip(next((process.unit for process in gpu.processes if process.unit), "")),
        }
        evidence = (
            f"{gpu.utilization} % utilisation at {gpu.power_w:.0f} of {limit_w:.0f} W for {lasted_s:.0f} s"
        )
        return [of_gpu(gpu, now_s, "gpu.spinning", _severity(so), data, evidence)]

    def _orphaned(self, gpu: Gpu, now_s: float) -> list[Draft]:
        if gpu.memory_used_mb is None or not gpu.holders_known:
            return []
        so = gpu.utilization == 0 and not gpu.processes and gpu.memory_used_mb > _ORPHANED_MB
        lasted_s = self._lasts(gpu, "gpu.orphaned", so)
        if lasted_s is None:
            return []
        data: dict[str, Scalar] = {"active": so, "lasted_s": lasted_s, "memory_mb": gpu.memory_used_mb}
        evidence = f"{gpu.memory_used_mb} MiB in use, no process, utilisation {gpu.utilization} %"
        return [of_gpu(gpu, now_s, "gpu.orphaned", _severity(so), data, evidence)]

    def _lasts(self, gpu: Gpu, kind: str, so: bool) -> float | None:
        """For how long, when it is due to be said (again) or has ended; else None."""
        key, at_s = (gpu.bdf, kind), gpu.mono_s
        spell = self._spells.get(key)
        if not so:
            self._spells.pop(key, None)
            return round(spell.seen_s - spell.since_s, 1) if spell is not None and spell.reported else None
        if spell is None:
            spell = self._spells[key] = _Spell(at_s, at_s)
        if at_s - spell.seen_s > _GAP_S:
            spell.since_s, spell.said_s = at_s, None
        spell.seen_s = at_s
        due = at_s - spell.since_s >= self._window_s
        if not due or (spell.said_s is not None and at_s - spell.said_s < _REPEAT_S):
            return None
        spell.said_s, spell.reported = at_s, True
        return round(at_s - spell.since_s, 1)


def _severity(active: bool) -> Severity:
    return Severity.WARNING if active else Severity.INFO

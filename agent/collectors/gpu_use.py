"""GPUs that compute nothing: fully used at idle power, or with memory in use that no process holds."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.gpu_event import gpu_event
from agent.collectors.idle import GAP_S, REPEAT_S, IdleOptions
from agent.collectors.samples import Gpu, GpuHealth, Sample
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip

_FULL = 95  # % utilisation
# A kernel that only waits (NCCL's, when a peer hangs) keeps the GPU "busy" near its idle power: about 15 % of the limit.
_IDLE_POWER = 0.25
_ORPHANED_MB = 2048  # more than the driver itself reserves on an empty GPU


@dataclass(slots=True)
class _Spell:
    since_s: float
    seen_s: float
    reported_s: float | None = None
    # Was it reported at all?
    reported: bool = False


class GpuUseCollector(Collector):
    """gpu.spinning and gpu.orphaned after a whole window, again every 300 s, and when they end."""

    name: ClassVar[str] = "gpu_use"
    wants: ClassVar[tuple[type, ...]] = (Gpu, GpuHealth)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.spinning", "gpu.orphaned")
    options: ClassVar[tuple[type[Any], ...]] = (IdleOptions,)

    def __init__(self, options: IdleOptions) -> None:
        self._window_s = options.idle_window_s
        self._limit_w: dict[str, float] = {}
        self._spells: dict[tuple[str, str], _Spell] = {}

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(setup.options(IdleOptions))

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, GpuHealth):
            limit_mw = sample.values.get("power_limit")
            if isinstance(limit_mw, int | float):
                self._limit_w[sample.bdf] = limit_mw / 1000
            return []
        if not isinstance(sample, Gpu) or sample.lost or sample.utilization is None:
            return []
        return [*self._spinning(sample, now_s), *self._orphaned(sample, now_s)]

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if not isinstance(sample, Gpu) or sample.lost or sample.utilization is None:
            return
        for kind, can_tell, event in (
            (
                "gpu.spinning",
                sample.power_w is not None and sample.bdf in self._limit_w,
                self._spinning_event,
            ),
            ("gpu.orphaned", sample.memory_used_mb is not None and sample.holders_known, _orphaned_event),
        ):
            spell = self._spells.get((sample.bdf, kind))
            if can_tell and (spell is None or spell.reported):
                lasted_s = round(sample.mono_s - spell.since_s, 1) if spell else 0.0
                yield event(sample, now_s, spell is not None, lasted_s)

    def _spinning(self, gpu: Gpu, now_s: float) -> list[UnsentEvent]:
        limit_w = self._limit_w.get(gpu.bdf, 0.0)
        if gpu.power_w is None or not limit_w or gpu.utilization is None:
            return []
        least = gpu.utilization if gpu.utilization_least is None else gpu.utilization_least
        spinning = least >= _FULL and gpu.power_w < _IDLE_POWER * limit_w and bool(gpu.processes)
        lasted_s = self._due(gpu, "gpu.spinning", spinning)
        return [] if lasted_s is None else [self._spinning_event(gpu, now_s, spinning, lasted_s)]

    def _spinning_event(self, gpu: Gpu, now_s: float, spinning: bool, lasted_s: float) -> UnsentEvent:
        power_w, limit_w = gpu.power_w or 0.0, self._limit_w.get(gpu.bdf, 0.0)
        data: dict[str, Scalar] = {
            "active": spinning,
            "lasted_s": lasted_s,
            "utilization": gpu.utilization or 0,
            "power_w": power_w,
            "limit_w": limit_w,
            "job": clip(next((process.job for process in gpu.processes if process.job), "")),
            "unit": clip(next((process.unit for process in gpu.processes if process.unit), "")),
        }
        evidence = f"{gpu.utilization} % utilisation at {power_w:.0f} of {limit_w:.0f} W for {lasted_s:.0f} s"
        return gpu_event(gpu, now_s, "gpu.spinning", _severity(spinning), data, evidence)

    def _orphaned(self, gpu: Gpu, now_s: float) -> list[UnsentEvent]:
        if gpu.memory_used_mb is None or not gpu.holders_known:
            return []
        orphaned = gpu.utilization == 0 and not gpu.processes and gpu.memory_used_mb > _ORPHANED_MB
        lasted_s = self._due(gpu, "gpu.orphaned", orphaned)
        return [] if lasted_s is None else [_orphaned_event(gpu, now_s, orphaned, lasted_s)]

    def _due(self, gpu: Gpu, kind: str, active: bool) -> float | None:
        """How long it has lasted, when that is to be reported (again) or it has ended; else None."""
        key, at_s = (gpu.bdf, kind), gpu.mono_s
        spell = self._spells.get(key)
        if not active:
            self._spells.pop(key, None)
            return round(spell.seen_s - spell.since_s, 1) if spell is not None and spell.reported else None
        if spell is None:
            spell = self._spells[key] = _Spell(at_s, at_s)
        if at_s - spell.seen_s > GAP_S:
            spell.since_s, spell.reported_s = at_s, None
        spell.seen_s = at_s
        due = at_s - spell.since_s >= self._window_s
        if not due or (spell.reported_s is not None and at_s - spell.reported_s < REPEAT_S):
            return None
        spell.reported_s, spell.reported = at_s, True
        return round(at_s - spell.since_s, 1)


def _orphaned_event(gpu: Gpu, now_s: float, orphaned: bool, lasted_s: float) -> UnsentEvent:
    memory_mb = gpu.memory_used_mb or 0
    data: dict[str, Scalar] = {"active": orphaned, "lasted_s": lasted_s, "memory_mb": memory_mb}
    evidence = (
        f"{memory_mb} MiB in use, {len(gpu.processes) or 'no'} process, utilisation {gpu.utilization} %"
    )
    return gpu_event(gpu, now_s, "gpu.orphaned", _severity(orphaned), data, evidence)


def _severity(active: bool) -> Severity:
    return Severity.WARNING if active else Severity.INFO

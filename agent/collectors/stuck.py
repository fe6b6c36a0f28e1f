"""GPUs that a process holds and does not use."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.idle import GAP_S, REPEAT_S, IdleOptions
from agent.collectors.samples import Gpu, Sample
from agent.contract import components
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip


@dataclass(slots=True, kw_only=True)
class _Idle:
    """One GPU at zero utilisation."""

    since_s: float
    seen_s: float
    # Processes that were there in every sample since.
    holders: frozenset[int]
    # When gpu.idle was reported last.
    reported_s: float | None = None
    # gpu.idle was reported, and no gpu.busy since.
    reported: bool = False


class StuckCollector(Collector):
    """gpu.idle after a whole window at zero while a process holds the GPU, every 300 s; gpu.busy after it."""

    name: ClassVar[str] = "stuck"
    wants: ClassVar[tuple[type, ...]] = (Gpu,)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.idle", "gpu.busy")
    options: ClassVar[tuple[type[Any], ...]] = (IdleOptions,)

    def __init__(self, options: IdleOptions) -> None:
        self._window_s = options.idle_window_s
        self._idle: dict[str, _Idle] = {}

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(setup.options(IdleOptions))

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if not isinstance(sample, Gpu):
            return ()
        age_s = max(0.0, now_s - sample.mono_s)
        return self._lost(sample) if sample.lost else self._sample(sample, sample.mono_s, age_s)

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if not isinstance(sample, Gpu) or sample.lost or sample.utilization is None:
            return ()
        idle, age_s = self._idle.get(sample.bdf), max(0.0, now_s - sample.mono_s)
        if idle is None:
            return (_busy(sample, age_s),)
        return (_idle(sample, sample.mono_s - idle.since_s, age_s),) if idle.reported else ()

    def _lost(self, gpu: Gpu) -> tuple[UnsentEvent, ...]:
        # Neither idle nor busy: gpu.lost reports it, and no gpu.busy follows what was reported idle.
        self._idle.pop(gpu.bdf, None)
        return ()

    def _sample(self, gpu: Gpu, at_s: float, age_s: float) -> tuple[UnsentEvent, ...]:
        idle = self._idle.get(gpu.bdf)
        if gpu.utilization is None:  # this sample shows nothing; the gap rule ends the window if it stays so
            return ()
        pids = frozenset(process.pid for process in gpu.processes)
        if gpu.utilization > 0 or not pids:
            self._idle.pop(gpu.bdf, None)
            return (_busy(gpu, age_s),) if idle is not None and idle.reported else ()
        if idle is None or not idle.holders & pids:
            # A new holder gets a whole window of its own; the old one, if it was reported, no longer holds the GPU.
            self._idle[gpu.bdf] = _Idle(since_s=at_s, seen_s=at_s, holders=pids)
            return (_busy(gpu, age_s),) if idle is not None and idle.reported else ()
        if at_s - idle.seen_s > GAP_S:
            idle.since_s, idle.reported_s = at_s, None
        idle.seen_s = at_s
        idle.holders &= pids
        due = at_s - idle.since_s >= self._window_s
        if not due or (idle.reported_s is not None and at_s - idle.reported_s < REPEAT_S):
            return ()
        idle.reported_s, idle.reported = at_s, True
        return (_idle(gpu, at_s - idle.since_s, age_s),)


def _busy(gpu: Gpu, age_s: float) -> UnsentEvent:
    return UnsentEvent(
        kind="gpu.busy",
        component=components.gpu(gpu.bdf),
        severity=Severity.INFO,
        data={"utilization": gpu.utilization or 0},
        evidence=f"GPU {gpu.index} {gpu.bdf}: utilisation {gpu.utilization} %, {len(gpu.processes)} holders",
        age_s=age_s,
    )


def _idle(gpu: Gpu, idle_s: float, age_s: float) -> UnsentEvent:
    held_mb = sum(process.memory_mb for process in gpu.processes)
    data: dict[str, Scalar] = {
        "idle_s": round(idle_s, 1),
        "memory_mb": held_mb if gpu.memory_used_mb is None else gpu.memory_used_mb,
        "processes": len(gpu.processes),
        "job": clip(next((process.job for process in gpu.processes if process.job), "")),
        "unit": clip(next((process.unit for process in gpu.processes if process.unit), "")),
    }
    if gpu.power_w is not None:
        data["power_w"] = gpu.power_w
    holders = ", ".join(f"{process.pid} {process.name}".strip() for process in gpu.processes[:8])
    return UnsentEvent(
        kind="gpu.idle",
        component=components.gpu(gpu.bdf),
        severity=Severity.WARNING,
        data=data,
        evidence=clip(f"GPU {gpu.index} {gpu.bdf}: utilisation 0 % for {idle_s:.0f} s, held by {holders}"),
        age_s=age_s,
    )

"""GPUs that somebody holds and nobody uses."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from agent.collectors.readings import Gpu, Reading
from agent.contract import components
from agent.contract.messages import Draft, Scalar, Severity, clip

_GAP_S = 60.0  # a longer pause between samples (NVML hung) was not watched: the window begins anew
_REPEAT_S = 300.0


@dataclass(slots=True, kw_only=True)
class _Idle:
    """One GPU at zero utilisation."""

    since_s: float
    seen_s: float
    holders: frozenset[int]  # processes that were there in every sample since
    said_s: float | None = None  # when gpu.idle was said last
    reported: bool = False  # gpu.idle was said and no gpu.busy since


class StuckCollector:
    """gpu.idle after a whole window at zero while a process holds the GPU, every 300 s; gpu.busy after it."""

    name: ClassVar[str] = "stuck"
    wants: ClassVar[tuple[type, ...]] = (Gpu,)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.idle", "gpu.busy")

    def __init__(self, *, idle_window_s: float = 600.0) -> None:
        """`idle_window_s`: seconds at zero until it is said."""
        self._window_s = idle_window_s
        self._idle: dict[str, _Idle] = {}

    def feed(self, reading: Reading, now_s: float) -> Iterable[Draft]:
        """See Collector."""
        if not isinstance(reading, Gpu):
            return ()
        age_s = max(0.0, now_s - reading.mono_s)
        return self._lost(reading) if reading.lost else self._sample(reading, reading.mono_s, age_s)

    def _lost(self, gpu: Gpu) -> tuple[Draft, ...]:
        # Neither idle nor busy: gpu.lost says it, and what was reported idle stays unanswered.
        self._idle.pop(gpu.bdf, None)
        return ()

    def _sample(self, gpu: Gpu, at_s: float, age_s: float) -> tuple[Draft, ...]:
        idle = self._idle.get(gpu.bdf)
        if gpu.utilization is None:  # this sample shows nothing; the gap rule ends the window if it stays so
            return ()
        pids = frozenset(process.pid for process in gpu.processes)
        if gpu.utilization > 0 or not pids:
            self._idle.pop(gpu.bdf, None)
            return (_busy(gpu, age_s),) if idle is not None and idle.reported else ()
        if idle is None or not idle.holders & pids:
            # A new holder gets a whole window of its own; the old one, if it was reported, holds it no more.
            self._idle[gpu.bdf] = _Idle(since_s=at_s, seen_s=at_s, holders=pids)
            return (_busy(gpu, age_s),) if idle is not None and idle.reported else ()
        if at_s - idle.seen_s > _GAP_S:
            idle.since_s, idle.said_s = at_s, None
        idle.seen_s = at_s
        idle.holders &= pids
        due = at_s - idle.since_s >= self._window_s
        if not due or (idle.said_s is not None and at_s - idle.said_s < _REPEAT_S):
            return ()
        idle.said_s, idle.reported = at_s, True
        return (_idle(gpu, at_s - idle.since_s, age_s),)


def _busy(gpu: Gpu, age_s: float) -> Draft:
    return Draft(
        kind="gpu.busy",
        component=components.gpu(gpu.bdf),
        severity=Severity.INFO,
        data={"utilization": gpu.utilization or 0},
        evidence=f"GPU {gpu.index} {gpu.bdf}: utilisation {gpu.utilization} %, {len(gpu.processes)} holders",
        age_s=age_s,
    )


def _idle(gpu: Gpu, idle_s: float, age_s: float) -> Draft:
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
    return Draft(
        kind="gpu.idle",
        component=components.gpu(gpu.bdf),
        severity=Severity.WARNING,
        data=data,
        evidence=clip(f"GPU {gpu.index} {gpu.bdf}: utilisation 0 % for {idle_s:.0f} s, held by {holders}"),
        age_s=age_s,
    )

"""GPUs that are held by processes which cannot be ended."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.gpu_event import gpu_event
from agent.collectors.idle import GAP_S, REPEAT_S
from agent.collectors.samples import Gpu, GpuProcess, Sample
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip

WINDOW_S = (
    300.0  # a process that reads from a slow file server waits for moments; this one never does anything else
)


@dataclass(slots=True)
class _Held:
    """One GPU."""

    # pid → since when every sample has shown it in such a state.
    since_s: dict[int, float]
    seen_s: float
    told_s: float | None = None


class HoldersCollector(Collector):
    """gpu.holder_stuck after a whole window at zero utilisation, again every 300 s, and when it is over."""

    name: ClassVar[str] = "holders"
    wants: ClassVar[tuple[type, ...]] = (Gpu,)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.holder_stuck",)

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if not isinstance(sample, Gpu) or sample.lost or sample.utilization is None:
            return
        stuck = {process.pid for process in sample.processes if process.state}
        held = self._held.get(sample.bdf)
        if held is None:
            if stuck:
                at_s = sample.mono_s
                self._held[sample.bdf] = _Held(since_s=dict.fromkeys(stuck, at_s), seen_s=at_s)
            return
        if sample.mono_s - held.seen_s > GAP_S:
            held.since_s = {}
        held.seen_s = sample.mono_s
        held.since_s = {pid: held.since_s.get(pid, sample.mono_s) for pid in sorted(stuck)}
        lasting = self._lasting(sample)
        if lasting and (held.told_s is None or sample.mono_s - held.told_s >= REPEAT_S):
            held.told_s = sample.mono_s
            yield _event(sample, now_s, lasting, self._lasted_s(sample))
        elif not stuck:
            del self._held[sample.bdf]
            if held.told_s is not None:
                yield _event(sample, now_s, [], 0.0)

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if (
            not isinstance(sample, Gpu)
            or sample.lost
            or sample.utilization is None
            or not sample.holders_known
        ):
            return
        if lasting := self._lasting(sample):
            yield _event(sample, now_s, lasting, self._lasted_s(sample))
        elif sample.bdf not in self._held:
            yield _event(sample, now_s, [], 0.0)

    def _lasting(self, gpu: Gpu) -> list[GpuProcess]:
        """Its processes that have been so for the whole window."""
        held = self._held.get(gpu.bdf)
        if held is None:
            return []
        return [
            one for one in gpu.processes if gpu.mono_s - held.since_s.get(one.pid, gpu.mono_s) >= WINDOW_S
        ]

    def _lasted_s(self, gpu: Gpu) -> float:
        return round(gpu.mono_s - min(self._held[gpu.bdf].since_s.values()), 1)


def _event(gpu: Gpu, now_s: float, stuck: list[GpuProcess], lasted_s: float) -> UnsentEvent:
    first = stuck[0] if stuck else GpuProcess(pid=0, memory_mb=0)
    data: dict[str, Scalar] = {
        "active": bool(stuck),
        "processes": len(stuck),
        "lasted_s": lasted_s,
        "pid": first.pid,
        "process": clip(first.name),
        "state": first.state,
        "job": clip(next((process.job for process in stuck if process.job), "")),
    }
    named = ", ".join(f"{one.pid} {one.name} ({one.state})" for one in stuck[:8])
    evidence = (
        f"held for {lasted_s:.0f} s by {named}" if stuck else "no process that cannot be ended holds it"
    )
    return gpu_event(
        gpu, now_s, "gpu.holder_stuck", Severity.ERROR if stuck else Severity.INFO, data, evidence
    )

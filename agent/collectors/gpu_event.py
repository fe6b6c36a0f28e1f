"""What events about GPUs have in common. Not a collector; a part of some."""

from collections.abc import Mapping

from agent.collectors.samples import Gpu, GpuEvent, GpuHealth, GpuTemperatures
from agent.contract import components
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip


def gpu_event(
    sample: Gpu | GpuHealth | GpuTemperatures | GpuEvent,
    now_s: float,
    kind: str,
    severity: Severity,
    data: Mapping[str, Scalar],
    evidence: str,
    count: int = 1,
) -> UnsentEvent:
    """A fact about the GPU of `sample`, as old as that is."""
    where = sample.bdf if isinstance(sample, GpuEvent) else f"{sample.index} {sample.bdf}"
    return UnsentEvent(
        kind=kind,
        component=components.gpu(sample.bdf),
        severity=severity,
        data=data,
        evidence=clip(f"GPU {where}: {evidence}"),
        count=count,
        age_s=max(0.0, now_s - sample.mono_s),
    )

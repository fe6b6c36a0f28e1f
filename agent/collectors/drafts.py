"""What drafts about GPUs have in common."""

from collections.abc import Mapping

from agent.collectors.readings import Gpu, GpuEvent, GpuHealth
from agent.contract import components
from agent.contract.messages import Draft, Scalar, Severity, clip


def of_gpu(
    reading: Gpu | GpuHealth | GpuEvent,
    now_s: float,
    kind: str,
    severity: Severity,
    data: Mapping[str, Scalar],
    evidence: str,
    count: int = 1,
) -> Draft:
    """A fact about the GPU of `reading`, as old as that is."""
    where = reading.bdf if isinstance(reading, GpuEvent) else f"{reading.index} {reading.bdf}"
    return Draft(
        kind=kind,
        component=components.gpu(reading.bdf),
        severity=severity,
        data=data,
        evidence=clip(f"GPU {where}: {evidence}"),
        count=count,
        age_s=max(0.0, now_s - reading.mono_s),
    )

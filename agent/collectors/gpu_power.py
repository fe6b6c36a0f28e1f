"""Power limits that gpuward has lowered and that stand: a debt, since the GPU's jobs run slower as long as it does."""

from collections.abc import Iterable
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.samples import GpuHealth, LoweredPower, Sample
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Scalar, Severity, UnsentEvent

_SAME_MW = 1000  # some cards round to watts
_AGAIN_S = 900.0  # one that stands is reported so often


class GpuPowerCollector(Collector):
    """gpu.power_capped: when a lowered limit is seen to stand, every 15 minutes while it does, and when it no longer does."""

    name: ClassVar[str] = "gpu_power"
    wants: ClassVar[tuple[type, ...]] = (LoweredPower, GpuHealth)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.power_capped",)

    def __init__(self) -> None:
        # GPU → what was noted last, and when that was.
        self._lowered: dict[str, LoweredPower] = {}
        self._limit_mw: dict[str, float] = {}
        # GPU → when it was last reported to stand.
        self._reported_s: dict[str, float] = {}

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, LoweredPower):
            self._lowered[sample.bdf] = sample
            return self._judge(sample, now_s)
        if isinstance(sample, GpuHealth):
            limit = sample.values.get("power_limit")
            if isinstance(limit, int | float):
                self._limit_mw[sample.bdf] = limit
            if sample.bdf in self._lowered:
                return self._judge(self._lowered[sample.bdf], now_s)
        return []

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector: a lowered limit that stands."""
        lowered = self._lowered.get(sample.bdf) if isinstance(sample, GpuHealth) else None
        if lowered is not None and self._stands(lowered):
            yield _capped(lowered, active=True)

    def _stands(self, lowered: LoweredPower) -> bool:
        limit_mw = self._limit_mw.get(lowered.bdf, 0)
        return not lowered.over and abs(limit_mw - lowered.limit_mw) <= _SAME_MW

    def _judge(self, lowered: LoweredPower, now_s: float) -> list[UnsentEvent]:
        limit_mw = self._limit_mw.get(lowered.bdf)
        if limit_mw is None and not lowered.over:
            return []  # NVML has not told it yet
        if not self._stands(lowered):
            del self._lowered[lowered.bdf]
            reported = self._reported_s.pop(lowered.bdf, None) is not None
            return [_capped(lowered, active=False)] if reported or lowered.over else []
        if now_s - self._reported_s.get(lowered.bdf, now_s - 2 * _AGAIN_S) < _AGAIN_S:
            return []
        self._reported_s[lowered.bdf] = now_s
        return [_capped(lowered, active=True)]


def _capped(lowered: LoweredPower, *, active: bool) -> UnsentEvent:
    limit_w, before_w = lowered.limit_mw / 1000, lowered.before_mw / 1000
    data: dict[str, Scalar] = {"active": active, "limit_w": limit_w, "before_w": before_w}
    try:
        component = components.gpu(lowered.bdf)
    except ContractError:
        component = components.NODE
    return UnsentEvent(
        kind="gpu.power_capped",
        component=component,
        severity=Severity.WARNING if active else Severity.INFO,
        data=data,
        evidence=f"power limit lowered by gpuward from {before_w:g} W to {limit_w:g} W{'' if active else ': no longer'}",
    )

"""GPUs that are too hot, or that their hardware slows down."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.gpu_event import gpu_event
from agent.collectors.samples import Gpu, GpuHealth, GpuTemperatures, Sample
from agent.contract.messages import Scalar, Severity, UnsentEvent

# nvmlClocksEventReasons that mean a fault. Idle, application clocks, the software power cap, sync boost and display
# clocks are ordinary.
REASONS = {0x8: "hw_slowdown", 0x20: "sw_thermal", 0x40: "hw_thermal", 0x80: "power_brake"}
_HARDWARE = 0x8 | 0x40 | 0x80
_SAMPLES = 3  # with such a reason until it is reported: a single one is a change of load
_CALM_S = 10.0  # without one until it is over
_COOLER_C = 3.0  # so far below the limit a temperature is normal again


@dataclass(slots=True)
class _Slow:
    since_s: float
    last_s: float
    samples: int = 0
    # Reason → when it was seen last.
    last: dict[int, float] = field(default_factory=dict)
    # Reasons at the newest sample with any and shortly before, and those that were reported.
    seen: int = 0
    reported: int = 0


class GpuHeatCollector(Collector):
    """gpu.throttle and gpu.temperature: when it begins, when its reasons change, and when it ends."""

    name: ClassVar[str] = "gpu_heat"
    wants: ClassVar[tuple[type, ...]] = (Gpu, GpuHealth, GpuTemperatures)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.throttle", "gpu.temperature")

    def __init__(self) -> None:
        self._slow: dict[str, _Slow] = {}
        # (GPU, sensor)
        self._hot: set[tuple[str, str]] = set()
        # Cards that have told a T.Limit: by nothing else are they judged.
        self._with_margin: set[str] = set()
        self._health: dict[str, Mapping[str, int | float | str]] = {}

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, GpuHealth | GpuTemperatures):
            self._health[sample.bdf] = sample.values
            if "margin" in sample.values:
                self._with_margin.add(sample.bdf)
            return self._temperatures(sample, now_s)
        if isinstance(sample, Gpu) and not sample.lost:
            return [*self._throttle(sample, now_s), *self._temperatures(sample, now_s)]
        return []

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if not isinstance(sample, Gpu | GpuHealth | GpuTemperatures) or (
            isinstance(sample, Gpu) and sample.lost
        ):
            return
        for sensor, left_c, more in self._readings(sample):
            hot = (sample.bdf, sensor) in self._hot
            yield _temperature(sample, now_s, sensor, left_c, more, hot=hot)
        slow = self._slow.get(sample.bdf)
        if not isinstance(sample, Gpu) or sample.slowdowns is None:
            return
        if slow is None:
            yield _throttled(sample, now_s, _Slow(sample.mono_s, sample.mono_s), active=False)
        elif slow.reported:
            yield _throttled(sample, now_s, slow, active=True)

    def _throttle(self, gpu: Gpu, now_s: float) -> list[UnsentEvent]:
        if gpu.slowdowns is None:
            return []
        bad = gpu.slowdowns & sum(REASONS)
        slow = self._slow.get(gpu.bdf)
        if not bad:
            if slow is None or gpu.mono_s - slow.last_s < _CALM_S:
                return []
            del self._slow[gpu.bdf]
            return [_throttled(gpu, now_s, slow, active=False)] if slow.reported else []
        if slow is None:
            slow = self._slow[gpu.bdf] = _Slow(gpu.mono_s, gpu.mono_s)
        slow.last_s = gpu.mono_s
        slow.samples += 1
        slow.last |= {bit: gpu.mono_s for bit in REASONS if bad & bit}
        slow.seen = sum(bit for bit, last_s in slow.last.items() if gpu.mono_s - last_s < _CALM_S)
        if slow.samples < _SAMPLES or slow.reported == slow.seen:
            return []
        slow.reported = slow.seen
        return [_throttled(gpu, now_s, slow, active=True)]

    def _readings(self, sample: Sample) -> Iterator[tuple[str, float, dict[str, Scalar]]]:
        """Sensor, °C left to its limit, and what else its event has."""
        if isinstance(sample, Gpu):
            # Against the absolute limit, on cards that have no T.Limit.
            health = self._health.get(sample.bdf, {})
            limit = _number(health, "threshold.gpu_max") or _number(health, "threshold.slowdown")
            if sample.temperature_c is not None and limit and sample.bdf not in self._with_margin:
                yield "gpu", limit - sample.temperature_c, {"temperature_c": sample.temperature_c}
        elif isinstance(sample, GpuHealth | GpuTemperatures):
            limit, now = _number(sample.values, "threshold.memory_max"), _number(sample.values, "memory_temp")
            if limit and now:
                yield "memory", limit - now, {"temperature_c": int(now)}
            # By the T.Limit temperature: the °C left until the clocks are reduced (Hopper and newer).
            if (margin := _number(sample.values, "margin")) is not None:
                yield "gpu", margin - (_number(sample.values, "tlimit.gpu_max") or 0.0), {}

    def _temperatures(self, gpu: Gpu | GpuHealth | GpuTemperatures, now_s: float) -> Iterator[UnsentEvent]:
        for sensor, left_c, more in self._readings(gpu):
            key = (gpu.bdf, sensor)
            hot = left_c <= 0 or (key in self._hot and left_c < _COOLER_C)
            if hot != (key in self._hot):
                (self._hot.add if hot else self._hot.discard)(key)
                yield _temperature(gpu, now_s, sensor, left_c, more, hot=hot)


def _temperature(
    gpu: Gpu | GpuHealth | GpuTemperatures,
    now_s: float,
    sensor: str,
    left_c: float,
    more: dict[str, Scalar],
    *,
    hot: bool,
) -> UnsentEvent:
    data: dict[str, Scalar] = {"active": hot, "sensor": sensor, "margin_c": left_c, **more}
    evidence = f"{sensor} temperature is {abs(left_c):.0f} °C {'above' if left_c < 0 else 'below'} its limit"
    severity = Severity.ERROR if hot else Severity.INFO
    return gpu_event(gpu, now_s, "gpu.temperature", severity, data, evidence)


def _throttled(gpu: Gpu, now_s: float, slow: _Slow, *, active: bool) -> UnsentEvent:
    names = ",".join(name for bit, name in REASONS.items() if slow.seen & bit)
    lasted_s = round((gpu.mono_s if active else slow.last_s) - slow.since_s, 1)
    data: dict[str, Scalar] = {
        "active": active,
        "reasons": names,
        "thermal": bool(slow.seen & 0x60),
        "hardware": bool(slow.seen & _HARDWARE),
        "power_brake": bool(slow.seen & 0x80),
        "lasted_s": lasted_s,
    }
    if gpu.temperature_c is not None:
        data["temperature_c"] = gpu.temperature_c
    if gpu.power_w is not None:
        data["power_w"] = gpu.power_w
    severity = Severity.WARNING if active else Severity.INFO
    verb = "is" if active else "was"
    evidence = f"{verb} slowed down by {names} for {lasted_s:.0f} s" if names else "is not slowed down"
    return gpu_event(gpu, now_s, "gpu.throttle", severity, data, evidence)


def _number(values: Mapping[str, int | float | str], key: str) -> float | None:
    value = values.get(key)
    return float(value) if isinstance(value, int | float) else None

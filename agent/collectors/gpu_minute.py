"""What each GPU of a job did in the last minute, for the brain, which compares the nodes of one job with each other.

A minute is condensed into three numbers for each GPU, and all GPUs of one job into one event. It is told when a job has computed
for its first minute, when a number has moved, again every ten minutes, and when the job is over: a job that runs evenly costs
next to nothing. Only where `compare_gpus` is on.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.samples import Gpu, GpuHealth, Sample
from agent.contract import components
from agent.contract.counted import counted
from agent.contract.gpu_minutes import MAX_GPUS, GpuMinute, encode
from agent.contract.messages import Severity, UnsentEvent, clip
from agent.options import option

_MINUTE_S = 60.0
_WHOLE_S = 45.0  # so much of a minute a GPU must have had one job
_GAP_S = 30.0  # after a longer pause between samples (NVML hung) the minute begins anew
_AGAIN_S = 600.0  # what has not moved is told so often, so that the brain knows that it still holds
_IN_USE = 50  # % utilisation: a GPU that waits lowers its clock by itself
_MAX_JOBS = 8  # of one node; those of more jobs are shared out, and no job is slowed by one of its GPUs
_MAX_CLOCKS = 240  # samples of one minute that are kept
# A smaller change is not told. The brain takes no deviation below 5 % of a clock for a fault.
_CLOCK_SHARE, _POWER_SHARE, _BUSY_POINTS = 0.02, 0.08, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMinuteOptions:
    """What an operator can set; the source nvml reads it too."""

    compare_gpus: bool = option(
        False,
        "tell the SM clock, power and utilisation of a job's GPUs when they have moved, so that the brain finds GPUs and "
        "nodes that are slower than their peers of the same job (stragglers)",
    )


@dataclass(slots=True)
class _Sum:
    """The samples of one GPU in this minute."""

    job: str
    since_s: float
    samples: int = 0
    busy: int = 0
    powers: int = 0
    power_w: float = 0.0
    clocks: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Told:
    minutes: tuple[GpuMinute, ...]
    at_s: float


class GpuMinuteCollector(Collector):
    """gpu.minute of each job that has GPUs of its own here."""

    name: ClassVar[str] = "gpu_minute"
    wants: ClassVar[tuple[type, ...]] = (Gpu, GpuHealth)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.minute",)
    options: ClassVar[tuple[type[Any], ...]] = (GpuMinuteOptions,)
    one_off: ClassVar[str] = "figures of a minute, which the brain compares"

    def __init__(self, options: GpuMinuteOptions) -> None:
        self._on = options.compare_gpus
        self._ends_s = self._last_s = 0.0
        self._sums: dict[str, _Sum] = {}
        self._models: dict[str, str] = {}
        # GPUs that are cut into instances: their clock is that of several programs.
        self._shared: set[str] = set()
        # (job, model) → what was told of it last
        self._told: dict[tuple[str, str], _Told] = {}

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(setup.options(GpuMinuteOptions))

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if not self._on:
            return ()
        if isinstance(sample, GpuHealth):
            self._models[sample.bdf] = str(sample.values.get("model", ""))
            (self._shared.add if sample.values.get("mig") == 1 else self._shared.discard)(sample.bdf)
            return ()
        if not isinstance(sample, Gpu):
            return ()
        told: list[UnsentEvent] = []
        if sample.mono_s - self._last_s > _GAP_S:
            self._sums.clear()
            self._ends_s = sample.mono_s + _MINUTE_S
        elif sample.mono_s >= self._ends_s:
            told = list(self._minute_is_over(sample.mono_s, now_s))
            self._sums.clear()
            self._ends_s = sample.mono_s + _MINUTE_S
        self._last_s = sample.mono_s
        self._add(sample)
        return told

    def _add(self, gpu: Gpu) -> None:
        jobs = {process.job: None for process in gpu.processes if process.job}
        if gpu.lost or len(jobs) != 1 or gpu.utilization_now is None or gpu.bdf in self._shared:
            self._sums.pop(gpu.bdf, None)
            return
        (job,) = jobs
        one = self._sums.get(gpu.bdf)
        if one is None or one.job != job:
            one = self._sums[gpu.bdf] = _Sum(job, gpu.mono_s)
        one.samples += 1
        one.busy += gpu.utilization_now
        if gpu.power_w is not None:
            one.powers, one.power_w = one.powers + 1, one.power_w + gpu.power_w
        if gpu.sm_clock_mhz is not None and gpu.utilization_now >= _IN_USE and len(one.clocks) < _MAX_CLOCKS:
            one.clocks.append(gpu.sm_clock_mhz)

    def _minute_is_over(self, at_s: float, now_s: float) -> Iterator[UnsentEvent]:
        found: dict[tuple[str, str], list[GpuMinute]] = {}
        for bdf, one in sorted(self._sums.items()):
            if at_s - one.since_s >= _WHOLE_S:
                found.setdefault((one.job, self._models.get(bdf, "")), []).append(_condensed(bdf, one))
        there = {(one.job, self._models.get(bdf, "")) for bdf, one in self._sums.items()}
        age_s = max(0.0, now_s - at_s)
        for key in [
            key for key in self._told if key not in there
        ]:  # the job is over, or its model has been read since
            del self._told[key]
            yield _event(key, (), age_s, active=False)
        for key, minutes in list(found.items())[:_MAX_JOBS]:
            before, now = self._told.get(key), tuple(minutes[:MAX_GPUS])
            if before is None or at_s - before.at_s >= _AGAIN_S or _moved(before.minutes, now):
                self._told[key] = _Told(now, at_s)
                yield _event(key, now, age_s, active=True)


def _condensed(bdf: str, one: _Sum) -> GpuMinute:
    clocks = sorted(one.clocks)
    return GpuMinute(
        bdf=components.bdf(bdf),
        sm_mhz=clocks[len(clocks) // 2] if clocks else 0,
        power_w=round(one.power_w / one.powers) if one.powers else 0,
        busy=round(one.busy / one.samples),
    )


def _moved(before: Sequence[GpuMinute], now: Sequence[GpuMinute]) -> bool:
    return [one.bdf for one in before] != [one.bdf for one in now] or any(
        abs(old.sm_mhz - new.sm_mhz) > _CLOCK_SHARE * old.sm_mhz
        or abs(old.power_w - new.power_w) > _POWER_SHARE * old.power_w
        or abs(old.busy - new.busy) > _BUSY_POINTS
        for old, new in zip(before, now, strict=True)
    )


def _event(
    key: tuple[str, str], minutes: tuple[GpuMinute, ...], age_s: float, *, active: bool
) -> UnsentEvent:
    job, model = key
    text = f"job {job} has no GPU here any more"
    if active:
        clocks, powers = [one.sm_mhz for one in minutes], [one.power_w for one in minutes]
        text = (
            f"{counted(len(minutes), 'GPU')} of job {job}: SM clock {min(clocks)} to {max(clocks)} MHz, "
            f"{min(powers)} to {max(powers)} W, at least {min(one.busy for one in minutes)} % used"
        )
    return UnsentEvent(
        kind="gpu.minute",
        component=components.NODE,
        severity=Severity.INFO,
        data={"active": active, "job": clip(job, 120), "model": clip(model, 120), **encode(minutes)},
        evidence=text,
        age_s=age_s,
    )

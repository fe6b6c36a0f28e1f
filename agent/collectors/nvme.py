"""What NVMe disks say of their own health: conditions that last, and counters that grow."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.growth import GrowthTracker
from agent.collectors.samples import Sample
from agent.collectors.samples_node import NvmeHealth
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip
from agent.contract.smart_log import SmartLog

_REPEAT_S = 3600.0  # what is still wrong is reported again: the brain forgets what is not repeated
_WELL_READINGS = 2  # in a row without a condition, and it is over: a bit at its limit comes and goes
_ALL = 100  # percent: a threshold above that is none
_LIFE_PERCENT = 100  # Percentage Used: the life that the maker expects is over
_MOST_DISKS = 64  # whose counters are remembered; more than a node has
_COUNTERS = ("media_errors", "critical_temperature_min")
# Condition → how people say it.
_SAID = {
    "read_only": "it can only be read",
    "unreliable": "its reliability is degraded",
    "spare_low": "its spare is below the threshold",
    "worn": "its expected life is over",
    "unprotected": "what its cache holds is lost with the power",
    "hot": "its temperature is beyond its threshold",
}
_GRAVE = ("read_only", "unreliable")


@dataclass(slots=True)
class _Disk:
    serial: str
    # The latest of it that was judged, and the latest log.
    sample: NvmeHealth
    log: SmartLog | None = None
    # Condition that is present → well readings in a row since it was seen last.
    present: dict[str, int] = field(default_factory=dict)
    # What was told last; empty: nothing wrong.
    told: tuple[str, ...] = ()
    told_s: float = 0.0

    def wrong(self) -> tuple[str, ...]:
        """What is wrong with it now; of a controller that does not answer, nothing else is known."""
        return tuple(sorted(self.present)) if self.sample.log is not None else ("silent",)


class NvmeCollector(Collector):
    """disk.health when something begins or ends, and each hour while it lasts; disk.counter for each growth.

    A disk is known by its serial number: another one at the same place begins afresh.
    """

    name: ClassVar[str] = "nvme"
    wants: ClassVar[tuple[type, ...]] = (NvmeHealth,)
    kinds: ClassVar[tuple[str, ...]] = ("disk.health", "disk.counter")
    remembers: ClassVar[str] = "nvme"

    def __init__(self, *, before: Mapping[str, Any] | None = None) -> None:
        """`before`: what an earlier run `remembered`."""
        self._growth = GrowthTracker()
        # Name → what is known of it.
        self._disks: dict[str, _Disk] = {}
        # Serial number → its counters, of all that were ever seen.
        self._counters = _counters(before or {})
        for serial, counters in self._counters.items():
            for counter, value in counters.items():
                self._growth.seed((serial, counter), value)

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(before=setup.remembered.get(cls.remembers))

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if not isinstance(sample, NvmeHealth):
            return
        disk = self._disk(sample)
        if sample.log is not None:
            yield from self._grown(disk, sample, sample.log)
            _judge(disk.present, sample.log)
            disk.log = sample.log
        disk.sample = sample
        wrong = disk.wrong()
        if wrong != disk.told or (wrong and sample.mono_s - disk.told_s >= _REPEAT_S):
            disk.told, disk.told_s = wrong, sample.mono_s
            yield _health(disk)

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        disk = self._disks.get(sample.name) if isinstance(sample, NvmeHealth) else None
        if disk is not None and disk.sample == sample:
            yield _health(disk)

    def remembered(self) -> Mapping[str, Any]:
        """Serial number → its counters: what grows while no agent runs is reported by the next one."""
        return self._counters

    def _disk(self, sample: NvmeHealth) -> _Disk:
        disk = self._disks.get(sample.name)
        if disk is None or (sample.log is not None and disk.serial != sample.serial):
            # Of one that took the place of another, what was told of that one is over, or so of this one too.
            told, told_s = (disk.told, disk.told_s) if disk is not None else ((), 0.0)
            disk = self._disks[sample.name] = _Disk(sample.serial, sample, told=told, told_s=told_s)
        return disk

    def _grown(self, disk: _Disk, sample: NvmeHealth, log: SmartLog) -> Iterator[UnsentEvent]:
        told = {"media_errors": log.media_errors, "critical_temperature_min": log.critical_min}
        now = {counter: value for counter, value in told.items() if value is not None}
        for counter, value in now.items():
            key = (sample.serial or sample.name, counter)
            if delta := self._growth.offer(key, value, sample.mono_s):
                yield _counter(sample, counter, delta, value, disk)
        if sample.serial:
            others = {serial: one for serial, one in self._counters.items() if serial != sample.serial}
            kept = self._counters.get(sample.serial, {}) | now
            self._counters = dict(list({sample.serial: kept, **others}.items())[:_MOST_DISKS])


def _judge(present: dict[str, int], log: SmartLog) -> None:
    """Brings `present` up to date with a reading."""
    seen = {
        "read_only": log.read_only,
        "unreliable": log.unreliable,
        "spare_low": log.spare_warning or log.spare_percent < log.spare_threshold_percent <= _ALL,
        "worn": log.used_percent >= _LIFE_PERCENT,
        "unprotected": log.unprotected,
        "hot": log.temperature_warning,
    }
    for condition, is_so in seen.items():
        if is_so:
            present[condition] = 0
        elif condition in present:
            present[condition] += 1
            if present[condition] >= _WELL_READINGS:
                del present[condition]


def _health(disk: _Disk) -> UnsentEvent:
    sample = disk.sample
    wrong = disk.wrong()
    data: dict[str, Scalar] = {
        "answers": sample.log is not None,
        "model": clip(sample.model),
        "serial": clip(sample.serial),
    }
    if sample.log is None:
        data["waited_s"] = round(sample.waited_s, 1)
        said = f"no answer for {sample.waited_s:.0f} s when it is asked for its health"
    else:
        data |= {condition: condition in disk.present for condition in _SAID}
        data |= _figures(sample.log)
        said = "; ".join(
            [*(words for condition, words in _SAID.items() if condition in wrong), _in_words(sample.log)]
        )
    grave = any(condition in wrong for condition in _GRAVE)
    ill = Severity.ERROR if grave else Severity.WARNING
    return UnsentEvent(
        kind="disk.health",
        component=f"disk/{sample.name}",
        severity=ill if wrong else Severity.INFO,
        data=data,
        evidence=clip(f"{_named(sample)}: {said}"),
    )


def _counter(sample: NvmeHealth, counter: str, delta: int, value: int, disk: _Disk) -> UnsentEvent:
    data: dict[str, Scalar] = {
        "counter": counter,
        "delta": delta,
        "value": value,
        "model": clip(sample.model),
        "serial": clip(sample.serial),
    }
    if disk.log is not None:  # else the time since is not known: an earlier run of the agent read it last
        data["interval_s"] = round(max(0.0, sample.mono_s - disk.sample.mono_s), 3)
    return UnsentEvent(
        kind="disk.counter",
        component=f"disk/{sample.name}",
        severity=Severity.ERROR if counter == "media_errors" else Severity.WARNING,
        data=data,
        evidence=clip(f"{_named(sample)}: {counter} {value - delta} -> {value}"),
    )


def _figures(log: SmartLog) -> dict[str, Scalar]:
    figures = {
        "spare_percent": log.spare_percent,
        "spare_threshold_percent": log.spare_threshold_percent,
        "used_percent": log.used_percent,
        "media_errors": log.media_errors,
        "temperature_c": log.temperature_c,
    }
    return {name: value for name, value in figures.items() if value is not None}


def _in_words(log: SmartLog) -> str:
    said = f"spare {log.spare_percent} % (threshold {log.spare_threshold_percent} %), {log.used_percent} % of its life used"
    said += "" if log.media_errors is None else f", {log.media_errors} media errors"
    return said + ("" if log.temperature_c is None else f", {log.temperature_c} °C")


def _named(sample: NvmeHealth) -> str:
    return " ".join(word for word in (sample.name, sample.model, sample.serial) if word)


def _counters(before: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """What is well-formed of what an earlier run remembered."""
    found = {}
    for serial, counters in before.items():
        if isinstance(counters, dict):
            known = {
                counter: value
                for counter in _COUNTERS
                if type(value := counters.get(counter)) is int and value >= 0
            }
            found[str(serial)] = known
    return found

"""A GPU's memory: ECC errors, remapped rows, retired pages."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.gpu_event import gpu_event
from agent.collectors.growth import GrowthTracker
from agent.collectors.samples import Gpu, GpuHealth, Sample
from agent.contract.messages import Scalar, Severity, UnsentEvent

_CORRECTED_S = 60.0  # corrected errors of one location are reported at most so often
_MOST_GPUS = 64  # more than a node has
_ROWS = ("pending", "failure", "corrected", "uncorrected")
_REMAP = ("pending", "failure", "banks_none", "corrected", "uncorrected")
_RETIRED = ("pending", "single_bit", "double_bit")
_COUNTS = ("corrected", "uncorrected", "single_bit", "double_bit")
_Values = Mapping[str, int | float | str]


class GpuMemoryCollector(Collector):
    """gpu.ecc for growth, gpu.remap, gpu.retired_pages and gpu.sram_threshold for states and their changes."""

    name: ClassVar[str] = "gpu_memory"
    wants: ClassVar[tuple[type, ...]] = (GpuHealth, Gpu)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.ecc", "gpu.remap", "gpu.retired_pages", "gpu.sram_threshold")
    remembers: ClassVar[str] = "ecc"

    def __init__(self, *, before: Mapping[str, Any] | None = None) -> None:
        """`before`: what an earlier run `remembered`."""
        self._growth = GrowthTracker()
        # UUID → its aggregate counters, of all GPUs that were ever seen; and of those that this run has not seen yet.
        self._lifetime = _counters(before or {})
        self._before = dict(self._lifetime)
        # Address → UUID.
        self._uuids: dict[str, str] = {}
        # UUID → its aggregate counters.
        self._aggregate: dict[str, set[str]] = {}
        # (GPU, what) → what is known of it: NVML may leave out a part, which is then not 0 but as it was.
        self._states: dict[tuple[str, str], dict[str, int]] = {}
        # GPU → whether its SRAM is beyond its threshold, as NVML told last.
        self._exceeded: dict[str, int] = {}

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(before=setup.remembered.get(cls.remembers))

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, Gpu):
            if sample.uuid and self._uuids.get(sample.bdf) != sample.uuid:
                self._identify(sample)
            return []
        if not isinstance(sample, GpuHealth):
            return []
        return [
            *self._ecc(sample, now_s),
            *self._remap(sample, now_s),
            *self._retired(sample, now_s),
            *self._sram(sample, now_s),
        ]

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector: rows and pages that wait, and SRAM beyond its threshold. Errors that were counted are history."""
        if not isinstance(sample, GpuHealth):
            return
        if rows := self._shown(sample, "remap", _REMAP):
            yield _remap_event(sample, now_s, rows, grown=False)
        if pages := self._shown(sample, "retired", _RETIRED):
            yield _retired_event(sample, now_s, pages, grown=False)
        if "sram_threshold" in sample.values:
            yield _sram_event(sample, now_s)

    def remembered(self) -> Mapping[str, Any]:
        """UUID → its lifetime errors that were reported or were there when it was first seen.

        Growth while no agent runs is reported by the next one. GPUs that this run did not see are kept.
        """
        found: dict[str, dict[str, int]] = {}
        for bdf, uuid in self._uuids.items():
            for key in self._aggregate.get(uuid, ()):
                if (value := self._growth.base((bdf, key))) is not None:
                    found.setdefault(uuid, {})[key] = value
        others = {uuid: counters for uuid, counters in self._lifetime.items() if uuid not in found}
        self._lifetime = dict(list({**found, **others}.items())[:_MOST_GPUS])
        return self._lifetime

    def _identify(self, gpu: Gpu) -> None:
        self._uuids[gpu.bdf] = gpu.uuid
        for key, value in self._before.pop(gpu.uuid, {}).items():
            self._growth.seed((gpu.bdf, key), value)

    def _ecc(self, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        # (counter, corrected or uncorrected, location) → growth.
        grown: dict[tuple[str, str, str], int] = {}
        for key, value in gpu.values.items():
            parts = key.split(".")
            if len(parts) != 4 or parts[0] != "ecc" or not isinstance(value, int):
                continue
            if parts[1] == "aggregate" and gpu.bdf in self._uuids:
                self._aggregate.setdefault(self._uuids[gpu.bdf], set()).add(key)
            window_s = _CORRECTED_S if parts[2] == "corrected" else 0.0
            if delta := self._growth.offer((gpu.bdf, key), value, gpu.mono_s, window_s=window_s):
                grown[parts[1], parts[2], parts[3]] = delta
        out = []
        for (counter, class_, location), delta in grown.items():
            # One error shows in up to four counters: the location is more precise than the total, and what has grown
            # since the driver was loaded has grown in the lifetime counter too.
            elsewhere = any(c == counter and k == class_ and p != "total" for c, k, p in grown)
            if (location == "total" and elsewhere) or (
                counter == "aggregate" and any(c == "volatile" and k == class_ for c, k, _ in grown)
            ):
                continue
            errors = _int(gpu.values, f"ecc.{counter}.{class_}.{location}")
            data: dict[str, Scalar] = {
                "location": location,
                "corrected": class_ == "corrected",
                "counter": counter,
                "delta": delta,
                "errors": errors,
            }
            severity = Severity.WARNING if class_ == "corrected" else Severity.ERROR
            evidence = f"{delta} {class_} ECC errors in {location}, {errors} {counter}"
            out.append(gpu_event(gpu, now_s, "gpu.ecc", severity, data, evidence))
        return out

    def _shown(self, gpu: GpuHealth, what: str, names: tuple[str, ...]) -> dict[str, int]:
        """What is known, if the sample shows all of it; else nothing."""
        known = self._states.get((gpu.bdf, what), {})
        return known if known == _told(gpu, what, names) else {}

    def _changed(
        self, gpu: GpuHealth, what: str, names: tuple[str, ...]
    ) -> tuple[dict[str, int], dict[str, int]] | None:
        """(before, now), where something has changed. What is seen for the first time was well, and its counts are history."""
        told = _told(gpu, what, names)
        known = self._states.setdefault((gpu.bdf, what), {})
        before = {name: known.get(name, told.get(name, 0) if name in _COUNTS else 0) for name in known | told}
        known.update(told)
        return (before, dict(known)) if before != known else None

    def _remap(self, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        if (change := self._changed(gpu, "remap", _REMAP)) is None:
            return []
        return [_remap_event(gpu, now_s, change[1], grown=_grown(*change))]

    def _retired(self, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        if (change := self._changed(gpu, "retired", _RETIRED)) is None:
            return []
        return [_retired_event(gpu, now_s, change[1], grown=_grown(*change))]

    def _sram(self, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        if "sram_threshold" not in gpu.values:
            return []
        now = _int(gpu.values, "sram_threshold")
        before = self._exceeded.get(gpu.bdf, 0)
        self._exceeded[gpu.bdf] = now
        return [] if now == before else [_sram_event(gpu, now_s)]


def _told(gpu: GpuHealth, what: str, names: tuple[str, ...]) -> dict[str, int]:
    return {name: value for name in names if isinstance(value := gpu.values.get(f"{what}.{name}"), int)}


def _grown(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    return any(now[name] > before[name] for name in now if name in _COUNTS)


def _remap_event(gpu: GpuHealth, now_s: float, known: Mapping[str, int], *, grown: bool) -> UnsentEvent:
    values = {name: known.get(name, 0) for name in _ROWS}
    data: dict[str, Scalar] = {
        **values,
        "pending": bool(values["pending"]),
        "failure": bool(values["failure"]),
    }
    for name in ("partial", "low", "none"):
        if f"remap.banks_{name}" in gpu.values:
            data[f"banks_{name}"] = _int(gpu.values, f"remap.banks_{name}")
    worst = Severity.FATAL if values["failure"] else Severity.ERROR
    severity = worst if data["failure"] or data["pending"] else _mild_severity(grown)
    evidence = "row remapping: " + ", ".join(f"{name} {value}" for name, value in values.items())
    return gpu_event(gpu, now_s, "gpu.remap", severity, data, evidence)


def _retired_event(gpu: GpuHealth, now_s: float, known: Mapping[str, int], *, grown: bool) -> UnsentEvent:
    values = {name: known.get(name, 0) for name in _RETIRED}
    data: dict[str, Scalar] = {**values, "pending": bool(values["pending"])}
    severity = Severity.ERROR if values["pending"] else _mild_severity(grown)
    evidence = "page retirement: " + ", ".join(f"{name} {value}" for name, value in values.items())
    return gpu_event(gpu, now_s, "gpu.retired_pages", severity, data, evidence)


def _sram_event(gpu: GpuHealth, now_s: float) -> UnsentEvent:
    exceeded = bool(_int(gpu.values, "sram_threshold"))
    severity = Severity.ERROR if exceeded else Severity.INFO
    evidence = f"uncorrectable SRAM errors are {'above' if exceeded else 'not above'} NVIDIA's threshold"
    return gpu_event(gpu, now_s, "gpu.sram_threshold", severity, {"exceeded": exceeded}, evidence)


def _counters(raw: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """What a file holds of `remembered`; whatever does not look like it is left out."""
    return {
        uuid: {key: value for key, value in counters.items() if isinstance(value, int)}
        for uuid, counters in list(raw.items())[:_MOST_GPUS]
        if isinstance(counters, dict)
    }


def _int(values: _Values, key: str) -> int:
    value = values.get(key, 0)
    return value if isinstance(value, int) else 0


def _mild_severity(grown: bool) -> Severity:
    return Severity.WARNING if grown else Severity.INFO

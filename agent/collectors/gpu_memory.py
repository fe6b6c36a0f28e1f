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
        # (GPU, what) → what was reported or seen last.
        self._states: dict[tuple[str, str], tuple[int, ...]] = {}

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
        if _reported(sample, "remap", _REMAP):
            yield _remap_event(sample, now_s, grown=False)
        if _reported(sample, "retired", _RETIRED):
            yield _retired_event(sample, now_s, grown=False)
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

    def _changed(self, gpu: GpuHealth, what: str, names: tuple[str, ...]) -> tuple[int, ...] | None:
        """The former values, where they have changed; zeros when they are seen for the first time."""
        if not _reported(gpu, what, names):
            return None
        now = tuple(_int(gpu.values, f"{what}.{name}") for name in names)
        before = self._states.get((gpu.bdf, what))
        self._states[gpu.bdf, what] = now
        if before is None:  # rows and pages of the past are history; what is now is not
            flags = 3 if what == "remap" else 1
            before = (*(0,) * flags, *now[flags:])
        return before if before != now else None

    def _remap(self, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        before = self._changed(gpu, "remap", _REMAP)
        if before is None:
            return []
        counts = (_int(gpu.values, "remap.corrected"), _int(gpu.values, "remap.uncorrected"))
        return [_remap_event(gpu, now_s, grown=counts > before[3:])]

    def _retired(self, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        before = self._changed(gpu, "retired", _RETIRED)
        if before is None:
            return []
        counts = (_int(gpu.values, "retired.single_bit"), _int(gpu.values, "retired.double_bit"))
        return [_retired_event(gpu, now_s, grown=counts > before[1:])]

    def _sram(self, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        if "sram_threshold" not in gpu.values:
            return []
        now = (_int(gpu.values, "sram_threshold"),)
        before = self._states.get((gpu.bdf, "sram"), (0,))
        self._states[gpu.bdf, "sram"] = now
        return [] if now == before else [_sram_event(gpu, now_s)]


def _reported(gpu: GpuHealth, what: str, names: tuple[str, ...]) -> bool:
    return any(f"{what}.{name}" in gpu.values for name in names)


def _remap_event(gpu: GpuHealth, now_s: float, *, grown: bool) -> UnsentEvent:
    values = {name: _int(gpu.values, f"remap.{name}") for name in _ROWS}
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


def _retired_event(gpu: GpuHealth, now_s: float, *, grown: bool) -> UnsentEvent:
    values = {name: _int(gpu.values, f"retired.{name}") for name in _RETIRED}
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

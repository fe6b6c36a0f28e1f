"""A GPU's memory: ECC errors, rows that were remapped, pages that were retired."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from agent.collectors.drafts import of_gpu
from agent.collectors.growth import Growth
from agent.collectors.readings import Gpu, GpuHealth, Reading
from agent.contract.messages import Draft, Scalar, Severity

_CORRECTED_S = 60.0  # corrected errors are said at most so often for one location
_REMAP = ("pending", "failure", "corrected", "uncorrected")
_RETIRED = ("pending", "single_bit", "double_bit")
_Values = Mapping[str, int | float | str]


class GpuMemoryCollector:
    """gpu.ecc for growth, gpu.remap, gpu.retired_pages and gpu.sram_threshold for states and their changes."""

    name: ClassVar[str] = "gpu_memory"
    wants: ClassVar[tuple[type, ...]] = (GpuHealth, Gpu)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.ecc", "gpu.remap", "gpu.retired_pages", "gpu.sram_threshold")

    def __init__(self, *, ecc_before: Mapping[str, Mapping[str, int]] | None = None) -> None:
        """`ecc_before`: what `aggregates` of an earlier run were."""
        self._growth = Growth()
        self._before = dict(ecc_before or {})
        self._uuids: dict[str, str] = {}  # address -> GPU
        self._aggregate: dict[str, set[str]] = {}  # GPU -> its counters
        self._states: dict[tuple[str, str], tuple[int, ...]] = {}  # (GPU, what) -> what was said or seen last

    def feed(self, reading: Reading, now_s: float) -> Iterable[Draft]:
        """See Collector."""
        if isinstance(reading, Gpu):
            if reading.uuid and self._uuids.get(reading.bdf) != reading.uuid:
                self._met(reading)
            return []
        if not isinstance(reading, GpuHealth):
            return []
        return [
            *self._ecc(reading, now_s),
            *self._remap(reading, now_s),
            *self._retired(reading, now_s),
            *self._sram(reading, now_s),
        ]

    @property
    def aggregates(self) -> dict[str, dict[str, int]]:
        """For each GPU, by its UUID, the errors in its life that were said or were there when it was first seen."""
        found: dict[str, dict[str, int]] = {}
        for bdf, uuid in self._uuids.items():
            for key in self._aggregate.get(uuid, ()):
                if (value := self._growth.said((bdf, key))) is not None:
                    found.setdefault(uuid, {})[key] = value
        return found

    def _met(self, gpu: Gpu) -> None:
        self._uuids[gpu.bdf] = gpu.uuid
        for key, value in self._before.pop(gpu.uuid, {}).items():
            self._growth.seed((gpu.bdf, key), value)

    def _ecc(self, gpu: GpuHealth, now_s: float) -> list[Draft]:
        grown: dict[tuple[str, str, str], int] = {}  # counter, word, location -> growth
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
        for (counter, word, location), delta in grown.items():
            # One error shows in up to four counters: the location says more than the total, and what grew since
            # the driver was loaded has grown in all.
            elsewhere = any(c == counter and w == word and p != "total" for c, w, p in grown)
            if (location == "total" and elsewhere) or (
                counter == "aggregate" and any(c == "volatile" and w == word for c, w, _ in grown)
            ):
                continue
            errors = _int(gpu.values, f"ecc.{counter}.{word}.{location}")
            data: dict[str, Scalar] = {
                "location": location,
                "corrected": word == "corrected",
                "counter": counter,
                "delta": delta,
                "errors": errors,
            }
            severity = Severity.WARNING if word == "corrected" else Severity.ERROR
            evidence = f"{delta} {word} ECC errors in {location}, {errors} {counter}"
            out.append(of_gpu(gpu, now_s, "gpu.ecc", severity, data, evidence))
        return out

    def _changed(self, gpu: GpuHealth, what: str, names: tuple[str, ...]) -> tuple[int, ...] | None:
        """What stood there before, where it is another now; zeros when it is seen first."""
        if not any(f"{what}.{name}" in gpu.values for name in names):
            return None
        now = tuple(_int(gpu.values, f"{what}.{name}") for name in names)
        before = self._states.get((gpu.bdf, what))
        self._states[gpu.bdf, what] = now
        if before is None:  # rows and pages of former times are history; what is pending now is not
            flags = 2 if what == "remap" else 1
            before = (*(0,) * flags, *now[flags:])
        return before if before != now else None

    def _remap(self, gpu: GpuHealth, now_s: float) -> list[Draft]:
        before = self._changed(gpu, "remap", _REMAP)
        if before is None:
            return []
        values = {name: _int(gpu.values, f"remap.{name}") for name in _REMAP}
        data: dict[str, Scalar] = {
            **values,
            "pending": bool(values["pending"]),
            "failure": bool(values["failure"]),
        }
        for name in ("partial", "low", "none"):
            if f"remap.banks_{name}" in gpu.values:
                data[f"banks_{name}"] = _int(gpu.values, f"remap.banks_{name}")
        grown = (values["corrected"], values["uncorrected"]) > before[2:]
        worst = Severity.FATAL if values["failure"] else Severity.ERROR
        severity = worst if data["failure"] or data["pending"] else _mild(grown)
        evidence = "row remapping: " + ", ".join(f"{name} {value}" for name, value in values.items())
        return [of_gpu(gpu, now_s, "gpu.remap", severity, data, evidence)]

    def _retired(self, gpu: GpuHealth, now_s: float) -> list[Draft]:
        before = self._changed(gpu, "retired", _RETIRED)
        if before is None:
            return []
        values = {name: _int(gpu.values, f"retired.{name}") for name in _RETIRED}
        data: dict[str, Scalar] = {**values, "pending": bool(values["pending"])}
        grown = (values["single_bit"], values["double_bit"]) > before[1:]
        severity = Severity.ERROR if values["pending"] else _mild(grown)
        evidence = "page retirement: " + ", ".join(f"{name} {value}" for name, value in values.items())
        return [of_gpu(gpu, now_s, "gpu.retired_pages", severity, data, evidence)]

    def _sram(self, gpu: GpuHealth, now_s: float) -> list[Draft]:
        if "sram_threshold" not in gpu.values:
            return []
        now = (_int(gpu.values, "sram_threshold"),)
        before = self._states.get((gpu.bdf, "sram"), (0,))
        self._states[gpu.bdf, "sram"] = now
        if now == before:
            return []
        exceeded = bool(now[0])
        severity = Severity.ERROR if exceeded else Severity.INFO
        evidence = (
            f"uncorrectable SRAM errors are {'above' if exceeded else 'no longer above'} NVIDIA's threshold"
        )
        return [of_gpu(gpu, now_s, "gpu.sram_threshold", severity, {"exceeded": exceeded}, evidence)]


def _int(values: _Values, key: str) -> int:
    value = values.get(key, 0)
    return value if isinstance(value, int) else 0


def _mild(grown: bool) -> Severity:
    return Severity.WARNING if grown else Severity.INFO

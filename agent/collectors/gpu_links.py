"""A GPU's links: PCIe width, speed and errors, NVLinks, the NVSwitch fabric."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.gpu_event import gpu_event
from agent.collectors.growth import GrowthTracker
from agent.collectors.samples import Gpu, GpuHealth, Sample
from agent.contract.messages import MAX_EVIDENCE, Scalar, Severity, UnsentEvent, clip

_WINDOW_S = 60.0
# Counters of PCIe errors that the link repairs: DCGM's health check takes more than 8 replays a minute for a fault.
_REPAIRED = {
    "replay", "correctable", "receiver", "bad_tlp", "bad_dllp", "lcrc", "lane", "naks_received", "naks_sent",
}  # fmt: skip
_REPAIRED_LEAST = 9
_FATAL = {"fatal", "non_fatal"}
# NVLink counters, the worst first, and the growth within a minute that is worth an event. CRC errors are repaired: DCGM's
# health check allows 100 a second.
_NVLINK_LEAST = {
    "recovery_failed": 1, "ecc": 1, "malformed": 1, "overrun": 1, "receive": 1, "integrity": 1,
    "effective_errors": 1, "recovery": 1, "replay": 1, "recovered": 1, "crc": 6000, "crc_flit": 6000, "crc_data": 6000,
}  # fmt: skip
_WORST_LINKS = 4  # links that one event names
_WORST_BER = 1e-12  # what InfiniBand and NVLink promise to stay below after error correction
_FABRIC = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}  # nvmlGpuFabricState_t
_COMPLETED = 3
# The health mask of nvmlGpuFabricInfo: two bits each, 1 means that it is so.
_FABRIC_HEALTH = {
    0: "degraded_bandwidth",
    2: "route_recovery",
    4: "route_unhealthy",
    6: "access_timeout_recovery",
}
# Its bits 8 to 11: what is configured wrongly. 0: not supported, 1: nothing.
_FABRIC_CONFIGURATION = {
    2: "incorrect_system", 3: "incorrect_chassis", 4: "no_partition", 5: "insufficient_nvlinks",
    6: "incompatible_gpu_firmware", 7: "invalid_location", 8: "invalid_gpu_state",
}  # fmt: skip
_FABRIC_SUMMARY = {2: "unhealthy", 3: "limited_capacity"}  # says so where the mask says nothing
_STARTING_S = 120.0  # the fabric manager may train for so long


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grown:
    """A counter of an NVLink that grew."""

    # Its number; `all`: the driver counts for all links together.
    link: str
    counter: str
    delta: int
    value: int

    def rank(self) -> tuple[int, int]:
        """The worst first: what is lost before what is repaired, then what grew most."""
        return list(_NVLINK_LEAST).index(self.counter), -self.delta


@dataclass(slots=True)
class _GpuLinks:
    degraded_reported: bool = False
    busy: bool = False
    active: frozenset[int] = frozenset()
    # The most NVLinks that were active at once.
    most: int = 0
    down_reported: int = 0
    # Bit error rate that was reported last, as powers of ten above the limit; 0: below it.
    ber_reported: int = 0
    # Trouble of the fabric that was reported last; empty: none.
    fabric: str = ""
    starting_s: float | None = None


class GpuLinksCollector(Collector):
    """gpu.pcie_degraded, gpu.pcie_errors, gpu.nvlink_state, gpu.nvlink_errors, gpu.nvlink_ber and gpu.fabric."""

    name: ClassVar[str] = "gpu_links"
    wants: ClassVar[tuple[type, ...]] = (Gpu, GpuHealth)
    kinds: ClassVar[tuple[str, ...]] = (
        "gpu.pcie_degraded",
        "gpu.pcie_errors",
        "gpu.nvlink_state",
        "gpu.nvlink_errors",
        "gpu.nvlink_ber",
        "gpu.fabric",
    )

    def __init__(self) -> None:
        self._growth = GrowthTracker()
        self._cards: dict[str, _GpuLinks] = {}
        self._health: dict[str, GpuHealth] = {}

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, Gpu):
            card = self._cards.setdefault(sample.bdf, _GpuLinks())
            card.busy = bool(sample.utilization_now)
            if card.starting_s is not None and (health := self._health.get(sample.bdf)) is not None:
                # GpuHealth may stay the same for minutes: the time is this sample's.
                return self._fabric(card, health, sample.mono_s, now_s)
            return []
        if not isinstance(sample, GpuHealth):
            return []
        card = self._cards.setdefault(sample.bdf, _GpuLinks())
        self._health[sample.bdf] = sample
        out = [*self._pcie(card, sample, now_s), *self._errors(sample, now_s)]
        out += self._ber(card, sample, now_s)
        card.active = _active(sample)
        card.most = max(card.most, len(card.active))
        out += self._nvlinks(now_s)
        return out + self._fabric(card, sample, sample.mono_s, now_s)

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector. A bit error rate that is well would end what counted errors began: it is not restated."""
        card = self._cards.get(sample.bdf) if isinstance(sample, GpuHealth) else None
        if not isinstance(sample, GpuHealth) or card is None:
            return
        if _int(sample.values, "pcie.width"):
            yield _pcie_event(sample, now_s, degraded=card.degraded_reported)
        if card.most or card.down_reported:
            most = len(card.active) + card.down_reported
            yield _nvlink_event(sample, now_s, card, most, bad=card.down_reported > 0)
        if card.ber_reported:
            yield _ber_event(sample, now_s, *_worst_ber(sample))
        if card.fabric or (_int(sample.values, "fabric.state") == _COMPLETED):
            yield _fabric_event(sample, now_s, card.fabric)

    def _pcie(self, card: _GpuLinks, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        found = _pcie_values(gpu)
        narrow = 0 < found["width"] < found["width_max"]
        # An idle link may run slower to save power; a narrow one is never intended.
        slow = 0 < found["generation"] < found["generation_max"] and (card.busy or card.degraded_reported)
        if (narrow or slow) == card.degraded_reported or not found["width"]:
            return []
        card.degraded_reported = narrow or slow
        return [_pcie_event(gpu, now_s, degraded=card.degraded_reported)]

    def _errors(self, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        out: list[UnsentEvent] = []
        grown: list[_Grown] = []
        for key, value in gpu.values.items():
            area, _, rest = key.partition(".")
            if not isinstance(value, int) or area not in ("pcie", "nvlink"):
                continue
            link, _, name = rest.rpartition(".")
            if area == "nvlink":
                least, severity = _NVLINK_LEAST.get(name, 0), Severity.WARNING
            else:
                least = _REPAIRED_LEAST if name in _REPAIRED else int(name in _FATAL)
                severity = Severity.ERROR if name in _FATAL else Severity.WARNING
            if not least:
                continue
            window_s = 0.0 if name in _FATAL else _WINDOW_S
            delta = self._growth.offer((gpu.bdf, key), value, gpu.mono_s, least=least, window_s=window_s)
            if not delta:
                continue
            if area == "nvlink":
                grown.append(_Grown(link=link, counter=name, delta=delta, value=value))
                continue
            evidence = f"PCIe: {name} grew by {delta} to {value}"
            data: dict[str, Scalar] = {"counter": name, "delta": delta, "value": value}
            out.append(gpu_event(gpu, now_s, "gpu.pcie_errors", severity, data, evidence))
        return [*out, *([_nvlink_errors(gpu, now_s, grown)] if grown else [])]

    def _ber(self, card: _GpuLinks, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        worst, where = _worst_ber(gpu)
        power = 0 if worst <= _WORST_BER else 1
        while power and worst > _WORST_BER * 10**power:
            power += 1
        # Reported when it gets worse, and when it is over.
        if power == card.ber_reported or 0 < power < card.ber_reported:
            return []
        card.ber_reported = power
        return [_ber_event(gpu, now_s, worst, where)]

    def _nvlinks(self, now_s: float) -> list[UnsentEvent]:
        """Fewer active links than it had, or than other GPUs have. A card without any may have no bridge."""
        most = max(card.most for card in self._cards.values())
        out = []
        for bdf, card in self._cards.items():
            gpu = self._health.get(bdf)
            down = most - len(card.active) if card.most else 0
            if gpu is None or down == card.down_reported:
                continue
            worse = down > card.down_reported
            card.down_reported = down
            out.append(_nvlink_event(gpu, now_s, card, most, bad=worse))
        return out

    def _fabric(self, card: _GpuLinks, gpu: GpuHealth, at_s: float, now_s: float) -> list[UnsentEvent]:
        if "fabric.state" not in gpu.values:
            return []
        state, status = _int(gpu.values, "fabric.state"), _int(gpu.values, "fabric.status")
        unhealthy = _fabric_trouble(_int(gpu.values, "fabric.health"), _int(gpu.values, "fabric.summary"))
        trouble = ""
        starting = state in (1, 2)
        if starting:
            card.starting_s = at_s if card.starting_s is None else card.starting_s
            if at_s - card.starting_s >= _STARTING_S:
                trouble = _FABRIC[state]
        else:
            card.starting_s = None
            if state == _COMPLETED and (status or unhealthy):
                trouble = ",".join(unhealthy) or f"error {status}"
        if trouble == card.fabric or (starting and not trouble):
            return []
        card.fabric = trouble
        return [_fabric_event(gpu, now_s, trouble)]


def _fabric_trouble(mask: int, summary: int) -> list[str]:
    found = [name for shift, name in _FABRIC_HEALTH.items() if (mask >> shift) & 3 == 1]
    wrong = (mask >> 8) & 0xF
    if wrong > 1:
        found.append(_FABRIC_CONFIGURATION.get(wrong, f"configuration_{wrong}"))
    return found or [_FABRIC_SUMMARY[summary]] if summary in _FABRIC_SUMMARY else found


def _pcie_values(gpu: GpuHealth) -> dict[str, int]:
    names = ("width", "width_max", "generation", "generation_max")
    return {name: _int(gpu.values, f"pcie.{name}") for name in names}


def _pcie_event(gpu: GpuHealth, now_s: float, *, degraded: bool) -> UnsentEvent:
    found = _pcie_values(gpu)
    evidence = (
        f"PCIe x{found['width']} of x{found['width_max']}, "
        f"generation {found['generation']} of {found['generation_max']}"
    )
    severity = Severity.WARNING if degraded else Severity.INFO
    return gpu_event(gpu, now_s, "gpu.pcie_degraded", severity, {"active": degraded, **found}, evidence)


def _nvlink_errors(gpu: GpuHealth, now_s: float, grown: list[_Grown]) -> UnsentEvent:
    """One event for all counters of all links that grew: a fault shows in many of them."""
    grown = sorted(grown, key=_Grown.rank)
    worst = grown[0]
    of_link: dict[str, list[str]] = {}
    for one in grown:
        of_link.setdefault(one.link, []).append(f"{one.counter} +{one.delta}")
    named = [f"{link}: {', '.join(counters)}" for link, counters in list(of_link.items())[:_WORST_LINKS]]
    more = f"; and {len(of_link) - _WORST_LINKS} more" if len(of_link) > _WORST_LINKS else ""
    data: dict[str, Scalar] = {
        "counter": worst.counter,
        "delta": worst.delta,
        "value": worst.value,
        "links": clip("; ".join(named) + more),
        "counters": len(grown),
    }
    if worst.link.isdigit():
        data["link"] = int(worst.link)
    evidence = f"NVLink {worst.link}: {worst.counter} grew by {worst.delta} to {worst.value}"
    if len(grown) > 1:
        evidence += f"; {len(grown)} counters of {len(of_link)} links grew: {data['links']}"
    return gpu_event(gpu, now_s, "gpu.nvlink_errors", Severity.WARNING, data, clip(evidence, MAX_EVIDENCE))


def _worst_ber(gpu: GpuHealth) -> tuple[float, int]:
    """The worst effective bit error rate and its link; -1: none has any."""
    worst, where = 0.0, -1
    for key, value in gpu.values.items():
        parts = key.split(".")
        if parts[0] == "nvlink" and parts[-1] == "effective_ber" and isinstance(value, int):
            ber = ber_of(value)
            if ber > worst:
                worst, where = ber, int(parts[1])
    return worst, where


def _ber_event(gpu: GpuHealth, now_s: float, worst: float, where: int) -> UnsentEvent:
    high = worst > _WORST_BER
    data: dict[str, Scalar] = {"active": high, "link": where, "effective_ber": worst}
    severity = Severity.WARNING if high else Severity.INFO
    evidence = (
        f"NVLink {where}: effective bit error rate {worst:.0e}" if high else "NVLinks: bit error rate is well"
    )
    return gpu_event(gpu, now_s, "gpu.nvlink_ber", severity, data, evidence)


def _nvlink_event(gpu: GpuHealth, now_s: float, card: _GpuLinks, most: int, *, bad: bool) -> UnsentEvent:
    links = ",".join(str(link) for link, active in sorted(_states(gpu).items()) if not active)
    data: dict[str, Scalar] = {
        "down": card.down_reported,
        "active": len(card.active),
        "expected": most,
        "links": clip(links),
    }
    severity = Severity.ERROR if bad else Severity.INFO
    evidence = f"{len(card.active)} of {most} NVLinks are active; inactive: {links or 'none'}"
    return gpu_event(gpu, now_s, "gpu.nvlink_state", severity, data, evidence)


def _fabric_event(gpu: GpuHealth, now_s: float, trouble: str) -> UnsentEvent:
    state = _int(gpu.values, "fabric.state")
    data: dict[str, Scalar] = {
        "healthy": not trouble,
        "state": _FABRIC.get(state, str(state)),
        "status": _int(gpu.values, "fabric.status"),
        "trouble": trouble,
    }
    severity = Severity.ERROR if trouble else Severity.INFO
    evidence = f"NVLink fabric: {_FABRIC.get(state, state)}{f', {trouble}' if trouble else ''}"
    return gpu_event(gpu, now_s, "gpu.fabric", severity, data, evidence)


def ber_of(encoded: int) -> float:
    """NVML's bit error rate: mantissa in bits 8 to 11, negative power of ten in bits 0 to 7 (nvml.h).

    >>> ber_of(0x50f)
    5e-15
    """
    return float(f"{encoded >> 8 & 0xF}e-{encoded & 0xFF}")


def _states(gpu: GpuHealth) -> Mapping[int, bool]:
    found = {}
    for key, value in gpu.values.items():
        parts = key.split(".")
        if len(parts) == 3 and parts[0] == "nvlink" and parts[2] == "state" and parts[1].isdigit():
            found[int(parts[1])] = value != 0  # 2: asleep, to save power
    return found


def _active(gpu: GpuHealth) -> frozenset[int]:
    return frozenset(link for link, active in _states(gpu).items() if active)


def _int(values: Mapping[str, int | float | str], key: str) -> int:
    value = values.get(key, 0)
    return value if isinstance(value, int) else 0

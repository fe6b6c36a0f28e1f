"""A GPU's links: PCIe width, speed and errors, NVLinks, the NVSwitch fabric."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
_PCIE = ("width", "width_max", "generation", "generation_max")
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
    # What is known of the PCIe link.
    pcie: dict[str, int] = field(default_factory=dict)
    # NVLink → is it active, and its bit error rate as NVML has it. One that is left out is as it was.
    states: dict[int, bool] = field(default_factory=dict)
    rates: dict[int, int] = field(default_factory=dict)
    # The most NVLinks that were active at once.
    most: int = 0
    down_reported: int = 0
    # Bit error rate that was reported last, as powers of ten above the limit; 0: below it.
    ber_reported: int = 0
    # Trouble of the fabric that was reported last; empty: none.
    fabric: str = ""
    starting_s: float | None = None

    @property
    def active(self) -> int:
        """How many NVLinks are active."""
        return sum(self.states.values())

    def worst_ber(self) -> tuple[float, int]:
        """The worst effective bit error rate and its link; -1: none has any."""
        link = max(self.rates, key=lambda one: ber_of(self.rates[one]), default=-1)
        worst = ber_of(self.rates[link]) if self.rates else 0.0
        return worst, link if worst else -1


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
        card.rates |= _link_values(sample, "effective_ber")
        card.states |= _states(sample)
        out += self._ber(card, sample, now_s)
        card.most = max(card.most, card.active)
        out += self._nvlinks(now_s)
        return out + self._fabric(card, sample, sample.mono_s, now_s)

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector. A bit error rate that is well would end what counted errors began: it is not restated."""
        card = self._cards.get(sample.bdf) if isinstance(sample, GpuHealth) else None
        if not isinstance(sample, GpuHealth) or card is None:
            return
        if "width" in card.pcie and card.pcie == _pcie_values(sample):
            yield _pcie_event(sample, now_s, card)
        if (card.most or card.down_reported) and card.states == _states(sample):
            most = card.active + card.down_reported
            yield _nvlink_event(sample, now_s, card, most, bad=card.down_reported > 0)
        if card.ber_reported and card.rates == _link_values(sample, "effective_ber"):
            yield _ber_event(sample, now_s, *card.worst_ber())
        if card.fabric or (_int(sample.values, "fabric.state") == _COMPLETED):
            yield _fabric_event(sample, now_s, card.fabric)

    def _pcie(self, card: _GpuLinks, gpu: GpuHealth, now_s: float) -> list[UnsentEvent]:
        card.pcie |= _pcie_values(gpu)
        found = card.pcie
        narrow = 0 < found.get("width", 0) < found.get("width_max", 0)
        # An idle link may run slower to save power; a narrow one is never intended.
        slower = 0 < found.get("generation", 0) < found.get("generation_max", 0)
        slow = slower and (card.busy or card.degraded_reported)
        if (narrow or slow) == card.degraded_reported or "width" not in found:
            return []
        card.degraded_reported = narrow or slow
        return [_pcie_event(gpu, now_s, card)]

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
        worst, where = card.worst_ber()
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
            down = most - card.active if card.most else 0
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
    """Those that are told; a width or generation of 0 is none."""
    return {name: value for name in _PCIE if (value := _int(gpu.values, f"pcie.{name}"))}


def _pcie_event(gpu: GpuHealth, now_s: float, card: _GpuLinks) -> UnsentEvent:
    found = {name: card.pcie.get(name, 0) for name in _PCIE}
    evidence = (
        f"PCIe x{found['width']} of x{found['width_max']}, "
        f"generation {found['generation']} of {found['generation_max']}"
    )
    severity = Severity.WARNING if card.degraded_reported else Severity.INFO
    data: dict[str, Scalar] = {"active": card.degraded_reported, **found}
    return gpu_event(gpu, now_s, "gpu.pcie_degraded", severity, data, evidence)


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


def _ber_event(gpu: GpuHealth, now_s: float, worst: float, where: int) -> UnsentEvent:
    high = worst > _WORST_BER
    data: dict[str, Scalar] = {"active": high, "link": where, "effective_ber": worst}
    severity = Severity.WARNING if high else Severity.INFO
    evidence = (
        f"NVLink {where}: effective bit error rate {worst:.0e}" if high else "NVLinks: bit error rate is well"
    )
    return gpu_event(gpu, now_s, "gpu.nvlink_ber", severity, data, evidence)


def _nvlink_event(gpu: GpuHealth, now_s: float, card: _GpuLinks, most: int, *, bad: bool) -> UnsentEvent:
    links = ",".join(str(link) for link, active in sorted(card.states.items()) if not active)
    data: dict[str, Scalar] = {
        "down": card.down_reported,
        "active": card.active,
        "expected": most,
        "links": clip(links),
    }
    severity = Severity.ERROR if bad else Severity.INFO
    evidence = f"{card.active} of {most} NVLinks are active; inactive: {links or 'none'}"
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


def _states(gpu: GpuHealth) -> dict[int, bool]:
    return {
        link: value != 0 for link, value in _link_values(gpu, "state").items()
    }  # 2: asleep, to save power


def _link_values(gpu: GpuHealth, name: str) -> dict[int, int]:
    """NVLink → a value that is told of each."""
    found: dict[int, int] = {}
    for key, value in gpu.values.items():
        parts = key.split(".")
        if len(parts) == 3 and parts[0] == "nvlink" and parts[2] == name and parts[1].isdecimal():
            found |= {int(parts[1]): value} if isinstance(value, int) else {}
    return found


def _int(values: Mapping[str, int | float | str], key: str) -> int:
    value = values.get(key, 0)
    return value if isinstance(value, int) else 0

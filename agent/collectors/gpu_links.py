"""A GPU's links: PCIe width, speed and errors, NVLinks, the NVSwitch fabric."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from agent.collectors.drafts import of_gpu
from agent.collectors.growth import Growth
from agent.collectors.readings import Gpu, GpuHealth, Reading
from agent.contract.messages import Draft, Scalar, Severity, clip

_WINDOW_S = 60.0
# Counters of PCIe errors that the link repairs: DCGM's health check takes more than 8 replays a minute for a fault.
_REPAIRED = {
    "replay", "correctable", "receiver", "bad_tlp", "bad_dllp", "lcrc", "lane", "naks_received", "naks_sent",
}  # fmt: skip
_REPAIRED_LEAST = 9
_FATAL = {"fatal", "non_fatal"}
# NVLink counters, and how much growth within a minute is worth a word. CRC errors are repaired: DCGM's health check
# allows 100 a second.
_NVLINK_LEAST = {
    "replay": 1, "recovery": 1, "ecc": 1, "malformed": 1, "overrun": 1, "receive": 1, "integrity": 1,
    "recovered": 1, "recovery_failed": 1, "effective_errors": 1, "crc": 6000, "crc_flit": 6000, "crc_data": 6000,
}  # fmt: skip
_WORST_BER = 1e-12  # what InfiniBand and NVLink promise to stay below after error correction
_FABRIC = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}  # nvmlGpuFabricState_t
# nvmlGpuFabricInfo health mask: two bits each, 1 means that it is so.
_FABRIC_HEALTH = {
    0: "degraded_bandwidth",
    2: "route_recovery",
    4: "route_unhealthy",
    6: "access_timeout_recovery",
}
_STARTING_S = 120.0  # the fabric manager may train for so long


@dataclass(slots=True)
class _Card:
    width_said: bool = False
    busy: bool = False
    active: frozenset[int] = frozenset()
    most: int = 0  # NVLinks that were active at once
    down_said: int = 0
    ber_said: int = 0  # BER that was said last, as a power of ten
    fabric: str = ""  # what was said last; empty: all is well
    starting_s: float | None = None


class GpuLinksCollector:
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
        self._growth = Growth()
        self._cards: dict[str, _Card] = {}
        self._health: dict[str, GpuHealth] = {}

    def feed(self, reading: Reading, now_s: float) -> Iterable[Draft]:
        """See Collector."""
        if isinstance(reading, Gpu):
            card = self._cards.setdefault(reading.bdf, _Card())
            card.busy = bool(reading.utilization)
            if card.starting_s is not None and (health := self._health.get(reading.bdf)) is not None:
                return self._fabric(card, health, reading.mono_s, now_s)  # it may say the same for minutes
            return []
        if not isinstance(reading, GpuHealth):
            return []
        card = self._cards.setdefault(reading.bdf, _Card())
        self._health[reading.bdf] = reading
        out = [*self._pcie(card, reading, now_s), *self._errors(reading, now_s)]
        out += self._ber(card, reading, now_s)
        card.active = _active(reading)
        card.most = max(card.most, len(card.active))
        out += self._nvlinks(now_s)
        return out + self._fabric(card, reading, reading.mono_s, now_s)

    def _pcie(self, card: _Card, gpu: GpuHealth, now_s: float) -> list[Draft]:
        names = ("width", "width_max", "generation", "generation_max")
        found = {name: _int(gpu.values, f"pcie.{name}") for name in names}
        narrow = 0 < found["width"] < found["width_max"]
        # An idle link may run slower to save power; a narrow one is never meant.
        slow = 0 < found["generation"] < found["generation_max"] and (card.busy or card.width_said)
        if (narrow or slow) == card.width_said or not found["width"]:
            return []
        card.width_said = narrow or slow
        data: dict[str, Scalar] = {"active": card.width_said, **found}
        evidence = (
            f"PCIe x{found['width']} of x{found['width_max']}, "
            f"generation {found['generation']} of {found['generation_max']}"
        )
        severity = Severity.WARNING if card.width_said else Severity.INFO
        return [of_gpu(gpu, now_s, "gpu.pcie_degraded", severity, data, evidence)]

    def _errors(self, gpu: GpuHealth, now_s: float) -> list[Draft]:
        out = []
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
            data: dict[str, Scalar] = {"counter": name, "delta": delta, "value": value}
            if link.isdigit():
                data["link"] = int(link)
            where = "PCIe" if area == "pcie" else f"NVLink {link}"
            evidence = f"{where}: {name} grew by {delta} to {value}"
            out.append(of_gpu(gpu, now_s, f"gpu.{area}_errors", severity, data, evidence))
        return out

    def _ber(self, card: _Card, gpu: GpuHealth, now_s: float) -> list[Draft]:
        worst, where = 0.0, -1
        for key, value in gpu.values.items():
            parts = key.split(".")
            if parts[0] == "nvlink" and parts[-1] == "effective_ber" and isinstance(value, int):
                ber = ber_of(value)
                if ber > worst:
                    worst, where = ber, int(parts[1])
        power = 0 if worst <= _WORST_BER else 1
        while power and worst > _WORST_BER * 10**power:
            power += 1
        if power == card.ber_said or (
            0 < power < card.ber_said
        ):  # said when it gets worse, and when it is over
            return []
        card.ber_said = power
        data: dict[str, Scalar] = {"active": bool(power), "link": where, "effective_ber": worst}
        severity = Severity.WARNING if power else Severity.INFO
        evidence = (
            f"NVLink {where}: effective bit error rate {worst:.0e}"
            if power
            else "NVLinks: bit error rate is well"
        )
        return [of_gpu(gpu, now_s, "gpu.nvlink_ber", severity, data, evidence)]

    def _nvlinks(self, now_s: float) -> list[Draft]:
        """Fewer active links than it had, or than its neighbours have. A card without any may have no bridge."""
        most = max(card.most for card in self._cards.values())
        out = []
        for bdf, card in self._cards.items():
            gpu = self._health.get(bdf)
            down = most - len(card.active) if card.most else 0
            if gpu is None or down == card.down_said:
                continue
            worse = down > card.down_said
            card.down_said = down
            states = sorted(_states(gpu).items())
            links = ",".join(str(link) for link, active in states if not active)
            data: dict[str, Scalar] = {
                "down": down,
                "active": len(card.active),
                "expected": most,
                "links": clip(links),
            }
            severity = Severity.ERROR if worse else Severity.INFO
            evidence = f"{len(card.active)} of {most} NVLinks are active; inactive: {links or 'none'}"
            out.append(of_gpu(gpu, now_s, "gpu.nvlink_state", severity, data, evidence))
        return out

    def _fabric(self, card: _Card, gpu: GpuHealth, at_s: float, now_s: float) -> list[Draft]:
        if "fabric.state" not in gpu.values:
            return []
        state, status = _int(gpu.values, "fabric.state"), _int(gpu.values, "fabric.status")
        mask = _int(gpu.values, "fabric.health")
        sick = [name for shift, name in _FABRIC_HEALTH.items() if (mask >> shift) & 3 == 1]
        trouble = ""
        starting = state in (1, 2)
        if starting:
            card.starting_s = at_s if card.starting_s is None else card.starting_s
            if at_s - card.starting_s >= _STARTING_S:
                trouble = _FABRIC[state]
        else:
            card.starting_s = None
            if state == 3 and (status or sick):
                trouble = ",".join(sick) or f"error {status}"
        if trouble == card.fabric or (starting and not trouble):
            return []
        card.fabric = trouble
        data: dict[str, Scalar] = {
            "healthy": not trouble,
            "state": _FABRIC.get(state, str(state)),
            "status": status,
            "trouble": trouble,
        }
        severity = Severity.ERROR if trouble else Severity.INFO
        evidence = f"NVLink fabric: {_FABRIC.get(state, state)}{f', {trouble}' if trouble else ''}"
        return [of_gpu(gpu, now_s, "gpu.fabric", severity, data, evidence)]


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
            found[int(parts[1])] = value != 0  # 2 is asleep, to save power
    return found


def _active(gpu: GpuHealth) -> frozenset[int]:
    return frozenset(link for link, active in _states(gpu).items() if active)


def _int(values: Mapping[str, int | float | str], key: str) -> int:
    value = values.get(key, 0)
    return value if isinstance(value, int) else 0

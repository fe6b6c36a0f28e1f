"""Links between accelerators that are not NVLinks: xGMI, HCCS, and the network ports that an NPU has itself."""

from collections.abc import Iterable
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.gpu_event import gpu_event
from agent.collectors.growth import GrowthTracker
from agent.collectors.samples import GpuHealth, Sample
from agent.contract.messages import Scalar, Severity, UnsentEvent


class GpuPeerLinksCollector(Collector):
    """gpu.link_state and gpu.link_errors. A link that was never active leads nowhere."""

    name: ClassVar[str] = "gpu_peer_links"
    wants: ClassVar[tuple[type, ...]] = (GpuHealth,)
    kinds: ClassVar[tuple[str, ...]] = ("gpu.link_state", "gpu.link_errors")

    def __init__(self) -> None:
        self._growth = GrowthTracker()
        # (address, type) → links that were ever active; those of them that were told as down.
        self._known: dict[tuple[str, str], set[str]] = {}
        self._told: dict[tuple[str, str], frozenset[str]] = {}

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if not isinstance(sample, GpuHealth):
            return
        for type_, states in _states(sample).items():
            key = (sample.bdf, type_)
            known = self._known.setdefault(key, set())
            known |= {link for link, up in states.items() if up}
            down = frozenset(link for link in known if states.get(link) == 0)
            if down != self._told.get(key, frozenset()):
                self._told[key] = down
                yield _state_event(sample, now_s, type_, known, down)
        for name, value in sample.values.items():
            parts = name.split(".")
            if (
                len(parts) != 4
                or parts[0] != "link"
                or parts[3] != "uncorrected"
                or not isinstance(value, int)
            ):
                continue
            if delta := self._growth.offer((sample.bdf, name), value, sample.mono_s):
                data: dict[str, Scalar] = {"link_type": parts[1], "counter": parts[3], "delta": delta}
                evidence = f"{delta} uncorrected errors of its {parts[1]} links, {value} in all"
                yield gpu_event(sample, now_s, "gpu.link_errors", Severity.ERROR, data, evidence)

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, GpuHealth):
            for type_ in _states(sample):
                if known := self._known.get((sample.bdf, type_)):
                    down = self._told.get((sample.bdf, type_), frozenset())
                    yield _state_event(sample, now_s, type_, known, down)


def _states(sample: GpuHealth) -> dict[str, dict[str, int]]:
    """Type → link → 1: active, 0: not; of `link.<type>.<link>.state`."""
    found: dict[str, dict[str, int]] = {}
    for name, value in sample.values.items():
        parts = name.split(".")
        if len(parts) == 4 and parts[0] == "link" and parts[3] == "state" and value in (0, 1):
            found.setdefault(parts[1], {})[parts[2]] = int(value)
    return found


def _state_event(
    sample: GpuHealth, now_s: float, type_: str, known: set[str], down: frozenset[str]
) -> UnsentEvent:
    links = ", ".join(sorted(down, key=lambda link: (len(link), link)))
    active = len(known) - len(down)
    data: dict[str, Scalar] = {"link_type": type_, "down": len(down), "active": active, "links": links}
    evidence = f"{active} of {len(known)} {type_} links are active" + (f", not: {links}" if links else "")
    severity = Severity.ERROR if down else Severity.INFO
    return gpu_event(sample, now_s, "gpu.link_state", severity, data, evidence)

"""Everything in the kernel log besides XIDs (agent.contract.lines has the areas); equal facts are one event."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.bursts import Bursts, Group
from agent.collectors.samples import Line, Sample, Tick
from agent.contract.lines import LineReader, areas
from agent.contract.messages import Scalar, UnsentEvent

# Fields that may vary within a fact, but only as long as there are few values: see Bursts.
_DETAIL = ("pid",)
_ANNOUNCED_S = 2.0  # from a root port's report of an error to the device's own: it is queried in between


class KernelLinesCollector(Collector):
    """One collector for all areas: an ordinary line is looked at once, and one mechanism limits every burst."""

    name: ClassVar[str] = "kernel_lines"
    wants: ClassVar[tuple[type, ...]] = (Line, Tick)
    kinds: ClassVar[tuple[str, ...]] = tuple(kind for area in areas() for kind in area.kinds)
    one_off: ClassVar[str] = "lines of the kernel log"

    def __init__(self, *, burst_s: float = 5.0, nics: Mapping[str, str] | None = None) -> None:
        """`burst_s`: see Bursts; `nics`: see CollectorSetup. A card that it does not name keeps its PCI address."""
        self._reader = LineReader()
        # Kind → the fields that distinguish two facts of it.
        self._distinguishing = {kind: area.distinguishing for area in areas() for kind in area.kinds}
        self._nics = {f"nic/{address}": f"nic/{name}" for address, name in (nics or {}).items()}
        self._bursts = Bursts(window_s=burst_s)
        # A device's PCI error → when its root port reported it.
        self._announced: dict[tuple[Scalar | None, ...], float] = {}

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(burst_s=setup.burst_s, nics=setup.nics)

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, Line):
            found = self._reader.read(sample.text)
            return self._limited(found[0], sample, now_s) if found else ()
        if isinstance(sample, Tick):
            return self._bursts.flush(now_s)
        return ()

    def _limited(self, unsent: UnsentEvent, line: Line, now_s: float) -> list[UnsentEvent]:
        component = self._nics.get(unsent.component, unsent.component)
        unsent = replace(unsent, component=component, age_s=max(0.0, now_s - line.mono_s))
        if unsent.kind == "pcie.error" and self._announced_by_port(unsent, line.mono_s):
            return []
        data = unsent.data
        group: Group = (
            unsent.kind,
            unsent.component,
            unsent.severity,
            *(data.get(name) for name in self._distinguishing[unsent.kind]),
        )
        detail = tuple(data.get(name) for name in _DETAIL)
        return self._bursts.offer((group, detail), unsent, now_s, group=group)

    def _announced_by_port(self, unsent: UnsentEvent, at_s: float) -> bool:
        """Was the error reported by its root port already? An uncorrected error is two lines, of the root port and of the
        device. The first one passes: a device that is gone reports nothing any more.
        """
        error = (unsent.component, unsent.data.get("address"), unsent.data.get("class"))
        if "port" in unsent.data:
            self._announced = {
                one: since_s for one, since_s in self._announced.items() if at_s - since_s < _ANNOUNCED_S
            }
            self._announced[error] = at_s
            return False
        return "role" in unsent.data and at_s - self._announced.pop(error, -_ANNOUNCED_S) < _ANNOUNCED_S

"""Everything in the kernel log besides XIDs (agent.contract.lines has the areas); equal facts are one event."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.bursts import Bursts, Group
from agent.collectors.samples import Line, Sample, Tick
from agent.contract.accelerators import ASCEND
from agent.contract.lines import LineReader, areas
from agent.contract.lines.base import device
from agent.contract.lines.pcie import NO_DRIVERS
from agent.contract.messages import UnsentEvent

NO_NUMBERS: Mapping[int, str] = {}
# Fields that may vary within a fact, but only as long as there are few values: see Bursts.
_DETAIL = ("pid",)


class KernelLinesCollector(Collector):
    """One collector for all areas: an ordinary line is looked at once, and one mechanism limits every burst."""

    name: ClassVar[str] = "kernel_lines"
    wants: ClassVar[tuple[type, ...]] = (Line, Tick)
    kinds: ClassVar[tuple[str, ...]] = tuple(kind for area in areas(kept=True) for kind in area.kinds)
    one_off: ClassVar[str] = "lines of the kernel log"

    def __init__(
        self,
        *,
        burst_s: float = 5.0,
        nics: Mapping[str, str] = NO_DRIVERS,
        drivers: Mapping[str, str] = NO_DRIVERS,
        numbered: Mapping[int, str] = NO_NUMBERS,
        kept: bool = False,
    ) -> None:
        """`burst_s`: see Bursts; the others: see CollectorSetup. A card that `nics` does not name keeps its PCI address."""
        self._reader = LineReader(kept=kept, drivers=drivers)
        # Kind → the fields that distinguish two facts of it.
        self._distinguishing = {kind: area.distinguishing for area in areas(kept=True) for kind in area.kinds}
        self._nics = {f"nic/{address}": f"nic/{name}" for address, name in nics.items()}
        self._numbered = {number: device(ASCEND.driver, address) for number, address in numbered.items()}
        self._bursts = Bursts(window_s=burst_s)

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(
            burst_s=setup.burst_s,
            nics=setup.nics,
            drivers=setup.drivers,
            numbered=setup.numbered,
            kept=setup.kept,
        )

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
        if isinstance(number := unsent.data.get("device"), int):
            component = self._numbered.get(number, component)
        unsent = replace(unsent, component=component, age_s=max(0.0, now_s - line.mono_s))
        data = unsent.data
        group: Group = (
            unsent.kind,
            unsent.component,
            unsent.severity,
            *(data.get(name) for name in self._distinguishing[unsent.kind]),
        )
        detail = tuple(data.get(name) for name in _DETAIL)
        return self._bursts.offer((group, detail), unsent, now_s, group=group)

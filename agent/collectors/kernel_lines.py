"""All that the kernel log says besides XIDs (agent.contract.lines has the areas), equal facts held together."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar

from agent.collectors.bursts import Bursts, Group
from agent.collectors.readings import Line, Reading, Tick
from agent.contract.lines import LineReader, areas
from agent.contract.messages import Draft, Scalar

# What tells two facts of one kind and component apart. Not what differs with every line: a sector, a process, a time.
_TELLING = ("code", "what", "class", "link", "server", "scope", "dimm", "library", "command")
# These may vary, but only as long as there are few: see Bursts.
_DETAIL = ("pid",)
_ANNOUNCED_S = 2.0  # from a root port's word of an error to the device's own: it is asked in between


class KernelLinesCollector:
    """One collector for all areas: an ordinary line is looked at once, and one mechanism bounds every burst."""

    name: ClassVar[str] = "kernel_lines"
    wants: ClassVar[tuple[type, ...]] = (Line, Tick)
    kinds: ClassVar[tuple[str, ...]] = tuple(kind for area in areas() for kind in area.kinds)

    def __init__(self, *, burst_s: float = 5.0, nics: Mapping[str, str] | None = None) -> None:
        """`burst_s`: see Bursts; `nics`: see Settings. A card that it does not name keeps its PCI address."""
        self._reader = LineReader()
        self._nics = {f"nic/{address}": f"nic/{name}" for address, name in (nics or {}).items()}
        self._bursts = Bursts(window_s=burst_s)
        self._announced: dict[
            tuple[Scalar | None, ...], float
        ] = {}  # a device's PCI error -> when its root port told

    def feed(self, reading: Reading, now_s: float) -> Iterable[Draft]:
        """See Collector."""
        if isinstance(reading, Line):
            found = self._reader.read(reading.text)
            return self._told(found[0], reading, now_s) if found else ()
        if isinstance(reading, Tick):
            return self._bursts.flush(now_s)
        return ()

    def _told(self, draft: Draft, line: Line, now_s: float) -> list[Draft]:
        component = self._nics.get(draft.component, draft.component)
        draft = replace(draft, component=component, age_s=max(0.0, now_s - line.mono_s))
        if draft.kind == "pcie.error" and self._told_by_the_port(draft, line.mono_s):
            return []
        data = draft.data
        group: Group = (draft.kind, draft.component, draft.severity, *(data.get(name) for name in _TELLING))
        detail = tuple(data.get(name) for name in _DETAIL)
        return self._bursts.offer((group, detail), draft, now_s, group=group)

    def _told_by_the_port(self, draft: Draft, at_s: float) -> bool:
        """One uncorrected error is two lines, of the root port and of the device. The first passes: a device that is
        gone says nothing any more.
        """
        error = (draft.component, draft.data.get("address"), draft.data.get("class"))
        if "port" in draft.data:
            self._announced = {
                one: told_s for one, told_s in self._announced.items() if at_s - told_s < _ANNOUNCED_S
            }
            self._announced[error] = at_s
            return False
        return "role" in draft.data and at_s - self._announced.pop(error, -_ANNOUNCED_S) < _ANNOUNCED_S

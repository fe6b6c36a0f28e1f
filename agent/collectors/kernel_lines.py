"""All that the kernel log says besides XIDs (agent.contract.lines has the areas), equal facts held together."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar

from agent.collectors.bursts import Bursts, Group
from agent.collectors.readings import Line, Reading, Tick
from agent.contract.lines import LineReader, areas
from agent.contract.messages import Draft

# What tells two facts of one kind and component apart. Not what differs with every line: a sector, a process, a time.
_TELLING = ("code", "what", "class", "link", "server", "scope", "dimm", "library", "command")
# These may vary, but only as long as there are few: see Bursts.
_DETAIL = ("pid",)


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
        data = draft.data
        group: Group = (draft.kind, draft.component, draft.severity, *(data.get(name) for name in _TELLING))
        detail = tuple(data.get(name) for name in _DETAIL)
        return self._bursts.offer((group, detail), draft, now_s, group=group)

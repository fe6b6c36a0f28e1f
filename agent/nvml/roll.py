"""Which GPUs the machine should have, against those that NVML shows: by the PCI bus, the configuration, and what was seen."""

from collections.abc import Iterable, Mapping, Sequence

from agent.collectors.samples import Gpu, GpuCount
from agent.host import Host
from agent.nvml.bus import gpus_on_bus

_BUS_EVERY_S = 300.0  # between looks at the PCI bus; udev reports at once what leaves it

Known = Mapping[str, Gpu]


class Roll:
    """What is missing, once the drivers have had `settle_s` to show it: they load one after another."""

    def __init__(self, bus: Host, *, expected: int, settle_s: float) -> None:
        """`bus` has the PCI bus. `expected`: GPUs that this node should have, 0: those on the bus or ever seen."""
        self._host, self._expected, self._settle_s = bus, expected, settle_s
        # Address → driver, and when that was read.
        self._bus: dict[str, str] = {}
        self._bus_s: float | None = None
        # On the bus and never shown by NVML → since when.
        self._unseen_s: dict[str, float] = {}
        self._count = (0, 0, 0)
        # Since when; None: it was emitted.
        self._count_s: float | None = None
        # Since when NVML cannot be opened; what was told of it: NVML's code, and how many GPUs have the driver.
        self._closed_s: float | None = None
        self._refused = (0, 0)
        # Until when a known GPU may still come after NVML could be opened again, and which have come.
        self._reopens, self._coming_s = False, 0.0
        self._come: set[str] = set()

    def look_again(self) -> None:
        """The bus is read when next something is asked."""
        self._bus_s = None

    def begin_anew(self) -> None:
        """An action has had the driver: it may still be loading."""
        self._closed_s = None

    def on_bus(self) -> bool:
        """Are there GPUs now?"""
        return bool(gpus_on_bus(self._host))

    def unseen(
        self, known: Known, nameless: Mapping[int, str], at_s: float, *, at_once: bool
    ) -> Sequence[Gpu]:
        """Each GPU on the bus that NVML never showed, lost when it has had time to appear. `nameless`: NVML index → why it
        is lost, of those whose address NVML does not tell.
        """
        if self._bus_s is None or at_s - self._bus_s >= _BUS_EVERY_S:
            self._read_bus(at_s)
        unseen = sorted(bdf for bdf in self._bus if bdf not in known)
        self._unseen_s = {bdf: self._unseen_s.get(bdf, at_s) for bdf in unseen}
        if not all(nameless.values()):  # one whose address was not queried; it may be this one
            return ()
        late = [bdf for bdf in unseen if at_once or at_s - self._unseen_s[bdf] >= self._settle_s]
        reasons = list(nameless.values())
        found = []
        for number, bdf in enumerate(late):
            why = reasons[number] if len(reasons) == len(unseen) else "not_found"
            if not self._bus[bdf]:
                why = "unbound"
            found.append(Gpu(index=-1, bdf=bdf, uuid="", lost=why, answers=False, mono_s=at_s))
        return found

    def counted(
        self, known: Known, unseen: int, at_s: float, *, at_once: bool, again: bool
    ) -> GpuCount | None:
        """How many GPUs answer, when that has changed and settled. `again`: also when it has not changed."""
        lost = sum(1 for gpu in known.values() if gpu.lost) + unseen
        answering = sum(1 for gpu in known.values() if not gpu.lost)
        count = (answering, lost, self._expected or len(self._bus.keys() | known.keys()))
        if count != self._count:
            self._count, self._count_s = count, at_s
        settling = self._count_s is not None and at_s - self._count_s < self._settle_s and not at_once
        if settling or (self._count_s is None and not again):
            return None
        self._count_s = None
        return self._of(count, at_s)

    def closed(self, at_s: float) -> float:
        """NVML cannot be opened: for how many seconds already."""
        self._closed_s = at_s if self._closed_s is None else self._closed_s
        self._reopens = True
        self._read_bus(at_s)
        return at_s - self._closed_s

    def opened(self, present: Iterable[str], at_s: float) -> None:
        """It can, and shows GPUs with these addresses."""
        if self._reopens:
            self._reopens, self._coming_s, self._come = False, at_s + self._settle_s, set()
        self._closed_s, self._refused = None, (0, 0)
        self._come.update(present)

    def may_come(self, bdf: str, at_s: float) -> bool:
        """Has a GPU that NVML showed before it was closed still time to appear?"""
        return at_s < self._coming_s and bdf not in self._come

    def refused(self, code: int) -> int:
        """How many GPUs have a driver that lets nobody in, when that has not been told yet with NVML's `code`."""
        bound = sum(1 for driver in self._bus.values() if driver)
        told, self._refused = self._refused, (code, bound) if bound else (0, 0)
        return bound if told != self._refused else 0

    def none_answers(self, known: Known, at_s: float) -> GpuCount | None:
        """As `counted`, while NVML cannot be opened: of what has no driver nothing is said, unless it is not even on the bus."""
        named = len(self._bus.keys() | known.keys())
        expected = self._expected or named
        count = (0, min(named, expected), expected)
        if count == self._count or not (expected > named or any(self._bus.values())):
            return None
        self._count, self._count_s = count, None
        return self._of(count, at_s)

    def _read_bus(self, at_s: float) -> None:
        self._bus, self._bus_s = gpus_on_bus(self._host), at_s

    def _of(self, count: tuple[int, int, int], at_s: float) -> GpuCount:
        answering, lost, expected = count
        basis = "config" if self._expected else "pci" if self._bus else "seen"
        return GpuCount(answering=answering, lost=lost, expected=expected, basis=basis, mono_s=at_s)

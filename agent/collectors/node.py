"""Facts about the machine: kernel modules that are missing, memory that runs out, time lost in waiting."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.readings import Reading
from agent.collectors.readings_node import Memory, Modules, Pressure
from agent.contract.components import NODE
from agent.contract.messages import Draft, Severity

# A GPU node misses each of these when it is gone. Not needed where they were never loaded.
WATCHED_MODULES = (
    *("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_peermem", "gdrdrv"),
    *("mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs", "ib_ipoib", "rdma_cm", "rdma_ucm"),
)


class NodeCollector:
    """Each state is said when it begins and when it ends; it ends at half of a pressure's threshold, or one and a
    half of a memory's, so that a value that wanders about the threshold is one event.
    """

    name: ClassVar[str] = "node"
    wants: ClassVar[tuple[type, ...]] = (Modules, Memory, Pressure)
    kinds: ClassVar[tuple[str, ...]] = ("node.module", "node.memory", "node.pressure")

    def __init__(
        self,
        *,
        needed_modules: tuple[str, ...] = (),
        memory_low_percent: float = 2.0,
        memory_pressure_percent: float = 10.0,
        io_pressure_percent: float = 50.0,
    ) -> None:
        """`needed_modules` are facts when they are missing at start, too."""
        self._needed = frozenset(needed_modules)
        self._memory_low_percent = memory_low_percent
        self._pressure_percent = {"memory": memory_pressure_percent, "io": io_pressure_percent}
        self._loaded: frozenset[str] | None = None
        self._missing: set[str] = set()
        self._low = False
        self._high: set[str] = set()

    def feed(self, reading: Reading, now_s: float) -> Iterator[Draft]:  # noqa: ARG002  the port of collectors
        """See agent.collectors.base."""
        if isinstance(reading, Modules):
            yield from self._modules(reading)
        elif isinstance(reading, Memory):
            yield from self._memory(reading)
        elif isinstance(reading, Pressure):
            yield from self._pressure(reading)

    def _modules(self, now: Modules) -> Iterator[Draft]:
        before = self._loaded if self._loaded is not None else self._needed
        self._loaded = now.loaded
        for module in sorted((before | self._needed) - now.loaded - self._missing):
            self._missing.add(module)
            yield _module(module, loaded=False)
        for module in sorted(self._missing & now.loaded):
            self._missing.discard(module)
            yield _module(module, loaded=True)

    def _memory(self, now: Memory) -> Iterator[Draft]:
        if now.total_mb <= 0 or not self._memory_low_percent:
            return
        percent = 100.0 * now.available_mb / now.total_mb
        low = percent < self._memory_low_percent * (1.5 if self._low else 1.0)
        if low == self._low:
            return
        self._low = low
        yield Draft(
            kind="node.memory",
            component=NODE,
            severity=Severity.WARNING if low else Severity.INFO,
            data={"low": low, "available_mb": now.available_mb, "total_mb": now.total_mb},
            evidence=f"/proc/meminfo: {now.available_mb} of {now.total_mb} MiB available ({percent:.1f} %)",
        )

    def _pressure(self, now: Pressure) -> Iterator[Draft]:
        bound = self._pressure_percent.get(now.resource, 0.0)
        if not bound:
            return
        was = now.resource in self._high
        high = now.full_percent >= (bound / 2 if was else bound)
        if high == was:
            return
        (self._high.add if high else self._high.discard)(now.resource)
        yield Draft(
            kind="node.pressure",
            component=NODE,
            severity=Severity.WARNING if high else Severity.INFO,
            data={
                "resource": now.resource,
                "high": high,
                "full_percent": now.full_percent,
                "some_percent": now.some_percent,
            },
            evidence=f"/proc/pressure/{now.resource}: full avg60={now.full_percent} some avg60={now.some_percent}",
        )


def _module(module: str, *, loaded: bool) -> Draft:
    return Draft(
        kind="node.module",
        component=NODE,
        severity=Severity.INFO if loaded else Severity.ERROR,
        data={"module": module, "loaded": loaded},
        evidence=f"kernel module {module} is {'loaded' if loaded else 'not loaded'}",
    )

"""Facts about the machine: missing kernel modules, memory that runs out, time lost in waiting."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.samples import Sample
from agent.collectors.samples_node import LoadedModules, Memory, Pressure
from agent.contract.components import NODE
from agent.contract.messages import Severity, UnsentEvent
from agent.options import option

# A GPU node needs each of these while it is loaded; where one was never loaded, it is not needed.
WATCHED_MODULES = (
    *("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_peermem", "gdrdrv"),
    *("mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs", "ib_ipoib", "rdma_cm", "rdma_ucm"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """What an operator can set."""

    kernel_modules: tuple[str, ...] = option(
        (),
        "kernel modules that must be loaded, also at start; those of the GPU and RDMA drivers are watched anyway",
        example=("nvidia", "nvidia_peermem", "mlx5_ib", "rdma_cm"),
    )
    memory_low_percent: float = option(
        2.0, "less available memory than this is reported; 0: never", unit="%", least=0
    )
    memory_pressure_percent: float = option(
        10.0,
        "reported when all tasks waited for memory in so much of the last minute; 0: never",
        unit="%",
        least=0,
    )
    io_pressure_percent: float = option(
        50.0, "the same for I/O, of which writing checkpoints causes some; 0: never", unit="%", least=0
    )


class NodeCollector(Collector):
    """Reports each state when it begins and when it ends.

    It ends at half of the threshold of a pressure, or one and a half of that of memory, so that a value that moves around
    the threshold is one event.
    """

    name: ClassVar[str] = "node"
    wants: ClassVar[tuple[type, ...]] = (LoadedModules, Memory, Pressure)
    kinds: ClassVar[tuple[str, ...]] = ("node.module", "node.memory", "node.pressure")
    options: ClassVar[tuple[type[Any], ...]] = (NodeOptions,)

    def __init__(self, options: NodeOptions) -> None:
        self._needed = frozenset(options.kernel_modules)
        self._memory_low_percent = options.memory_low_percent
        self._pressure_percent = {
            "memory": options.memory_pressure_percent,
            "io": options.io_pressure_percent,
        }
        self._loaded: frozenset[str] | None = None
        self._missing: set[str] = set()
        self._low = False
        self._high: set[str] = set()

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(setup.options(NodeOptions))

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if isinstance(sample, LoadedModules):
            yield from self._modules(sample)
        elif isinstance(sample, Memory):
            yield from self._memory(sample)
        elif isinstance(sample, Pressure):
            yield from self._pressure(sample)

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if isinstance(sample, LoadedModules):
            yield from (_module(module, loaded=False) for module in sorted(self._missing))
            yield from (_module(module, loaded=True) for module in sorted(sample.loaded - self._missing))
        elif isinstance(sample, Memory) and sample.total_mb > 0 and self._memory_low_percent:
            yield _memory(sample, low=self._low)
        elif isinstance(sample, Pressure) and self._pressure_percent.get(sample.resource):
            yield _pressure(sample, high=sample.resource in self._high)

    def _modules(self, now: LoadedModules) -> Iterator[UnsentEvent]:
        before = self._loaded if self._loaded is not None else self._needed
        self._loaded = now.loaded
        for module in sorted((before | self._needed) - now.loaded - self._missing):
            self._missing.add(module)
            yield _module(module, loaded=False)
        for module in sorted(self._missing & now.loaded):
            self._missing.discard(module)
            yield _module(module, loaded=True)

    def _memory(self, now: Memory) -> Iterator[UnsentEvent]:
        if now.total_mb <= 0 or not self._memory_low_percent:
            return
        percent = 100.0 * now.available_mb / now.total_mb
        low = percent < self._memory_low_percent * (1.5 if self._low else 1.0)
        if low == self._low:
            return
        self._low = low
        yield _memory(now, low=low)

    def _pressure(self, now: Pressure) -> Iterator[UnsentEvent]:
        threshold = self._pressure_percent.get(now.resource, 0.0)
        if not threshold:
            return
        was = now.resource in self._high
        high = now.full_percent >= (threshold / 2 if was else threshold)
        if high == was:
            return
        (self._high.add if high else self._high.discard)(now.resource)
        yield _pressure(now, high=high)


def _memory(now: Memory, *, low: bool) -> UnsentEvent:
    percent = 100.0 * now.available_mb / now.total_mb
    return UnsentEvent(
        kind="node.memory",
        component=NODE,
        severity=Severity.WARNING if low else Severity.INFO,
        data={"low": low, "available_mb": now.available_mb, "total_mb": now.total_mb},
        evidence=f"/proc/meminfo: {now.available_mb} of {now.total_mb} MiB available ({percent:.1f} %)",
    )


def _pressure(now: Pressure, *, high: bool) -> UnsentEvent:
    return UnsentEvent(
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


def _module(module: str, *, loaded: bool) -> UnsentEvent:
    return UnsentEvent(
        kind="node.module",
        component=NODE,
        severity=Severity.INFO if loaded else Severity.ERROR,
        data={"module": module, "loaded": loaded},
        evidence=f"kernel module {module} is {'loaded' if loaded else 'not loaded'}",
    )

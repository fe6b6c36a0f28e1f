"""Modules, memory, pressure and the clock of the machine: a handful of small files, not read often."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors.node import WATCHED_MODULES, NodeOptions
from agent.collectors.samples import Sample
from agent.collectors.samples_node import LoadedModules, Memory, Pressure, WallClock
from agent.host import Host
from agent.options import option
from agent.shared import kernel_clock
from agent.sources.base import Emit, Source, SourceSetup
from agent.sources.poll import Poller

_RESOURCES = ("memory", "io")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSourceOptions:
    """What an operator can set."""

    node_interval_s: float = option(
        10.0, "pause between looks at modules, memory, pressure and clock", unit="s", least=0.05
    )


class NodeSource(Source):
    """Emits LoadedModules, Memory, Pressure and WallClock, after each pause.

    `modules`: watched besides agent.collectors.node.WATCHED_MODULES.
    """

    name: ClassVar[str] = "node"
    needs: ClassVar[str] = (
        "/proc/modules, /proc/meminfo, /proc/pressure, adjtimex; each is left out where it is missing"
    )
    options: ClassVar[tuple[type[Any], ...]] = (NodeSourceOptions,)

    def __init__(self, host: Host, options: NodeSourceOptions, *, modules: tuple[str, ...] = ()) -> None:
        self._host = host
        self._modules = tuple(dict.fromkeys((*WATCHED_MODULES, *modules)))
        self._poller = Poller(self._poll, what=self.name, period_s=options.node_interval_s)

    @classmethod
    def of(cls, setup: SourceSetup) -> Self:
        """See Source."""
        modules = setup.options(NodeOptions).kernel_modules
        return cls(setup.host, setup.options(NodeSourceOptions), modules=modules)

    async def run(self, emit: Emit) -> None:
        """Follow the machine until cancelled."""
        await self._poller.run(emit)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self._poller.look(emit)

    async def once(self, emit: Emit) -> None:
        """The machine as it is now."""
        for sample in self._poll():
            emit(sample)

    def _poll(self) -> list[Sample]:
        now_s = self._host.mono_s()
        samples: list[Sample] = [LoadedModules(loaded=self._loaded(), mono_s=now_s)]
        if (memory := _memory(self._host, now_s)) is not None:
            samples.append(memory)
        for resource in _RESOURCES:
            if (pressure := _pressure(self._host, resource, now_s)) is not None:
                samples.append(pressure)
        if self._host.live and (clock := _clock(self._host)) is not None:
            samples.append(clock)
        return samples

    def _loaded(self) -> frozenset[str]:
        lines = self._host.read("/proc/modules").splitlines()
        listed = {line.partition(" ")[0] for line in lines}
        # What is built into the kernel is only in /sys/module.
        return frozenset(
            name
            for name in self._modules
            if name in listed or self._host.path(f"/sys/module/{name}").exists()
        )


def _memory(host: Host, mono_s: float) -> Memory | None:
    fields = dict(line.partition(":")[::2] for line in host.read("/proc/meminfo").splitlines()[:5])
    try:
        total, available = (int(fields[name].split()[0]) // 1024 for name in ("MemTotal", "MemAvailable"))
    except (KeyError, ValueError, IndexError):
        return None
    return Memory(total_mb=total, available_mb=available, mono_s=mono_s)


def _pressure(host: Host, resource: str, mono_s: float) -> Pressure | None:
    """`some avg10=0.00 avg60=0.00 avg300=0.00 total=0` and the same for `full`; None without PSI."""
    shares: dict[str, float] = {}
    for line in host.read(f"/proc/pressure/{resource}").splitlines():
        share, _, rest = line.partition(" ")
        for word in rest.split():
            name, _, value = word.partition("=")
            if name == "avg60":
                try:
                    shares[share] = float(value)
                except ValueError:
                    return None
    if "full" not in shares:
        return None
    return Pressure(
        resource=resource,
        some_percent=shares.get("some", 0.0),
        full_percent=shares["full"],
        mono_s=mono_s,
    )


def _clock(host: Host) -> WallClock | None:
    """The answer of adjtimex."""
    found = kernel_clock.read()
    if found is None:
        return None
    mono_s = host.mono_s()
    return WallClock(
        synchronised=found.synchronised,
        offset_s=found.offset_s,
        max_error_s=found.max_error_s,
        ahead_s=host.wall().timestamp() - mono_s,
        mono_s=mono_s,
    )

"""A GPU's samples, one a second, and what a collector makes of them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from agent.collectors.base import Collector
from agent.collectors.samples import Gpu, GpuHealth, GpuProcess, Sample
from agent.contract import kinds
from agent.contract.messages import UnsentEvent

BDF, NEIGHBOUR = "0000:3b:00", "0000:5d:00"
GPU = Gpu(
    index=0,
    bdf=BDF,
    uuid="",
    utilization_now=50,
    utilization=50,
    power_w=300.0,
    temperature_c=60,
    slowdowns=0,
)
JOB = GpuProcess(pid=7, memory_mb=70_000, name="python", job="4711")


def health(at_s: float = 0.0, bdf: str = BDF, /, **values: int | float | str) -> GpuHealth:
    """Keys with `__` for dots."""
    return GpuHealth(
        index=0, bdf=bdf, values={k.replace("__", "."): v for k, v in values.items()}, mono_s=at_s
    )


def events_of(
    collector: Collector, samples: Iterable[Sample]
) -> list[tuple[float, str, Mapping[str, object]]]:
    """Second, kind and data of its events."""
    out: list[tuple[float, UnsentEvent]] = []
    for sample in samples:
        at_s = getattr(sample, "mono_s", 0.0)
        out += [(at_s, kinds.check(unsent)) for unsent in collector.feed(sample, at_s)]
    return [(at_s, unsent.kind, unsent.data) for at_s, unsent in out]


def seconds(gpu: Gpu, begin: int, end: int) -> list[Sample]:
    """One sample each second from `begin` until before `end`."""
    return [replace(gpu, mono_s=float(at_s)) for at_s in range(begin, end)]

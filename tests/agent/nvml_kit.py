"""A running NvmlSource with our own library, and what all collectors make of it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from pathlib import Path

from agent.collectors import collectors
from agent.collectors.base import CollectorSetup
from agent.collectors.samples import Gpu, Sample
from agent.contract import kinds
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.nvml.process import Timing
from agent.sources.nvml import NvmlSource
from tests.fixtures.nvml_fake import FakeNvml

# A child that starts counts as a call: its deadline leaves room for a busy machine.
QUICK = Timing(
    interval_s=0.05, deadline_s=2.0, retry_s=0.1, slow_every=1, rare_every=2, skip_s=(0.3, 60.0), settle_s=0.3
)
# Where nothing hangs: a machine under load may take long for a call, and that must be no fault.
PATIENT = replace(QUICK, deadline_s=60.0)
FIRST, SECOND = "0000:3b:00", "0000:3c:00"
ON_FIRST = f"gpu/{FIRST}"


def plug(bus: Path, bdf: str, driver: str = "nvidia", *, excluded: bool = False) -> None:
    """A GPU on the PCI bus of a recorded machine."""
    device = bus / f"sys/bus/pci/devices/{bdf}.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10de\n")
    (device / "class").write_text("0x030200\n")
    (device / "uevent").write_text(f"DRIVER={driver}\nPCI_CLASS=30200\n" if driver else "PCI_CLASS=30200\n")
    if driver == "nvidia":
        information = bus / f"proc/driver/nvidia/gpus/{bdf}.0/information"
        information.parent.mkdir(parents=True)
        information.write_text(f"Model: \t\t NVIDIA H100\nGPU Excluded:\t {'Yes' if excluded else 'No'}\n")


class Machine:
    """A running source, and what the collectors make of its samples."""

    def __init__(self, source: NvmlSource, *, lost_before: Iterable[str] = ()) -> None:
        """`lost_before`: addresses of GPUs that an earlier run of the agent had reported lost."""
        self.source = source
        self.samples: list[Sample] = []
        self.unsent_events: list[UnsentEvent] = []
        self._collectors = collectors(CollectorSetup(lost_before=frozenset(lost_before)))
        self.task = asyncio.create_task(source.run(self.take))

    def take(self, sample: Sample) -> None:
        """One sample, of whichever source."""
        self.samples.append(sample)
        for collector in self._collectors:
            if isinstance(sample, collector.wants):
                self.unsent_events += [
                    kinds.check(unsent) for unsent in collector.feed(sample, sample.mono_s)
                ]

    async def until(self, holds: Callable[[], bool], within_s: float = 60.0) -> None:
        """Waits until `holds`."""
        async with asyncio.timeout(within_s):
            while not holds():
                if self.task.done():
                    self.task.result()
                await asyncio.sleep(0.01)

    async def next_samples(self, count: int, bdf: str = FIRST, within_s: float = 60.0) -> None:
        """Waits for so many new samples of a GPU."""
        before = self._samples(bdf)
        await self.until(lambda: self._samples(bdf) >= before + count, within_s)

    async def says(self, kind: str, component: str = ON_FIRST) -> UnsentEvent:
        """The newest fact of that kind about it, when there is one."""
        await self.until(lambda: self.of(kind, component) != [])
        return self.of(kind, component)[-1]

    async def says_again(self, kind: str, component: str = ON_FIRST) -> UnsentEvent:
        """The next one, after those that were reported already."""
        before = len(self.of(kind, component))
        await self.until(lambda: len(self.of(kind, component)) > before)
        return self.of(kind, component)[-1]

    def of(self, kind: str, component: str) -> list[UnsentEvent]:
        return [
            unsent for unsent in self.unsent_events if (unsent.kind, unsent.component) == (kind, component)
        ]

    def _samples(self, bdf: str) -> int:
        return sum(1 for r in self.samples if isinstance(r, Gpu) and r.bdf == bdf and not r.lost)


@contextlib.asynccontextmanager
async def running(
    fake: FakeNvml,
    bus: Path,
    *,
    expected: int = 0,
    timing: Timing = PATIENT,
    lost_before: Iterable[str] = (),
) -> AsyncIterator[Machine]:
    source = NvmlSource(Host(), timing=timing, expected=expected, env=fake.env, bus=Host(root=bus))
    machine = Machine(source, lost_before=lost_before)
    try:
        yield machine
    finally:
        await ended(machine.task)


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, OSError):
        await task

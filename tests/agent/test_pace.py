"""How often the NVML child reads and writes: half as often while all is calm, and at once at any sign."""

import itertools
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.collectors.gpu_links import GpuLinksCollector
from agent.collectors.samples import Gpu, GpuEvent, GpuHealth, GpuTemperatures
from agent.nvml.pace import CALM_TIMES, Pace
from tests.agent.nvml_kit import FIRST, PATIENT, running
from tests.fixtures.nvml_fake import LOST, FakeNvml

WELL: dict[str, Any] = {
    "bdf": FIRST, "lost": "", "answers": True, "now": 97, "util": 97, "reasons": 4, "procs": [[7, 70_000]], "health": {}
}  # fmt: skip


def day(pace: Pace, seconds: int, samples: list[dict[str, Any]], since: int = 0) -> list[int]:
    """The seconds in which a line was sent."""
    sent = []
    for at in range(since, since + seconds):
        full = any(pace.tiers(float(at)))
        if pace.send(float(at), samples, asked=False, full=full):
            sent.append(at)
    return sent


def test_a_calm_machine_is_sent_with_its_counters_only() -> None:
    """For a minute every sample; then only those that have the counters, half as often as before."""
    pace = Pace(slow_every=5, rare_every=30, calm_s=60.0)
    sent = day(pace, 600, [WELL])
    assert sent[:60] == list(range(60))
    assert sent[61:] == list(range(70, 600, 5 * CALM_TIMES))


@pytest.mark.parametrize(
    "sign",
    [
        {"lost": "lost", "answers": False},
        {"answers": False},
        {"reasons": 0x40},
        {"health": {"ecc.volatile.corrected.dram": 1}},
        {"health": {"nvlink.4.replay": 17}},
        {"health": {"recovery_action": 1}},
        {"health": {"fabric.state": None}},
    ],
    ids=str,
)
def test_a_sign_of_trouble_is_sent_at_once_and_ends_the_calm(sign: dict[str, Any]) -> None:
    """Also where the sample has no counters; for the next minute every sample is sent."""
    pace = Pace(slow_every=5, rare_every=30, calm_s=60.0)
    day(pace, 301, [WELL])
    assert day(pace, 1, [WELL, WELL | sign], since=301) == [301]
    assert day(pace, 60, [WELL], since=302) == list(range(302, 361))
    assert len(day(pace, 100, [WELL], since=361)) < 12


@pytest.mark.parametrize("news", [{"now": 0}, {"procs": []}, {"procs": [[8, 70_000]]}], ids=str)
def test_a_job_that_begins_or_ends_is_sent_at_once_and_is_no_trouble(news: dict[str, Any]) -> None:
    """How much a GPU is used is not."""
    pace = Pace(slow_every=5, rare_every=30, calm_s=60.0)
    day(pace, 301, [WELL])
    assert day(pace, 1, [WELL | {"now": 3, "health": {"margin": 2, "pcie.generation": 1}}], since=301) == []
    assert day(pace, 2, [WELL | news], since=302) == [302]


async def test_calm_gpus_say_little_and_lose_nothing(fake: FakeNvml, bus: Path) -> None:
    """The highest and the lowest use since the last sample; a GPU that falls off the bus is told within a sample."""
    for index in range(2):
        fake.well(index)
    timing = replace(PATIENT, slow_every=10, rare_every=100_000, calm_s=0.2)
    async with running(fake, bus, timing=timing) as machine:
        await machine.until(lambda: gaps(machine.samples)[-1:] == [10 * CALM_TIMES])
        fake.set(0, util=93)
        await machine.until(
            lambda: len(lines(machine.samples)) > 0 and lines(machine.samples)[-1].utilization == 93
        )
        at = len(machine.samples)
        fake.set(0, util=40)
        await machine.until(lambda: any(gpu.utilization_least == 40 for gpu in lines(machine.samples[at:])))
        spread = next(gpu for gpu in lines(machine.samples[at:]) if gpu.utilization_least == 40)
        assert spread.utilization in (40, 93)
        fake.set(0, margin=44)
        await machine.until(lambda: any(isinstance(one, GpuTemperatures) for one in machine.samples))
        healths = sum(isinstance(one, GpuHealth) for one in machine.samples)
        fake.fail(0, LOST)
        lost = await machine.says("gpu.lost")
        assert lost.data["reason"] == "lost"
        assert sum(isinstance(one, GpuHealth) for one in machine.samples) == healths, (
            "a temperature is no news"
        )


def lines(samples: list[Any]) -> list[Gpu]:
    return [one for one in samples if isinstance(one, Gpu) and one.bdf == FIRST]


def gaps(samples: list[Any]) -> list[int]:
    """Pauses between lines, in samples."""
    times = [one.mono_s for one in lines(samples)]
    return [round((now - before) / PATIENT.interval_s) for before, now in itertools.pairwise(times)]


async def test_a_calm_child_has_not_hung(fake: FakeNvml, bus: Path) -> None:
    """It has nothing to send for much longer than a call may take, and samples all the time."""
    for index in range(2):
        fake.well(index)
    timing = replace(PATIENT, slow_every=100_000, rare_every=100_000, calm_s=0.1, deadline_s=1.5)
    async with running(fake, bus, timing=timing) as machine:
        await machine.until(lambda: len(lines(machine.samples)) > 0)
        # For longer than three deadlines, of the call and of the child.
        await machine.until(lambda: machine.samples[-1].mono_s < time.monotonic() - 5.0)
        assert [event.kind for event in machine.unsent_events if event.kind.startswith("nvml.")] == []


def test_the_end_of_a_job_is_no_slow_link() -> None:
    """In the seconds since the last sample the GPU was at work, and when its link was read it was not: it saved power."""
    collector = GpuLinksCollector()
    busy = Gpu(index=0, bdf=FIRST, uuid="", utilization_now=97, utilization=97, mono_s=0.0)
    link = {"pcie.width": 16, "pcie.width_max": 16, "pcie.generation": 5, "pcie.generation_max": 5}
    slow = link | {"pcie.generation": 1}
    assert list(collector.feed(busy, 0.0)) == []
    assert list(collector.feed(GpuHealth(bdf=FIRST, index=0, values=link, mono_s=0.0), 0.0)) == []
    ended = replace(busy, utilization_now=0, mono_s=10.0)
    assert list(collector.feed(ended, 10.0)) == []
    assert list(collector.feed(GpuHealth(bdf=FIRST, index=0, values=slow, mono_s=10.0), 10.0)) == []
    again = replace(busy, mono_s=20.0)
    collector.feed(again, 20.0)
    (event,) = collector.feed(GpuHealth(bdf=FIRST, index=0, values=slow, mono_s=20.0), 20.0)
    assert event.kind == "gpu.pcie_degraded"


async def test_events_have_their_turn_where_sampling_takes_longer_than_its_pause(
    fake: FakeNvml, bus: Path
) -> None:
    """A slow driver, or very many GPUs: the next sample is due before this one has ended."""
    timing = replace(PATIENT, interval_s=0.0001)
    async with running(fake, bus, timing=timing) as machine:
        await machine.next_samples(3)
        fake.event(0, 79)
        await machine.until(lambda: any(isinstance(one, GpuEvent) for one in machine.samples))

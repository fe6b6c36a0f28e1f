"""GPUs that are held and not used: timelines, one sample a second."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from agent.collectors.idle import IdleOptions
from agent.collectors.samples import Gpu, GpuProcess
from agent.collectors.stuck import StuckCollector
from agent.contract import kinds
from agent.contract.messages import UnsentEvent

JOB = GpuProcess(pid=7, memory_mb=70_000, name="python", job="4711")
OTHER = GpuProcess(pid=8, memory_mb=100, name="dcgm", unit="nvidia-dcgm.service")
IDLE = Gpu(
    index=0, bdf="0000:3b:00", uuid="", utilization=0, memory_used_mb=70_100, power_w=70.5, processes=(JOB,)
)
BUSY = replace(IDLE, utilization=97)


def play(*phases: tuple[Gpu, int], window_s: float = 600) -> list[tuple[float, UnsentEvent]]:
    """(second, draft) when each phase's sample is repeated once a second for so many seconds."""
    collector, at_s, out = StuckCollector(IdleOptions(idle_window_s=window_s)), 0, []
    for gpu, seconds in phases:
        for _ in range(seconds):
            unsent_events: Iterable[UnsentEvent] = collector.feed(
                replace(gpu, mono_s=float(at_s)), float(at_s)
            )
            out += [(float(at_s), kinds.check(unsent)) for unsent in unsent_events]
            at_s += 1
    return out


def spoken(timeline: list[tuple[float, UnsentEvent]]) -> list[tuple[float, str]]:
    return [(at_s, unsent.kind) for at_s, unsent in timeline]


def test_a_held_idle_gpu_is_reported_after_the_window_and_every_300_s() -> None:
    """Then again while it lasts, and gpu.busy when it works."""
    timeline = play((BUSY, 10), (IDLE, 1300), (BUSY, 5))
    assert spoken(timeline) == [(610, "gpu.idle"), (910, "gpu.idle"), (1210, "gpu.idle"), (1310, "gpu.busy")]
    assert timeline[0][1].data == {
        "idle_s": 600.0, "memory_mb": 70_100, "processes": 1, "job": "4711", "unit": "", "power_w": 70.5,
    }  # fmt: skip
    assert timeline[1][1].data["idle_s"] == 900.0


@pytest.mark.parametrize(
    "phases",
    [
        [(replace(IDLE, processes=()), 2000)],  # an empty idle GPU is healthy
        [(IDLE, 599), (BUSY, 1), (IDLE, 599)],  # one second of work ends the window
        [(BUSY, 2000)],
        [(replace(IDLE, utilization=None), 2000)],  # the driver does not provide it (MIG)
        [(replace(IDLE, lost="lost", utilization=None), 2000)],  # gpu.lost reports it
        [(IDLE, 400), (replace(IDLE, processes=(OTHER,)), 400)],  # another holder gets a window of its own
        [(IDLE, 400), (replace(IDLE, utilization=None), 100), (IDLE, 400)],  # 100 s were not seen
    ],
)
def test_it_is_silent_when_not_idle_for_the_whole_window(phases: list[tuple[Gpu, int]]) -> None:
    """Nothing is reported about GPUs that work, are free, are lost, or were not watched."""
    assert play(*phases) == []


def test_a_sample_that_reports_nothing_does_not_end_the_window() -> None:
    """One missing value is not work."""
    assert spoken(play((IDLE, 300), (replace(IDLE, utilization=None), 3), (IDLE, 300))) == [(600, "gpu.idle")]


def test_it_is_over_when_the_holder_leaves_or_changes() -> None:
    """gpu.busy answers every gpu.idle."""
    for after in (replace(IDLE, processes=()), replace(IDLE, processes=(OTHER,))):
        assert spoken(play((IDLE, 601), (after, 10))) == [(600, "gpu.idle"), (601, "gpu.busy")]


def test_a_gap_after_the_report_does_not_lose_the_answer() -> None:
    """NVML hung meanwhile: work seen afterwards still ends it."""
    silent = replace(IDLE, utilization=None)
    assert spoken(play((IDLE, 601), (silent, 100), (IDLE, 10), (BUSY, 1))) == [
        (600, "gpu.idle"),
        (711, "gpu.busy"),
    ]


def test_the_owner_is_the_first_that_is_known() -> None:
    """A job beside a monitoring service is the job's; both are named."""
    both = replace(IDLE, processes=(OTHER, JOB), memory_used_mb=None, power_w=None)
    ((_, unsent),) = play((both, 6), window_s=5)
    assert unsent.data == {
        "idle_s": 5.0, "memory_mb": 70_100, "processes": 2, "job": "4711", "unit": "nvidia-dcgm.service",
    }  # fmt: skip

"""What the GPUs of a job did in a minute: condensed, told when it has moved, and only where a site wants it."""

import os
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors import gpu_minute
from agent.collectors.gpu_minute import GpuMinuteCollector, GpuMinuteOptions
from agent.collectors.samples import Gpu, GpuHealth, GpuProcess, Sample
from agent.contract import kinds
from agent.contract.errors import ContractError
from agent.contract.gpu_minutes import GpuMinute, decode, encode
from agent.contract.messages import Scalar, UnsentEvent
from tests.agent.health_kit import BDF, GPU, JOB, NEIGHBOUR, events_of, health
from tests.agent.nvml_kit import PATIENT, plug, running
from tests.fixtures.nvml_fake import FakeNvml

BUSY = replace(GPU, utilization_now=100, sm_clock_mhz=1980, power_w=690.0, processes=(JOB,))
BESIDE = replace(BUSY, index=1, bdf=NEIGHBOUR)
MODEL = {"model": "NVIDIA H100 80GB HBM3"}


def told(*samples: Iterable[Sample], on: bool = True) -> list[tuple[float, dict[str, object]]]:
    """(second, data) of each event."""
    collector = GpuMinuteCollector(GpuMinuteOptions(compare_gpus=on))
    series = [sample for part in samples for sample in part]
    return [(at_s, dict(data)) for at_s, _, data in events_of(collector, series)]


def every_5_s(begin: int, end: int, *gpus: Gpu) -> Iterable[Sample]:
    """Samples of these GPUs, from `begin` until before `end`."""
    return [replace(gpu, mono_s=float(at_s)) for at_s in range(begin, end, 5) for gpu in gpus]


def models() -> list[Sample]:
    return [health(0, BDF, **MODEL), health(0, NEIGHBOUR, **MODEL)]


def test_all_gpus_of_a_job_are_one_event() -> None:
    """After the first whole minute; and then nothing is told for ten minutes, as nothing has moved."""
    (first, again) = told(models(), every_5_s(0, 700, BUSY, BESIDE))
    assert first == (
        60.0,
        {
            "active": True, "job": "4711", "model": "NVIDIA H100 80GB HBM3", "gpus": f"{BDF} {NEIGHBOUR}",
            "sm_mhz": "1980 1980", "power_w": "690 690", "busy": "100 100",
        },
    )  # fmt: skip
    assert again == (660.0, first[1])


def test_it_is_off_unless_a_site_wants_it() -> None:
    """Nothing is kept and nothing told."""
    assert told(models(), every_5_s(0, 700, BUSY), on=False) == []


@pytest.mark.parametrize(
    ("later", "is_told"),
    [
        pytest.param({"sm_clock_mhz": 1950}, False, id="a step of the clock"),
        pytest.param({"sm_clock_mhz": 1900}, True, id="4 % of the clock"),
        pytest.param({"power_w": 650.0}, False, id="6 % of the power"),
        pytest.param({"power_w": 500.0}, True, id="power"),
        pytest.param({"utilization_now": 93}, False, id="7 points"),
        pytest.param({"utilization_now": 85}, True, id="15 points"),
    ],
)
def test_only_what_has_moved_is_told(later: dict[str, float], is_told: bool) -> None:
    """Less than half of what the brain takes for a deviation is not worth a message."""
    found = told(models(), every_5_s(0, 120, BUSY), every_5_s(120, 300, replace(BUSY, **later)))  # type: ignore[arg-type]  # of mixed types
    assert [at_s for at_s, _ in found] == ([60.0, 180.0] if is_told else [60.0])


def test_a_model_that_is_read_later_is_another_job() -> None:
    """What was told without it holds no more: it stood beside its peers for 25 minutes, slow or not, and nobody told of it."""
    found = told(every_5_s(0, 90, BUSY), models(), every_5_s(90, 200, BUSY))
    assert [(at_s, data["model"], data["active"]) for at_s, data in found] == [
        (60.0, "", True),
        (120.0, "", False),
        (120.0, MODEL["model"], True),
    ]


def test_a_job_that_is_over_is_told_at_once() -> None:
    """With the minute in which it ended; its successor has a first minute of its own."""
    other = replace(BUSY, processes=(GpuProcess(pid=9, memory_mb=1, job="4712"),))
    found = told(models(), every_5_s(0, 90, BUSY), every_5_s(90, 260, other))
    assert [(at_s, data["job"], data["active"]) for at_s, data in found] == [
        (60.0, "4711", True),
        (120.0, "4711", False),
        (180.0, "4712", True),
    ]
    assert found[1][1]["gpus"] == ""


def test_what_is_no_job_of_its_own_is_not_compared() -> None:
    """A GPU of two jobs, of none, that is lost, or cut into instances."""
    both = replace(BUSY, processes=(JOB, GpuProcess(pid=9, memory_mb=1, job="4712")))
    for gpu in (
        both,
        replace(BUSY, processes=()),
        replace(BUSY, lost="lost"),
        replace(BUSY, utilization_now=None),
    ):
        assert told(models(), every_5_s(0, 200, gpu)) == []
    cut: list[Sample] = [GpuHealth(index=0, bdf=BDF, values={**MODEL, "mig": 1})]
    assert told(cut, every_5_s(0, 200, BUSY)) == []


def test_the_clock_of_a_gpu_that_waits_says_nothing() -> None:
    """It lowers it by itself: only samples in which it computes count, and of those the median."""
    waits = replace(BUSY, utilization_now=0, sm_clock_mhz=345)
    ((_, half),) = told(models(), every_5_s(0, 35, BUSY), every_5_s(35, 65, waits))
    assert (half["sm_mhz"], half["busy"]) == ("1980", "58")
    ((_, idle),) = told(models(), every_5_s(0, 65, waits))
    assert (idle["sm_mhz"], idle["busy"]) == ("0", "0")
    ((_, unknown),) = told(models(), every_5_s(0, 65, replace(BUSY, sm_clock_mhz=None, power_w=None)))
    assert (unknown["sm_mhz"], unknown["power_w"]) == ("0", "0")


def test_a_minute_that_was_not_watched_is_none() -> None:
    """NVML hung for two minutes: what was before and what came after are not one minute."""
    found = told(models(), every_5_s(0, 50, BUSY), every_5_s(170, 240, BUSY))
    assert [at_s for at_s, _ in found] == [230.0]


def test_two_models_of_one_job_are_told_apart() -> None:
    """Like is compared with like."""
    found = told(
        [health(0, BDF, model="H100"), health(0, NEIGHBOUR, model="A100")], every_5_s(0, 65, BUSY, BESIDE)
    )
    assert {(data["model"], data["gpus"]) for _, data in found} == {("H100", BDF), ("A100", NEIGHBOUR)}


MINUTES = (
    GpuMinute(bdf="0000:1b:00", sm_mhz=1980, power_w=690, busy=100),
    GpuMinute(bdf="0000:45:00", sm_mhz=0, power_w=0, busy=0),
)


def test_the_brain_reads_what_the_agent_writes() -> None:
    """The same GPUs, with the same numbers; of sixteen all."""
    assert decode(encode(MINUTES)) == MINUTES
    many = [replace(MINUTES[0], bdf=f"0000:{number:02x}:00") for number in range(20)]
    assert len(decode(encode(many))) == 16


@pytest.mark.parametrize(
    "wrong",
    [
        {"sm_mhz": "1980"},
        {"sm_mhz": "1980 -5"},
        {"power_w": "1e9 5"},
        {"busy": "100 ١"},
        {"gpus": "0000:1b:00 here"},
        {"gpus": "0000:1b:00 0000:1b:00"},
        {"sm_mhz": "1980 99999999"},
        {"gpus": 7},
    ],
)
def test_what_does_not_fit_is_refused(wrong: dict[str, Scalar]) -> None:
    """Lists of other lengths, what is no number, what is no address, a GPU twice."""
    with pytest.raises(ContractError):
        decode({**encode(MINUTES), **wrong})


_TEXT = st.one_of(st.text(), st.from_regex(r"([0-9]{1,8} ){0,20}"), st.integers(), st.booleans())


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("gpus", "sm_mhz", "power_w", "busy"), _TEXT)))
def test_whatever_a_node_writes_is_read_or_refused(data: dict[str, Scalar]) -> None:
    """Nothing else comes of it, and what is read is bounded."""
    try:
        found = decode(data)
    except ContractError:
        return
    assert len(found) <= 16
    assert all(0 <= one.sm_mhz <= 100_000 and 0 <= one.busy <= 100 for one in found)


async def test_the_clock_is_asked_of_the_library_only_where_it_is_wanted(fake: FakeNvml, bus: Path) -> None:
    """From our own libnvidia-ml through the real child to the sample; without the option no such call is made."""
    plug(bus, "0000:3b:00")
    plug(bus, "0000:3c:00")
    fake.set(0, sm_mhz=1410, name="NVIDIA H100 80GB HBM3")
    async with running(fake, bus, timing=replace(PATIENT, clocks=True)) as machine:
        await machine.next_samples(4)
    gpus = [one for one in machine.samples if isinstance(one, Gpu) and one.bdf == "0000:3b:00"]
    assert gpus[-1].sm_clock_mhz == 1410
    values = next(
        one.values for one in machine.samples if isinstance(one, GpuHealth) and one.bdf == "0000:3b:00"
    )
    assert values["model"] == "NVIDIA H100 80GB HBM3"
    fake.hang("nvmlDeviceGetClockInfo")
    async with running(fake, bus) as machine:
        await machine.next_samples(4)
    assert not fake.is_hanging(), "the call was made"
    gpus = [one for one in machine.samples if isinstance(one, Gpu)]
    assert [one.sm_clock_mhz for one in gpus] == [None] * len(gpus)
    fake.resume()


async def test_from_the_library_to_the_event(
    fake: FakeNvml, bus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of a job holds a GPU of our own libnvidia-ml; what the child samples is told as the minute of that job."""
    monkeypatch.setattr(gpu_minute, "_MINUTE_S", 0.3)
    monkeypatch.setattr(gpu_minute, "_WHOLE_S", 0.1)
    plug(bus, "0000:3b:00")
    plug(bus, "0000:3c:00")
    held = subprocess.Popen(["sleep", "600"], env={**os.environ, "SLURM_JOB_ID": "4711"})
    try:
        fake.hold(0, (held.pid, 70_000))
        fake.set(0, sm_mhz=1410, power_mw=410_000, util=100, name="NVIDIA H100 80GB HBM3")
        collector = GpuMinuteCollector(GpuMinuteOptions(compare_gpus=True))
        told: list[UnsentEvent] = []
        async with running(fake, bus, timing=replace(PATIENT, clocks=True)) as machine:
            seen = 0
            while not told:
                await machine.next_samples(1)
                fresh, seen = machine.samples[seen:], len(machine.samples)
                told = [
                    kinds.check(unsent)
                    for sample in fresh
                    if isinstance(sample, collector.wants)
                    for unsent in collector.feed(sample, sample.mono_s)
                ]
    finally:
        held.kill()
        held.wait()
    (event,) = told
    assert dict(event.data) == {
        "active": True, "job": "4711", "model": "NVIDIA H100 80GB HBM3", "gpus": "0000:3b:00", "sm_mhz": "1410",
        "power_w": "410", "busy": "100",
    }  # fmt: skip

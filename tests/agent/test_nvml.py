"""NVML in a real child process with a library of our own: what it reports, and what it survives."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest

from agent.collectors.gpu import STEADY_SAMPLES, GpuCollector
from agent.collectors.samples import Gpu, GpuEvent, NvmlState, Sample
from agent.host import Host
from agent.nvml import calls
from agent.nvml.process import Timing
from agent.sources.nvml import NvmlSource
from tests.fixtures.nvml_fake import DRIVER_NOT_LOADED, LOST, RESET_REQUIRED, UNKNOWN, FakeNvml, build

QUICK = Timing(
    interval_s=0.05, deadline_s=2.0, retry_s=0.1, slow_every=1, rare_every=1, skip_s=(0.2,), settle_s=0.2
)
PATIENT = replace(QUICK, deadline_s=60.0)  # where nothing hangs, and the machine may be slow
FIRST, SECOND = "0000:3b:00", "0000:3c:00"
LOST_ONCE, RETURNED = [("gpu.lost", f"gpu/{FIRST}")], ("gpu.returned", f"gpu/{FIRST}")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def fake(tmp_path: Path, library: Path) -> FakeNvml:
    return FakeNvml(tmp_path / "state", library)


class Emitted:
    """A running source and all its samples."""

    def __init__(self, env: dict[str, str], timing: Timing) -> None:
        self.samples: list[Sample] = []
        self.source = NvmlSource(Host(), timing=timing, env=env)
        self.task: asyncio.Task[None] | None = None

    async def until(self, holds: Callable[[Sample], bool], within_s: float = 60.0) -> Sample:
        """The first new sample for which `holds`."""
        seen = len(self.samples)
        async with asyncio.timeout(within_s):
            while True:
                for sample in self.samples[seen:]:
                    if holds(sample):
                        return sample
                seen = len(self.samples)
                if self.task is not None and self.task.done():
                    self.task.result()
                await asyncio.sleep(0.01)

    async def gpu(self, bdf: str, lost: str = "") -> Gpu:
        """The next sample of a GPU in that condition."""
        found = await self.until(lambda r: isinstance(r, Gpu) and r.bdf == bdf and r.lost == lost)
        assert isinstance(found, Gpu)
        return found

    async def next(self, bdf: str) -> Gpu:
        """The next sample of a GPU, however it is."""
        found = await self.until(lambda r: isinstance(r, Gpu) and r.bdf == bdf)
        assert isinstance(found, Gpu)
        return found

    async def returned(self) -> None:
        """Until the first GPU has returned."""
        while RETURNED not in self.events():
            await self.next(FIRST)

    async def state(self, state: str) -> NvmlState:
        """The next report of NVML about itself, of that kind."""
        found = await self.until(lambda r: isinstance(r, NvmlState) and r.state == state)
        assert isinstance(found, NvmlState)
        return found

    def events(self) -> list[tuple[str, object]]:
        """What the collector makes of all that was heard: kind and component."""
        collector = GpuCollector()
        return [(d.kind, d.component) for r in self.samples for d in collector.feed(r, r.mono_s)]


@contextlib.asynccontextmanager
async def running(env: dict[str, str], timing: Timing = PATIENT) -> AsyncIterator[Emitted]:
    emitted = Emitted(env, timing)
    emitted.task = asyncio.create_task(emitted.source.run(emitted.samples.append))
    try:
        yield emitted
    finally:
        emitted.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await emitted.task


def children() -> list[int]:
    """Our NVML child processes that are alive."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            with contextlib.suppress(OSError):
                if b"start" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(int(pid))
    return found


async def test_it_samples_every_gpu_and_names_the_holders(fake: FakeNvml) -> None:
    """Utilisation, memory, power, temperature, and the processes with their names."""
    fake.hold(1, (os.getpid(), 700))
    async with running(fake.env) as emitted:
        assert (await emitted.state("ready")).gpus == 2
        gpu = await emitted.gpu(SECOND)
    assert (gpu.index, gpu.uuid, gpu.serial, gpu.utilization, gpu.memory_used_mb) == (
        1,
        "GPU-1",
        "1653023018211",
        50,
        1000,
    )
    assert (gpu.power_w, gpu.temperature_c) == (300.5, 40)
    (process,) = gpu.processes
    assert (process.pid, process.memory_mb) == (os.getpid(), 700)
    assert process.name == Path("/proc/self/comm").read_text().strip()
    assert children() == []


async def test_an_xid_event_arrives_between_samples(fake: FakeNvml) -> None:
    """The wait for events is the pause between samples: nothing is polled for them."""
    async with running(fake.env) as emitted:
        await emitted.state("ready")
        fake.event(1, 79)
        found = await emitted.until(lambda r: isinstance(r, GpuEvent))
    assert isinstance(found, GpuEvent)
    assert (found.bdf, found.type, found.data) == (SECOND, 8, 79)


@pytest.mark.parametrize(("code", "lost"), [(LOST, "lost"), (RESET_REQUIRED, "reset_required")])
async def test_a_sick_gpu_is_lost_while_the_other_works(fake: FakeNvml, code: int, lost: str) -> None:
    """And it is back when it answers again."""
    async with running(fake.env) as emitted:
        await emitted.gpu(FIRST)
        fake.fail(0, code)
        sick = await emitted.gpu(FIRST, lost)
        assert sick.utilization is None
        await emitted.gpu(SECOND)
        fake.fail(0, 0)
        await emitted.returned()
    assert emitted.events() == [*LOST_ONCE, RETURNED]


async def test_a_gpu_that_answers_nothing_is_lost(fake: FakeNvml) -> None:
    """Every call fails with an unknown error: after a few samples it is lost, and stays so when NVML is opened again."""
    async with running(fake.env) as emitted:
        await emitted.gpu(FIRST)
        fake.fail(0, UNKNOWN)
        sick = await emitted.gpu(FIRST, "unknown_error")
        assert sick.utilization is None
        await emitted.source.look(emitted.samples.append)  # NVML is opened again
        for _ in range(5):
            assert (await emitted.next(FIRST)).lost == "unknown_error"
        assert emitted.events() == LOST_ONCE
        fake.fail(0, 0)
        await emitted.returned()
    assert emitted.events() == [*LOST_ONCE, RETURNED]


async def test_what_nvml_has_read_before_is_no_answer(fake: FakeNvml) -> None:
    """Identity calls go on answering: the GPU has not returned when NVML's child is replaced, nor for a look."""
    async with running(fake.env, replace(QUICK, skip_s=(60.0,))) as emitted:
        await emitted.gpu(FIRST)
        fake.mute(0, UNKNOWN)
        await emitted.gpu(FIRST, "unknown_error")
        fake.hang("nvmlDeviceGetTemperature", 1)
        await emitted.state("hung")
        fake.resume()
        for _ in range(2 * STEADY_SAMPLES):
            assert (await emitted.next(FIRST)).lost == "unknown_error"
        assert [event for event in emitted.events() if event[1] != "node"] == LOST_ONCE


async def test_a_fresh_agent_does_not_take_it_for_a_gpu_that_answers(fake: FakeNvml) -> None:
    """Until it is lost nothing is known of it, and a look says so."""
    fake.mute(0, UNKNOWN)
    async with running(fake.env) as emitted:
        assert not (await emitted.next(FIRST)).answers
        await emitted.gpu(FIRST, "unknown_error")
        assert not any(r.answers for r in emitted.samples if isinstance(r, Gpu) and r.bdf == FIRST)
    async with running(fake.env, replace(PATIENT, interval_s=2.0)) as emitted:
        await emitted.state("ready")
        with pytest.raises(OSError, match=f"answers too little of what it is asked: {FIRST}"):
            await emitted.source.look(emitted.samples.append)


async def test_one_call_that_works_now_and_then_is_no_return(fake: FakeNvml) -> None:
    """More of what it is asked must work than fail."""
    some = (
        "UtilizationRates",
        "PowerUsage",
        "Temperature",
        "ComputeRunningProcesses",
        "GraphicsRunningProcesses",
    )
    async with running(fake.env) as emitted:
        await emitted.gpu(FIRST)
        fake.mute(0, UNKNOWN)
        await emitted.gpu(FIRST, "unknown_error")
        for name in some:
            fake.fail_call(0, f"nvmlDeviceGet{name}", UNKNOWN)
        fake.mute(0, 0)  # its memory is still asked, and known
        for _ in range(2 * STEADY_SAMPLES):
            assert (await emitted.next(FIRST)).lost == "unknown_error"
        for name in some:
            fake.fail_call(0, f"nvmlDeviceGet{name}", 0)
        await emitted.returned()
    assert emitted.events() == [*LOST_ONCE, RETURNED]


async def test_a_gpu_whose_frequent_calls_fail_is_asked_the_others_before_it_counts_as_lost(
    fake: FakeNvml,
) -> None:
    """Some cards answer these questions with an unknown error for ever, and all others well."""
    fake.well(0)
    fake.fail_call(0, "nvmlDeviceGetUtilizationRates", UNKNOWN)
    fake.fail_call(0, "nvmlDeviceGetCurrentClocksEventReasons", UNKNOWN)
    async with running(fake.env, replace(PATIENT, slow_every=8, rare_every=16)) as emitted:
        for _ in range(20):
            assert (await emitted.next(FIRST)).lost == ""


@pytest.mark.parametrize("function", ["nvmlDeviceGetPowerUsage", "nvmlDeviceGetFieldValues"])
async def test_a_gpu_is_back_when_what_had_failed_works_again(fake: FakeNvml, function: str) -> None:
    """A call that is made now and then says that it is lost; those that are made more often still work."""
    fake.well(0)
    async with running(fake.env, replace(PATIENT, slow_every=4, rare_every=8)) as emitted:
        await emitted.gpu(FIRST)
        fake.fail_call(0, function, LOST)
        await emitted.gpu(FIRST, "lost")
        for _ in range(5):
            assert (await emitted.next(FIRST)).lost == "lost"
        fake.fail_call(0, function, 0)
        await emitted.returned()
    assert emitted.events() == [*LOST_ONCE, RETURNED]


async def test_a_call_that_fails_beside_others_that_work_is_no_loss(fake: FakeNvml) -> None:
    """Some cards answer some questions with an unknown error for ever."""
    async with running(fake.env) as emitted:
        fake.fail_call(0, "nvmlDeviceGetPowerUsage", UNKNOWN)
        fake.fail_call(0, "nvmlDeviceGetTemperature", UNKNOWN)
        for _ in range(8):
            assert (await emitted.next(FIRST)).lost == ""
    assert emitted.events() == []


async def test_a_gpu_that_is_no_longer_counted_is_not_found(fake: FakeNvml) -> None:
    """Whichever index the others get."""
    async with running(fake.env) as emitted:
        await emitted.gpu(SECOND)
        fake.set(0, bus_id="00000000:3C:00.0", uuid="GPU-1")
        fake.set_count(1)
        await emitted.gpu(FIRST, "not_found")
        assert (await emitted.gpu(SECOND)).index == 0
    assert emitted.events() == [("gpu.lost", f"gpu/{FIRST}")]


async def test_a_hung_call_costs_a_child_and_is_named(fake: FakeNvml) -> None:
    """The child is killed and replaced; when the driver answers again, that is reported once."""
    async with running(fake.env, QUICK) as emitted:
        await emitted.gpu(SECOND)
        (first,) = children()
        fake.hang("nvmlDeviceGetTemperature", 1)
        hung = await emitted.state("hung")
        assert hung.call == "nvmlDeviceGetTemperature"
        assert hung.reason == f"on GPU 1 {SECOND}"
        assert hung.waited_s >= QUICK.deadline_s
        fake.resume()
        assert (await emitted.state("answers")).gpus == 2
        (second,) = children()
    assert second != first
    assert not Path(f"/proc/{first}").exists()
    kinds = [kind for kind, _ in emitted.events()]
    assert kinds[0] == "nvml.hung"
    assert kinds.count("nvml.answers") == 1


async def test_a_hang_while_starts_is_noticed_too(fake: FakeNvml) -> None:
    """nvmlInit is a call like any other."""
    fake.hang("nvmlInit")
    async with running(fake.env, QUICK) as emitted:
        assert (await emitted.state("hung")).call == "nvmlInit"


async def test_waiting_for_events_is_no_hang(fake: FakeNvml) -> None:
    """The wait may be longer than a call's deadline."""
    slow = Timing(interval_s=3.0, deadline_s=2.0, retry_s=0.1, slow_every=1)
    emitted = Emitted(fake.env, slow)
    emitted.task = asyncio.create_task(emitted.source.run(emitted.samples.append))
    await emitted.gpu(FIRST)
    await emitted.gpu(FIRST)
    emitted.task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await emitted.task
    assert [r.state for r in emitted.samples if isinstance(r, NvmlState)] == ["ready"]


async def test_an_absent_driver_is_reported_once_and_looked_for_again(fake: FakeNvml) -> None:
    """The driver may be installed or loaded later."""
    fake.refuse(DRIVER_NOT_LOADED)
    async with running(fake.env) as emitted:
        absent = await emitted.state("absent")
        assert absent.reason == "Driver Not Loaded"
        await asyncio.sleep(0.5)  # several retries long: that nothing more is reported has no other sign
        assert len(emitted.samples) == 1
        fake.refuse(0)
        await emitted.state("ready")
        await emitted.gpu(FIRST)


async def test_a_broken_library_is_reported_as_one_that_is_there(tmp_path: Path) -> None:
    """Nobody looks for a package that is installed: the reason says what the loader says of the file."""
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")
    samples: list[Sample] = []
    await NvmlSource(Host(), timing=PATIENT, env={"LD_LIBRARY_PATH": str(tmp_path)}).once(samples.append)
    (sample,) = samples
    assert isinstance(sample, NvmlState)
    assert sample.state == "absent"
    assert sample.reason.startswith("libnvidia-ml.so.1 is there and cannot be loaded: ")
    assert str(tmp_path / "libnvidia-ml.so.1") in sample.reason


def test_a_missing_library_is_reported_in_nvmls_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a machine that has one."""
    monkeypatch.setattr(calls, "_LIBRARY", "libnvidia-ml-of-nobody.so.1")
    error = pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    assert calls._why_absent(error) == "NVML Shared Library Not Found"
    assert calls._why_absent(pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)) == "Driver Not Loaded"


async def test_an_old_driver_lacks_functions_one_by_one(tmp_path: Path) -> None:
    """What it does not provide is None; the rest is reported, processes by the older call."""
    fake = FakeNvml(tmp_path / "state", build(tmp_path / "lib", old_driver=True), gpus=1)
    fake.hold(0, (os.getpid(), 700))
    samples: list[Sample] = []
    await NvmlSource(Host(), timing=PATIENT, env=fake.env).once(samples.append)
    (gpu,) = (sample for sample in samples if isinstance(sample, Gpu))
    assert (gpu.bdf, gpu.uuid, gpu.utilization, gpu.power_w, gpu.temperature_c) == (FIRST, "", 50, None, None)
    assert [process.memory_mb for process in gpu.processes] == [700]
    async with running(fake.env) as emitted:  # without events it samples just the same
        await emitted.gpu(FIRST)
        await emitted.gpu(FIRST)


async def test_a_child_that_dies_breaks_the_source(fake: FakeNvml) -> None:
    """The agent's supervisor opens it again and reports agent.source_failed."""
    async with running(fake.env) as emitted:
        await emitted.state("ready")
        os.kill(children()[0], 9)
        assert emitted.task is not None
        with pytest.raises(OSError, match="NVML child ended"):
            await asyncio.wait_for(emitted.task, 60)


async def test_a_recorded_machine_opens_no_nvml(tmp_path: Path, fake: FakeNvml) -> None:
    """Its GPUs are not ours."""
    samples: list[Sample] = []
    source = NvmlSource(Host(root=tmp_path), timing=QUICK, env=fake.env)
    await source.once(samples.append)
    task = asyncio.create_task(source.run(samples.append))
    await asyncio.sleep(0.2)
    assert children() == []
    assert not task.done()
    task.cancel()
    assert samples == []

"""Calls that hang, children that do not die, GPUs that NVML never showed; and how little the child costs."""

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.collectors.samples import Gpu, GpuCount, GpuHealth, IbPort, NvmlState
from agent.contract.messages import Severity
from agent.host import Host
from agent.nvml import process
from agent.nvml.process import MAX_UNKILLABLE, Timing, kill
from agent.sources.infiniband import InfinibandSource, InfinibandSourceOptions
from agent.sources.nvml import NvmlSource
from tests.agent.nvml_kit import FIRST, QUICK, SECOND, Machine, ended, plug, running
from tests.fixtures.nvml_fake import LOST, UNKNOWN, FakeNvml


async def test_one_gpus_hanging_call_does_not_blind_the_others(fake: FakeNvml, bus: Path) -> None:
    """It is not made for a while; all else is sampled, of this GPU too. When it answers, that is reported once."""
    async with running(fake, bus, timing=replace(QUICK, skip_s=(3.0, 60.0))) as machine:
        await machine.next_samples(2)
        fake.hang("nvmlDeviceGetTemperature", 0)
        hung = await machine.says("nvml.hung", "node")
        assert (hung.data["call"], hung.data["gpu"]) == ("nvmlDeviceGetTemperature", FIRST)
        await machine.next_samples(3, SECOND)
        await machine.next_samples(2, FIRST)
        assert machine.of("nvml.answers", "node") == []
        await machine.says_again("nvml.hung", "node")  # it was tried again; now for the longer pause
        before = len(machine.of("nvml.hung", "node"))
        await machine.next_samples(20, SECOND)
        assert len(machine.of("nvml.hung", "node")) == before
    kinds_said = {unsent.kind for unsent in machine.unsent_events}
    assert kinds_said == {"nvml.hung"}  # a GPU that is not asked is not lost


async def test_nvml_hung_for_60_s(fake: FakeNvml, bus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported with the time, the child is replaced, InfiniBand is followed on, and at the end that is reported too."""
    skew_s = 0.0
    monkeypatch.setattr(process, "now_s", lambda: Host().mono_s() + skew_s)
    device = bus / "sys/class/infiniband/mlx5_0"
    counter = device / "ports/1/counters/link_downed"
    counter.parent.mkdir(parents=True)
    (device / "ports/1/state").write_text("4: ACTIVE\n")
    counter.write_text("0\n")
    timing = Timing(interval_s=0.05, deadline_s=60.0, look_s=0.1)
    async with running(fake, bus, timing=timing) as machine:
        others = asyncio.create_task(
            InfinibandSource(Host(root=bus), InfinibandSourceOptions(ib_interval_s=0.05)).run(machine.take)
        )
        await machine.next_samples(2)
        await machine.until(lambda: any(isinstance(sample, IbPort) for sample in machine.samples))
        before = list(child_of_us())
        fake.hang("nvmlDeviceGetCount")  # of no GPU: nothing can be queried
        hung_s = Host().mono_s()
        await machine.until(fake.is_hanging)  # else another call would seem to take so long
        skew_s = 30.0
        counter.write_text("1\n")
        await machine.says("ib.errors", "port/mlx5_0.1")
        assert machine.of("nvml.hung", "node") == []  # not yet
        skew_s = 60.5
        hung = await machine.says("nvml.hung", "node")
        assert hung.severity is Severity.ERROR
        assert 60.0 <= float(hung.data["waited_s"]) <= Host().mono_s() - hung_s + skew_s + 0.5
        assert "nvmlDeviceGetCount did not return" in hung.evidence
        skew_s = 0.0
        fake.resume()
        await machine.says("nvml.answers", "node")
        await machine.next_samples(2)
        now = list(child_of_us())
        assert len(before) == len(now) == 1
        assert before != now
        await ended(others)
    assert [unsent.kind for unsent in machine.unsent_events if unsent.kind.startswith("nvml.")] == [
        "nvml.hung",
        "nvml.answers",
    ]


async def test_a_gpu_that_hangs_when_it_is_opened_is_left_out_and_not_lost(fake: FakeNvml, bus: Path) -> None:
    """Nobody knows how it is: gpu.lost would be a claim."""
    plug(bus, FIRST)
    plug(bus, SECOND)
    fake.hang("nvmlDeviceGetHandleByIndex", 0)
    async with running(fake, bus, timing=replace(QUICK, rare_every=30)) as machine:
        await machine.says("nvml.hung", "node")
        await machine.next_samples(10, SECOND)
        assert not [unsent for unsent in machine.unsent_events if unsent.kind == "gpu.lost"]


async def test_a_known_gpu_that_hangs_when_it_is_opened_again_is_not_lost_either(
    fake: FakeNvml, bus: Path
) -> None:
    """NVML is opened again when it counts another number of GPUs."""
    async with running(fake, bus, timing=replace(QUICK, skip_s=(60.0,))) as machine:
        await machine.next_samples(2)
        fake.hang("nvmlDeviceGetHandleByIndex", 0)
        fake.set_count(1)
        await machine.says("nvml.hung", "node")
        await machine.says("gpu.lost", f"gpu/{SECOND}")
        fake.set_count(2)
        emitted = [r for r in machine.samples if isinstance(r, Gpu) and r.bdf == FIRST]
        await machine.next_samples(3, SECOND)
        # Nothing is claimed: neither that it is lost nor that it answers.
        assert [r for r in machine.samples if isinstance(r, Gpu) and r.bdf == FIRST] == emitted
        assert machine.of("gpu.lost", f"gpu/{FIRST}") == []


async def test_children_that_cannot_be_killed_are_few_and_reported(fake: FakeNvml, bus: Path) -> None:
    """A process in an uninterruptible call ignores SIGKILL until the driver lets go. Then all goes on."""
    spared: list[asyncio.subprocess.Process] = []
    source = NvmlSource(Host(), timing=QUICK, env=fake.env, bus=Host(root=bus), kill=spared.append)
    fake.hang("nvmlInit")
    machine = Machine(source)
    try:
        await machine.says("nvml.blind", "node")
        await asyncio.sleep(0.5)  # that no further child is started has no other sign
        assert len(machine.of("nvml.blind", "node")) == 1
        assert len(spared) == MAX_UNKILLABLE
        fake.resume()
        for process in spared[:MAX_UNKILLABLE]:
            process.send_signal(signal.SIGKILL)
        await machine.says("nvml.answers", "node")
        await machine.next_samples(2)
    finally:
        await ended(machine.task)
        for process in spared:
            if process.returncode is None:
                kill(process)
            await process.wait()


@pytest.mark.parametrize(
    ("driver", "reason"), [("nvidia", "not_found"), ("", "unbound"), ("vfio-pci", ""), ("excluded", "")]
)
async def test_a_gpu_that_nvml_never_showed_is_lost_by_its_address(
    fake: FakeNvml, bus: Path, driver: str, reason: str
) -> None:
    """By the PCI bus; not one that belongs to a virtual machine or that the administrator excluded."""
    plug(bus, FIRST)
    plug(bus, SECOND)
    plug(bus, "0000:5d:00", "nvidia" if driver == "excluded" else driver, excluded=driver == "excluded")
    async with running(fake, bus) as machine:
        await machine.until(lambda: any(isinstance(r, GpuCount) for r in machine.samples))
        await machine.next_samples(12)
    found = machine.of("gpu.lost", "gpu/0000:5d:00")
    assert [unsent.data for unsent in found] == ([{"reason": reason}] if reason else [])
    counts = [unsent.data for unsent in machine.unsent_events if unsent.kind == "gpu.count"]
    assert [(c["gpus"], c["expected"], c["unnamed"], c["basis"]) for c in counts] == (
        [(2, 3, 0, "pci")] if reason else []
    )


@pytest.mark.parametrize(("code", "reason"), [(LOST, "lost"), (UNKNOWN, "unknown_error")])
async def test_nvmls_word_for_a_gpu_without_a_name_goes_to_the_one_that_is_missing(
    fake: FakeNvml, bus: Path, code: int, reason: str
) -> None:
    """Lost before the agent's first sample: NVML does not show which one it is, the bus does."""
    plug(bus, FIRST)
    plug(bus, SECOND)
    fake.fail(0, code)
    async with running(fake, bus) as machine:
        unsent = await machine.says("gpu.lost")
    assert unsent.data == {"reason": reason}


async def test_a_gpu_missing_against_the_configuration_has_no_name(fake: FakeNvml, bus: Path) -> None:
    """It is not even on the bus."""
    async with running(fake, bus, expected=4) as machine:
        unsent = await machine.says("gpu.count", "node")
    assert unsent.data == {"gpus": 2, "expected": 4, "missing": 2, "unnamed": 2, "basis": "config"}


def memory_kb(pid: int) -> int:
    return int(re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1])  # type: ignore[index]


def cpu_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def child_of_us() -> Iterator[int]:
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            if b"nvml/start.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                yield int(pid)


@pytest.mark.slow
async def test_the_child_is_small_and_lazy(tmp_path: Path, library: Path, bus: Path) -> None:
    """Eight GPUs at the default pace: at most 12 MB, and well within the 0.5 % of a core that the whole agent may use.

    Our library reads files where the driver would make a system call: its time is in the figure.
    """
    fake = FakeNvml(tmp_path / "eight", library, gpus=8)
    for index in range(8):
        fake.well(index)
        fake.hold(index, (os.getpid(), 700))
    pace = Timing()
    # It works for samples only: what one of them takes is the same when they come faster.
    async with running(fake, bus, timing=replace(pace, interval_s=0.1)) as machine:
        await machine.until(lambda: any(isinstance(r, Gpu) for r in machine.samples))
        (child,) = child_of_us()
        used_s = cpu_s(child)
        await machine.next_samples(2 * pace.rare_every)
        share = (cpu_s(child) - used_s) / (2 * pace.rare_every * pace.interval_s)
        assert memory_kb(child) <= 12 * 1024
    print(f"NVML child: {share:.4%} of a core")
    assert share <= 0.005
    assert machine.unsent_events == []


NVIDIA = Path("/dev/nvidia0")


@pytest.mark.optional("a GPU")
@pytest.mark.skipif(not NVIDIA.exists(), reason="no NVIDIA device (/dev/nvidia0): nothing to sample")
async def test_a_real_driver_is_sampled() -> None:
    """Every GPU answers with its address, and what a data-centre driver always provides is there."""
    machine = Machine(NvmlSource(Host(), timing=Timing(interval_s=0.2, slow_every=2, rare_every=4)))
    try:
        await machine.until(lambda: any(isinstance(r, GpuHealth) for r in machine.samples), within_s=60)
        bdf = next(r.bdf for r in machine.samples if isinstance(r, GpuHealth))
        await machine.next_samples(12, bdf)
        (child,) = child_of_us()
        assert memory_kb(child) <= 40 * 1024  # the real library is larger than ours
    finally:
        await ended(machine.task)
    gpu = next(r for r in machine.samples if isinstance(r, Gpu))
    assert gpu.utilization is not None
    assert gpu.temperature_c is not None
    health = next(r for r in machine.samples if isinstance(r, GpuHealth))
    assert {"driver", "power_limit", "pcie.width", "persistence"} <= set(health.values)
    assert [r.state for r in machine.samples if isinstance(r, NvmlState)] == ["ready"]
    assert not {unsent.kind for unsent in machine.unsent_events} & {"gpu.lost", "gpu.count"}

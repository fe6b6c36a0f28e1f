"""NVML that cannot be opened on a machine whose GPUs the driver has: nobody can use them, and somebody must be told."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from agent.contract.messages import Severity
from tests.agent.nvml_kit import FIRST, PATIENT, SECOND, Machine, plug, running
from tests.fixtures.nvml_fake import DRIVER_NOT_LOADED, LOST, UNKNOWN, FakeNvml

NO_MORE = 1  # NVML_ERROR_UNINITIALIZED
MISMATCH = 18
SETTLED_S = 4 * PATIENT.settle_s


def told(machine: Machine) -> set[str]:
    return {unsent.kind for unsent in machine.unsent_events}


@pytest.mark.parametrize("code", [UNKNOWN, LOST])
@pytest.mark.parametrize("expected", [0, 2])
async def test_the_driver_has_gpus_and_lets_nobody_in(
    fake: FakeNvml, bus: Path, code: int, expected: int
) -> None:
    """With the reason, NVML's code and the number; once, and never as GPUs that lack a name. The end is told too."""
    plug(bus, FIRST)
    plug(bus, SECOND)
    fake.refuse(code)
    async with running(fake, bus, expected=expected) as machine:
        refused = await machine.says("nvml.refused", "node")
        assert refused.severity is Severity.ERROR
        assert (refused.data["what"], refused.data["code"], refused.data["gpus"]) == ("driver", code, 2)
        assert str(refused.data["reason"]) in refused.evidence
        count = (await machine.says("gpu.count", "node")).data
        assert (count["gpus"], count["expected"], count["unnamed"]) == (0, 2, 0)
        await asyncio.sleep(SETTLED_S)  # that nothing more is reported has no other sign
        assert [unsent.kind for unsent in machine.unsent_events] == [
            "nvml.absent",
            "nvml.refused",
            "gpu.count",
        ]
        fake.refuse(0)
        await machine.says("nvml.answers", "node")
        assert (await machine.says_again("gpu.count", "node")).data["missing"] == 0
    assert "gpu.lost" not in told(machine)


async def test_a_driver_that_breaks_while_jobs_run(fake: FakeNvml, bus: Path) -> None:
    """All calls say that NVML was never opened, and it cannot be opened again."""
    plug(bus, FIRST)
    plug(bus, SECOND)
    async with running(fake, bus) as machine:
        await machine.next_samples(2, SECOND)
        fake.refuse(UNKNOWN)
        for index in (0, 1):
            fake.fail(index, NO_MORE)
        assert (await machine.says("nvml.refused", "node")).data["gpus"] == 2
        count = (await machine.says("gpu.count", "node")).data
    assert (count["missing"], count["unnamed"], count["basis"]) == (2, 0, "pci")


async def test_another_answer_is_told_again(fake: FakeNvml, bus: Path) -> None:
    """A person who upgrades the driver changes what is the matter."""
    plug(bus, FIRST)
    fake.refuse(UNKNOWN)
    async with running(fake, bus) as machine:
        await machine.says("nvml.refused", "node")
        fake.refuse(MISMATCH)
        assert (await machine.says_again("nvml.refused", "node")).data["what"] == "other_version"


@pytest.mark.parametrize("code", [UNKNOWN, DRIVER_NOT_LOADED])
@pytest.mark.parametrize("driver", ["no GPU", "", "vfio-pci"])
async def test_without_a_gpu_that_the_driver_has_all_is_well(
    fake: FakeNvml, bus: Path, code: int, driver: str
) -> None:
    """A machine without GPUs or without the driver, or whose GPUs belong to virtual machines."""
    if driver != "no GPU":
        plug(bus, FIRST, driver)
    fake.refuse(code)
    async with running(fake, bus) as machine:
        await machine.says("nvml.absent", "node")
        await asyncio.sleep(SETTLED_S)  # that nothing more is reported has no other sign
    assert told(machine) == {"nvml.absent"}


async def test_a_driver_that_is_still_loading(fake: FakeNvml, bus: Path) -> None:
    """It has its GPUs before NVML can be opened."""
    plug(bus, FIRST)
    plug(bus, SECOND)
    fake.refuse(DRIVER_NOT_LOADED)
    async with running(fake, bus, timing=replace(PATIENT, settle_s=60.0)) as machine:
        await machine.says("nvml.absent", "node")
        fake.refuse(0)
        await machine.next_samples(2, SECOND)
    assert told(machine) == {"nvml.absent"}


async def test_known_gpus_that_come_back_one_after_another(fake: FakeNvml, bus: Path) -> None:
    """A person reloads the driver: a GPU that was there before has time to come back, and none is lost meanwhile."""
    plug(bus, FIRST)
    plug(bus, SECOND)
    async with running(fake, bus, timing=replace(PATIENT, settle_s=60.0)) as machine:
        await machine.next_samples(2, SECOND)
        await reload(machine, fake, gpus=1)
        await machine.next_samples(10)
        with pytest.raises(OSError, match=f"answers too little of what it is asked: {SECOND}"):
            await machine.source.look(lambda _: None)  # it does not say either that the GPU is well
        fake.set_count(2)
        await machine.next_samples(2, SECOND)
        # Now it is there: if it falls off, it has no time to settle any more.
        fake.set_count(1)
        assert (await machine.says("gpu.lost", f"gpu/{SECOND}")).data["reason"] == "not_found"
    assert told(machine) == {"nvml.absent", "gpu.lost"}


async def test_a_known_gpu_that_does_not_come_back(fake: FakeNvml, bus: Path) -> None:
    """When it has had its time it is lost."""
    async with running(fake, bus) as machine:
        await machine.next_samples(2, SECOND)
        await reload(machine, fake, gpus=1)
        lost = await machine.says("gpu.lost", f"gpu/{SECOND}")
    assert lost.data["reason"] == "not_found"


async def reload(machine: Machine, fake: FakeNvml, *, gpus: int) -> None:
    """The driver is unloaded, and loaded again with so many GPUs at first."""
    fake.refuse(DRIVER_NOT_LOADED)
    fake.fail(0, NO_MORE)
    await machine.says("nvml.absent", "node")
    fake.set_count(gpus)
    fake.fail(0, 0)
    fake.refuse(0)


async def test_gpus_that_are_not_even_on_the_bus(fake: FakeNvml, bus: Path) -> None:
    """Without a GPU the driver does not load: what the configuration expects is missing, and has no name."""
    fake.refuse(DRIVER_NOT_LOADED)
    async with running(fake, bus, expected=8) as machine:
        count = (await machine.says("gpu.count", "node")).data
    assert (count["missing"], count["unnamed"], count["basis"]) == (8, 8, "config")
    assert "nvml.refused" not in told(machine)

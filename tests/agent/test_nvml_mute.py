"""A GPU of which nothing works any more, whatever code NVML answers: it is lost, and nothing is made up about its return."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.collectors.gpu import STEADY_SAMPLES
from agent.collectors.samples import Gpu, Sample
from tests.agent.nvml_kit import FIRST, ON_FIRST, PATIENT, QUICK, SECOND, Machine, running
from tests.fixtures.nvml_fake import LOST, FakeNvml

NOT_SUPPORTED, NO_PERMISSION, NO_SUCH_FUNCTION, NO_MEMORY = 3, 4, 13, 20
# All that say neither that a GPU is lost nor that NVML is closed, and one of a driver to come.
CODES = [*range(2, 9), 10, 11, 13, 14, 17, *range(19, 28), 29, 30, 12345]
# Some questions come seldom: what answers them no more is noticed by those that come often.
LAZY = replace(PATIENT, slow_every=4, rare_every=8)


def of_first(machine: Machine) -> list[Gpu]:
    return [one for one in machine.samples if isinstance(one, Gpu) and one.bdf == FIRST]


async def samples_of_first(machine: Machine, count: int) -> list[Gpu]:
    """The next ones, lost or not."""
    before = len(of_first(machine))
    await machine.until(lambda: len(of_first(machine)) >= before + count)
    return of_first(machine)[before:]


@pytest.mark.parametrize("code", CODES)
async def test_it_answered_before_and_nothing_works_any_more(fake: FakeNvml, bus: Path, code: int) -> None:
    """It is lost, whatever the code; also when NVML is opened again, and until it works. The other GPU is asked on."""
    async with running(fake, bus, timing=LAZY) as machine:
        await machine.next_samples(2)
        fake.mute(0, code)
        assert (await machine.says("gpu.lost")).data["reason"] == "unknown_error"
        looked: list[Sample] = []
        await machine.source.look(looked.append)
        assert [one.lost for one in looked if isinstance(one, Gpu)] == ["unknown_error", ""]
        assert {one.lost for one in await samples_of_first(machine, 2 * STEADY_SAMPLES)} == {"unknown_error"}
        fake.mute(0, 0)
        await machine.source.look(
            lambda _: None
        )  # NVML is opened again: else that happens after half a minute
        await machine.says("gpu.returned")
        await machine.next_samples(2, SECOND)
    assert [unsent.component for unsent in machine.unsent_events if unsent.kind == "gpu.lost"] == [ON_FIRST]


@pytest.mark.parametrize("code", [NOT_SUPPORTED, NO_PERMISSION, NO_MEMORY, 12345])
async def test_it_does_not_even_open_any_more(fake: FakeNvml, bus: Path, code: int) -> None:
    """Every call fails, also the one by which it is found: a look that opens NVML again has nothing good to say of it."""
    async with running(
        fake, bus, timing=replace(PATIENT, interval_s=1.0)
    ) as machine:  # it is lost after three
        await machine.next_samples(1)
        fake.fail(0, code)
        looked: list[Sample] = []
        with pytest.raises(OSError, match=f"answers too little of what it is asked: {FIRST}"):
            await machine.source.look(looked.append)
        assert not any(one.answers for one in looked if isinstance(one, Gpu) and one.bdf == FIRST)
        await machine.says("gpu.lost")


@pytest.mark.parametrize("code", [6, NO_MEMORY, 12345])
async def test_a_lost_gpu_that_then_answers_nothing_stays_lost(fake: FakeNvml, bus: Path, code: int) -> None:
    """Other errors than before are no answers, also not after NVML was opened again."""
    async with running(fake, bus) as machine:
        await machine.next_samples(2)
        fake.fail(0, LOST)
        await machine.says("gpu.lost")
        fake.mute(0, code)
        fake.fail(0, 0)
        await machine.source.look(lambda _: None)
        assert all(one.lost for one in await samples_of_first(machine, 3 * STEADY_SAMPLES))
    assert machine.of("gpu.returned", ON_FIRST) == []


@pytest.mark.parametrize("code", [NOT_SUPPORTED, NO_SUCH_FUNCTION, NO_MEMORY])
async def test_a_gpu_that_was_lost_before_a_restart_has_not_returned(
    fake: FakeNvml, bus: Path, code: int
) -> None:
    """It is found, and nothing that it is asked works: a look does not say that it answers. It returns when it does."""
    fake.mute(0, code)
    async with running(fake, bus, lost_before=[FIRST]) as machine:
        assert not any(one.answers for one in await samples_of_first(machine, 3 * STEADY_SAMPLES))
        assert machine.of("gpu.returned", ON_FIRST) == []
        fake.mute(0, 0)
        await machine.source.look(lambda _: None)
        await machine.says("gpu.returned")


async def test_another_gpus_hang_makes_nobody_forget_what_worked(fake: FakeNvml, bus: Path) -> None:
    """The child that replaces the one that hung knows which GPUs had answered."""
    async with running(fake, bus, timing=replace(QUICK, skip_s=(60.0,))) as machine:
        await machine.next_samples(2)
        fake.hang("nvmlDeviceGetTemperature", 1)
        await machine.until(fake.is_hanging)
        fake.mute(0, NO_MEMORY)
        await machine.says("nvml.hung", "node")
        await machine.says("gpu.lost")


def without_all(fake: FakeNvml) -> None:
    """Nothing but its identity."""
    fake.mute(0, NOT_SUPPORTED)


def in_mig_mode(fake: FakeNvml) -> None:
    """It has no utilisation as a whole."""
    for name in ("UtilizationRates", "CurrentClocksEventReasons"):
        fake.fail_call(0, f"nvmlDeviceGet{name}", NOT_SUPPORTED)


@pytest.mark.parametrize(
    ("change", "at_first"), [(without_all, True), (in_mig_mode, True), (in_mig_mode, False)]
)
async def test_what_a_card_does_not_support_is_no_fault(
    fake: FakeNvml, bus: Path, change: Callable[[FakeNvml], None], at_first: bool
) -> None:
    """Never supported, or not any more in another mode, while all else works."""
    if at_first:
        change(fake)
    async with running(fake, bus, timing=LAZY) as machine:
        await samples_of_first(machine, 10)
        change(fake)
        await samples_of_first(machine, 40)
        await machine.source.look(lambda _: None)
    assert machine.unsent_events == []

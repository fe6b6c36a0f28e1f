"""The brain's own steps: outcomes by error, deadlines, cancellation, and what happens when the lease is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import ClassVar

import pytest

from agent.contract.actions.spec import Disrupts, Repeat
from agent.contract.commands import Outcome
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from brain.actions.base import Done, Order, Unwell
from brain.core.effects import Step
from brain.core.inputs import StepProgress, StepResult
from brain.leader import performer
from brain.leader.performer import Performer
from tests.fences import confirmed

Work = Callable[[Order], Awaitable[Done]]


class Own:
    """An action that does `work`."""

    name: ClassVar[str] = "bmc.power_off"

    def __init__(self, work: Work) -> None:
        self.work = work
        self.begun = asyncio.Event()
        self.undone = False
        self.lines = ["power off"]

    async def plan(self, order: Order) -> list[str]:
        """What it would do."""
        return [f"{line} {order.node}" for line in self.lines]

    async def run(self, order: Order) -> Done:
        """Does it."""
        self.begun.set()
        try:
            return await self.work(order)
        except asyncio.CancelledError:
            self.undone = True
            raise


def step(action: str = "bmc.power_off", timeout_s: float = 60.0) -> Step:
    """One attempt."""
    return Step(
        id="inc-a.r1.s1.a1", run="inc-a.r1", incident="inc-a", node="n1", action=action, where="brain", params={},
        timeout_s=timeout_s, disrupts=Disrupts.NODE, repeat=Repeat.SAFE, why="a test",
    )  # fmt: skip


async def raises(error: Exception) -> Done:
    """Fails."""
    raise error


async def for_ever(_: Order) -> Done:
    """Never ends by itself."""
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Refused("wrong password"), Outcome.REFUSED),
        (Unreachable("no route"), Outcome.UNREACHABLE),
        (TimedOut("no answer"), Outcome.UNKNOWN),
        (ActionError("still on"), Outcome.FAILED),
        (OSError("disk"), Outcome.FAILED),
    ],
)
async def test_each_error_is_an_outcome(error: Exception, outcome: Outcome) -> None:
    """By who must act."""
    own_steps = Performer(
        {"bmc.power_off": Own(lambda _: raises(error))},
        may_act=lambda _: True,
        confirm=confirmed,
        report=lambda _: None,
    )
    result = await own_steps.perform(step(), 3)
    assert isinstance(result, StepResult)
    assert (result.outcome, result.why, result.id) == (outcome, str(error), "r:inc-a.r1.s1.a1:3")


async def test_an_answer_that_nobody_can_read_is_a_result_and_not_the_end_of_the_brain() -> None:
    """The step may have been done; planning it has done nothing. The brain would be started again, ask again and end again."""
    own = Own(lambda _: raises(KeyError("status")))
    steps = Performer(
        {"bmc.power_off": own}, may_act=lambda _: True, confirm=confirmed, report=lambda _: None
    )
    result = await steps.perform(step(), 3)
    assert isinstance(result, StepResult)
    assert result.outcome is Outcome.UNKNOWN
    assert "its answer has a form that nobody here knows (KeyError: 'status')" in result.why
    own.lines = 7  # type: ignore[assignment]  # what it never says
    with pytest.raises(ActionError, match="nobody here knows"):
        await steps.plan(step())


async def test_what_was_read_is_kept_when_it_is_not_well() -> None:
    """A look that found something wrong has failed, with its readings."""
    own = Own(lambda _: raises(Unwell("unhealthy: PSU 2", {"sensor PSU 2": "no reading"})))
    result = await Performer(
        {"bmc.power_off": own}, may_act=lambda _: True, confirm=confirmed, report=lambda _: None
    ).perform(step(), 3)
    assert result is not None
    assert (result.outcome, dict(result.data)) == (Outcome.FAILED, {"sensor PSU 2": "no reading"})


async def test_what_this_site_has_nothing_for_is_refused_and_says_where_to_read() -> None:
    """The ladder goes on."""
    own_steps = Performer({}, may_act=lambda _: True, confirm=confirmed, report=lambda _: None)
    result = await own_steps.perform(step(), 1)
    assert result is not None
    assert result.outcome is Outcome.REFUSED
    assert "docs/actions.md" in result.why
    with pytest.raises(Refused):
        await own_steps.plan(step())


async def test_a_step_that_takes_too_long_is_unknown_and_was_cancelled() -> None:
    """Its deadline is its own."""
    own = Own(for_ever)
    own_steps = Performer(
        {"bmc.power_off": own}, may_act=lambda _: True, confirm=confirmed, report=lambda _: None
    )
    result = await own_steps.perform(step(timeout_s=0.05), 1)
    assert result is not None
    assert result.outcome is Outcome.UNKNOWN
    assert own.undone


async def test_a_brain_that_leads_no_more_stops_and_says_nothing() -> None:
    """The next leader decides by the repeat class."""
    own = Own(for_ever)
    leads = True
    own_steps = Performer(
        {"bmc.power_off": own}, may_act=lambda _: leads, confirm=confirmed, report=lambda _: None
    )
    task = asyncio.create_task(own_steps.perform(step(), 1))
    await own.begun.wait()
    leads = False
    async with asyncio.timeout(60):
        assert await task is None
    assert own.undone


async def test_a_cancelled_step_ends_and_nobody_knows_how_far_it_came() -> None:
    """A person denied it."""
    own = Own(for_ever)
    own_steps = Performer(
        {"bmc.power_off": own}, may_act=lambda _: True, confirm=confirmed, report=lambda _: None
    )
    task = asyncio.create_task(own_steps.perform(step(), 1))
    await own.begun.wait()
    assert await own_steps.perform(step(), 1) is None, "the same step asked for again does not run twice"
    own_steps.cancel("inc-a.r1.s9.a1", "another one")
    own_steps.cancel(step().id, "ann denied it")
    async with asyncio.timeout(60):
        result = await task
    assert result is not None
    assert (result.outcome, result.why) == (Outcome.UNKNOWN, "cancelled: ann denied it")
    assert own.undone


async def test_a_long_step_says_that_it_is_under_way_and_what_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every so often by itself, and whenever the action has something to say."""
    monkeypatch.setattr(performer, "PROGRESS_S", 0.0)
    monkeypatch.setattr(performer, "CHECK_S", 0.01)
    told: list[StepProgress] = []
    enough = asyncio.Event()

    def report(given: StepProgress) -> None:
        told.append(given)
        if len(told) >= 4:
            enough.set()

    async def work(order: Order) -> Done:
        order.progress("3 jobs left")
        async with asyncio.timeout(60):
            await enough.wait()
        return Done(text="off", data={"power": "Off"})

    own_steps = Performer(
        {"bmc.power_off": Own(work)}, may_act=lambda _: True, confirm=confirmed, report=report
    )
    result = await own_steps.perform(step(), 1)
    assert result is not None
    assert (result.outcome, result.data) == (Outcome.OK, {"power": "Off"})
    assert "3 jobs left" in [given.text for given in told]
    assert len({given.id for given in told}) == len(told)

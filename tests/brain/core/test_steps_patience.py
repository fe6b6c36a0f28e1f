"""Steps that last: a person is told of what takes long, and one who objects to a drain that waits is heard."""

from typing import Any

import pytest

from agent.contract.commands import Outcome
from brain.core.effects import CancelStep, Effect, SendPage
from brain.core.healing import patience, steps
from brain.core.inputs import StepProgress, StepResult
from brain.core.pack.spec import Paging, Priority, Rung
from brain.core.state import OwnedDrain, RunState
from tests.brain.core.cell import NOW, Cell, Given
from tests.brain.core.givens import (
    held,
    in_maintenance,
    is_,
    on,
    operator_sets,
    runbook,
    started_by,
)
from tests.brain.core.standing import NEXT, STEP, standing

TIMER = "run:inc-1.r1"


def about(**fields: Any) -> Given:
    """The incident is so."""

    def given(cell: Cell) -> None:
        for name, value in fields.items():
            setattr(cell.incident, name, value)

    return given


def owned() -> Given:
    """The incident keeps n1 out of service."""

    def given(cell: Cell) -> None:
        cell.state.drains["n1"] = {"inc-1": OwnedDrain(since=NOW, marks=["inc-1"])}

    return given


def paged() -> Given:
    """Somebody was paged for the incident."""

    def given(cell: Cell) -> None:
        cell.incident.pages.first_at = NOW - 60

    return given


def lasts(minutes: float) -> Given:
    """The run began so long ago."""
    return is_(started_at=NOW - minutes * 60)


def pages(effects: list[Effect]) -> list[str]:
    """What people read."""
    return [effect.text for effect in effects if isinstance(effect, SendPage)]


QUIETLY = about(page=Paging.FAILURE)


@pytest.mark.parametrize(
    ("givens", "told"),
    [
        pytest.param([QUIETLY, lasts(30)], True, id="half an hour"),
        pytest.param([QUIETLY, lasts(29.9)], False, id="almost half an hour"),
        pytest.param([QUIETLY, lasts(30), about(severity=Priority.P0)], True, id="a P0"),
        pytest.param([QUIETLY, lasts(30), about(severity=Priority.P2)], False, id="a P2 may take its time"),
        pytest.param([QUIETLY, lasts(30), about(severity=Priority.P2), owned()], True, id="not with a node out of service"),
        pytest.param([QUIETLY, lasts(30), paged()], False, id="they know already"),
        pytest.param([about(page=Paging.NEVER), lasts(30)], False, id="nobody wants to hear of it"),
        pytest.param([about(page=Paging.OPEN), lasts(30)], False, id="its rule tells at once"),
        pytest.param([QUIETLY, lasts(30), started_by("bea")], False, id="a person has started it"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("by", ["timer", "progress"])
def test_people_hear_of_what_takes_long(givens: list[Given], by: str, *, told: bool) -> None:
    """Law 14: every state that waits has a person who is told; once."""
    cell = Cell(*givens, standing(RunState.PERFORMING))
    cell.run.steps[-1].doing = "waiting for job 7"
    for _ in range(2):
        ctx = cell.ctx()
        if by == "timer":
            patience.timer(ctx, cell.run)
        else:
            steps.progress(ctx, StepProgress(id="g", step=STEP, elapsed_s=1, text=""))
        expected = "not healed after 30 minutes: waiting for job 7"
        assert pages(ctx.finish()) == ([expected] if told else [])
        told = False


@pytest.mark.parametrize(
    ("state", "doing", "text"),
    [
        pytest.param(RunState.HELD, "waiting for job 7", "bea holds it", id="it waits: what the step did is the past"),
        pytest.param(RunState.PERFORMING, "", "bea holds it", id="the step has not said what it does"),
        pytest.param(RunState.PERFORMING, "waiting for job 7", "waiting for job 7", id="the step says what it does"),
    ],
)  # fmt: skip
def test_what_they_hear_of_it(state: RunState, doing: str, text: str) -> None:
    """What it is that takes so long."""
    cell = Cell(QUIETLY, lasts(45), standing(state), is_(why="bea holds it"))
    cell.run.steps[-1].doing = doing
    ctx = cell.ctx()
    patience.timer(ctx, cell.run)
    assert pages(ctx.finish())[0] == f"not healed after 45 minutes: {text}"


# Drains that wait


def waits(then: str = "requeue", do: str = "scheduler.drain") -> Given:
    """The run waits for the jobs of n1; then this happens to them. It began 50 s ago."""

    def given(cell: Cell) -> None:
        params: dict[str, Any] = {"wait_s": 9000, "then": then} if do == "scheduler.drain" else {"then": then}
        runbook(rungs=(Rung(name="r", do=do, params=params), NEXT))(cell)
        owned()(cell)
        standing(RunState.PERFORMING, deadline=NOW + 9000)(cell)

    return given


@pytest.mark.parametrize(
    ("givens", "why"),
    [
        pytest.param([waits()], "", id="nobody objects"),
        pytest.param([waits(), held("node/n1")], "bea holds node/n1: cabling", id="a hold"),
        pytest.param([waits(), operator_sets("observe")], "it only observes", id="observe mode"),
        pytest.param([waits(), in_maintenance("node/n1", NOW - 10, NOW + 99)], "maintenance", id="a window has opened"),
        pytest.param([waits(), in_maintenance("node/n1", NOW - 90, NOW + 99)], "", id="one that was open when it began"),
        pytest.param([waits("fail"), held("node/n1")], "", id="its jobs may go on: it disturbs nothing more"),
        pytest.param([waits(do="gpu.reset"), held("node/n1")], "", id="no drain: it is under way"),
        pytest.param([waits(), held("node/n1"), is_(state=RunState.CANCELLING)], "", id="it is being stopped already"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("by", ["timer", "progress"])
def test_a_drain_that_would_end_jobs_is_stopped_by_who_objects(
    givens: list[Given], why: str, by: str
) -> None:
    """Law 2: before its wait is over, a hold still counts. The node stays drained, and the run waits."""
    cell = Cell(*givens)
    before = cell.run.state
    ctx = cell.ctx()
    if by == "timer":
        patience.timer(ctx, cell.run)
    else:
        steps.progress(ctx, StepProgress(id="g", step=STEP, elapsed_s=1, text="3 jobs left"))
    stopped = [effect.why for effect in ctx.finish() if isinstance(effect, CancelStep)]
    assert len(stopped) == bool(why)
    asks = RunState.APPROVAL if why == "maintenance" else RunState.HELD  # of a window people may approve
    assert cell.run.state is (asks if why else before)
    assert [*cell.state.drains["n1"]] == ["inc-1"]
    if why == "bea holds node/n1: cabling":
        assert stopped == [f"its wait was stopped: {why}"]
        assert (cell.run.steps[-1].outcome, cell.run.steps[-1].why) == ("failed", stopped[0])
        assert cell.run.steps[-1].doing == ""
    assert steps.reconsider(cell.ctx(), cell.run) is False


def test_who_asks_hears_whether_it_was_stopped() -> None:
    """As an operator's hold does."""
    for givens, stopped in (([waits(), held("node/n1")], True), ([waits()], False)):
        cell = Cell(*givens)
        assert steps.reconsider(cell.ctx(), cell.run) is stopped


# What the scheduler says of a drain


@pytest.mark.parametrize(
    ("outcome", "data", "sure", "kept_out"),
    [
        pytest.param("ok", {"ours": True}, True, "", id="it is ours"),
        pytest.param("ok", {}, True, "", id="it does not say whose"),
        pytest.param(
            "ok",
            {"ours": False, "reason": "ann: new DIMMs"},
            True,
            "somebody else has drained n1 (ann: new DIMMs)",
            id="somebody else's",
        ),
        pytest.param("ok", {"ours": False}, True, "somebody else has drained n1 ()", id="without a reason"),
        pytest.param(
            "failed", {"ours": False}, False, "as before", id="it did not end well: nothing is known"
        ),
        pytest.param("unknown", {}, False, "as before", id="nobody knows"),
    ],
)
def test_what_the_scheduler_says_of_a_drain(
    outcome: str, data: dict[str, Any], kept_out: str, *, sure: bool
) -> None:
    """Law 3: whose it is; and from then on it is sure that no new jobs come."""
    cell = Cell(waits(), is_(kept_out="as before"))
    ctx = cell.ctx()
    steps.result(ctx, StepResult(id="a", step=STEP, outcome=Outcome(outcome), why="so it is", data=data))
    assert cell.state.drains["n1"]["inc-1"].sure is sure
    assert cell.run.kept_out == kept_out


def test_what_is_on_no_node_is_told_of_too() -> None:
    """A fabric's run that takes long."""
    cell = Cell(QUIETLY, lasts(31), on("fabric/default", ""), standing(RunState.PERFORMING))
    ctx = cell.ctx()
    patience.timer(ctx, cell.run)
    assert len(pages(ctx.finish())) == 1

"""Runs that gates stop: what people hear, what is kept of it, and steps that do not leave."""

import pytest

from brain.core.effects import Note, SendPage, WriteIntent
from brain.core.healing import run_states, runs
from brain.core.pack.spec import Rung
from brain.core.state import Run, RunState, StepRecord
from tests.brain.core.cell import LADDER, NOW, Cell, Given, wait
from tests.brain.core.givens import (
    approved,
    at_work,
    is_,
    operator_sets,
    runbook,
    started_by,
    treated,
    tried,
    waiting,
)
from tests.brain.core.test_approvals import at_rung

TIMER = "run:inc-1.r1"
FIVE = treated("m1", "m2", "m3", "m4", "m5")


def began(run: Run) -> None:
    """Its first step's intent is on its way to the log."""
    run.state = RunState.INTENT
    run.steps = [
        StepRecord(id=f"inc-1.r1.s1.a{number}", rung="reset", action="gpu.reset", params={}, at=NOW - 30)
        for number in (1, 2, 3)
    ]


def test_an_intent_that_does_not_come_back_is_written_again() -> None:
    """Law 4: under the same id, so that it can never be two; and looked after again half a minute later."""
    cell = Cell()
    began(cell.run)
    ctx = cell.ctx()
    runs.intend_again(ctx, cell.run)
    (note,) = [one for one in ctx.effects if isinstance(one, Note)]
    (intent,) = [one for one in ctx.effects if isinstance(one, WriteIntent)]
    assert (note.kind, note.incident, note.run, note.scope) == (
        "run.waits",
        "inc-1",
        "inc-1.r1",
        cell.run.scope,
    )
    assert note.text == "the intent of reset has not come back within 30 s: written again"
    assert (intent.step.id, intent.step.action) == ("inc-1.r1.s1.a3", "gpu.reset")
    assert cell.state.timers == {"run:inc-1.r1": NOW + 30}
    assert cell.run.state is RunState.INTENT


@pytest.mark.parametrize(
    "before", ["reset: gpu.reset (attempt 3)", "reset waits: bea holds node/n1 (gate hold)"]
)
def test_a_step_that_is_withdrawn_at_the_last_moment(before: str) -> None:
    """Law 2: the last step did not leave, and says why; the run waits for the gate, and holds its node no longer. Also when
    it has waited for the same before.
    """
    cell = Cell()
    began(cell.run)
    cell.run.claimed, cell.run.why = True, before
    ctx = cell.ctx()
    runs.withdraw(ctx, cell.run, LADDER.rungs[0], wait("hold", "bea holds node/n1", 60))
    assert [(step.outcome, step.why) for step in cell.run.steps] == [
        ("", ""),
        ("", ""),
        ("withdrawn", "bea holds node/n1"),
    ]
    assert (cell.run.state, cell.run.why) == (RunState.HELD, "reset waits: bea holds node/n1 (gate hold)")
    assert (cell.run.claimed, ctx.freed, cell.state.timers) == (False, True, {"run:inc-1.r1": NOW + 60})


@pytest.mark.parametrize("claimed", [True, False])
def test_who_waits_for_a_place_hears_when_one_is_free(*, claimed: bool) -> None:
    """When a run lets go of its node; one that held none frees nothing."""
    cell = Cell(is_(claimed=claimed))
    ctx = cell.ctx()
    run_states.transition(ctx, cell.run, run_states.RunTrigger.CANCELLED, "not wanted")
    assert ctx.freed is claimed


@pytest.mark.parametrize(
    ("givens", "told"),
    [
        pytest.param([FIVE], True, id="the first of them"),
        pytest.param([FIVE, waiting("m9")], True, id="another one waits, which may have made it up"),
        pytest.param([FIVE, waiting("m8"), waiting("m9")], False, id="two others wait, and have told it"),
        pytest.param([at_work("n2")], False, id="a gate that opens by itself"),
    ],
)
def test_people_hear_once_that_nodes_belong_together(givens: list[Given], told: bool) -> None:
    """Law 6 pages: by the first two nodes that wait, and each once."""
    cell = Cell(*givens)
    pages = [
        one for effects in (cell.proceeds(), cell.proceeds()) for one in effects if isinstance(one, SendPage)
    ]
    assert len(pages) == told
    assert cell.run.state is RunState.HELD


def test_a_remedy_that_no_gate_will_allow_again_is_spent() -> None:
    """Law 8: the incident starts it no second time, while a person has it."""
    cell = Cell(tried(60, 120))
    cell.proceeds()
    assert (cell.run.state, cell.run.spent) == (RunState.EXHAUSTED, True)


def test_an_approval_that_its_step_has_had_is_not_called_void() -> None:
    """The run has gone on: the next step wants one of its own, and nobody wonders at night what became of the first."""
    cell = Cell(operator_sets("approve"), approved(), at_rung(1))
    (page,) = [one for one in cell.proceeds() if isinstance(one, SendPage)]
    assert "reset-gpu is in approve mode; bea has approved" in page.text
    assert " only — gpuward approve inc-1 --rung " in page.text
    assert "void" not in page.text


def test_while_an_approval_is_wanted() -> None:
    """The run looks after it every five minutes; a name with a blank in it can be typed; a void approval stays void."""
    cell = Cell(
        operator_sets("approve"),
        runbook(rungs=(Rung(name="GPU reset", do="gpu.reset", params={"gpu": "gpu/0"}),)),
    )
    approved(until=NOW - 1)(cell)
    (page,) = [one for one in cell.proceeds() if isinstance(one, SendPage)]
    assert page.text == (
        "approval wanted: GPU reset (gpu.reset), because reset-gpu is in approve mode; the approval of bea is void: "
        "its time is over — gpuward approve inc-1 --rung 'GPU reset'"
    )
    assert (cell.run.state, cell.run.wanted) == (RunState.APPROVAL, cell.run.why)
    assert cell.state.timers[TIMER] == NOW + 300
    assert cell.run.approved is not None
    assert cell.run.approved.ended == "its time is over"


@pytest.mark.parametrize(("who", "moved_at"), [("bea", NOW), ("", 0.0)])
def test_what_a_person_starts_rests_on_the_moment(who: str, moved_at: float) -> None:
    """Law 13: a fault's run is as old as its facts; what a person starts begins now."""
    cell = Cell(operator_sets("observe"))
    run = runs.start(cell.ctx(), cell.incident, who)
    assert run is not None
    assert run.moved_at == moved_at


@pytest.mark.parametrize(("who", "tries"), [("", 1), ("bea", 0)])
def test_only_what_a_fault_led_to_is_a_try(who: str, tries: int) -> None:
    """Law 8 counts remedies for a fault; what a person starts is that person's decision."""
    cell = Cell(is_(disrupted=True), started_by(who))
    run_states.transition(cell.ctx(), cell.run, run_states.RunTrigger.CANCELLED, "not wanted")
    assert sum(map(len, cell.state.tries.values())) == tries


def test_a_step_that_begins_ends_the_question_before_it() -> None:
    """An answer to a look that was asked for before the step says nothing of what comes after it."""
    cell = Cell(is_(asked_since=NOW - 30, looking="inc-1.r1.k1.a1", looking_until=NOW + 5))
    cell.proceeds()
    assert (cell.run.state, cell.run.looking, cell.run.asked_since) == (RunState.INTENT, "", 0.0)

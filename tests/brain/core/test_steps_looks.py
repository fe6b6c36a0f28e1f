"""Steps: the answer of a node that was asked to look again, and verifications that rest on it. Law 8: silence proves nothing."""

from typing import Any

import pytest

from agent.contract.commands import Outcome
from brain.core.effects import AskLook, CancelStep, Effect, Note, Perform, WriteIntent
from brain.core.healing import patience, steps
from brain.core.inputs import StepProgress, StepResult
from brain.core.pack.spec import Rung
from brain.core.state import Node, RunState
from tests.brain.core.cell import NOW, Cell, Given
from tests.brain.core.climb import QUIET
from tests.brain.core.givens import held, is_, on, runbook
from tests.brain.core.standing import NEVER, PROBE, SAFE, STEP, standing

LOOK = "inc-1.r1.k2.a1"
TIMER = "run:inc-1.r1"
ASKED = is_(looking=LOOK, looking_until=NOW + 5, asked_since=NOW - 30, looks=2, disturbed_at=NOW - 60)


def rung(do: str, **more: Any) -> Given:
    """The first of two rungs."""
    return runbook(rungs=(Rung(name="r", do=do, **more), Rung(name="next", do="gpu.persistence")))


def quiet(seconds: float = 20) -> Given:
    """The step is done, and the symptoms have been gone for so long."""

    def given(cell: Cell) -> None:
        rung(PROBE, verify=QUIET)(cell)
        cell.state.symptoms.clear()
        cell.run.quiet_since = NOW - seconds

    return given


def looks(cell: Cell, outcome: str = "ok", step: str = LOOK, node: str = "n1") -> list[Effect]:
    """The result of a look comes."""
    ctx = cell.ctx()
    steps.result(ctx, StepResult(id="a", step=step, outcome=Outcome(outcome), why="so it is", node=node))
    return ctx.finish()


@pytest.mark.parametrize(
    ("step", "node", "state", "counts"),
    [
        pytest.param(LOOK, "n1", RunState.VERIFYING, True, id="the answer"),
        pytest.param(LOOK, "", RunState.VERIFYING, True, id="the brain's: the node was not reached"),
        pytest.param(LOOK, "n2", RunState.VERIFYING, False, id="another node's (law 15)"),
        pytest.param("inc-1.r1.k1.a1", "n1", RunState.VERIFYING, False, id="to an earlier question"),
        pytest.param(LOOK, "n1", RunState.CANCELLED, False, id="when the run is over"),
        pytest.param("inc-9.r1.k2.a1", "n1", RunState.VERIFYING, False, id="of a run that nobody knows"),
    ],
)
def test_which_looks_count(step: str, node: str, state: RunState, *, counts: bool) -> None:
    """Only what was asked for, by who was asked, while it is awaited."""
    cell = Cell(quiet(), ASKED, standing(state))
    notes = [effect for effect in looks(cell, step=step, node=node) if isinstance(effect, Note)]
    assert ("run.looked" in [note.kind for note in notes]) == counts
    assert cell.run.looked_at == (NOW if counts else 0)
    assert cell.run.state is (RunState.SUCCEEDED if counts else state)


@pytest.mark.parametrize(
    ("state", "outcome", "then", "timer"),
    [
        pytest.param(RunState.HELD, "ok", RunState.SUCCEEDED, None, id="proven: the run that waited for it goes on"),
        pytest.param(RunState.APPROVAL, "ok", RunState.SUCCEEDED, None, id="proven: no approval is needed"),
        pytest.param(RunState.HELD, "failed", RunState.HELD, NOW + 10, id="not proven: asked again in a while"),
        pytest.param(RunState.APPROVAL, "failed", RunState.APPROVAL, NOW + 10, id="not proven: the approval is wanted"),
        pytest.param(RunState.PERFORMING, "ok", RunState.PERFORMING, None, id="a step under way goes on"),
        pytest.param(RunState.PERFORMING, "failed", RunState.PERFORMING, None, id="whatever the node sees"),
        pytest.param(RunState.CANCELLING, "ok", RunState.CANCELLING, None, id="a step that is stopped, too"),
        pytest.param(RunState.INTENT, "failed", RunState.INTENT, None, id="and one that is about to begin"),
    ],
)  # fmt: skip
def test_what_follows_from_a_look(state: RunState, outcome: str, then: RunState, timer: float | None) -> None:
    """The fault had ended without a fact that says so: the run waited for one."""
    cell = Cell(ASKED, standing(state))
    cell.incident.matching_rules, cell.incident.unproven = {}, True
    cell.state.symptoms.clear()
    looks(cell, outcome)
    assert cell.run.state is then
    assert cell.state.timers.get(TIMER) == timer


def test_an_answer_to_a_look_is_none_to_a_step() -> None:
    """The step under way goes on, though the answer names its run."""
    cell = Cell(ASKED, standing(RunState.PERFORMING))
    looks(cell)
    assert [step.outcome for step in cell.run.steps] == [""]


@pytest.mark.parametrize(
    ("givens", "then"),
    [
        pytest.param([is_(looked_at=NOW - 5)], "works", id="the node has looked since: it has worked"),
        pytest.param([is_(looked_at=NOW - 20)], "works", id="at the moment when they were gone"),
        pytest.param([is_(looked_at=NOW - 21)], "asks", id="before that: it looks again"),
        pytest.param([on("fabric/default", "")], "works", id="no node could look"),
        pytest.param([is_(asked_since=NOW - 90, unseen="n1 saw nothing")], "fails", id="it was asked for too long"),
        pytest.param([is_(asked_since=NOW - 89)], "asks", id="it may still answer"),
    ],
)  # fmt: skip
def test_quiet_is_no_proof(givens: list[Given], then: str) -> None:
    """The symptoms have been gone for long enough. Has the node said so?"""
    cell = Cell(quiet(), *givens, standing(RunState.VERIFYING))
    ctx = cell.ctx()
    steps.check(ctx, cell.run)
    effects = ctx.finish()
    asked = [effect for effect in effects if isinstance(effect, AskLook)]
    assert (cell.run.state is RunState.SUCCEEDED) == (then == "works")
    assert bool(asked) == (then == "asks")
    failed = [one.text for one in effects if isinstance(one, Note) and one.kind == "run.not_verified"]
    assert failed == (["nobody knows whether r helped: n1 saw nothing"] if then == "fails" else [])
    if then == "asks":
        assert cell.state.timers[TIMER] == cell.run.looking_until > NOW


def test_a_rung_that_did_not_help_has_moved_the_run() -> None:
    """Law 13: the next rung rests on this moment; while it waits, the run asks its questions anew."""
    cell = Cell(quiet(), ASKED, held("node/n1"), standing(RunState.VERIFYING))
    first, _ = cell.run.runbook.rungs
    runbook(rungs=(first, Rung(name="next", do=NEVER)))(cell)
    cell.run.asked_since, cell.run.unseen, cell.run.looking_until = NOW - 90, "n1 saw nothing", NOW
    steps.check(cell.ctx(), cell.run)
    assert (cell.run.steps[0].verified, cell.run.state) == (None, RunState.HELD)
    assert (cell.run.moved_at, cell.run.looking, cell.run.asked_since) == (NOW, "", 0)


def test_what_a_verification_sets_aside_is_not_proven() -> None:
    """The incident says so, and a trail that names the rung."""
    cell = Cell(rung(PROBE, verify=QUIET), standing(RunState.PERFORMING))
    effects = looks(cell, step=STEP)
    assert cell.incident.unproven
    (ended,) = [one.text for one in effects if isinstance(one, Note) and one.kind == "symptom.ended"]
    assert ended.endswith(" ended: set aside while r is verified")


# Steps of which nothing is heard


@pytest.mark.parametrize(
    ("do", "silent_s", "given_up"),
    [
        pytest.param(SAFE, 1799.9, False, id="not yet"),
        pytest.param(SAFE, 1800, True, id="half an hour"),
        pytest.param(PROBE, 9000, False, id="probe: its deadline is its end"),
        pytest.param(NEVER, 9000, False, id="never: so is its"),
    ],
)
@pytest.mark.parametrize("heard", ["by a sign of life", "when it began"])
def test_a_safe_step_of_which_nothing_is_heard_is_given_up(
    do: str, silent_s: float, heard: str, *, given_up: bool
) -> None:
    """However late its deadline is: it counts as unknown, and whoever may still perform it is told to stop."""
    cell = Cell(rung(do), standing(RunState.PERFORMING, deadline=NOW + 9000))
    cell.run.steps[0].at = NOW - (9999 if heard == "by a sign of life" else silent_s)
    cell.run.heard_at = NOW - (silent_s if heard == "by a sign of life" else 9999)
    ctx = cell.ctx()
    patience.timer(ctx, cell.run)
    stopped = [(one.step.id, one.why) for one in ctx.effects if isinstance(one, CancelStep)]
    assert stopped == ([(STEP, "nothing heard of it for 30 minutes")] if given_up else [])
    record = cell.run.steps[0]
    lost = ("unknown", "nothing heard of it for 30 minutes")
    assert (record.outcome, record.why) == (lost if given_up else ("", ""))


def test_a_sign_of_life_and_a_new_leader_begin_its_patience_anew() -> None:
    """The new one has not heard of it for a reason of its own."""
    alive, led = (Cell(rung(SAFE), standing(RunState.PERFORMING)) for _ in range(2))
    steps.progress(alive.ctx(), StepProgress(id="g", step=STEP, elapsed_s=1, text=""))
    patience.new_leader(led.ctx(), led.run)
    assert (alive.run.heard_at, led.run.heard_at) == (NOW, NOW)


def test_a_silent_step_is_not_asked_for_again_under_a_hold() -> None:
    """Law 2: what stands on the log stops the question; the step is waited for as before."""
    cell = Cell(rung(SAFE), held("node/n1"), standing(RunState.PERFORMING))
    ctx = cell.ctx()
    patience.timer(ctx, cell.run)
    assert not [one for one in ctx.effects if isinstance(one, Perform)]
    assert (cell.run.state, cell.state.timers[TIMER]) == (RunState.PERFORMING, NOW + 45)


def test_an_intent_that_does_not_come_back_is_written_again() -> None:
    """When the run's timer fires."""
    cell = Cell(rung(SAFE), standing(RunState.INTENT))
    ctx = cell.ctx()
    patience.timer(ctx, cell.run)
    assert [one.step.id for one in ctx.effects if isinstance(one, WriteIntent)] == [STEP]


@pytest.mark.parametrize("rung_now", [2, 3])
def test_an_answer_when_no_rung_is_left(rung_now: int) -> None:
    """The ladder has come to its end: it changes nothing."""
    cell = Cell(rung(SAFE), standing(RunState.PERFORMING), is_(rung=rung_now))
    looks(cell, step=STEP)
    assert (cell.run.state, cell.run.steps[0].outcome) == (RunState.PERFORMING, "")


def test_a_silent_node_is_asked_anew_when_it_is_heard() -> None:
    """An answer to a question from before proves nothing, and its quiet counts for nothing."""
    cell = Cell(quiet(), ASKED, standing(RunState.VERIFYING))
    cell.state.nodes["n1"] = Node(name="n1", alive=False)
    steps.check(cell.ctx(), cell.run)
    assert (cell.run.state, cell.run.quiet_since) == (RunState.VERIFYING, 0)
    assert (cell.run.looking, cell.run.asked_since) == ("", 0)

"""Steps: what becomes of one that says nothing, and what a new leader does with it."""

import pytest

from brain.core.effects import CancelStep, Perform, WriteIntent
from brain.core.healing import patience
from brain.core.inputs import Leader, StepProgress
from brain.core.pack.spec import Mode, Rung
from brain.core.state import RunState
from tests.brain.core.cell import NOW, Cell, Given
from tests.brain.core.climb import LINK, QUIET, Climb, rung
from tests.brain.core.givens import runbook
from tests.brain.core.standing import NEVER, NEXT, PROBE, SAFE, standing


@pytest.mark.parametrize(
    ("givens", "what"),
    [
        pytest.param([standing(RunState.PERFORMING)], [], id="silent, probe: only waited for"),
        pytest.param(
            [runbook(rungs=(Rung(name="r", do=SAFE),)), standing(RunState.PERFORMING)],
            ["perform"],
            id="silent, safe: asked again",
        ),
        pytest.param(
            [runbook(rungs=(Rung(name="r", do=SAFE),)), standing(RunState.CANCELLING)],
            [],
            id="silent, safe, but not wanted any more",
        ),
    ],
)
def test_a_step_without_a_sign_of_life(givens: list[Given], what: list[str]) -> None:
    """Before its deadline: asked again under its own id if that is safe; looked at again in any case."""
    cell = Cell(*givens)
    state = cell.run.state
    ctx = cell.ctx()
    patience.timer(ctx, cell.run)
    assert ["perform" for effect in ctx.effects if isinstance(effect, Perform)] == what
    assert cell.run.state is state
    assert cell.state.timers == {"run:inc-1.r1": NOW + 45}


@pytest.mark.parametrize(("deadline", "over"), [(NOW + 0.1, False), (NOW, True), (NOW - 1, True)])
def test_a_step_that_never_answers(deadline: float, over: bool) -> None:
    """At its deadline it is taken for unknown, and its class decides."""
    cell = Cell(standing(RunState.PERFORMING, deadline=deadline))
    patience.timer(cell.ctx(), cell.run)
    assert cell.run.steps[-1].outcome == ("unknown" if over else "")
    assert (cell.run.state is RunState.PERFORMING) != over


@pytest.mark.parametrize(
    ("do", "state", "asked", "then"),
    [
        pytest.param(
            PROBE, RunState.INTENT, "intent", RunState.INTENT, id="its intent may be lost: written again"
        ),
        pytest.param(
            SAFE, RunState.PERFORMING, "intent", RunState.PERFORMING, id="safe: asked again under the same id"
        ),
        pytest.param(
            PROBE, RunState.PERFORMING, "", RunState.VERIFYING, id="probe: looked at, as nobody knows"
        ),
        pytest.param(NEVER, RunState.PERFORMING, "", RunState.VERIFYING, id="never: looked at, not repeated"),
        pytest.param(
            SAFE, RunState.CANCELLING, "cancel", RunState.CANCELLING, id="not wanted any more: told so again"
        ),
        pytest.param(SAFE, RunState.VERIFYING, "", RunState.VERIFYING, id="a verification goes on"),
        pytest.param(SAFE, RunState.HELD, "", RunState.HELD, id="what waits goes on waiting"),
        pytest.param(
            SAFE, RunState.APPROVAL, "", RunState.APPROVAL, id="what waits for a person goes on waiting"
        ),
        pytest.param(SAFE, RunState.SUCCEEDED, "", RunState.SUCCEEDED, id="what is over is over"),
    ],
)
def test_what_a_new_leader_does_with_a_step(do: str, state: RunState, asked: str, then: RunState) -> None:
    """Law 4: a step without a result is done again, looked at first, or never repeated, by its class."""
    cell = Cell(runbook(rungs=(Rung(name="r", do=do, verify=QUIET),)), standing(state))
    cell.run.why = "a reason"
    cell.state.timers["run:inc-1.r1"] = NOW + 20
    ctx = cell.ctx()
    patience.new_leader(ctx, cell.run)
    kinds = {WriteIntent: "intent", CancelStep: "cancel", Perform: "perform"}
    done = [
        (kinds[type(effect)], effect.step.id)
        for effect in ctx.effects
        if isinstance(effect, (WriteIntent, CancelStep, Perform))
    ]
    assert done == ([(asked, "inc-1.r1.s1.a1")] if asked else [])
    assert cell.run.state is then
    if state is RunState.PERFORMING and then is not state:
        assert cell.state.timers.get("run:inc-1.r1") != NOW + 20, "the old leader's patience is over"


def test_a_new_leader_takes_over_in_the_middle_of_a_story() -> None:
    """The bounce is asked again under its own id, and its answer counts once."""
    it = Climb(rung("r", SAFE, verify=QUIET), NEXT, mode=Mode.AUTO)
    it.time.feed(Leader(id="l2", epoch=2, brain="b2"), it.time.now)
    it.wait(0)
    assert it.steps == ["s1.a1", "s1.a1"]
    it.answer("ok")
    it.link(up=True)
    it.wait(11)
    assert it.state.value == "succeeded"
    it.time.feed(StepProgress(id="p", step=it.performed[0].step.id, elapsed_s=1, text="late"), it.time.now)
    it.wait(0)
    assert it.notes("step.progress") == []
    assert it.performed[0].step.params == {"link": LINK}

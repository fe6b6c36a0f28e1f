"""Steps: what follows from each answer, what proves that a rung has worked, and what a new leader does."""

import pytest

from agent.contract.actions.spec import Repeat
from brain.core.effects import Note, Perform
from brain.core.healing import steps, unheard
from brain.core.inputs import StepProgress
from brain.core.pack.spec import Rung
from brain.core.state import RunState
from tests.brain.core.cell import GPU, NOW, Cell, Given
from tests.brain.core.climb import QUIET, Climb, rung
from tests.brain.core.givens import on, runbook
from tests.brain.core.standing import NEVER, NEXT, PROBE, SAFE, standing


@pytest.mark.parametrize(
    ("first", "outcome", "began", "state"),
    [
        pytest.param(rung("r", SAFE, verify=QUIET), "ok", [], "verifying", id="done: it is verified"),
        pytest.param(
            rung("r", SAFE), "ok", ["s2.a1"], "performing", id="done and nothing to verify: the next rung"
        ),
        # Nobody knows whether it was done: law 4.
        pytest.param(
            rung("r", SAFE, verify=QUIET, retries=1),
            "unknown",
            ["s1.a2"],
            "performing",
            id="unknown, safe: again",
        ),
        pytest.param(
            rung("r", SAFE, verify=QUIET),
            "unknown",
            ["s2.a1"],
            "performing",
            id="unknown, safe, no retries: the next rung",
        ),
        pytest.param(
            rung("r", PROBE, verify=QUIET, retries=1),
            "unknown",
            [],
            "verifying",
            id="unknown, probe: looked at first",
        ),
        pytest.param(
            rung("r", NEVER, verify=QUIET, retries=1),
            "unknown",
            [],
            "verifying",
            id="unknown, never: looked at",
        ),
        pytest.param(
            rung("r", PROBE, retries=1),
            "unknown",
            [],
            "exhausted",
            id="unknown, probe, nothing verifies it: a person",
        ),
        pytest.param(
            rung("r", NEVER, retries=1),
            "unknown",
            [],
            "exhausted",
            id="unknown, never, nothing verifies it: a person",
        ),
        pytest.param(
            rung("r", SAFE, repeat=Repeat.NEVER),
            "unknown",
            [],
            "exhausted",
            id="the rung's class, not the action's",
        ),
        # It failed.
        pytest.param(rung("r", SAFE, retries=1), "failed", ["s1.a2"], "performing", id="failed, safe: again"),
        pytest.param(
            rung("r", PROBE, retries=1), "failed", ["s1.a2"], "performing", id="failed, probe: again"
        ),
        pytest.param(
            rung("r", NEVER, retries=1), "failed", ["s2.a1"], "performing", id="failed, never: the next rung"
        ),
        pytest.param(
            rung("r", SAFE), "failed", ["s2.a1"], "performing", id="failed, no retries: the next rung"
        ),
        pytest.param(
            rung("r", SAFE, on_failure="stop"),
            "failed",
            [],
            "exhausted",
            id="failed, and the runbook stops there",
        ),
        pytest.param(
            rung("r", SAFE, on_failure="quit"), "failed", [], "succeeded", id="failed, and that is no failure"
        ),
        pytest.param(
            rung("r", SAFE, on_refusal="stop"), "failed", ["s2.a1"], "performing", id="failed is not refused"
        ),
        # Nothing was done.
        pytest.param(
            rung("r", NEVER, retries=1),
            "unreachable",
            [],
            "held",
            id="not reached: again when it is known whether the node is silent",
        ),
        pytest.param(
            rung("r", SAFE, retries=1),
            "refused",
            ["s2.a1"],
            "performing",
            id="refused: never again, the next rung",
        ),
        pytest.param(
            rung("r", SAFE, on_failure="stop"), "refused", [], "exhausted", id="refused counts as failed"
        ),
        pytest.param(
            rung("r", SAFE, on_failure="quit"),
            "refused",
            [],
            "succeeded",
            id="refused, and that is no failure",
        ),
        pytest.param(
            rung("r", SAFE, on_refusal="stop"),
            "refused",
            [],
            "exhausted",
            id="refused, and the runbook stops there",
        ),
        pytest.param(
            rung("r", SAFE, on_failure="stop", on_refusal="next"),
            "refused",
            ["s2.a1"],
            "performing",
            id="a refusal that does not matter",
        ),
        pytest.param(
            rung("r", SAFE, on_failure="quit", on_refusal="stop"),
            "refused",
            [],
            "exhausted",
            id="a refusal that matters more than a failure",
        ),
    ],
)
def test_what_follows_from_an_answer(first: Rung, outcome: str, began: list[str], state: str) -> None:
    """Outcome, repeat class and the rung's own words decide; a step that may have been done is not done blindly again."""
    it = Climb(first, NEXT)
    it.answer(outcome)
    assert (it.steps, it.state.value) == (["s1.a1", *began], state)


def test_what_has_not_reached_its_node_is_begun_again() -> None:
    """It was not done, so even what may never be done twice is: once more, and as often as its retries say."""
    it = Climb(rung("r", NEVER, retries=1), NEXT)
    it.answer("unreachable")
    it.wait(unheard.NOTICED_S)
    assert it.steps == ["s1.a1", "s1.a2"]
    it.answer("unreachable")
    it.wait(unheard.NOTICED_S)
    assert it.steps == ["s1.a1", "s1.a2", "s1.a3"]
    it.answer("unreachable")
    assert it.steps[-1] == "s2.a1"


def test_each_rung_has_its_own_attempts() -> None:
    """Two attempts of the first rung, then the first of the second: ids never repeat and never skip."""
    it = Climb(rung("a", SAFE, retries=1), rung("b", SAFE, retries=1), rung("c", SAFE))
    for _ in range(4):
        it.answer("failed")
    assert it.steps == ["s1.a1", "s1.a2", "s2.a1", "s2.a2", "s3.a1"]


@pytest.mark.parametrize("again", ["ok", "failed", "refused", "unknown"])
def test_a_step_is_answered_once(again: str) -> None:
    """A second answer to a step that has ended is stale: it changes nothing."""
    it = Climb(rung("r", SAFE, verify=QUIET), NEXT)
    it.answer("ok")
    before = it.climber
    it.answer(again, step=it.performed[0].step.id)
    assert it.climber == before
    assert len(it.notes("step.result")) == 1


def test_an_answer_to_another_attempt_is_none() -> None:
    """The first attempt's late answer is not the second's."""
    it = Climb(rung("r", SAFE, retries=1), NEXT)
    it.answer("failed")
    it.answer("ok", step=it.performed[0].step.id)
    assert (it.steps, it.state.value) == (["s1.a1", "s1.a2"], "performing")


@pytest.mark.parametrize(("do", "on_whom"), [(SAFE, "n1"), ("sm.start_standby", "the brain")])
def test_a_step_says_where_it_is_performed(do: str, on_whom: str) -> None:
    """On the node, or by the brain when it is about none."""
    cell = Cell(
        runbook(rungs=(Rung(name="r", do=do),)),
        standing(RunState.INTENT),
        on(GPU if on_whom == "n1" else "fabric/default", "n1" if on_whom == "n1" else ""),
    )
    steps.intended(cell.ctx(), "inc-1.r1.s1.a1", 0)
    assert cell.run.why == f"{do} on {on_whom}"


@pytest.mark.parametrize(
    ("givens", "step", "epoch", "performed"),
    [
        pytest.param([standing(RunState.INTENT)], "inc-1.r1.s1.a1", 7, True, id="the present leader's"),
        pytest.param([standing(RunState.INTENT)], "inc-1.r1.s1.a1", 6, False, id="a deposed leader's"),
        pytest.param(
            [standing(RunState.INTENT)],
            "inc-1.r1.s1.a1",
            8,
            False,
            id="one of a leader that is not yet known",
        ),
        pytest.param(
            [standing(RunState.PERFORMING)], "inc-1.r1.s1.a1", 7, False, id="it is performed already"
        ),
        pytest.param(
            [standing(RunState.CANCELLED)], "inc-1.r1.s1.a1", 7, False, id="it was cancelled meanwhile"
        ),
        pytest.param([standing(RunState.INTENT)], "inc-1.r1.s1.a2", 7, False, id="another attempt's"),
        pytest.param([standing(RunState.INTENT)], "inc-1.r1.s2.a1", 7, False, id="another rung's"),
        pytest.param(
            [standing(RunState.INTENT, rung=2)], "inc-1.r1.s3.a1", 7, False, id="of a rung that there is not"
        ),
        pytest.param(
            [standing(RunState.INTENT)], "inc-9.r1.s1.a1", 7, False, id="of a run that nobody knows"
        ),
    ],
)
def test_which_intent_is_performed(givens: list[Given], step: str, epoch: int, performed: bool) -> None:
    """Decision 4: what has come back on the log with the present leader's epoch, and is still wanted; and only that."""
    cell = Cell(*givens)
    cell.state.epoch = cell.run.epoch = 7
    before = cell.run.state
    ctx = cell.ctx()
    steps.intended(ctx, step, epoch)
    assert [effect.step.id for effect in ctx.effects if isinstance(effect, Perform)] == (
        [step] if performed else []
    )
    assert cell.run.state is (RunState.PERFORMING if performed else before)


def test_how_long_a_step_is_waited_for() -> None:
    """Its own time limit, and 15 s for the answer to come; after 45 s without a sign of life it is looked at."""
    cell = Cell(standing(RunState.INTENT))
    steps.intended(cell.ctx(), "inc-1.r1.s1.a1", 0)
    assert cell.run.deadline == NOW + 300 + 15
    assert cell.state.timers == {"run:inc-1.r1": NOW + 45}
    short = Cell(runbook(rungs=(Rung(name="r", do="gpu.reset", timeout_s=20),)), standing(RunState.INTENT))
    steps.intended(short.ctx(), "inc-1.r1.s1.a1", 0)
    assert short.state.timers == {"run:inc-1.r1": NOW + 35}


@pytest.mark.parametrize(
    ("state", "text", "noted"),
    [
        (RunState.PERFORMING, "3 jobs left", True),
        (RunState.CANCELLING, "putting it back", True),
        (RunState.PERFORMING, "", False),
        (RunState.PERFORMING, "as before", False),
        (RunState.VERIFYING, "3 jobs left", False),
        (RunState.CANCELLED, "3 jobs left", False),
    ],
)
def test_signs_of_life(state: RunState, text: str, noted: bool) -> None:
    """A step under way says what it does, once for each new text; one that has ended is not listened to."""
    cell = Cell(standing(state))
    cell.run.steps[-1].doing = "as before"
    ctx = cell.ctx()
    steps.progress(ctx, StepProgress(id="g", step="inc-1.r1.s1.a1", elapsed_s=1, text=text))
    assert [
        effect.text for effect in ctx.effects if isinstance(effect, Note) and effect.kind == "step.progress"
    ] == ([text] if noted else [])
    assert cell.run.steps[-1].doing == (text if noted else "as before")
    listened = state in (RunState.PERFORMING, RunState.CANCELLING)
    assert ("run:inc-1.r1" in cell.state.timers) == listened, "its patience begins anew"


@pytest.mark.parametrize(
    ("do", "node", "heard"),
    [
        ("gpu.reset", "n1", True),
        ("gpu.reset", "n2", False),
        ("gpu.reset", "", True),
        ("scheduler.drain", "n1", False),
        ("scheduler.drain", "", True),
    ],
)
def test_whose_signs_of_life_count(do: str, node: str, heard: bool) -> None:
    """Law 15: a node speaks of its own steps only. Else it could keep another node's lost step waiting for days."""
    cell = Cell(runbook(rungs=(Rung(name="r", do=do),)), standing(RunState.PERFORMING))
    ctx = cell.ctx()
    steps.progress(ctx, StepProgress(id="g", step="inc-1.r1.s1.a1", elapsed_s=1, text="at work", node=node))
    assert (cell.run.heard_at == NOW) == heard == (cell.run.steps[-1].doing == "at work")
    assert ("run:inc-1.r1" in cell.state.timers) == heard

"""Steps: whose answer counts, what it says of the node's drain, and what follows from one on the way back into service."""

from dataclasses import replace
from typing import Any

import pytest

from agent.contract.commands import Outcome
from brain.core.effects import Note
from brain.core.healing import failed_tests, steps
from brain.core.inputs import StepResult
from brain.core.pack.spec import Rung, Verify
from brain.core.state import OwnedDrain, RunState, StepRecord
from tests.brain.core.cell import LADDER, NOW, Cell, Given
from tests.brain.core.givens import at_work, is_, on, runbook, site
from tests.brain.core.standing import NEVER, PROBE, SAFE, STEP, standing

DRAIN, ISOLATE = "scheduler.drain", "node.isolate"
RESUME = Rung(name="resume", do="scheduler.resume")
TEST = Rung(name="test", do="gpu.diagnose")
LOOK_FIRST = Verify(within_s=60, for_s=10)


def rung(do: str, **more: Any) -> Given:
    """The first rung of the ladder."""
    return runbook(rungs=(Rung(name="r", do=do, **more), *LADDER.rungs))


def owns(*incidents: str) -> Given:
    """The incidents own the node's drain."""

    def given(cell: Cell) -> None:
        cell.state.drains["n1"] = {one: OwnedDrain(since=NOW - 60, marks=[one]) for one in incidents}

    return given


def answer(cell: Cell, outcome: str = "ok", step: str = STEP, node: str = "", **data: str) -> list[Note]:
    """A result comes; the notes that it leads to."""
    ctx = cell.ctx()
    given = StepResult(id="a", step=step, outcome=Outcome(outcome), why="so it is", node=node, data=data)
    steps.result(ctx, given)
    return [effect for effect in ctx.finish() if isinstance(effect, Note)]


@pytest.mark.parametrize(
    ("do", "node", "counts"),
    [
        pytest.param(PROBE, "n1", True, id="the node's own"),
        pytest.param(PROBE, "n2", False, id="another node's"),
        pytest.param(PROBE, "", True, id="the brain's: the command did not reach the node"),
        pytest.param("bmc.power_cycle", "", True, id="the brain's for its own step"),
        pytest.param("bmc.power_cycle", "n1", False, id="a node's for a step of the brain"),
        pytest.param("bmc.power_cycle", "n2", False, id="another node's for a step of the brain"),
    ],
)
def test_a_node_speaks_for_itself_only(do: str, node: str, *, counts: bool) -> None:
    """Law 15: what it says of another's step is noted, and harms nobody."""
    cell = Cell(rung(do, verify=LOOK_FIRST), standing(RunState.PERFORMING))
    notes = answer(cell, node=node)
    assert (cell.run.state is RunState.VERIFYING) == counts
    foreign = [note.text for note in notes if note.kind == "step.foreign"]
    assert foreign == (
        [] if counts else [f"{node} reports a result of {STEP}, which is not its own: ignored"]
    )


@pytest.mark.parametrize("in_time", [True, False])
def test_an_answer_makes_facts_younger_that_were_in_time(*, in_time: bool) -> None:
    """Law 13: the time that the step took counts for nothing; old news stay old."""
    cell = Cell(rung(PROBE, verify=LOOK_FIRST), is_(in_time=in_time), standing(RunState.PERFORMING))
    answer(cell)
    assert cell.run.moved_at == (NOW if in_time else 0)


@pytest.mark.parametrize(
    ("givens", "disturbed"),
    [
        pytest.param([rung(PROBE)], True, id="what disrupts"),
        pytest.param([rung("gpu.persistence")], False, id="what disrupts nothing"),
        pytest.param([rung("gpu.diagnose")], True, id="a test in the ladder"),
        pytest.param(
            [runbook(return_to_service=(TEST,)), is_(worked="w")], False, id="a test on the way back"
        ),
    ],
)
def test_a_node_was_last_disturbed_when_the_step_ended(givens: list[Given], *, disturbed: bool) -> None:
    """Law 8: what proves that it is well must be newer than that."""
    cell = Cell(*givens, standing(RunState.PERFORMING))
    cell.run.steps[-1].id = f"inc-1.r1.{'b' if cell.run.worked else 's'}1.a1"
    answer(cell, step=cell.run.steps[-1].id)
    assert cell.run.disturbed_at == (NOW if disturbed else 0)


def with_params(**params: str) -> Given:
    """The step that is under way has them."""

    def given(cell: Cell) -> None:
        cell.run.steps[-1].params = dict(params)

    return given


def before(action: str, outcome: str, *, of: str = "inc-1.r0") -> Given:
    """An earlier run of the incident, or of another one, or this run itself, has performed a step."""

    def given(cell: Cell) -> None:
        if of.startswith("inc-1."):
            cell.incident.runs.append(of)
        run = cell.state.runs.setdefault(of, replace(cell.run, id=of, steps=[]))
        run.steps.insert(
            0, StepRecord(id=f"{of}.s9.a1", rung="x", action=action, params={}, at=NOW, outcome=outcome)
        )

    return given


def forgotten_run() -> Given:
    """The incident had a run that nobody knows any more."""

    def given(cell: Cell) -> None:
        cell.incident.runs.append("inc-1.r7")

    return given


UNDO = with_params(then="undo")


@pytest.mark.parametrize(
    ("do", "outcome", "givens", "owners"),
    [
        pytest.param(DRAIN, "ok", [], ["inc-1", "inc-2"], id="drained"),
        pytest.param(DRAIN, "refused", [], ["inc-2"], id="the scheduler refused: it never began"),
        pytest.param(DRAIN, "failed", [], ["inc-1", "inc-2"], id="its jobs did not end: it stays drained"),
        pytest.param(DRAIN, "failed", [UNDO], ["inc-2"], id="its jobs did not end, and so it was undone"),
        pytest.param(DRAIN, "ok", [UNDO], ["inc-1", "inc-2"], id="they ended before it would be undone"),
        pytest.param(DRAIN, "unknown", [UNDO], ["inc-1", "inc-2"], id="nobody knows: better owned than forgotten"),
        pytest.param(DRAIN, "failed", [with_params(then="requeue")], ["inc-1", "inc-2"], id="requeued, not undone"),
        pytest.param(ISOLATE, "refused", [], ["inc-2"], id="to fence it is a drain as well"),
        pytest.param(PROBE, "refused", [], ["inc-1", "inc-2"], id="what drains nothing says nothing of it"),
        pytest.param(PROBE, "ok", [], ["inc-1", "inc-2"], id="nor when it is done"),
        pytest.param(DRAIN, "refused", [before(DRAIN, "ok")], ["inc-1", "inc-2"], id="an earlier run has drained it"),
        pytest.param(DRAIN, "refused", [before(DRAIN, "unknown")], ["inc-1", "inc-2"], id="an earlier run may have"),
        pytest.param(DRAIN, "refused", [before(ISOLATE, "failed")], ["inc-1", "inc-2"], id="by fencing it"),
        pytest.param(DRAIN, "refused", [before(DRAIN, "refused")], ["inc-2"], id="an earlier one was refused, too"),
        pytest.param(DRAIN, "refused", [before(DRAIN, "withdrawn")], ["inc-2"], id="an earlier one never left"),
        pytest.param(DRAIN, "refused", [before(PROBE, "ok")], ["inc-2"], id="an earlier step drained nothing"),
        pytest.param(DRAIN, "refused", [before("gone.by", "ok")], ["inc-2"], id="nor did one that nobody knows"),
        pytest.param(DRAIN, "refused", [before(DRAIN, "ok", of="inc-2.r1")], ["inc-2"], id="another incident's drain"),
        pytest.param(DRAIN, "refused", [before(DRAIN, "ok", of="inc-1.r1")], ["inc-1", "inc-2"], id="its own first one"),
        pytest.param(DRAIN, "refused", [forgotten_run()], ["inc-2"], id="an earlier run is forgotten"),
    ],
)  # fmt: skip
def test_what_an_answer_says_of_a_drain(
    do: str, outcome: str, givens: list[Given], owners: list[str]
) -> None:
    """Laws 3 and 14: owned from when the step left, until we know that nothing of ours is in the scheduler."""
    cell = Cell(rung(do, verify=LOOK_FIRST), owns("inc-1", "inc-2"), standing(RunState.PERFORMING), *givens)
    if "inc-1.r1" not in cell.incident.runs:
        cell.incident.runs.append("inc-1.r1")
    answer(cell, outcome)
    assert [*cell.state.drains["n1"]] == owners


@pytest.mark.parametrize(
    ("outcome", "do", "owners"),
    [
        pytest.param("ok", "scheduler.resume", [], id="it is back"),
        pytest.param("failed", "scheduler.resume", ["inc-1", "inc-2"], id="the scheduler did not take it"),
        pytest.param("ok", "gpu.persistence", ["inc-1", "inc-2"], id="another step gives nothing back"),
    ],
)
def test_a_node_that_is_given_back(outcome: str, do: str, owners: list[str]) -> None:
    """Law 3: it ends the drain for all who owned it, and they hear of it."""
    cell = Cell(
        runbook(return_to_service=(Rung(name="back", do=do),)),
        is_(worked="w", disrupted=True),
        owns("inc-1", "inc-2"),
        standing(RunState.PERFORMING),
    )
    cell.state.incidents["inc-2"] = replace(cell.incident, id="inc-2")
    cell.run.steps[-1].id = "inc-1.r1.b1.a1"
    ctx = cell.ctx()
    steps.result(ctx, StepResult(id="a", step="inc-1.r1.b1.a1", outcome=Outcome(outcome), why="so it is"))
    assert [*cell.state.drains.get("n1", {})] == owners
    assert [one.id for one in ctx.let_go] == ([] if owners else ["inc-2"])


def test_what_is_on_no_node_drains_none() -> None:
    """A step of a whole fabric says nothing of nodes."""
    cell = Cell(rung(DRAIN), on("fabric/default", ""), standing(RunState.PERFORMING))
    cell.state.drains[""] = {"inc-1": OwnedDrain(since=NOW, marks=["inc-1"])}
    answer(cell, "refused")
    assert [*cell.state.drains] == [""]


# On the way back into service


def on_the_way_back(*rungs: Rung, back_to: int = 1, **more: Any) -> Cell:
    """The first rung has helped; the first check before the return is under way, the fifth step of the run."""
    cell = Cell(
        runbook(return_to_service=rungs),
        is_(worked="reset worked", disrupted=True, back_to=back_to, **more),
        standing(RunState.PERFORMING),
    )
    cell.incident.matching_rules = {}
    cell.state.symptoms.clear()
    check = cell.run.steps.pop()
    for number in (1, 2, 3, 4):
        cell.run.steps.append(
            replace(check, id=f"inc-1.r1.s1.a{number}", rung="reset", outcome="unknown", why="odd")
        )
    check.id, check.rung, check.action = "inc-1.r1.b1.a1", rungs[0].name, rungs[0].do
    cell.run.steps.append(check)
    return cell


def later(cell: Cell) -> list[Note]:
    """The run is asked again a minute later: by then what many nodes show is a shared cause."""
    cell.state.now = NOW + failed_tests.SETTLE_S
    return [effect for effect in cell.proceeds() if isinstance(effect, Note)]


@pytest.mark.parametrize(
    ("check", "outcome", "given", "then"),
    [
        pytest.param(TEST, "failed", {}, "ladder", id="a test found a fault: the next rung of the ladder"),
        pytest.param(TEST, "failed", {"back_to": 2}, "person", id="no rung is left"),
        pytest.param(TEST, "failed", {"relapses": 1}, "person", id="it did so before"),
        pytest.param(TEST, "unreachable", {}, "person", id="the test was not done: it found nothing"),
        pytest.param(TEST, "refused", {}, "person", id="the node would not test"),
        pytest.param(RESUME, "failed", {}, "person", id="the scheduler would not take it: no fault of the node"),
        pytest.param(replace(TEST, on_refusal="next"), "refused", {}, "on", id="a refusal that is no failure: it goes on"),
        pytest.param(replace(TEST, on_refusal="next"), "failed", {}, "ladder", id="but a failure is one"),
        pytest.param(replace(TEST, on_failure="next"), "refused", {}, "person", id="a failure that leads on is one, too"),
    ],
)  # fmt: skip
def test_a_check_before_the_return_that_fails(
    check: Rung, outcome: str, given: dict[str, Any], then: str
) -> None:
    """Law 8: a node returns only after its validation. Once, the run goes back into the ladder; then a person must."""
    cell = on_the_way_back(check, RESUME, **given)
    notes = answer(cell, outcome, step="inc-1.r1.b1.a1")
    if outcome == "failed" and check.name == TEST.name:
        assert (cell.run.state, cell.run.why.rpartition(" (gate ")[2]) == (RunState.HELD, "settling)")
        notes = later(cell)
    if then == "ladder":
        assert (cell.run.worked, cell.run.rung, cell.run.attempt, cell.run.relapses) == ("", 1, 1, 1)
        assert (cell.run.state, cell.run.steps[-1].rung) == (RunState.INTENT, "reboot")
        (note,) = [note for note in notes if note.kind == "run.not_verified"]
        assert note.text == "reset worked, but test failed: so it is: back into the ladder"
        assert (note.incident, note.run, note.scope) == ("inc-1", "inc-1.r1", cell.run.scope)
    elif then == "person":
        assert cell.run.state is RunState.EXHAUSTED
        assert cell.run.why == (
            f"reset worked, but {check.name} failed: so it is: a person must bring it back into service"
        )
    else:
        assert (cell.run.worked, cell.run.rung) == ("reset worked", 1)


@pytest.mark.parametrize(("most", "state"), [(1, RunState.HELD), (2, RunState.INTENT)])
def test_back_in_the_ladder_it_asks_for_a_budget(most: int, state: RunState) -> None:
    """Law 1: its tests had the node to themselves without one, so that others have taken what there was."""
    cell = on_the_way_back(TEST, RESUME, claimed=True)
    at_work("n5")(cell)
    site(disruptive_runs=most)(cell)
    answer(cell, "failed", step="inc-1.r1.b1.a1")
    later(cell)
    assert (cell.run.state, cell.run.claimed) == (state, state is RunState.INTENT)


def test_attempts_begin_anew_in_the_ladder() -> None:
    """The next rung has all its retries, whatever the check has used up."""
    cell = on_the_way_back(replace(TEST, retries=1), RESUME)
    cell.run.attempt = 2
    answer(cell, "failed", step="inc-1.r1.b1.a1")
    later(cell)
    assert (cell.run.rung, cell.run.attempt) == (1, 1)


def test_an_attempt_more_is_one_more() -> None:
    """A rung with two retries has three attempts."""
    cell = Cell(rung(SAFE, retries=2), standing(RunState.PERFORMING))
    answer(cell, "failed")
    assert (cell.run.rung, cell.run.attempt) == (0, 2)


@pytest.mark.parametrize(("outcome", "how"), [("refused", "was refused"), ("failed", "failed")])
def test_why_a_runbook_stops(outcome: str, how: str) -> None:
    """People read whether it was done."""
    cell = Cell(rung(NEVER, on_failure="stop", on_refusal="stop"), standing(RunState.PERFORMING))
    answer(cell, outcome)
    assert cell.run.why == f"r {how}: so it is. The runbook stops there: a person must take it from here"

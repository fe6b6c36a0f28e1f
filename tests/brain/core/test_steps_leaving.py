"""Steps that are about to leave: the gates are asked again when the intent is on the log, and what goes is remembered."""

import pytest

from brain.core.effects import Effect, Perform
from brain.core.healing import patience, steps
from brain.core.pack.spec import Rung
from brain.core.state import Node, OwnedDrain, RunState
from tests.brain.core.cell import NOW, Cell, Given
from tests.brain.core.givens import approved, held, is_, on, runbook, stale, started_by
from tests.brain.core.standing import NEVER, PROBE, SAFE, STEP, standing

RESUME = Rung(name="resume", do="scheduler.resume")
TEST = Rung(name="test", do="gpu.diagnose")
PERSIST = Rung(name="persist", do="gpu.persistence")
ON_WAY_BACK: list[Given] = [is_(worked="reset helped", disrupted=True), standing(RunState.INTENT)]


def rung(do: str) -> Given:
    """The only rung of the ladder."""
    return runbook(rungs=(Rung(name="r", do=do),))


def way_back(rung: Rung) -> list[Given]:
    """The remedy has helped, and this rung gives the node back."""
    return [runbook(return_to_service=(rung,)), *ON_WAY_BACK]


def healed() -> Given:
    """No rule matches any more."""

    def given(cell: Cell) -> None:
        cell.incident.matching_rules = {}

    return given


def wanted_by(incident: str, *more: str, node: str = "n1") -> Given:
    """Other incidents own the node's drain."""

    def given(cell: Cell) -> None:
        cell.state.drains[node] = {
            one: OwnedDrain(since=NOW, marks=[one], sure=True) for one in (incident, *more)
        }

    return given


def silent() -> Given:
    """Its node is not heard any more."""

    def given(cell: Cell) -> None:
        cell.state.nodes["n1"] = Node(name="n1", alive=False)

    return given


def sent(effects: list[Effect]) -> list[str]:
    """The steps that leave."""
    return [effect.step.id for effect in effects if isinstance(effect, Perform)]


def leaves(cell: Cell, epoch: int = 0) -> bool:
    """Its intent is on the log: does the step leave?"""
    ctx = cell.ctx()
    steps.intended(ctx, cell.run.steps[-1].id, epoch)
    return bool(sent(ctx.finish()))


@pytest.mark.parametrize(
    ("givens", "why"),
    [
        pytest.param([rung(PROBE)], "", id="nothing stands against it"),
        pytest.param([rung(PROBE), held("node/n1")], "r waits: bea holds node/n1: cabling (gate hold)", id="a hold came"),
        pytest.param(
            [rung(PROBE), is_(requested_by="bea"), held("node/n1")],
            "r waits: bea holds node/n1: cabling (gate hold)",
            id="a hold came for what a person has requested",
        ),
        pytest.param([rung("gpu.persistence"), held("node/n1")], "", id="what disrupts nothing asks no gate"),
        pytest.param([runbook(rungs=(Rung(name="t", do="gpu.diagnose"),)), held("node/n1")],
                     "t waits: bea holds node/n1: cabling (gate hold)", id="a test uses the GPU, and a hold came"),
        pytest.param([rung(PROBE), wanted_by("inc-2")], "", id="another incident wants the node out: that is no reason"),
    ],
)  # fmt: skip
def test_what_stands_on_the_log_before_a_step_leaves_stops_it(givens: list[Given], why: str) -> None:
    """Law 2: asked again at the last moment. What did not leave says so, and the run waits."""
    cell = Cell(*givens, standing(RunState.INTENT))
    assert leaves(cell) == (not why)
    if why:
        assert (cell.run.state, cell.run.why) == (RunState.HELD, why)
        assert cell.run.steps[-1].outcome == "withdrawn"
        assert not cell.run.disrupted


@pytest.mark.parametrize(
    ("givens", "goes"),
    [
        pytest.param(way_back(RESUME), True, id="it is given back"),
        pytest.param([*way_back(TEST), silent()], True, id="a test gives nothing back"),
        pytest.param([*way_back(RESUME), silent(), is_(requested_by="bea")], True, id="a person asks for it all the same"),
        pytest.param([*way_back(RESUME), held("node/n1")], True, id="a hold does not block the way back"),
        pytest.param([*way_back(TEST), held("node/n1")], True, id="nor the test before it"),
        pytest.param([*way_back(RESUME), wanted_by("inc-2", "inc-3")], False, id="another incident wants it out by now"),
        pytest.param([*way_back(RESUME), wanted_by("inc-1")], True, id="its own drain is what it ends"),
        pytest.param([*way_back(TEST), wanted_by("inc-2")], True, id="a test takes no node from anybody"),
        pytest.param([*way_back(PERSIST), wanted_by("inc-2")], True, id="nor does what is set anew"),
        pytest.param(
            [runbook(return_to_service=(RESUME,)), on("fabric/default", ""), wanted_by("inc-2", node=""), *ON_WAY_BACK],
            True, id="what is on no node",
        ),
    ],
)  # fmt: skip
def test_a_node_that_is_about_to_be_given_back(givens: list[Given], goes: bool) -> None:
    """Law 7: nothing blocks the way back, but an incident that wants the node out of service since."""
    cell = Cell(*givens)
    assert leaves(cell) == goes
    if not goes:
        assert cell.run.why == "resume waits: inc-2 wants n1 out of service (gate drained)"
        assert (cell.run.state, cell.state.timers["run:inc-1.r1"]) == (RunState.HELD, NOW + 1)


def test_a_node_that_has_fallen_silent_is_not_given_back() -> None:
    """Law 8: silence proves nothing, also between the look and the step, and when a schedule asked for it."""
    for by in ("", "schedule"):
        cell = Cell(*way_back(RESUME), silent(), is_(requested_by=by))
        assert not leaves(cell)
        assert cell.run.why == "resume waits: n1 is not heard (gate unheard)"
        assert (cell.run.state, cell.state.timers["run:inc-1.r1"]) == (RunState.HELD, NOW + 1)


def test_a_step_that_is_withdrawn_again_and_again() -> None:
    """The run keeps the last attempt, and no id comes twice."""
    cell = Cell(rung(PROBE), held("node/n1"), standing(RunState.INTENT))
    seen = [cell.run.steps[-1].id]
    for _ in range(20):
        assert not leaves(cell)
        assert [step.outcome for step in cell.run.steps].count("withdrawn") == 1
        cell.state.holds.clear()
        cell.proceeds()
        seen.append(cell.run.steps[-1].id)
        held("node/n1")(cell)
    assert len(set(seen)) == 21


def test_nor_asked_for_again() -> None:
    """The step has left, its answer is missing, and the node fell silent: until its deadline nothing more is sent."""
    cell = Cell(*way_back(RESUME), standing(RunState.PERFORMING), is_(heard_at=NOW - 60, deadline=NOW + 60))
    ctx = cell.ctx()
    patience.timer(ctx, cell.run)
    assert sent(ctx.finish()) == [cell.run.steps[-1].id]
    silent()(cell)
    ctx = cell.ctx()
    patience.timer(ctx, cell.run)
    assert sent(ctx.finish()) == []


@pytest.mark.parametrize(
    ("givens", "goes"),
    [
        pytest.param([rung(PROBE)], False, id="what disrupts is not needed"),
        pytest.param([rung("gpu.persistence")], True, id="what disrupts nothing may go"),
        pytest.param([rung(PROBE), is_(relapses=1)], True, id="a check has found another fault"),
    ],
)
def test_a_fault_that_is_gone_before_the_step_leaves(givens: list[Given], goes: bool) -> None:
    """Nothing disruptive is done for it; the step says why it did not leave, and the run ends."""
    cell = Cell(*givens, healed(), standing(RunState.INTENT, attempt=2), standing(RunState.INTENT))
    cell.run.steps.insert(0, cell.run.steps[0])
    assert leaves(cell) == goes
    last, *before = reversed([(step.outcome, step.why) for step in cell.run.steps])
    assert last == (("", "") if goes else ("withdrawn", "the fault is gone"))
    assert set(before) == {("", "")}
    assert (cell.run.state is RunState.SUCCEEDED) != goes


@pytest.mark.parametrize(
    ("do", "fresh", "in_time"),
    [
        pytest.param(PROBE, True, True, id="what disrupts has passed the gates"),
        pytest.param(PROBE, False, True, id="with an approval for old facts, too"),
        pytest.param("gpu.persistence", True, True, id="what disrupts nothing, on fresh facts"),
        pytest.param("gpu.persistence", False, False, id="what disrupts nothing, on old facts"),
    ],
)
def test_the_time_that_a_step_takes_makes_facts_no_older(do: str, fresh: bool, in_time: bool) -> None:
    """Law 13: if they were not old when it left. To collect evidence does not make old facts new."""
    cell = Cell(rung(do), standing(RunState.INTENT), *([] if fresh else [stale()]))
    cell.run.in_time = not in_time
    if not fresh:
        approved()(cell)
    assert leaves(cell)
    assert cell.run.in_time is in_time


@pytest.mark.parametrize(
    ("do", "disturbs", "drains"),
    [
        ("gpu.persistence", False, False),
        (PROBE, True, False),
        ("scheduler.drain", True, True),
        ("node.isolate", True, True),
    ],
)
def test_what_is_remembered_of_a_step_that_leaves(do: str, disturbs: bool, drains: bool) -> None:
    """When it began, that the node was disturbed (law 8), and who owns its drain (law 14)."""
    cell = Cell(rung(do), standing(RunState.INTENT))
    assert leaves(cell)
    assert cell.run.heard_at == NOW
    assert (cell.run.disrupted, cell.run.disturbed_at) == (disturbs, NOW if disturbs else 0)
    assert [*cell.state.drains.get("n1", {})] == (["inc-1"] if drains else [])


def test_what_is_on_no_node_owns_no_drain_and_ends_none() -> None:
    """A runbook of a whole fabric, with a rung that is none of its own."""
    drains, returns = (
        Cell(rung(do), on("fabric/default", ""), wanted_by("inc-2", node=""), standing(RunState.INTENT))
        for do in ("scheduler.drain", "scheduler.resume")
    )
    for cell in (drains, returns):
        leaves(cell)
        assert [(one, drain.sure) for one, drain in cell.state.drains[""].items()] == [("inc-2", True)]


@pytest.mark.parametrize(
    ("do", "sure"), [("scheduler.resume", False), ("gpu.persistence", True), ("scheduler.drain", True)]
)
def test_what_gives_a_node_back_makes_its_drain_uncertain(do: str, *, sure: bool) -> None:
    """Until its result is there, nobody knows whether jobs may come."""
    cell = Cell(rung(do), wanted_by("inc-1"), standing(RunState.INTENT))
    assert leaves(cell)
    assert cell.state.drains["n1"]["inc-1"].sure is sure


@pytest.mark.parametrize(
    ("givens", "epoch", "asked"),
    [
        pytest.param([rung(SAFE)], 8, True, id="safe: asked again"),
        pytest.param([rung(SAFE)], 7, False, id="by the leader who has sent it: once"),
        pytest.param([rung(PROBE)], 8, False, id="probe: never without a look"),
        pytest.param([rung(NEVER)], 8, False, id="never"),
        pytest.param([rung(SAFE), held("node/n1")], 8, False, id="a hold stands on the log since"),
    ],
)
def test_a_new_leaders_intent_for_a_step_under_way(givens: list[Given], epoch: int, asked: bool) -> None:
    """Under the same id, if it is safe; a hold stops the question, not the step. The next leader may ask again."""
    cell = Cell(*givens, standing(RunState.PERFORMING))
    cell.state.epoch, cell.run.epoch = epoch, 7
    assert leaves(cell, epoch) == asked
    assert (cell.run.state, cell.run.steps[-1].outcome) == (RunState.PERFORMING, "")
    assert cell.run.epoch == (epoch if asked else 7)
    assert not leaves(cell, epoch)


def test_a_drain_that_is_asked_for_again_waits_for_the_rest_of_its_time() -> None:
    """It began 50 s ago; a wait that is over is none at all."""
    for wait_s, left in ((90, 40), (50, 0), (20, 0)):
        cell = Cell(
            runbook(rungs=(Rung(name="r", do="scheduler.drain", params={"wait_s": wait_s}),)),
            standing(RunState.PERFORMING),
        )
        cell.state.epoch, cell.run.epoch = 8, 7
        ctx = cell.ctx()
        steps.intended(ctx, STEP, 8)
        (perform,) = [effect for effect in ctx.effects if isinstance(effect, Perform)]
        assert perform.step.params["wait_s"] == left


@pytest.mark.parametrize("who", ["bea", "schedule"])
def test_what_a_person_or_the_schedule_started_is_on_time(who: str) -> None:
    """It rests on no fact."""
    cell = Cell(rung("gpu.persistence"), started_by(who), stale(), standing(RunState.INTENT))
    assert leaves(cell)
    assert cell.run.in_time

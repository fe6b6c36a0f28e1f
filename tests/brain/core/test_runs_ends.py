"""Runs: what is said of one by what it did last: who was told, whether its node was given back, whose place is free."""

from typing import Any

import pytest

from brain.core.healing import runs
from brain.core.pack.spec import Rung
from brain.core.state import StepRecord
from tests.brain.core.cell import GPU, NOW, Cell, Given
from tests.brain.core.climb import QUIET, Climb, rung
from tests.brain.core.givens import is_, on, runbook
from tests.brain.core.test_runs_way_back import over, owns
from tests.brain.world import rule

RESUME = Rung(name="resume", do="scheduler.resume")


def did(*actions: str, outcome: str = "ok", **params: Any) -> Given:
    """The run's steps until now; the last of them ended so, with these parameters."""

    def given(cell: Cell) -> None:
        cell.run.steps = [
            StepRecord(
                id=f"inc-1.r1.s{number}.a1", rung=action, action=action, params={}, at=NOW - 60, outcome="ok"
            )
            for number, action in enumerate(actions, 1)
        ]
        if cell.run.steps:
            cell.run.steps[-1].outcome, cell.run.steps[-1].params = outcome, params

    return given


@pytest.mark.parametrize(
    ("givens", "told"),
    [
        pytest.param(
            [is_(rung=2), did("page", "gpu.reset", "page")], True, id="its last rung told those on call"
        ),
        pytest.param([is_(rung=2), did("gpu.reset", "page", to="oncall")], True, id="by their name"),
        pytest.param(
            [is_(rung=2), did("gpu.reset", "page", to="network")], False, id="it told another group"
        ),
        pytest.param([is_(rung=2), did("gpu.reset", "page", "node.reboot")], False, id="it told them before"),
        pytest.param([is_(rung=2), did()], False, id="it did nothing"),
        pytest.param([is_(rung=1), did("page")], False, id="a rung is left"),
        pytest.param([is_(rung=2, worked="reset worked"), did("page")], False, id="it was on its way back"),
    ],
)
def test_whether_those_on_call_were_told_last(givens: list[Given], told: bool) -> None:
    """Then they are not told once more that gpuward gave up."""
    assert runs.told_last(Cell(*givens).run) is told


@pytest.mark.parametrize(
    ("givens", "back"),
    [
        pytest.param([did("scheduler.drain", "gpu.reset", "scheduler.resume")], True, id="it is"),
        pytest.param(
            [did("scheduler.drain", "gpu.reset", "scheduler.resume", outcome="failed")], False,
            id="the scheduler refused it",
        ),
        pytest.param([did("gpu.reset", "scheduler.resume", "gpu.reset")], False, id="it was, and was disturbed again"),
        pytest.param([did()], False, id="nothing was done"),
        pytest.param([did("gone.action")], False, id="by an action that is known no more"),
    ],
)  # fmt: skip
def test_whether_the_node_was_given_back(givens: list[Given], back: bool) -> None:
    """The newest step tells."""
    cell = Cell(*givens)
    assert runs.given_back(cell.ctx(), cell.run) is back


@pytest.mark.parametrize(("scope", "node", "others_may_go_on"), [(GPU, "n1", True), ("leaf/l1", "", False)])
def test_what_waits_for_the_remedys_end(scope: str, node: str, others_may_go_on: bool) -> None:
    """What its fault explained on the node is judged again as soon as the remedy has worked."""
    cell = Cell(over(), on(scope, node), is_(disrupted=True), runbook(return_to_service=(RESUME,)))
    ctx = cell.ctx()
    runs.succeed(ctx, cell.run, "reset worked", 1)
    assert ctx.released == ([cell.incident] if others_may_go_on else [])


@pytest.mark.parametrize("known", [True, False])
def test_a_drain_whose_rule_was_removed(*, known: bool) -> None:
    """Law 8: that no rule speaks of the fault any more gives nothing back. A rule that is there has said that it is over."""
    cell = Cell(over(), owns("inc-1"), runbook(return_to_service=(RESUME,)))
    cell.rules = (rule("gpu-lost", "gpu", {"symptom": "off_bus"}),) if known else ()
    cell.proceeds()
    why = f"rule gpu-lost was removed, which proves nothing about {GPU}. A person must look"
    assert (cell.run.why == why, cell.run.state == "exhausted") == (not known, not known)
    assert bool(cell.run.worked) is known


def test_a_runbook_without_rungs_does_nothing() -> None:
    """Nobody takes that for a return."""
    cell = Cell(runbook(rungs=()))
    cell.proceeds()
    why = "no rung of the ladder is left: a person must take it from here"
    assert (cell.run.state, cell.run.why) == ("exhausted", why)


def test_a_fault_that_comes_back_during_the_last_test() -> None:
    """The node was tested on its way back, and nothing is left to do but the next remedy."""
    it = Climb(rung("a", verify=QUIET), rung("b"), return_to_service=(Rung(name="test", do="port.check"),))
    it.answer("ok")
    it.link(up=True)
    it.wait(10.1)
    it.link(up=False)
    it.answer("ok")
    it.wait(0)
    assert [one.step.id.partition(".")[2] for one in it.performed] == ["r1.s1.a1", "r1.b1.a1", "r1.s2.a1"]

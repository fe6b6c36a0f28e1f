"""The gate `heard`: what a node is told that is silent, and what becomes of a command that has not reached it."""

import pytest

from brain.core.healing import unheard
from brain.core.healing.verdicts import Verdict
from brain.core.pack.spec import Rung
from brain.core.state import Node, RunState, StepRecord
from tests.brain.core.cell import NOW, Cell, Given, table, wait
from tests.brain.core.climb import rung
from tests.brain.core.givens import runbook, silent, started_by
from tests.brain.core.test_steps_answers import answer

BOUNCE, DRAIN, CYCLE = rung("r"), rung("r", "scheduler.drain"), rung("r", "bmc.power_cycle")


def heard(cell: Cell) -> None:
    """n1 is heard."""
    cell.state.nodes["n1"] = Node(name="n1")


def step(action: str, outcome: str, ago_s: float = 5, name: str = "r", number: int = 1) -> Given:
    """The run has done this."""

    def given(cell: Cell) -> None:
        one = StepRecord(
            id=f"inc-1.r1.s1.a{number}", rung=name, action=action, params={}, at=NOW - ago_s, outcome=outcome
        )
        cell.run.steps.append(one)

    return given


SILENT = wait("heard", "n1 is not heard", 60)
MISSED = step("link.bounce", "unreachable")


def does(one: Rung) -> Given:
    """The rung that is to begin."""
    return runbook(rungs=(one,))


@table(
    ("it is heard", [does(BOUNCE), heard], None),
    ("nothing is known of it", [does(BOUNCE)], None),
    ("it is silent", [does(BOUNCE), silent], SILENT),
    ("its drain does not need it", [does(DRAIN), silent], None),
    ("nor does its BMC", [does(CYCLE), silent], None),
    ("our own remedy has taken it away", [does(BOUNCE), silent, step("gpu.reset", "ok", name="x")], None),
    ("so may one without a result", [does(BOUNCE), silent, step("gpu.reset", "unknown", name="x")], None),
    ("not one that it refused", [does(BOUNCE), silent, step("gpu.reset", "refused", name="x")], SILENT),
    ("nor our drain", [does(BOUNCE), silent, step("scheduler.drain", "ok", name="x")], SILENT),
    ("an operator has asked for it", [does(BOUNCE), silent, started_by("ann")], None),
    ("not missed yet, and not reached", [does(BOUNCE), heard, MISSED], wait("heard", "no command has reached n1", 25)),
    ("half a minute ago", [does(BOUNCE), heard, step("link.bounce", "unreachable", 30)], None),
    ("an earlier rung did not reach it", [does(BOUNCE), heard, step("link.bounce", "unreachable", name="x")], None),
)  # fmt: skip
def test_a_silent_node_is_told_nothing(givens: list[Given], answer: Verdict | None) -> None:
    """Somebody may have restarted it, and then it is well."""
    assert Cell(*givens).asks(unheard.heard) == answer


@pytest.mark.parametrize(("before", "state"), [(False, RunState.HELD), (True, RunState.EXHAUSTED)])
def test_a_command_that_does_not_reach_its_node_is_sent_once_more(before: bool, state: RunState) -> None:
    """Half a minute later: by then it is known whether the node is silent. Then the rung has failed."""
    earlier = [step("link.bounce", "unreachable", 40)] if before else []
    cell = Cell(does(BOUNCE), heard, *earlier, step("link.bounce", "", number=2))
    cell.run.state = RunState.PERFORMING
    answer(cell, "unreachable", step="inc-1.r1.s1.a2")
    assert cell.run.state is state

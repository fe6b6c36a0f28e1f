"""All gates together: nobody objects, one objects, and who is heard first when several do."""

import inspect

import pytest

from brain.core.healing import gates, limits, unheard
from brain.core.healing.gates import GATES, GO
from brain.core.healing.verdicts import Case, Verdict
from tests.brain.core.cell import NOW, Cell, Given
from tests.brain.core.givens import (
    approved,
    at_work,
    drained_by,
    healed,
    held,
    in_maintenance,
    opened,
    operator_sets,
    runbook,
    scheduler_says,
    sick,
    silent,
    site,
    stale,
    treated,
    tried,
    tripped,
    unanswered,
)

OBJECTIONS: list[tuple[str, Given]] = [
    ("hold", held("node/n1")),
    ("shared", sick("cell", "off_bus_cell", 30)),
    ("breaker", tripped()),
    ("tries", tried(1200, 600)),
    ("offender", healed(0.3, 0.2, 0.1)),
    ("answers", unanswered()),
    ("related", treated("m1", "m2", "m3", "m4", "m5")),
    ("settling", opened(0)),
    ("heard", silent),
    ("mode", operator_sets("approve")),
    ("maintenance", in_maintenance("node/n1", NOW - 50, NOW + 50)),
    ("one_per_node", at_work("n1")),
    ("budget", at_work("n2")),
    ("protected", scheduler_says(("j1",), protected="j1")),
    ("kept_out", drained_by("ann: new DIMMs")),
    ("stale", stale()),
]
SCHEDULER = site(ask_jobs=True)


def peaceful() -> list[Given]:
    """A scheduler that says that nothing runs there."""
    return [SCHEDULER, scheduler_says()]


def test_every_gate_is_asked_and_has_its_row() -> None:
    """A gate that is not in GATES holds nothing; one without a row above is tried by no test of this file."""
    written = {
        name
        for module in (gates, limits, unheard)
        for name, one in inspect.getmembers(module, inspect.isfunction)
        if name[0] != "_"
        and "__mutmut_" not in name  # copies that make mutants tries
        and next(iter(inspect.get_annotations(one, eval_str=True).values()), None) is Case
        and inspect.get_annotations(one, eval_str=True)["return"] == Verdict | None
    }
    asked = [gate.__name__ for gate in GATES]
    assert written == set(asked), "add to GATES in brain/core/healing/gates.py"
    assert {name for name, _ in OBJECTIONS} == set(asked), "add to OBJECTIONS above what it objects to"


def test_nobody_objects() -> None:
    """A cell at peace lets the rung begin."""
    assert Cell(*peaceful()).asks_all() == GO
    assert (GO.answer.value, GO.gate, GO.reason) == ("go", "", "no gate objects")


@pytest.mark.parametrize(("gate", "objection"), OBJECTIONS, ids=[name for name, _ in OBJECTIONS])
def test_each_gate_is_asked(gate: str, objection: Given) -> None:
    """One reason is enough, and its gate is named."""
    assert Cell(*peaceful(), objection).asks_all().gate == gate


@pytest.mark.parametrize("first", range(len(OBJECTIONS)), ids=[name for name, _ in OBJECTIONS])
def test_whose_reason_people_hear(first: int) -> None:
    """When several object, the one that no approval removes and that says most comes first: in this order."""
    cell = Cell(*peaceful(), *(objection for _, objection in OBJECTIONS[first:]))
    assert cell.asks_all().gate == OBJECTIONS[first][0]


@pytest.mark.parametrize(("gate", "objection"), OBJECTIONS, ids=[name for name, _ in OBJECTIONS])
def test_what_an_approval_opens(gate: str, objection: Given) -> None:
    """A person can agree to mode, maintenance, old facts, a protected job, another's drain and one more of related nodes."""
    opened_by_approval = ("answers", "related", "mode", "maintenance", "stale", "protected", "kept_out")
    verdict = Cell(*peaceful(), objection, approved()).asks_all()
    assert (verdict == GO) == (gate in opened_by_approval)


def test_the_rung_is_judged_by_its_own_runbook() -> None:
    """A run keeps the runbook with which it began: its own number of tries counts."""
    assert Cell(*peaceful(), runbook(tries=1), tried(600)).asks_all().gate == "tries"

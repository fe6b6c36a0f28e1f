"""The gate that asks the scheduler: never a protected job without an approval, and what is not known is protected."""

import pytest

from brain.core.effects import AskJobs
from brain.core.healing import gates
from brain.core.healing.verdicts import Case, Verdict
from tests.brain.core.cell import NOW, Cell, Given, ask_a_person, table, wait
from tests.brain.core.givens import approved, on, scheduler_says, site, started_by

SCHEDULER = site(ask_jobs=True)
PROTECTED = scheduler_says(("j1",), protected="j1 (of vip)")
ASKING = wait("protected", "asking the scheduler what runs there", 10)
NOT_J1 = ask_a_person("protected", "protected job j1 (of vip) runs there")


@table(
    ("there is no scheduler", [], None),
    ("there is none, whatever was said once", [PROTECTED], None),
    ("it was not asked yet", [SCHEDULER], ASKING),
    ("it was not asked, and an approval does not tell what runs", [SCHEDULER, approved()], ASKING),
    ("nothing runs there", [SCHEDULER, scheduler_says()], None),
    ("a job runs that is not protected", [SCHEDULER, scheduler_says(("j1",))], None),
    ("a protected job runs", [SCHEDULER, PROTECTED], NOT_J1),
    ("a protected job runs, and a person approved", [SCHEDULER, PROTECTED, approved()], None),
    ("a protected job runs, and the approval is void", [SCHEDULER, PROTECTED, approved(until=NOW - 1)], NOT_J1),
    ("a protected job runs, and who started the run has not seen it", [SCHEDULER, PROTECTED, started_by("bea")], NOT_J1),
    (
        "the scheduler does not answer",
        [SCHEDULER, scheduler_says(known=False, why="it is down")],
        ask_a_person("protected", "it is not known what runs there: it is down"),
    ),
    (
        "it does not answer now, and said once what is protected",
        [SCHEDULER, scheduler_says(("j1",), "j1 (of vip)", "it is down", known=False)],
        ask_a_person("protected", "it is not known what runs there: it is down"),
    ),
    ("it does not answer, and a person approved", [SCHEDULER, scheduler_says(known=False, why="it is down"), approved()], None),
    ("the run is about no node", [SCHEDULER, on("fabric/default", "")], None),
)  # fmt: skip
def test_protected(givens: list[Given], answer: Verdict | None) -> None:
    """Law 2: never on a node that runs a protected job, or of which that is not known, without an approval."""
    assert Cell(*givens).asks(gates.protected) == answer


@pytest.mark.parametrize(
    ("givens", "asked"),
    [
        pytest.param([], [], id="no scheduler: nobody is asked"),
        pytest.param([SCHEDULER], ["n1"], id="not known: it is asked about this node"),
        pytest.param([SCHEDULER, scheduler_says()], [], id="it has just said: not asked again"),
    ],
)
def test_the_scheduler_is_asked_once(givens: list[Given], asked: list[str]) -> None:
    """Asked at the moment, about the node, and once in a turn however many runs wait there."""
    cell = Cell(*givens)
    ctx = cell.ctx()
    case = Case(ctx=ctx, run=cell.run, incident=cell.incident, rung=cell.run.runbook.rungs[0])
    for _ in range(2):
        gates.protected(case)
    assert [effect.node for effect in ctx.effects if isinstance(effect, AskJobs)] == asked
    assert len(ctx.effects) == len(asked)

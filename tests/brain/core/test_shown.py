"""Nothing is approved that was not shown: a button that hung in a chat while things became worse counts for nothing."""

import pytest

from brain.core.effects import Note
from brain.core.healing import shown
from brain.core.inputs import OperatorCommand
from brain.core.operators import commands
from brain.core.pack.spec import Rung
from brain.core.state import RunState
from tests.brain.core.cell import GPU, Cell, Given
from tests.brain.core.givens import on, runbook, sick
from tests.brain.core.test_approvals import (
    HOT,
    RESET_WITH_FORCE,
    at_rung,
    has,
    later,
    over,
    protects,
    shown_by,
    window,
    worse,
)


def seen_now(cell: Cell) -> str:
    """What a card would carry, made from the state alone."""
    cell.state.pack = cell.ctx().compiled.pack
    return shown.mark(cell.state, cell.run)


def approving(cell: Cell, **args: str) -> str:
    """What the log has of an approval; empty: it was given."""
    cell.run.state = RunState.APPROVAL
    ctx = cell.ctx()
    commands.handle(
        ctx, OperatorCommand(id="s:1", who="ann", verb="approve", args={"id": cell.run.id} | args)
    )
    notes = [one for one in ctx.effects if isinstance(one, Note)]
    return next((one.text for one in notes if one.kind == "operator.refused"), "")


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        pytest.param([], [], "", id="nothing has changed"),
        pytest.param([], [later(7200)], "", id="two hours later all is as it was"),
        pytest.param([], [at_rung(1)], "it is another step now", id="the run has gone on to the reboot"),
        pytest.param([], [runbook(rungs=RESET_WITH_FORCE)], "it is another step now", id="other parameters"),
        pytest.param([], [on("gpu/n1/0000:5e:00")], "it is another step now", id="another GPU"),
        pytest.param([], [worse("P0")], "the incident is P0 now", id="more urgent"),
        pytest.param([], [worse("P2")], "", id="less urgent"),
        pytest.param([], [shown_by(2)], "2 nodes show it now", id="more nodes"),
        pytest.param([shown_by(5)], [shown_by(4)], "", id="fewer nodes"),
        pytest.param([], [sick(GPU, "hot"), has(HOT)], f"{HOT} has come up since", id="a symptom more"),
        pytest.param([sick(GPU, "hot"), has(HOT)], [over(HOT)], "", id="a symptom less"),
        pytest.param([], [window("rack/r1")], "the maintenance window of rack/r1 has opened since", id="a window opens"),
        pytest.param([window("rack/r1")], [], "", id="a window was open"),
        pytest.param([], [window("rack/r2")], "", id="a window of another rack"),
        pytest.param([], [protects("j1")], "protected job j1 runs there now", id="a protected job begins"),
        pytest.param([protects("j1")], [protects("j2")], "protected job j2 runs there now", id="another one"),
        pytest.param([protects("j1")], [], "", id="it was shown"),
        pytest.param([protects("j1")], [protects("")], "", id="it has ended"),
    ],
)  # fmt: skip
def test_an_approval_is_for_what_was_shown(before: list[Given], after: list[Given], why: str) -> None:
    """What became worse between card and click was not agreed to; what became better needs no second look."""
    cell = Cell(*before)
    seen = seen_now(cell)
    for given in after:
        given(cell)
    refused = approving(cell, seen=seen)
    assert bool(refused) == bool(why)
    assert why in refused
    assert seen not in refused, "a mark for machines is nothing to read"
    assert (cell.run.approved is None) == bool(why)


def test_whoever_says_nothing_of_what_they_saw_approves_what_is_there() -> None:
    """As the command line does, whose answer says what that is."""
    cell = Cell()
    worse("P0")(cell)
    assert approving(cell) == ""
    assert cell.run.approved is not None


@pytest.mark.parametrize("of", ["{run}.s1", "{incident}.r0", "{incident}.r99"])
def test_what_is_no_run_of_an_incident_that_has_one_is_not_told_that_it_has_none(of: str) -> None:
    """Such as the id of one of its steps."""
    cell = Cell()
    cell.state.incidents[cell.run.incident].runs.append(cell.run.id)
    refused = approving(cell, id=of.format(run=cell.run.id, incident=cell.run.incident))
    assert refused.endswith("no run of that id waits for an approval")


@pytest.mark.parametrize("seen", ["x", "P1.1", "P9.1.a.b.c.d", "P1.x.a.b.c.d", "P1.1.a.b.c.d.e", "....."])
def test_a_mark_that_is_none_of_ours_is_refused(seen: str) -> None:
    """It is no approval of anything."""
    assert "look again" in approving(Cell(), seen=seen)


def test_a_mark_fits_into_a_button_however_much_is_wrong() -> None:
    """What a long list leaves out counts as shown: better than no button."""
    cell = Cell()
    for number in range(500):
        scope = f"gpu/n1/0000:{number:02x}:00"
        sick(scope, "hot")(cell)
        has(f"hot@{scope}")(cell)
    seen = seen_now(cell)
    assert len(seen) < 400
    assert approving(cell, seen=seen) == ""


def test_rungs_of_one_name_are_told_apart() -> None:
    """By what they do."""
    cell = Cell(runbook(rungs=(Rung(name="reset", do="gpu.reset", params={"gpu": "$component"}),)))
    seen = seen_now(cell)
    runbook(rungs=RESET_WITH_FORCE)(cell)
    assert "another step" in approving(cell, rung="reset", seen=seen)

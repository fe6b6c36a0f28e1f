"""A scheduler's record of a node is made anew, and our drain is not on it (decision 112)."""

from dataclasses import replace
from typing import Any

import pytest

from brain.core.effects import DrainAgain, Note
from brain.core.healing import gates, jobs, lost_drains
from brain.core.healing.verdicts import Decision
from brain.core.inputs import JobsAnswer
from brain.core.pack.spec import Mode, ModeSetting, Rung
from brain.core.state import OwnedDrain, RunState, StepRecord
from tests.brain.core.cell import NOW, Cell, Given
from tests.brain.core.givens import approved, held, in_maintenance

OLD, NEW = "uid-1", "uid-2"
WHY = "gpu-lost at gpu/n1/0000:3b:00 (rule gpu-lost)"


def owns(*marks: str, record: str = OLD, missed_on: str = "", incident: str = "inc-1") -> Given:
    """The incident owns a drain of n1 that stands on this record of it."""

    def given(cell: Cell) -> None:
        drain = OwnedDrain(
            since=NOW - 500,
            marks=list(marks or (incident,)),
            sure=True,
            record=record,
            missed_on=missed_on,
        )
        cell.state.drains.setdefault("n1", {})[incident] = drain

    return given


def says(record: str, *marks: str, drained: str = "", **more: Any) -> JobsAnswer:
    """What the scheduler says of n1."""
    given: dict[str, Any] = {"id": "j1", "node": "n1", "known": True, "scheduler": "k8s"}
    given |= {"drained": drained or ("gpuward" if marks else ""), "ours": bool(marks), "record": record}
    return JobsAnswer(**(given | {"marks": marks} | more))


def answered(cell: Cell, given: JobsAnswer) -> tuple[list[DrainAgain], list[str]]:
    """What the engine wants done, and the kinds of its notes."""
    ctx = cell.ctx()
    jobs.answered(ctx, given)
    wanted = [one for one in ctx.effects if isinstance(one, DrainAgain)]
    return wanted, [
        one.kind for one in ctx.effects if isinstance(one, Note) and one.kind.startswith("drain.")
    ]


def of(cell: Cell, incident: str = "inc-1") -> tuple[str, str]:
    """The record on which its drain stands, and that on which it was missed."""
    drain = cell.state.drains["n1"][incident]
    return drain.record, drain.missed_on


AGAIN = DrainAgain(node="n1", record=NEW, marks={"inc-1": WHY})


@pytest.mark.parametrize(
    ("givens", "given", "wanted", "notes", "then"),
    [
        pytest.param([owns()], says(OLD, "inc-1"), [], [], (OLD, ""), id="it stands"),
        pytest.param([owns()], says(NEW), [AGAIN], ["drain.lost"], (OLD, NEW), id="another record, no mark"),
        pytest.param(
            [owns()],
            says(NEW, drained="cordoned by kubectl"),
            [AGAIN],
            ["drain.lost"],
            (OLD, NEW),
            id="a person has cordoned the new one: our drain stands beside that",
        ),
        pytest.param(
            [owns()],
            says(NEW, "inc-2"),
            [AGAIN],
            ["drain.lost"],
            (OLD, NEW),
            id="another incident has drained the new one: its end must not give the node back",
        ),
        pytest.param(
            [owns(missed_on=NEW)],
            says(NEW, "inc-1"),
            [],
            ["drain.renewed"],
            (NEW, ""),
            id="it is drained again: that is told",
        ),
        pytest.param([owns()], says(OLD), [], [], ("", ""), id="a person has taken it off the same record"),
        pytest.param([owns(record="")], says(NEW), [], [], ("", ""), id="a person had: their word stands"),
        pytest.param(
            [owns(record="")], says(NEW, "inc-1"), [], [], (NEW, ""), id="it was not known on which it stands"
        ),
        pytest.param(
            [owns(record="")], says(NEW, ""), [], [], (NEW, ""), id="a mark that does not say whose it is"
        ),
        pytest.param([owns()], says("", ours=False), [], [], (OLD, ""), id="a scheduler that keeps its records"),
        pytest.param(
            [owns()], says(NEW, known=False), [], [], (OLD, ""), id="a scheduler that does not answer"
        ),
        pytest.param(
            [owns(), held("node/n1")], says(NEW), [], ["drain.lost"], (OLD, NEW), id="law 2: under a hold nothing is done"
        ),
        pytest.param(
            [owns(missed_on=NEW), held("node/n1")], says(NEW), [], [], (OLD, NEW), id="and that is said once"
        ),
        pytest.param(
            [owns(missed_on=NEW)], says(NEW), [AGAIN], ["drain.lost"], (OLD, NEW), id="after the hold it is"
        ),
        pytest.param(
            [owns(), in_maintenance("rack/r1", NOW - 1, NOW + 1)],
            says(NEW),
            [],
            ["drain.lost"],
            (OLD, NEW),
            id="law 2: nor in a maintenance window",
        ),
    ],
)  # fmt: skip
def test_what_becomes_of_a_drain(
    givens: list[Given],
    given: JobsAnswer,
    wanted: list[DrainAgain],
    notes: list[str],
    then: tuple[str, str],
) -> None:
    """Another record is nobody's decision; our mark gone from the same record is a person's."""
    cell = Cell(*givens)
    assert answered(cell, given) == (wanted, notes)
    assert of(cell) == then


def test_in_observe_mode_nothing_is_done() -> None:
    """Whoever has stopped the runbook since then has stopped this too."""
    cell = Cell(owns())
    cell.settings = replace(cell.settings, modes=(ModeSetting(mode=Mode.OBSERVE),))
    assert answered(cell, says(NEW)) == ([], ["drain.lost"])
    cell = Cell(owns())
    cell.observe_all = True
    assert answered(cell, says(NEW))[0] == []


def test_marks_that_others_have_left_are_set_again_too() -> None:
    """Each owner's, and only of those whose drain is missing."""
    cell = Cell(owns("inc-0", "inc-1"), owns(incident="inc-2"), owns(incident="inc-3", record=""))
    (again,), _ = answered(cell, says(NEW, "inc-2"))
    assert list(again.marks) == ["inc-0", "inc-1"]
    assert [of(cell, one)[0] for one in ("inc-1", "inc-2", "inc-3")] == [OLD, NEW, ""]


def test_a_node_that_is_being_given_back_is_not_drained_again() -> None:
    """Its return has been verified, and is under way: a drain now would stay for ever."""
    cell = Cell(owns())
    resume = Rung(name="resume", do="scheduler.resume")
    cell.run = cell.state.runs["inc-1.r1"] = replace(
        cell.run, state=RunState.PERFORMING, runbook=replace(cell.run.runbook, rungs=(resume,))
    )
    resuming = StepRecord(
        id="inc-1.r1.s1.a1", rung="resume", action="scheduler.resume", params={}, at=NOW - 10
    )
    cell.run.steps.append(resuming)
    assert answered(cell, says(NEW)) == ([], [])
    assert not lost_drains.wanted(cell.ctx(), "n1", ["inc-1"])
    cell.run.state = RunState.HELD
    assert lost_drains.wanted(cell.ctx(), "n1", ["inc-1"])
    assert not lost_drains.wanted(cell.ctx(), "n1", ["inc-1", "inc-2"])
    assert not lost_drains.wanted(cell.ctx(), "n2", ["inc-1"])


@pytest.mark.parametrize("also", [(), (approved(),)], ids=["nobody has agreed", "approved"])
def test_what_disrupts_waits_until_it_is_drained_again(also: tuple[Given, ...]) -> None:
    """It is not said that somebody has given the node back, and jobs may have started there meanwhile."""
    cell = Cell(owns(), *also)
    answered(cell, says(NEW))
    verdict = cell.asks(gates.kept_out)
    assert verdict is not None
    assert (verdict.answer, verdict.gate) == (Decision.HOLD, "kept_out")
    assert verdict.retry_s == gates.ASKED_S
    assert "drained again" in verdict.reason
    answered(cell, replace(says(NEW, "inc-1"), id="j2"))
    assert cell.asks(gates.kept_out) is None


@pytest.mark.parametrize(
    ("drain", "record", "marks", "news"),
    [
        ((OLD, "inc-1"), OLD, ["inc-1"], False),
        ((OLD, "inc-1"), NEW, ["inc-1"], True),
        ((OLD, "inc-1"), OLD, [], True),
        ((OLD, "inc-1"), NEW, [], True),
        (("", "inc-1"), NEW, [], False),
        (("", "inc-1"), NEW, ["inc-1"], True),
        (("", "inc-1"), NEW, ["inc-2"], False),
    ],
)
def test_what_is_told_to_the_log(
    drain: tuple[str, str], record: str, marks: list[str], *, news: bool
) -> None:
    """Only what the log does not have, so that a look at a node that is as it was leaves nothing there."""
    owned = OwnedDrain(since=NOW, marks=[drain[1]], record=drain[0])
    assert lost_drains.is_news([owned], record, marks) is news

"""Who owns a drain: the incidents that want a node out of service, and what they have left to each other."""

from dataclasses import replace
from typing import Any

import pytest

from brain.core.effects import Note
from brain.core.healing import drains, plans
from brain.core.pack.spec import Rung
from brain.core.state import IncidentState, OwnedDrain, RunState
from tests.brain.core.cell import LADDER, NOW, Cell, Given
from tests.brain.core.givens import started_by

EMPTIES = replace(
    LADDER,
    name="replace-node",
    rungs=(Rung(name="tell", do="page"), Rung(name="drain", do="scheduler.drain"), *LADDER.rungs),
)

RESUME = Rung(name="resume", do="scheduler.resume", params={"owners": "all"})


@pytest.fixture(autouse=True)
def remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The incident's own remedy takes the node out of service, too."""
    monkeypatch.setattr("tests.brain.core.cell.LADDER", EMPTIES)


def owns(incident: str, *marks: str, node: str = "n1", since: float = NOW - 500, sure: bool = False) -> Given:
    """The incident owns a drain there, under its own name or these; the scheduler has said that it stands."""

    def given(cell: Cell) -> None:
        drain = OwnedDrain(since=since, marks=list(marks or (incident,)), sure=sure)
        cell.state.drains.setdefault(node, {})[incident] = drain

    return given


def also(id_: str = "inc-2", newest: RunState | None = None, **fields: Any) -> Given:
    """Another incident on n1, with the same remedy; its newest run stands so."""

    def given(cell: Cell) -> None:
        own: dict[str, Any] = {"id": id_, "cause": "hot", "runs": [], "matching_rules": {"hot@gpu": "hot"}}
        cell.state.incidents[id_] = replace(cell.incident, **(own | fields))
        for number, state in enumerate([RunState.SUCCEEDED, RunState.SUCCEEDED, newest] if newest else [], 1):
            run = replace(cell.run, id=f"{id_}.r{number}", incident=id_, state=state)
            cell.state.runs[run.id] = run
            cell.state.incidents[id_].runs.append(run.id)

    return given


def owners(cell: Cell) -> dict[str, dict[str, tuple[float, list[str]]]]:
    """Node -> incident -> since when, and under whose marks."""
    return {
        node: {incident: (drain.since - NOW, drain.marks) for incident, drain in of.items()}
        for node, of in cell.state.drains.items()
    }


@pytest.mark.parametrize(
    ("givens", "then"),
    [
        pytest.param([], {"inc-1": (0, ["inc-1"])}, id="nobody did: from now on it does"),
        pytest.param([owns("inc-1")], {"inc-1": (-500, ["inc-1"])}, id="it does already: since then"),
        pytest.param(
            [owns("inc-2")],
            {"inc-2": (-500, ["inc-2"]), "inc-1": (0, ["inc-1"])},
            id="another does: both do",
        ),
        pytest.param(
            [owns("inc-1", "inc-0")],
            {"inc-1": (-500, ["inc-0", "inc-1"])},
            id="it has what another left to it: its own mark comes to that",
        ),
    ],
)
def test_who_owns_a_drain_when_a_step_leaves(givens: list[Given], then: dict[str, Any]) -> None:
    """Law 14: from the moment when the step leaves, not when it is answered."""
    cell = Cell(*givens)
    ctx = cell.ctx()
    drains.began(ctx, plans.step(ctx, cell.run, cell.incident, EMPTIES.rungs[1], "inc-1.r1.s2.a1"))
    assert owners(cell) == {"n1": then}


@pytest.mark.parametrize(
    ("marks", "left"),
    [
        (["inc-1"], None),
        (["inc-0", "inc-1"], ["inc-0"]),
        (["inc-0"], ["inc-0"]),
        (["inc-9", "inc-0", "inc-1"], ["inc-9", "inc-0"]),
    ],
)
def test_a_refused_drain_takes_nothing_back_that_another_incident_had_left(
    marks: list[str], left: list[str] | None
) -> None:
    """Else the node stays drained by the first one's mark, and nobody knows of it."""
    cell = Cell(owns("inc-1", *marks))
    drains.undone(cell.ctx(), "n1", "inc-1")
    assert owners(cell) == ({"n1": {"inc-1": (-500, left)}} if left else {})


def test_what_nobody_owns_can_be_undone_too() -> None:
    """A result that comes late changes nothing, there and elsewhere."""
    cell = Cell()
    drains.undone(cell.ctx(), "n1", "inc-1")
    assert owners(cell) == {}
    other = Cell(owns("inc-2"))
    drains.undone(other.ctx(), "n1", "inc-1")
    assert owners(other) == {"n1": {"inc-2": (-500, ["inc-2"])}}


@pytest.mark.parametrize(
    ("givens", "of_others"),
    [
        pytest.param([], False, id="nobody's"),
        pytest.param([owns("inc-1")], False, id="its own"),
        pytest.param([owns("inc-1"), owns("inc-2")], True, id="another incident's, too"),
        pytest.param([owns("inc-1", "inc-1", "inc-0")], True, id="its own, and what another has left to it"),
        pytest.param([owns("inc-2", node="n2")], False, id="another's, on another node"),
    ],
)
def test_whether_a_drain_of_another_incident_stands(givens: list[Given], of_others: bool) -> None:
    """Then a page says that the node stays drained, though this incident's own drain was refused."""
    cell = Cell(*givens)
    assert drains.of_others(cell.ctx(), cell.run) is of_others


def test_which_nodes_an_incident_keeps_out_of_service() -> None:
    """Those that it owns itself; asked by the incident or by its id."""
    cell = Cell(owns("inc-1"), owns("inc-2"), owns("inc-2", node="n2"), owns("inc-1", node="n3"))
    assert drains.owned(cell.ctx(), cell.incident) == ["n1", "n3"]
    assert drains.owned(cell.ctx(), "inc-2") == ["n1", "n2"]
    assert drains.owned(cell.ctx(), "inc-3") == []


@pytest.mark.parametrize(
    ("givens", "marks"),
    [
        pytest.param(
            [owns("inc-1", "inc-0", "inc-1")], ["inc-0", "inc-1"], id="its own and what was left to it"
        ),
        pytest.param([owns("inc-2", "inc-0")], ["inc-1"], id="another's are not for it to take off"),
        pytest.param([owns("inc-1", "inc-0", node="n2")], ["inc-1"], id="nor its own on another node"),
    ],
)
def test_under_whose_marks_the_scheduler_takes_a_node_back(givens: list[Given], marks: list[str]) -> None:
    """Law 3: only what carries our mark is resumed by us. A mark of its own may be there in any case."""
    cell = Cell(*givens)
    given = drains.marks(cell.ctx(), "n1", "inc-1")
    assert given == marks
    given.clear()
    assert drains.marks(cell.ctx(), "n1", "inc-1") == marks


OVER: dict[str, Any] = {"matching_rules": {}}


@pytest.mark.parametrize(
    ("givens", "wanted"),
    [
        pytest.param([owns("inc-1")], [], id="only itself"),
        pytest.param([owns("inc-2")], ["inc-2"], id="another owner"),
        pytest.param([owns("inc-2", node="n2")], [], id="an owner of another node's drain"),
        pytest.param([owns("inc-2"), also(**OVER)], ["inc-2"], id="an owner whose fault is over: it lets go by itself"),
        pytest.param([also()], ["inc-2"], id="one that will drain the node"),
        pytest.param([also(node="n2")], [], id="one that will drain another node"),
        pytest.param([also(runbook="other")], [], id="one whose remedy nobody knows any more"),
        pytest.param([also(state=IncidentState.CLOSED)], [], id="one that is closed"),
        pytest.param([also(state=IncidentState.EXPLAINED)], [], id="one that another explains"),
        pytest.param([also(state=IncidentState.RECOVERED)], [], id="one that has recovered"),
        pytest.param([also(state=IncidentState.NEEDS_HUMAN)], ["inc-2"], id="one that waits for people"),
        pytest.param([also(**OVER)], [], id="one whose fault is over, but that is not closed"),
        pytest.param([owns("inc-2"), also()], ["inc-2"], id="an owner that wants it, too, counts once"),
        pytest.param([also("inc-3"), owns("inc-2")], ["inc-2", "inc-3"], id="owners come first"),
        pytest.param([also(node="n2"), also("inc-3")], ["inc-3"], id="each is looked at"),
    ],
)  # fmt: skip
def test_who_else_wants_a_node_out_of_service(givens: list[Given], wanted: list[str]) -> None:
    """Law 3: a drain ends with the last incident that wants it."""
    cell = Cell(*givens)
    assert drains.others(cell.ctx(), cell.run) == wanted


def test_a_remedy_that_drains_nothing_wants_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its node may serve meanwhile, as far as it is concerned."""
    monkeypatch.setattr("tests.brain.core.cell.LADDER", LADDER)
    cell = Cell(also())
    assert drains.others(cell.ctx(), cell.run) == []


@pytest.mark.parametrize("who", ["bea", "", "schedule"])
@pytest.mark.parametrize(
    ("givens", "busy"),
    [
        pytest.param([also()], True, id="its fault is there"),
        pytest.param([also(runbook="other")], True, id="its fault is there, whatever its remedy is by now"),
        pytest.param([also(**OVER)], False, id="its fault is over, and it has no run"),
        pytest.param(
            [also(runbook="other", matching_rules={"l@n1": "left-drained"})],
            False,
            id="it is there because the node is drained",
        ),
        pytest.param([], False, id="it is forgotten"),
        pytest.param([also(newest=RunState.INTENT, **OVER)], True, id="its run is about to begin"),
        pytest.param([also(newest=RunState.PERFORMING, **OVER)], True, id="its run is at work"),
        pytest.param([also(newest=RunState.VERIFYING, **OVER)], True, id="its run verifies"),
        pytest.param([also(newest=RunState.CANCELLING, **OVER)], True, id="its run is being stopped"),
        pytest.param([also(newest=RunState.HELD, **OVER)], False, id="its run waits"),
        pytest.param([also(newest=RunState.APPROVAL, **OVER)], False, id="its run waits for a person"),
        pytest.param([also(newest=RunState.EXHAUSTED, **OVER)], False, id="its run gave up"),
    ],
)
def test_a_person_may_return_a_node_from_an_owner_that_is_not_at_work(
    givens: list[Given], busy: bool, who: str
) -> None:
    """Else nobody could: such an owner waits for just that. For the schedule, and for a fault, it keeps the node; and from
    whoever asks for something else.
    """
    cell = Cell(started_by(who), owns("inc-2"), *givens)
    assert drains.others(cell.ctx(), cell.run) == ["inc-2"]
    cell.run.runbook = replace(cell.run.runbook, rungs=(RESUME,))
    assert drains.others(cell.ctx(), cell.run) == (["inc-2"] if busy or who != "bea" else [])


@pytest.mark.parametrize(
    ("givens", "then"),
    [
        pytest.param([owns("inc-1")], {"inc-2": (-500, ["inc-1"])}, id="the heir owned nothing"),
        pytest.param(
            [owns("inc-1", "inc-0", "inc-1"), owns("inc-2", "inc-2", "inc-0", since=NOW - 90)],
            {"inc-2": (-90, ["inc-2", "inc-0", "inc-1"])},
            id="the heir owned it, too: each mark once",
        ),
        pytest.param(
            [owns("inc-1"), owns("inc-3")],
            {"inc-3": (-500, ["inc-3"]), "inc-2": (-500, ["inc-1"])},
            id="a third one keeps its own",
        ),
    ],
)
def test_a_drain_that_is_left_to_another_incident(givens: list[Given], then: dict[str, Any]) -> None:
    """The scheduler is not asked: its marks are the heir's to take off. The trail says who wants the node so."""
    cell = Cell(also(), *givens)
    ctx = cell.ctx()
    drains.hand_over(ctx, "n1", "inc-1", "inc-2")
    assert owners(cell) == {"n1": then}
    (note,) = [effect for effect in ctx.finish() if isinstance(effect, Note)]
    assert (note.kind, note.incident, note.scope) == ("drain.kept", "inc-2", "node/n1")
    assert note.text == "n1 stays out of service: hot (inc-2) wants it so"


@pytest.mark.parametrize(("of", "heirs"), [(True, False), (False, True), (True, True), (False, False)])
def test_what_the_scheduler_has_said_goes_to_the_heir(*, of: bool, heirs: bool) -> None:
    """It holds for the node, whoever owns the drain."""
    cell = Cell(owns("inc-1", sure=of), owns("inc-2", sure=heirs))
    drains.hand_over(cell.ctx(), "n1", "inc-1", "inc-2")
    assert drains.sure(cell.ctx(), "n1") == (of or heirs)


def test_when_it_is_sure_that_a_node_gets_no_new_jobs() -> None:
    """From when the scheduler has said so, for any owner, until a step leaves that may give the node back."""
    cell = Cell(owns("inc-1"), owns("inc-2"), owns("inc-1", node="n2"))
    ctx = cell.ctx()
    assert not drains.sure(ctx, "n1")
    drains.done(ctx, "n1", "inc-2", "")
    drains.done(ctx, "n2", "inc-1", "")
    assert [drains.sure(ctx, node) for node in ("n1", "n2", "n3")] == [True, True, False]
    drains.doubted(ctx, "n1")
    drains.doubted(ctx, "n3")
    drains.done(ctx, "n1", "inc-9", "")
    drains.done(ctx, "n3", "inc-1", "")
    assert [drains.sure(ctx, node) for node in ("n1", "n2", "n3")] == [False, True, False]


def test_an_heir_that_is_forgotten_is_named_by_its_id() -> None:
    """The trail has nothing better."""
    cell = Cell(owns("inc-1"))
    ctx = cell.ctx()
    drains.hand_over(ctx, "n1", "inc-1", "inc-9")
    (note,) = [effect for effect in ctx.finish() if isinstance(effect, Note)]
    assert note.text == "n1 stays out of service: inc-9 wants it so"


@pytest.mark.parametrize("givens", [[], [owns("inc-3")], [owns("inc-1", node="n2")]])
def test_what_an_incident_does_not_own_it_cannot_leave_to_another(givens: list[Given]) -> None:
    """Nothing changes, and nothing is said."""
    cell = Cell(*givens)
    before, ctx = owners(cell), cell.ctx()
    drains.hand_over(ctx, "n1", "inc-1", "inc-2")
    assert (owners(cell), ctx.finish()) == (before, [])


def test_a_node_that_is_back_has_no_owner_any_more() -> None:
    """Those that owned it as well are told, unless they are over or forgotten; other nodes stay as they are."""
    cell = Cell(
        also(), also("inc-3", state=IncidentState.CLOSED), also("inc-4", state=IncidentState.EXPLAINED),
        also("inc-5", state=IncidentState.RECOVERED), also("inc-6"),
        *(owns(f"inc-{number}") for number in (1, 2, 3, 4, 5, 9)), owns("inc-1", node="n2"),
    )  # fmt: skip
    assert [incident.id for incident in drains.returned(cell.ctx(), cell.run)] == ["inc-2", "inc-5"]
    assert owners(cell) == {"n2": {"inc-1": (-500, ["inc-1"])}}
    assert drains.returned(cell.ctx(), cell.run) == []

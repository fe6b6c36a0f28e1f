"""Law 13: an approval ends with what it was given for. What voids one, and what does not."""

from dataclasses import replace

import pytest

from brain.core.healing import approvals
from brain.core.pack.spec import Priority, Rung
from tests.brain.core.cell import GPU, NOW, Cell, Given
from tests.brain.core.givens import approved, in_maintenance, on, runbook, scheduler_says, sick


def later(seconds: float) -> Given:
    """So much time passes."""

    def given(cell: Cell) -> None:
        cell.state.now = NOW + seconds

    return given


def worse(severity: str) -> Given:
    """The incident is of this severity now."""

    def given(cell: Cell) -> None:
        cell.incident.severity = Priority(severity)

    return given


def shown_by(nodes: int) -> Given:
    """So many nodes show it now."""

    def given(cell: Cell) -> None:
        cell.incident.nodes = nodes

    return given


def has(symptom: str) -> Given:
    """The incident has one more symptom; whether it is active is another matter."""

    def given(cell: Cell) -> None:
        cell.incident.symptoms.append(symptom)

    return given


def half_way(symptom: str) -> Given:
    """A symptom's window fills, and is not full yet."""

    def given(cell: Cell) -> None:
        sick(GPU, symptom)(cell)
        cell.state.symptoms[f"{symptom}@{GPU}"].active = False

    return given


def over(symptom: str) -> Given:
    """A symptom has ended."""

    def given(cell: Cell) -> None:
        del cell.state.symptoms[symptom]

    return given


def at_rung(number: int) -> Given:
    """The run stands at another rung."""

    def given(cell: Cell) -> None:
        cell.run.rung = number

    return given


def returning_to_service() -> Given:
    """A rung has worked."""

    def given(cell: Cell) -> None:
        cell.run.runbook = replace(
            cell.run.runbook, return_to_service=(Rung(name="resume", do="scheduler.resume"),)
        )
        cell.run.worked = "it helped"

    return given


RESET_WITH_FORCE = (Rung(name="reset", do="gpu.reset", params={"gpu": "node"}),)
HOT = f"hot@{GPU}"


def window(scope: str, since: float = NOW - 50, until: float = NOW + 50) -> Given:
    """A maintenance window."""
    return in_maintenance(scope, since, until)


def protects(job: str) -> Given:
    """The scheduler says that this protected job runs there; empty: none does."""
    return scheduler_says((job,) if job else (), protected=job)


@pytest.mark.parametrize(
    ("givens", "why"),
    [
        pytest.param([approved()], "", id="nothing has changed"),
        pytest.param([approved(), later(3600)], "", id="in its last moment"),
        pytest.param([approved(), later(3601)], "its time is over", id="after its time"),
        pytest.param([approved(), at_rung(1)], "it was for another step", id="the run has gone on to the reboot"),
        pytest.param([approved(), at_rung(2)], "it was for another step", id="no rung is left"),
        pytest.param(
            [approved(), runbook(rungs=RESET_WITH_FORCE)], "it was for another step", id="the same action with other parameters"
        ),
        pytest.param([approved(), on("gpu/n1/0000:5e:00")], "it was for another step", id="another GPU"),
        pytest.param([approved(), returning_to_service()], "it was for another step", id="the run is on its way back"),
        pytest.param([approved(), worse("P0")], "the incident is P0 now", id="the incident is more urgent"),
        pytest.param([approved(), worse("P2")], "", id="the incident is less urgent"),
        pytest.param([approved(), shown_by(2)], "2 nodes show it now", id="one node more shows it"),
        pytest.param([shown_by(5), approved(), shown_by(4)], "", id="one node fewer shows it"),
        pytest.param([approved(), sick(GPU, "hot"), has(HOT)], f"{HOT} has come up since", id="a symptom has come up"),
        pytest.param([sick(GPU, "hot"), has(HOT), approved()], "", id="it was there already"),
        pytest.param([approved(), half_way("hot"), has(HOT)], "", id="a symptom that is not there yet"),
        pytest.param([half_way("hot"), has(HOT), approved(), sick(GPU, "hot")], f"{HOT} has come up since", id="and then is"),
        pytest.param([approved(), sick(GPU, "hot")], "", id="a symptom of another incident"),
        pytest.param([approved(), over(f"off_bus@{GPU}")], "", id="a symptom has ended"),
        pytest.param(
            [approved(), over(f"off_bus@{GPU}"), sick(GPU)], "", id="a symptom has ended and is back"
        ),
        pytest.param([approved(), later(3601), approved()], "", id="approved anew"),
        pytest.param([approved(), window("rack/r1")], "the maintenance window of rack/r1 has opened since", id="a window opens"),
        pytest.param([window("rack/r1"), approved()], "", id="it was open already"),
        pytest.param([window("rack/r1"), approved(), window("node/n1")], "the maintenance window of node/n1 has opened since",
                     id="another one opens"),
        pytest.param([approved(), window("rack/r2")], "", id="a window of another rack opens"),
        pytest.param([approved(), window("rack/r1", NOW + 1)], "", id="a window that is not open yet"),
        pytest.param([approved(), window("rack/r1", NOW)], "the maintenance window of rack/r1 has opened since", id="opens now"),
        pytest.param([approved(), window("rack/r1", NOW - 50, NOW)], "", id="a window that is over"),
        pytest.param([approved(), protects("j1")], "protected job j1 runs there now", id="a protected job begins"),
        pytest.param([protects("j1"), approved()], "", id="it ran there already"),
        pytest.param([protects("j1"), approved(), protects("j2")], "protected job j2 runs there now", id="another one begins"),
        pytest.param([protects("j1"), approved(), protects("")], "", id="it has ended"),
        pytest.param([approved(ended="it was old")], "it was old", id="it was void before"),
    ],
)  # fmt: skip
def test_what_voids_an_approval(givens: list[Given], why: str) -> None:
    """It stands as long as step, time, urgency, reach and symptoms are those that the person saw."""
    cell = Cell(*givens)
    assert approvals.void(cell.ctx(), cell.run) == why
    assert approvals.valid(cell.ctx(), cell.run) == (why == "")


def test_what_is_void_stays_void() -> None:
    """A window opened and closed while nobody looked: who approved has not approved that."""
    cell = Cell(approved(), window("rack/r1"))
    approvals.end_if_void(cell.ctx(), cell.run)
    cell.settings = replace(cell.settings, maintenance=())
    assert approvals.void(cell.ctx(), cell.run) == "the maintenance window of rack/r1 has opened since"
    good = Cell(approved())
    before = good.run.approved
    approvals.end_if_void(good.ctx(), good.run)
    assert good.run.approved is before
    none = Cell()
    approvals.end_if_void(none.ctx(), none.run)
    assert none.run.approved is None


def worked() -> Given:
    """The ladder has helped, and the node is to be given back."""

    def given(cell: Cell) -> None:
        cell.run.worked = "reset helped"
        runbook(return_to_service=(Rung(name="resume", do="scheduler.resume"),))(cell)

    return given


def test_without_an_approval() -> None:
    """None stands, and nothing is void."""
    cell = Cell()
    assert approvals.valid(cell.ctx(), cell.run) is False
    assert approvals.void(cell.ctx(), cell.run) == ""


def test_what_a_person_agrees_to() -> None:
    """Who, until when, and the step with its parameters and its place, in words that a note can repeat."""
    cell = Cell(sick(GPU, "hot"), has(HOT), half_way("leaf_hot"), has(f"leaf_hot@{GPU}"), shown_by(3))
    given = approvals.give(cell.ctx(), cell.run, "bea")
    assert cell.run.approved is given
    assert (given.who, given.until) == ("bea", NOW + 3600)
    assert (given.windows, given.protected) == ([], "")
    assert given.what == "reset: gpu.reset(gpu=gpu/0000:3b:00) on gpu/n1/0000:3b:00"
    assert (given.symptoms, given.nodes, given.severity) == ([f"off_bus@{GPU}", HOT], 3, "P1")


def test_what_a_person_agrees_to_when_no_rung_is_left() -> None:
    """Nothing."""
    cell = Cell(at_rung(2))
    assert approvals.give(cell.ctx(), cell.run, "bea").what == ""


@pytest.mark.parametrize(
    ("givens", "name"),
    [
        pytest.param([], "reset", id="the first of the ladder"),
        pytest.param([at_rung(1)], "reboot", id="the one that it has come to"),
        pytest.param([at_rung(2)], "", id="none is left"),
        pytest.param([worked()], "resume", id="on the way back"),
    ],
)  # fmt: skip
def test_which_rung_waits_for_the_approval(givens: list[Given], name: str) -> None:
    """An operator may name the rung that the page named; if the run has come to another one since, nothing is approved."""
    assert approvals.rung(Cell(*givens).run) == name

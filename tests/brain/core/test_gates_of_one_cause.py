"""A cause on one node after the other, hours apart: a job that is requeued, or so many in a day."""

import pytest

from brain.core.context import Context
from brain.core.faults import creeping
from brain.core.healing import gates, limits
from brain.core.healing.verdicts import Decision, Verdict
from brain.core.pack.spec import Mode, ModeSetting, Rung
from brain.core.state import Node
from tests.brain.core.cell import NOW, Cell, Given, table, wait
from tests.brain.core.givens import approved, runbook, scheduler_says, site, treated, waiting

DAY = 86_400.0
FIVE = ("m1", "m2", "m3", "m4", "m5")


def of_one_job(nodes: tuple[str, ...], job: str = "j1") -> Verdict:
    """The answer when the same job ran on each of them."""
    treated_there = f"gpu-lost was treated on 5 nodes within a day ({', '.join(nodes)})"
    reason = f"{treated_there}, and job {job} ran on each of them as it does here"
    return wait("related", f"{reason}: these belong together; `gpuward approve` lets this one go on", 300)


def in_a_day(count: int, named: str) -> Verdict:
    """The answer when so many had it within a day."""
    reason = f"gpu-lost was treated on {count} nodes within a day ({named})"
    return wait("related", f"{reason}: these belong together; `gpuward approve` lets this one go on", 300)


HOURS_AGO = 5 * 3600
TEN = tuple(f"m{number}" for number in range(1, 11))
ONLY_A_DRAIN = runbook(rungs=(Rung(name="drain", do="scheduler.drain"),))
TWO_A_DAY = site(same_cause_nodes_per_day=2)
FIVE_OF_J1 = treated(*FIVE, seconds_ago=HOURS_AGO, jobs=("j1", "j2"))


def of_j1(*nodes: str) -> Given:
    """It was treated on these nodes today, where job j1 ran."""
    return treated(*nodes, seconds_ago=HOURS_AGO, jobs=("j1",))


@table(
    ("five had it, hours ago", [treated(*FIVE, seconds_ago=HOURS_AGO)], None),
    ("five nodes of its job", [FIVE_OF_J1, scheduler_says(("j1",))], of_one_job(FIVE)),
    ("of one of its jobs", [FIVE_OF_J1, scheduler_says(("j0", "j2"))], of_one_job(FIVE, "j2")),
    ("of another job", [FIVE_OF_J1, scheduler_says(("j0",))], None),
    ("nothing runs here", [FIVE_OF_J1, scheduler_says()], None),
    ("it is not known what runs here", [FIVE_OF_J1], None),
    ("four of its job", [treated(*FIVE[:4], seconds_ago=HOURS_AGO, jobs=("j1",)), scheduler_says(("j1",))], None),
    ("five of its job, and so had this node", [of_j1(*FIVE, "n1"), scheduler_says(("j1",))], None),
    ("a day ago", [treated(*FIVE, seconds_ago=DAY, jobs=("j1",)), scheduler_says(("j1",))], None),
    ("they had something else", [treated(*FIVE, cause="nic-broken", jobs=("j1",)), scheduler_says(("j1",))], None),
    ("a person approved", [FIVE_OF_J1, scheduler_says(("j1",)), approved()], None),
    ("nine nodes in a day", [treated(*TEN[:9], seconds_ago=HOURS_AGO)], None),
    ("ten nodes in a day", [treated(*TEN, seconds_ago=HOURS_AGO)], in_a_day(10, "m1, m2, m3, m4, m5, m6")),
    ("ten nodes in a day, and so had this node", [treated(*TEN, "n1", seconds_ago=HOURS_AGO)], None),
    ("ten, one a day ago", [treated("m1", seconds_ago=DAY), treated(*TEN[1:], seconds_ago=HOURS_AGO)], None),
    ("the site counts two", [TWO_A_DAY, treated("m1", "m2", seconds_ago=HOURS_AGO)], in_a_day(2, "m1, m2")),
    ("ten, and this run disturbs no whole node", [treated(*TEN, seconds_ago=HOURS_AGO), ONLY_A_DRAIN], None),
)  # fmt: skip
def test_what_comes_one_by_one_belongs_together_too(givens: list[Given], answer: Verdict | None) -> None:
    """Law 6: a job that kills a GPU on every node that it is requeued to does so once in half an hour, not five times an hour."""
    assert Cell(*givens).asks(limits.related) == answer


def test_the_job_may_leave_the_node_that_waits_for_its_sake() -> None:
    """It ends there, or is requeued to the next node: what it has done to this one stays related."""
    cell = Cell(FIVE_OF_J1, scheduler_says(("j1",)), site(ask_jobs=True))
    cell.proceeds()
    scheduler_says()(cell)
    cell.proceeds()
    assert cell.run.why.endswith("(gate related)")


@pytest.mark.parametrize(("nodes", "waits"), [(1099, True), (1100, False), (2000, False)])
def test_in_a_large_cell_more_nodes_a_day_are_usual(nodes: int, waits: bool) -> None:
    """One in a hundred; what is rare on 100 nodes is not on 2,000."""
    cell = Cell(treated(*TEN, seconds_ago=HOURS_AGO))
    for number in range(nodes):
        cell.state.nodes[f"x{number}"] = Node(name=f"x{number}")
    assert (cell.asks(limits.related) is not None) == waits


@pytest.mark.parametrize(
    ("nodes", "waits"), [(0, True), (512, True), (1499, True), (1500, False), (8192, False)]
)
def test_in_a_large_job_more_nodes_a_day_are_usual(nodes: int, waits: bool) -> None:
    """One in 250: five of a job of 8,192 nodes are a quiet day. What size it has only its scheduler says."""
    cell = Cell(FIVE_OF_J1, scheduler_says(("j1",), nodes=nodes))
    assert (cell.asks(limits.related) == of_one_job(FIVE)) == waits


def test_a_large_job_that_breaks_its_nodes_is_held() -> None:
    """Its 32nd node of 8,000 within a day waits for people; that of another job does not."""
    broken = tuple(f"x{number}" for number in range(32))
    many = [Node(name=f"y{number}") for number in range(8000)]
    for job, waits in (("j1", True), ("j2", False)):
        cell = Cell(of_j1(*broken), scheduler_says((job,), nodes=8000))
        cell.state.nodes |= {node.name: node for node in many}
        assert (cell.asks(limits.related) is not None) == waits
    cell = Cell(of_j1(*broken[:31]), scheduler_says(("j1",), nodes=8000))
    cell.state.nodes |= {node.name: node for node in many}
    assert cell.asks(limits.related) is None


def test_a_run_waits_from_when_it_was_first_held_and_with_what_ran_there_then() -> None:
    """Never anew: none hold each other for ever."""
    cell = Cell(scheduler_says(("j1",)))
    limits.wait_for_people(cell.ctx(), cell.run)
    assert (cell.run.related_since, cell.run.jobs) == (NOW, ["j1"])
    cell.state.now = NOW + 600
    scheduler_says(("j2",))(cell)
    limits.wait_for_people(cell.ctx(), cell.run)
    assert (cell.run.related_since, cell.run.jobs) == (NOW, ["j1"])


def test_nobody_knows_what_runs_where_a_run_waits() -> None:
    """Then no job is known to have been there."""
    cell = Cell()
    limits.wait_for_people(cell.ctx(), cell.run)
    assert cell.run.jobs == []


@pytest.mark.parametrize(("others", "told"), [(0, True), (1, True), (2, False), (3, False)])
def test_the_first_two_that_wait_are_told(others: int, told: bool) -> None:
    """One alone may have made it up; what the third has to say is known."""
    cell = Cell(*(waiting(f"m{number}") for number in range(others)))
    assert limits.wait_for_people(cell.ctx(), cell.run) is told


def test_of_one_place_that_loses_one_node_after_the_other_a_person_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others of the last hours are looked at, not this node; what the place says is the reason."""
    asked: list[tuple[str, list[str]]] = []

    def says(_ctx: Context, node: str, _scope: str, others: list[str]) -> str:
        asked.append((node, list(others)))
        return "m1 of the same leaf needed it, too" if others == ["m1", "m2"] else ""

    monkeypatch.setattr(creeping, "of_one_place", says)
    reason = "gpu-lost: m1 of the same leaf needed it, too; `gpuward approve` lets this one go on"
    assert Cell(treated("m1", "m2", "n1", seconds_ago=HOURS_AGO)).asks(limits.related) == wait(
        "related", reason, 300
    )
    assert asked == [("n1", ["m1", "m2"])]
    assert Cell(treated("m1", seconds_ago=HOURS_AGO)).asks(limits.related) is None
    assert asked.pop() == ("n1", ["m1"])
    assert Cell(treated("n1", seconds_ago=HOURS_AGO)).asks(limits.related) is None
    assert len(asked) == 1, "nobody else had it"


@pytest.mark.parametrize(("at_most", "asks"), [(Mode.AUTO, False), (Mode.APPROVE, True)])
def test_whoever_starts_what_is_to_be_approved_approves_it_as_well(at_most: Mode, asks: bool) -> None:
    cell = Cell(runbook(at_most=at_most), site(modes=(ModeSetting(mode=Mode.APPROVE),)))
    cell.run.requested_by = "ann"
    verdict = cell.asks(gates.mode)
    assert (verdict is not None and verdict.answer is Decision.APPROVAL) == asks

"""Gates that count: budgets, one run on a node, tries of a remedy, the breaker."""

from dataclasses import replace

import pytest

from agent.contract.counted import counted
from brain.core.effects import Note, SendPage
from brain.core.faults import racks
from brain.core.healing import budgets, limits
from brain.core.healing.verdicts import Verdict
from brain.core.people import SCHEDULE
from brain.core.state import Bout, Disruption, SymptomState
from tests.brain.core.cell import GPU, NOW, Cell, Given, never, table, wait
from tests.brain.core.givens import (
    at_work,
    chosen,
    on,
    runbook,
    scheduler_says,
    site,
    started_by,
    tried,
    tripped,
    under_way,
)


def full(what: str, have: int, most: int) -> Verdict:
    """The answer when a budget is used up."""
    return wait("budget", f"{counted(have, 'disruptive run')} in {what}, at most {most} at once")


ONE_IN_A_CELL = site(disruptive_runs=1)
TWO_IN_A_PLACE = site(disruptive_runs_per_leaf=2)


@table(
    ("nothing is under way", [], None),
    ("one elsewhere, and the cell may have one", [ONE_IN_A_CELL, at_work("n5")], full("cell", 1, 1)),
    ("one elsewhere, and the cell may have two", [site(disruptive_runs=2), at_work("n5")], None),
    ("two elsewhere, and the cell may have two", [site(disruptive_runs=2), at_work("n5"), at_work("n9")], full("cell", 2, 2)),
    ("one on another node of its leaf", [at_work("n2")], full("leaf/l1", 1, 1)),
    ("one on another node of its rack", [at_work("n3")], full("rack/r1", 1, 1)),
    ("one on another node of its pod", [at_work("n4")], full("pod/p1", 1, 1)),
    ("a fabric is no place with a budget of its own", [at_work("n5")], None),
    ("one in its leaf, and a place may have two", [TWO_IN_A_PLACE, at_work("n2")], None),
    ("two in its leaf, and a place may have two", [TWO_IN_A_PLACE, at_work("n2"), at_work("n2")], full("leaf/l1", 2, 2)),
    ("one in its leaf and one in its rack are one in each", [TWO_IN_A_PLACE, at_work("n2"), at_work("n3")], None),
    ("two elsewhere of the same runbook", [at_work("n5", "reset-gpu"), at_work("n9", "reset-gpu")], full("reset-gpu", 2, 2)),
    ("one elsewhere of the same runbook", [at_work("n5", "reset-gpu")], None),
    ("two elsewhere of another runbook", [at_work("n5", "other"), at_work("n9", "other")], None),
    ("two elsewhere, one of them of the same runbook", [at_work("n5", "other"), at_work("n9", "reset-gpu")], None),
    ("a node that nobody has placed", [on("gpu/n9/0000:3b:00", "n9"), at_work("n2")], None),
    ("a fabric's run counts for the cell", [on("fabric/default", ""), ONE_IN_A_CELL, at_work("n5")], full("cell", 1, 1)),
    ("a fabric's run stands in no leaf", [on("fabric/default", ""), at_work("n2")], None),
    ("the cell may have fewer since it was chosen", [chosen(), ONE_IN_A_CELL, at_work("n5")], full("cell", 1, 1)),
    ("it was chosen, and nothing else is under way", [chosen(), ONE_IN_A_CELL], None),
    ("a run that has begun holds its place", [under_way(), ONE_IN_A_CELL, at_work("n2"), at_work("n5")], None),
)  # fmt: skip
def test_budget(givens: list[Given], answer: Verdict | None) -> None:
    """Law 1: never more at once than the cell, the runbook, the leaf, the rack and the pod may have."""
    assert Cell(*givens).asks(budgets.budget) == answer


@table(
    ("its job is disturbed elsewhere", [scheduler_says(("j1",)), at_work("n5", jobs=("j1",))], full("job j1", 1, 1)),
    ("another job is disturbed elsewhere", [scheduler_says(("j1",)), at_work("n5", jobs=("j2",))], None),
    ("its second job is", [scheduler_says(("j1", "j2")), at_work("n5", jobs=("j3", "j2"))], full("job j2", 1, 1)),
    ("nothing runs on it", [scheduler_says(), at_work("n5", jobs=("j1",))], None),
    ("nobody was asked", [at_work("n5", jobs=("j1",))], None),
    (
        "a job may be disturbed twice",
        [site(disruptive_runs_per_job=2), scheduler_says(("j1",)), at_work("n5", jobs=("j1",))],
        None,
    ),
    (
        "and is disturbed twice",
        [site(disruptive_runs_per_job=2), scheduler_says(("j1",)), at_work("n5", jobs=("j1",)), at_work("n9", jobs=("j1",))],
        full("job j1", 2, 2),
    ),
)  # fmt: skip
def test_budget_of_a_job(givens: list[Given], answer: Verdict | None) -> None:
    """Law 1: one job is disturbed at one place at a time, as far as the scheduler has said what runs where."""
    assert Cell(*givens).asks(budgets.budget) == answer


@table(
    ("nothing else is under way", [], None),
    ("another run is at work on the node", [at_work("n1")], wait("one_per_node", "inc-2.r1 works on n1")),
    ("another run is at work elsewhere", [at_work("n2")], None),
    ("it is at work itself", [under_way()], None),
    ("it is at work itself, and so is another", [under_way(), at_work("n1")], wait("one_per_node", "inc-2.r1 works on n1")),
    ("a fabric's run, while another fabric's is under way", [on("fabric/default", ""), at_work("")], None),
)  # fmt: skip
def test_one_per_node(givens: list[Given], answer: Verdict | None) -> None:
    """Law 1: never two disruptive runs on one node."""
    assert Cell(*givens).asks(budgets.one_per_node) == answer


def enough(times: int, hours: int = 1) -> Verdict:
    """The answer when a remedy was tried so often."""
    return never("tries", f"reset-gpu was tried {counted(times, 'time')} here in {hours} h")


@table(
    ("it was never tried", [], None),
    ("it was tried once", [tried(600)], None),
    ("it was tried twice", [tried(1200, 600)], enough(2)),
    ("it was tried thrice", [tried(1800, 1200, 600)], enough(3)),
    ("twice, but one of them long ago", [tried(4000, 600)], None),
    ("twice, and the first falls out of the window just now", [tried(3600, 600)], None),
    ("twice, and the first is just within the window", [tried(3599, 600)], enough(2)),
    ("twice, long ago: the window ends", [tried(9000, 8000)], None),
    ("another remedy was tried", [tried(1200, 600, key=f"reboot-node@gpu-lost@{GPU}")], None),
    ("it was tried for another fault", [tried(1200, 600, key=f"reset-gpu@gpu-hot@{GPU}")], None),
    ("it was tried elsewhere", [tried(1200, 600, key="reset-gpu@gpu-lost@gpu/n2/0000:3b:00")], None),
    ("the runbook may be tried once", [runbook(tries=1, tries_within_s=5400), tried(4000)], enough(1, 2)),
    ("a run that has begun goes on to its next rung", [under_way(), tried(1200, 600)], None),
    ("twice, and a person asks for it", [tried(1200, 600), started_by("bea")], None),
    ("twice, and its inspection is due", [tried(1200, 600), started_by(SCHEDULE)], None),
)  # fmt: skip
def test_tries(givens: list[Given], answer: Verdict | None) -> None:
    """Law 8: a remedy that failed so often for one fault of one part, within its window, is left to a person."""
    assert Cell(*givens).asks(limits.tries) == answer


def test_tries_on_a_part_and_on_its_node_count_together() -> None:
    """The fault was first known of a GPU, and then of its whole node: one remedy each is two here."""
    cell = Cell(tried(1200), tried(600, key="reset-gpu@gpu-lost@node/n1"))
    assert cell.asks(limits.tries) == enough(2)


def test_a_try_is_remembered_where_the_gate_looks_for_it() -> None:
    """By runbook, cause and scope."""
    cell = Cell()
    key = limits.tries_key(cell.run, cell.incident)
    assert key == f"reset-gpu@gpu-lost@{cell.run.scope}"
    cell.state.tries[key] = [NOW - 1200, NOW - 600]
    assert cell.asks(limits.tries) == enough(2)


@table(
    ("it has not tripped", [], None),
    ("it has", [site(breaker_runs=9), tripped()], wait("breaker", "9 nodes disrupted within 60 minutes: say `reset`", 300)),
    (
        "it has, and the site counts over another time",
        [site(breaker_runs=4, breaker_within_s=600), tripped()],
        wait("breaker", "4 nodes disrupted within 10 minutes: say `reset`", 300),
    ),
    ("it has, but the run has begun", [tripped(), under_way()], None),
)  # fmt: skip
def test_breaker(givens: list[Given], answer: Verdict | None) -> None:
    """A tripped breaker lets nothing begin, and what has begun end in order."""
    assert Cell(*givens).asks(limits.breaker) == answer


def began(at: float, node: str, cause: str = "gpu-lost") -> Disruption:
    """A disruptive run began on that node then."""
    return Disruption(at=at, node=node, cause=cause)


def test_one_node_alone_does_not_trip_the_breaker() -> None:
    """A node that lies, or is broken for good, uses up no cell's patience: nodes are counted, not runs."""
    cell = Cell(site(breaker_runs=3))
    cell.state.began = [began(NOW - 60 * number, "n1") for number in range(1, 20)]
    limits.claim(cell.ctx(), cell.run)
    assert not cell.state.tripped


@pytest.mark.parametrize(
    ("began_s_ago", "asked_by", "trips"),
    [
        pytest.param([], "", False, id="the first run of the day"),
        pytest.param([300], "", False, id="the second"),
        pytest.param([400, 300], "", True, id="the third within ninety minutes"),
        pytest.param([5400, 300], "", False, id="the first of three falls out of the window just now"),
        pytest.param([5399, 300], "", True, id="the first of three is just within it"),
        pytest.param([9000, 8000, 7000, 300], "", False, id="many, but long ago"),
        pytest.param([400, 300], "bea", True, id="a person's counts too"),
        pytest.param([400, 300], SCHEDULE, False, id="an inspection on schedule is no remedy"),
    ],
)
def test_what_trips_the_breaker(began_s_ago: list[float], asked_by: str, trips: bool) -> None:
    """Three disruptive runs that begin within ninety minutes; people are told once, of the run that did it."""
    cell = Cell(site(breaker_runs=3, breaker_within_s=5400), started_by(asked_by))
    cell.state.began = [began(NOW - ago, f"n{number}") for number, ago in enumerate(began_s_ago, 2)]
    ctx = cell.ctx()
    limits.claim(ctx, cell.run)
    assert cell.state.tripped == (NOW if trips else 0.0)
    told = [effect.text for effect in ctx.finish() if isinstance(effect, SendPage)]
    assert told == (
        ["the breaker has tripped: disruptive runs on 3 nodes within 90 minutes"] if trips else []
    )
    noted = [
        effect.text for effect in ctx.effects if isinstance(effect, Note) and effect.kind == "breaker.tripped"
    ]
    assert noted == (
        ["disruptive runs on 3 nodes within 90 minutes: no further one begins until a person says `reset`"]
        if trips
        else []
    )


def test_what_the_breaker_remembers() -> None:
    """It counts the runs of its window, and no inspection; those of a day are kept for what belongs together."""
    cell = Cell(site(breaker_runs=3, breaker_within_s=600))
    cell.state.began = [began(NOW - 86_400, "n2"), began(NOW - 9000, "n4"), began(NOW - 300, "n3")]
    limits.claim(cell.ctx(), cell.run)
    assert [each.at for each in cell.state.began] == [NOW - 9000, NOW - 300, NOW]
    assert [each.at for each in limits.began_lately(cell.ctx())] == [NOW - 300, NOW]
    limits.claim(cell.ctx(), replace(cell.run, requested_by=SCHEDULE, counted=False))
    assert [each.at for each in cell.state.began] == [NOW - 9000, NOW - 300, NOW]
    assert not cell.state.tripped
    cell.state.began, cell.state.tripped = [began(NOW - 300, f"n{number}") for number in range(2, 6)], NOW - 7
    ctx = cell.ctx()
    limits.claim(ctx, replace(cell.run, counted=False))
    assert len(cell.state.began) == 5
    assert cell.state.tripped == NOW - 7
    assert ctx.effects == []


@pytest.mark.parametrize(
    ("givens", "jobs"),
    [
        pytest.param([], [], id="nobody was asked what runs there"),
        pytest.param([scheduler_says(("j1", "j2"))], ["j1", "j2"], id="what the scheduler said"),
    ],
)
def test_a_run_that_begins_holds_its_node_and_its_jobs(givens: list[Given], jobs: list[str]) -> None:
    """From its first disruptive rung on it counts for every budget, also when it was started on schedule."""
    for who in ("", "bea", SCHEDULE):
        cell = Cell(*givens, started_by(who))
        ctx = cell.ctx()
        limits.claim(ctx, cell.run)
        assert (cell.run.claimed, cell.run.jobs) == (True, jobs)
        assert ctx.index.claims == {"inc-1.r1": "n1"}


@pytest.mark.parametrize(
    ("who", "remembered"),
    [("", True), ("bea", False), (SCHEDULE, False)],
    ids=["a rule", "a person", "a schedule"],
)
def test_a_remedy_counts_for_its_node_and_for_its_rack(
    monkeypatch: pytest.MonkeyPatch, who: str, remembered: bool
) -> None:
    """Lemons are judged of the remedies that faults called for; what they make of it is judged with the run."""
    rack = SymptomState(name="rack_suspected", scope="rack/r1", active=True)
    monkeypatch.setattr(
        racks, "remedied", lambda _, node, cause: [rack] if (node, cause) == ("n1", "gpu-lost") else []
    )
    cell = Cell(started_by(who))
    ctx = cell.ctx()
    limits.claim(ctx, cell.run)
    bouts = {"n1": [Bout(at=NOW, cause="gpu-lost")]} if remembered else {}
    assert (cell.state.bouts, ctx.changed) == (bouts, [rack] if remembered else [])

"""Gates beside drains that wait for jobs, perhaps for days; and beside the last resort."""

from dataclasses import replace
from typing import Any

from brain.core.healing import budgets, limits
from brain.core.pack.spec import Rung
from brain.core.state import StepRecord
from tests.brain.core.cell import GPU, LADDER, NOW, Cell, Given, never, table, wait
from tests.brain.core.givens import at_work, site, tried, under_way


def draining(node: str, since_s: float = 900) -> Given:
    """Another run has waited there so long for jobs to end."""

    def given(cell: Cell) -> None:
        at_work(node)(cell)
        _newest_step(cell, "scheduler.drain", NOW - since_s)

    return given


def doing(node: str, *actions: str) -> Given:
    """Another run has long been at these steps there, the newest of them last."""

    def given(cell: Cell) -> None:
        at_work(node)(cell)
        for place, action in enumerate(actions, 1):
            _newest_step(cell, action, NOW - 5000 / place)

    return given


def is_tested(
    node: str, since_s: float, *, worked: str = "reset worked", action: str = "port.check"
) -> Given:
    """Another run there disturbed its node so long ago for the last time, and is at this step."""

    def given(cell: Cell) -> None:
        at_work(node)(cell)
        _newest_step(cell, action, NOW - 10)
        run = list(cell.state.runs.values())[-1]
        run.worked, run.disturbed_at, run.disrupted = worked, NOW - since_s, True

    return given


def own_test(since_s: float = 900) -> Given:
    """The run in question tests its node, and disturbed it so long ago for the last time."""

    def given(cell: Cell) -> None:
        under_way()(cell)
        record = StepRecord(id="x", rung="test", action="node.accept", params={}, at=NOW - since_s)
        cell.run.steps.append(record)
        cell.run.disturbed_at = NOW - since_s

    return given


def waits_since() -> Given:
    """The run in question has disturbed its node, and has let it go while it waits."""

    def given(cell: Cell) -> None:
        cell.run.disrupted, cell.run.claimed = True, False

    return given


def drained(since_s: float = 900) -> Given:
    """The run in question has drained its node, which took so long."""

    def given(cell: Cell) -> None:
        under_way()(cell)
        record = StepRecord(
            id="x", rung="drain", action="scheduler.drain", params={}, at=NOW - since_s, outcome="ok"
        )
        cell.run.steps.append(record)

    return given


def _newest_step(cell: Cell, action: str, at: float) -> None:
    run = list(cell.state.runs.values())[-1]
    run.steps.append(StepRecord(id="x", rung="r", action=action, params={}, at=at))


FENCE = f"fence@gpu-lost@{GPU}"
FULL = wait("budget", "1 disruptive run in cell, at most 1 at once")


@table(
    ("one waits for jobs elsewhere", [site(disruptive_runs=1), draining("n5")], None),
    ("one has waited for a moment only", [site(disruptive_runs=1), draining("n5", 899)], FULL),
    ("one waits in its leaf", [draining("n2")], None),
    ("one is at work, one waits", [site(disruptive_runs=1), at_work("n5"), draining("n9")], FULL),
    ("its own drain is done, and one is at work", [site(disruptive_runs=1), at_work("n5"), drained()], FULL),
    ("its own drain was done at once", [site(disruptive_runs=1), at_work("n5"), drained(899)], None),
    ("its own drain is done, and one waits", [site(disruptive_runs=1), draining("n5"), drained()], None),
    ("one has switched its node off long ago", [site(disruptive_runs=1), doing("n5", "node.isolate")], FULL),
    ("one has rebooted its node for long", [site(disruptive_runs=1), doing("n5", "node.reboot")], FULL),
    ("one reboots its node when it is idle", [site(disruptive_runs=1), doing("n5", "scheduler.reboot")], FULL),
    ("one resets a card, long after its drain", [site(disruptive_runs=1), doing("n5", "scheduler.drain", "nic.reset")], FULL),
    ("one has long requeued its job", [site(disruptive_runs=1), doing("n5", "scheduler.requeue")], FULL),
    ("it has let its node go, and one is at work", [site(disruptive_runs=1), at_work("n5"), waits_since()], FULL),
    ("one does what this site's brain does not know", [site(disruptive_runs=1), doing("n5", "x.unknown")], FULL),
)  # fmt: skip
def test_a_wait_for_jobs_uses_up_no_budget(givens: list[Given], answer: Any) -> None:
    """Else three degraded nodes with week-long jobs would keep every other node from being healed."""
    assert Cell(*givens).asks(budgets.budget) == answer


@table(
    ("one has tested its node for long, after its remedy", [site(disruptive_runs=1), is_tested("n5", 900)], None),
    ("one tests its node shortly after its remedy", [site(disruptive_runs=1), is_tested("n5", 899)], FULL),
    ("one gives its node back after them", [site(disruptive_runs=1), is_tested("n5", 900, action="scheduler.resume")], None),
    ("one has long done only a test", [site(disruptive_runs=1), is_tested("n5", 900, worked="", action="node.accept")], None),
    ("one is in its ladder again", [site(disruptive_runs=1), is_tested("n5", 900, worked="", action="gpu.reset")], FULL),
    ("its own test took long, and one is at work", [site(disruptive_runs=1), at_work("n5"), own_test()], FULL),
    ("its own test took a moment", [site(disruptive_runs=1), at_work("n5"), own_test(899)], None),
)  # fmt: skip
def test_a_long_test_uses_up_no_budget(givens: list[Given], answer: Any) -> None:
    """Else whoever waits for the budget waits as long as a node that was healed says that it is tested (law 15)."""
    assert Cell(*givens).asks(budgets.budget) == answer


def fence(last_resort: str) -> Given:
    """The run is the one that fences; the incident's own runbook names this one as its last resort."""

    def given(cell: Cell) -> None:
        cell.run.runbook = replace(LADDER, name="fence", rungs=(Rung(name="drain", do="scheduler.drain"),))
        cell.runbooks = (replace(LADDER, last_resort=last_resort),)

    return given


SPENT = never("tries", "fence was tried 2 times here in 1 h")


@table(
    ("it stands in for what was tried too often", [tried(60, 120, key=FENCE), fence("fence")], None),
    ("it is a remedy like others", [tried(60, 120, key=FENCE), fence("")], SPENT),
    ("the site has another last resort", [tried(60, 120, key=FENCE), fence("page-only")], SPENT),
)
def test_a_last_resort_may_always_be_tried(givens: list[Given], answer: Any) -> None:
    """It only fences: nothing is worse for it, and without it the node would stay in service."""
    assert Cell(*givens).asks(limits.tries) == answer

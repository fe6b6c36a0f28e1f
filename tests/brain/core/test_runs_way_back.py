"""Runs: before a node is given back, and before a fault is taken to be gone. What is asked first, and what it waits for."""

from dataclasses import replace

import pytest

from brain.core.effects import AskLook, Note, WriteIntent
from brain.core.healing import runs
from brain.core.pack.spec import Rung
from brain.core.people import SCHEDULE
from brain.core.state import Node, OwnedDrain, RunState
from tests.brain.core.cell import GPU, NOW, Cell, Given
from tests.brain.core.givens import (
    at_work,
    held,
    is_,
    on,
    runbook,
    sick,
    started_by,
    tripped,
    waiting,
)

TIMER = "run:inc-1.r1"
RESUME = Rung(name="resume", do="scheduler.resume")


def over(*, unproven: bool = False) -> Given:
    """No rule matches any more; with a fact that says so, or without."""

    def given(cell: Cell) -> None:
        cell.incident.matching_rules = {}
        cell.incident.unproven = unproven
        cell.state.symptoms.clear()

    return given


def healed(cell: Cell) -> None:
    """The reset has helped a minute ago, and the runbook gives the node back; n1 is heard."""
    over()(cell)
    runbook(return_to_service=(RESUME,))(cell)
    is_(worked="reset helped", disrupted=True, disturbed_at=NOW - 60)(cell)
    cell.boots(NOW - 9000)


def looked(seconds_ago: float) -> Given:
    """And has looked again."""
    return is_(looked_at=NOW - seconds_ago)


def heard(*, alive: bool) -> Given:
    """Whether the node is heard."""

    def given(cell: Cell) -> None:
        cell.state.nodes["n1"] = Node(name="n1", alive=alive)

    return given


def unknown(cell: Cell) -> None:
    """Nobody has ever heard of the node."""
    cell.state.nodes.clear()


def owns(*incidents: str) -> Given:
    """These incidents keep n1 out of service, each by its own drain."""

    def given(cell: Cell) -> None:
        cell.state.drains["n1"] = {one: OwnedDrain(since=NOW - 100, marks=[one]) for one in incidents}

    return given


def other(cause: str = "nic-broken") -> Given:
    """Another incident of n1, whose fault is there."""

    def given(cell: Cell) -> None:
        waiting("n1", gate="budget", cause=cause)(cell)
        cell.state.incidents["inc-2"].matching_rules = {f"{cause}@node/n1": cause}

    return given


BEGINS = (RunState.INTENT, "resume: scheduler.resume (attempt 1)", True)
LOOKS = "before resume: n1 looks again"


def asks(why: str = LOOKS) -> tuple[RunState, str, bool]:
    """The run waits for its node."""
    return RunState.HELD, why, False


@pytest.mark.parametrize(
    ("givens", "ends", "timer_s", "looks"),
    [
        pytest.param([looked(30)], BEGINS, 30, 0, id="it has looked since it was disturbed"),
        pytest.param([looked(60)], BEGINS, 30, 0, id="in that moment"),
        pytest.param([looked(61)], asks(), 35, 1, id="it looked before it was disturbed"),
        pytest.param([], asks(), 35, 1, id="it never looked"),
        pytest.param([is_(disturbed_at=NOW - 900), looked(300)], BEGINS, 30, 0, id="it looked five minutes ago"),
        pytest.param([is_(disturbed_at=NOW - 900), looked(301)], asks(), 35, 1, id="longer ago: much may have happened"),
        pytest.param([looked(30), heard(alive=False)], asks(f"{LOOKS} (n1 is not heard)"), 10, 0, id="it is silent now"),
        pytest.param([looked(30), unknown], asks(), 35, 1, id="nobody knows it"),
        pytest.param([started_by("bea")], BEGINS, 30, 0, id="a person asks for it and answers for it"),
        pytest.param([started_by(SCHEDULE)], asks(), 35, 1, id="the schedule answers for nothing"),
        pytest.param(
            [looked(30), at_work("n1")],
            (RunState.HELD, "resume waits: inc-2.r1 works on n1 (gate one_per_node)", False),
            15, 0, id="another run is at work on it",
        ),
        pytest.param(
            [is_(asked_since=NOW - 90, unseen="n1 did not answer")],
            (RunState.EXHAUSTED, "not given back: n1 did not answer. A person must look", False),
            None, 0, id="it was asked in vain",
        ),
        pytest.param(
            [is_(asked_since=NOW - 89, unseen="n1 did not answer")], asks(f"{LOOKS} (n1 did not answer)"), 35, 1,
            id="and almost in vain",
        ),
        pytest.param(
            [looked(30), other(), owns("inc-1", "inc-2")],
            (RunState.SUCCEEDED, "reset helped; n1 stays out of service for nic-broken (inc-2)", False),
            None, 0, id="another incident keeps it out of service",
        ),
        pytest.param(
            [looked(30), owns("inc-1", "inc-7")],
            (RunState.SUCCEEDED, "reset helped; n1 stays out of service for inc-7 (inc-7)", False),
            None, 0, id="one that is not known any more does",
        ),
        pytest.param(
            [started_by("bea"), is_(worked=""), runbook(rungs=(RESUME,)), other(), owns("inc-2")],
            (RunState.EXHAUSTED, "not given back: n1 stays out of service for nic-broken (inc-2)", False),
            None, 0, id="a person asks for it, and another incident keeps it",
        ),
    ],
)  # fmt: skip
def test_giving_a_node_back(
    givens: list[Given], ends: tuple[RunState, str, bool], timer_s: float | None, looks: int
) -> None:
    """Law 8: on facts newer than the disturbance; law 1: while nobody works on it; law 3: when nobody else wants it out."""
    cell = Cell(healed, *givens)
    effects = cell.proceeds()
    begins = ends[0] is RunState.INTENT
    assert (cell.run.state, cell.run.why, cell.run.claimed) == ends
    assert cell.state.timers.get(TIMER) == (None if timer_s is None else NOW + timer_s)
    assert len([one for one in effects if isinstance(one, AskLook)]) == looks
    assert len([one for one in effects if isinstance(one, WriteIntent)]) == begins


def test_a_fabrics_run_has_no_node_to_give_back() -> None:
    """Nothing can look again, and nothing is claimed: what the runbook says to do last is done."""
    cell = Cell(healed, on("fabric/default", ""), other(), owns("inc-2"))
    cell.proceeds()
    assert (cell.run.state, cell.run.claimed) == (RunState.INTENT, False)


def test_who_keeps_the_node_gets_the_mark() -> None:
    """Law 3: the drain is the heir's from now on, with both marks, so that the last owner can take them off."""
    cell = Cell(healed, looked(30), other(), owns("inc-1", "inc-2"))
    cell.proceeds()
    (owner,) = cell.state.drains["n1"].items()
    assert (owner[0], owner[1].marks) == ("inc-2", ["inc-2", "inc-1"])


LOST_SIGHT = "its symptoms have ended without a fact that says so: n1 looks again"
GONE = (RunState.SUCCEEDED, "the fault is gone: nothing disruptive is needed")


@pytest.mark.parametrize(
    ("givens", "ends", "timer_s", "looks"),
    [
        pytest.param([over()], GONE, None, 0, id="a fact has said so"),
        pytest.param([over(unproven=True)], (RunState.HELD, LOST_SIGHT), 35, 1, id="none has: the node looks again"),
        pytest.param(
            [over(unproven=True), is_(asked_since=NOW - 80, unseen="its GPUs cannot be seen")],
            (RunState.HELD, f"{LOST_SIGHT} (its GPUs cannot be seen)"), 35, 1, id="it has, and could not see it",
        ),
        pytest.param(
            [over(unproven=True), is_(asked_since=NOW - 90, unseen="its GPUs cannot be seen")],
            (
                RunState.EXHAUSTED,
                "its symptoms have ended, but nothing proves that the fault is gone: its GPUs cannot be seen. A person must look",
            ),
            None, 0, id="and never could",
        ),
        pytest.param([over(unproven=True), on("fabric/default", "")], GONE, None, 0, id="no node could look: it is the fabric's"),
    ],
)  # fmt: skip
def test_a_fault_that_seems_to_be_gone(
    givens: list[Given], ends: tuple[RunState, str], timer_s: float | None, looks: int
) -> None:
    """Law 8: silence proves nothing, before the first disruptive rung as little as after it."""
    cell = Cell(*givens)
    effects = cell.proceeds()
    assert (cell.run.state, cell.run.why) == ends
    assert cell.state.timers.get(TIMER) == (None if timer_s is None else NOW + timer_s)
    assert len([one for one in effects if isinstance(one, AskLook)]) == looks


def test_that_the_node_looks_again_is_told_once() -> None:
    """While it waits for one thing; and again when the reason is another one."""
    cell = Cell(over(unproven=True))
    first, again = cell.proceeds(), cell.proceeds()
    cell.run.unseen = "its GPUs cannot be seen"
    other_reason = cell.proceeds()
    held = [
        [one.text for one in effects if isinstance(one, Note)] for effects in (first, again, other_reason)
    ]
    assert held == [[LOST_SIGHT], [], [f"{LOST_SIGHT} (its GPUs cannot be seen)"]]


@pytest.mark.parametrize(
    ("givens", "state", "why"),
    [
        pytest.param([owns("inc-1")], "exhausted", "reset helped. n1 stays out of service: give it back by `gpuward return n1`",
                     id="it is drained, and the runbook does not give it back"),
        pytest.param([], "succeeded", "reset helped", id="it is not drained, and there is nothing to give back"),
        pytest.param([runbook(return_to_service=(RESUME,))], "succeeded", "reset helped", id="nothing was disturbed"),
        pytest.param([runbook(return_to_service=(RESUME,)), owns("inc-1")], "held", LOOKS, id="nothing but the drain"),
        pytest.param([runbook(return_to_service=(RESUME,)), is_(disrupted=True)], "held", LOOKS, id="disturbed without a drain"),
    ],
)  # fmt: skip
def test_what_follows_a_remedy_that_helped(givens: list[Given], state: str, why: str) -> None:
    """Law 14: what was taken out of service is given back, or somebody is told that he must do it."""
    cell = Cell(over(), heard(alive=True), *givens)
    runs.succeed(cell.ctx(), cell.run, "reset helped", 1)
    assert (cell.run.state.value, cell.run.why) == (state, why)


DIAGNOSE = Rung(name="test", do="gpu.diagnose", params={"level": 1})


def test_a_test_of_what_was_not_done_is_passed_over_with_a_note() -> None:
    """What was not reset need not be tested; the trail says so, and the next rung begins with its first attempt."""
    back = (replace(DIAGNOSE, after=("reset",)), RESUME)
    cell = Cell(healed, looked(30), runbook(return_to_service=back), is_(attempt=2))
    (note,) = [one for one in cell.proceeds() if isinstance(one, Note) and one.kind == "run.skipped"]
    assert note.text == "test: nothing was done that it tests (reset)"
    assert (note.incident, note.run, note.scope) == ("inc-1", "inc-1.r1", cell.run.scope)
    assert (cell.run.rung, cell.run.state, cell.run.why) == (1, *BEGINS[:2])


def test_no_gate_blocks_a_test_on_the_way_back() -> None:
    """Law 7: the run has the node to itself, so a hold or a tripped breaker does not keep the node out of service."""
    cell = Cell(healed, runbook(return_to_service=(DIAGNOSE, RESUME)), held("node/n1"), tripped())
    cell.proceeds()
    assert (cell.run.state, cell.run.rung) == (RunState.INTENT, 0)
    ladder = Cell(runbook(rungs=(DIAGNOSE,)), held("node/n1"))
    ladder.proceeds()
    assert ladder.run.state is RunState.HELD


def test_after_a_failed_check_the_ladder_goes_on_without_its_rule() -> None:
    """A check that failed is a fault too, though the rule matches no more: the next remedy begins."""
    cell = Cell(over(), is_(relapses=1))
    cell.proceeds()
    assert (cell.run.state, cell.run.why) == (RunState.INTENT, "reset: gpu.reset (attempt 1)")


def test_a_fault_that_comes_back_before_the_node_is_back() -> None:
    """The ladder goes on after the rung that had helped, and what the node was asked before is no longer the question."""
    waits = is_(back_to=1, attempt=2, asked_since=NOW - 30, looking="inc-1.r1.k1.a1", looking_until=NOW + 5)
    fault = [sick(GPU), is_(worked="reset helped", disrupted=True), waits]
    cell = Cell(*fault, runbook(return_to_service=(RESUME,)))
    cell.proceeds()
    assert (cell.run.state, cell.run.why) == (RunState.INTENT, "reboot: node.reboot (attempt 1)")
    stopped = Cell(*fault, runbook(return_to_service=(RESUME,)), held("node/n1"))
    stopped.proceeds()
    assert (stopped.run.state, stopped.run.looking, stopped.run.asked_since) == (RunState.HELD, "", 0.0)


def test_the_tests_before_a_return_have_the_node_to_themselves() -> None:
    """Law 1: no other run disturbs what they test; where one is at work already, they wait for it."""
    tests = runbook(return_to_service=(Rung(name="links", do="gpu.links_check"), RESUME))
    free = Cell(healed, tests)
    free.proceeds()
    assert (free.run.state, free.run.claimed) == (RunState.INTENT, True)
    assert free.ctx().index.claims == {"inc-1.r1": "n1"}
    busy = Cell(healed, tests, at_work("n1"))
    busy.proceeds()
    assert (busy.run.state, busy.run.claimed) == (RunState.HELD, False)
    assert busy.run.why == "links waits: inc-2.r1 works on n1 (gate one_per_node)"

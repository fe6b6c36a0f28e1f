"""What a failed test before the return means: the node's own fault, or what many nodes share."""

from brain.core.healing import failed_tests
from brain.core.state import RunState, SymptomState
from tests.brain.core.cell import NOW, Cell
from tests.brain.core.test_steps_answers import RESUME, TEST, answer, later, on_the_way_back

WIDE = "off_bus_leaf@leaf/l1"


def shared(cell: Cell, *, over: bool = False) -> None:
    """Nodes of n1's leaf show a symptom, n1 among them."""
    members = {"n1": NOW, "n2": NOW, "n3": NOW}
    cell.state.symptoms[WIDE] = SymptomState(
        name="off_bus_leaf", scope="leaf/l1", active=not over, since=NOW, members=members
    )


def failed() -> Cell:
    """A test has just failed."""
    cell = on_the_way_back(TEST, RESUME)
    answer(cell, "failed", step="inc-1.r1.b1.a1")
    return cell


def test_under_a_shared_cause_the_node_is_tested_again_when_that_is_over() -> None:
    """Law 6: a node is not rebooted for its leaf switch, however long that takes."""
    cell = failed()
    shared(cell)
    later(cell)
    assert (cell.run.state, cell.run.worked) == (RunState.HELD, "reset worked")
    assert cell.run.why == (
        "test waits: test failed: so it is, and leaf/l1 shows off_bus_leaf, n1 among its nodes: "
        "tested again when that is over (gate shared)"
    )
    cell.state.now += 7200
    cell.proceeds()
    assert cell.run.state is RunState.HELD
    shared(cell, over=True)
    cell.proceeds()
    assert (cell.run.state, cell.run.steps[-1].rung, cell.run.relapses) == (RunState.INTENT, "test", 0)


def test_a_shared_cause_that_lasts_is_not_waited_for_for_ever() -> None:
    """Law 14: the node may be one of those of which the shared cause is made. Nothing is done to it, and a person is told."""
    cell = failed()
    shared(cell)
    later(cell)
    cell.state.now += failed_tests.LONGEST_S
    cell.proceeds()
    assert (cell.run.state, cell.run.relapses) == (RunState.EXHAUSTED, 0)
    assert cell.run.why == (
        "reset worked, but test failed: so it is, under a shared cause that lasts: a person must bring it back into service"
    )


def test_what_fails_again_without_one_is_the_nodes_own() -> None:
    """The second test was no second chance: the run goes back into the ladder."""
    cell = failed()
    shared(cell)
    later(cell)
    shared(cell, over=True)
    cell.proceeds()
    cell.run.state = RunState.PERFORMING
    answer(cell, "failed", step="inc-1.r1.b1.a2")
    assert (cell.run.state, cell.run.failed_test) == (RunState.HELD, "test failed: so it is")
    cell.state.now += failed_tests.SETTLE_S
    cell.proceeds()
    assert (cell.run.worked, cell.run.relapses, cell.run.failed_test) == ("", 1, "")


def test_a_test_alone_is_not_repeated() -> None:
    """A node that passes at the second time is not well."""
    cell = failed()
    later(cell)
    assert [step.rung for step in cell.run.steps][-2:] == ["test", "reboot"]

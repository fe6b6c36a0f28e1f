"""A run in the middle of a step, for the tables of steps: one action of each repeat class, and a rung that comes next."""

from brain.core.state import RunState, StepRecord
from tests.brain.core.cell import NOW, Cell, Given
from tests.brain.core.climb import rung as rung_of

NEXT = rung_of("next", "gpu.persistence")  # it disrupts nothing: whoever comes to it begins it at once
SAFE, PROBE, NEVER = "link.bounce", "nic.reset", "node.reboot"  # one action of each repeat class
STEP = "inc-1.r1.s1.a1"  # the id of the first attempt of the first rung


def standing(state: RunState, *, rung: int = 0, attempt: int = 1, deadline: float = NOW + 100) -> Given:
    """The run's step is so far."""

    def given(cell: Cell) -> None:
        cell.run.state, cell.run.rung, cell.run.attempt, cell.run.deadline = state, rung, attempt, deadline
        book = cell.run.runbook.rungs
        if rung < len(book):
            record = StepRecord(
                id=f"inc-1.r1.s{rung + 1}.a{attempt}",
                rung=book[rung].name,
                action=book[rung].do,
                params={},
                at=NOW - 50,
            )
            cell.run.steps.append(record)

    return given

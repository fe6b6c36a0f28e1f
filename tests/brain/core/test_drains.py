"""Who owns a drain: the incidents that want a node out of service, and what they have left to each other."""

import pytest

from brain.core.healing import drains
from brain.core.state import Drain
from tests.brain.core.cell import Cell


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
    cell = Cell()
    cell.state.drains["n1"] = {"inc-1": Drain(since=1.0, marks=list(marks))}
    drains.undone(cell.ctx(), "n1", "inc-1")
    owned = cell.state.drains.get("n1", {}).get("inc-1")
    assert (owned.marks if owned is not None else None) == left


def test_what_nobody_owns_can_be_undone_too() -> None:
    """A result that comes late changes nothing."""
    cell = Cell()
    drains.undone(cell.ctx(), "n1", "inc-1")
    assert cell.state.drains == {}

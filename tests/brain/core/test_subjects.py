"""What a page says beside its incident: whose hold or window concerns it, and where all nodes of a wide fault stand."""

from dataclasses import replace

import pytest

from brain.core.pack.spec import Knowledge, Priority, Rule, Text
from brain.core.paging.subjects import common_to
from brain.core.state import SymptomState
from brain.core.stops import told_on
from tests.brain.core.cell import NOW, Cell, Given
from tests.brain.core.givens import held, in_maintenance

EVER = NOW + 99
NOTHING = Text(en="", zh="")
WIDE = Rule(
    name="wide", scope="cell", when={"symptom": "off_bus_cell"}, severity=Priority.P0, because="many",
    knowledge=Knowledge(cause=NOTHING, todo=NOTHING), examples=(),
)  # fmt: skip


@pytest.mark.parametrize(
    ("givens", "stops"),
    [
        pytest.param([], (), id="nothing"),
        pytest.param([held("node/n1")], ("bea holds node/n1: cabling",), id="a hold on its node"),
        pytest.param([held("leaf/l1")], ("bea holds leaf/l1: cabling",), id="on its leaf"),
        pytest.param([held("node/n2")], (), id="on another node"),
        pytest.param([held("node/n1", until=NOW)], (), id="one that is over"),
        pytest.param([in_maintenance("pod/p1", NOW - 9, EVER)], ("pod/p1 is in maintenance: new fans",), id="a window"),
        pytest.param([in_maintenance("pod/p1", NOW + 9, EVER)], (), id="one of tomorrow"),
        pytest.param([in_maintenance("pod/p1", NOW - 9, NOW)], (), id="one that is over by now"),
    ],
)  # fmt: skip
def test_whose_hands_a_page_names(givens: list[Given], stops: tuple[str, ...]) -> None:
    """Of a part of n1."""
    cell = Cell(*givens)
    assert told_on(cell.ctx(), cell.incident) == stops


def test_the_window_of_a_row_is_named_on_the_page_of_the_cell() -> None:
    """Half of the cell is silent, and that is the row in which the fans are exchanged."""
    cell = Cell(in_maintenance("pod/p1", NOW - 9, EVER))
    about = replace(cell.incident, scope="cell", node="")
    assert told_on(cell.ctx(), about) == ("pod/p1 is in maintenance: new fans",)


@pytest.mark.parametrize(
    ("nodes", "active", "common"),
    [
        (("n1", "n6"), True, ("leaf/l1", "pod/p1")),
        (("n1", "n2"), True, ("leaf/l1",)),
        (("n1", "n4"), True, ("pod/p1",)),
        (("n1", "n5"), True, ()),
        (("n1",), True, ()),
        (("n1", "n6"), False, ()),
    ],
    ids=["leaf and pod", "a leaf", "a pod", "nothing but the cell", "one node shares nothing", "it is over"],
)
def test_where_all_nodes_of_a_wide_fault_stand(
    nodes: tuple[str, ...], active: bool, common: tuple[str, ...]
) -> None:
    """Narrower than the fault itself; of a fault of one node nothing is said."""
    cell = Cell()
    cell.rules = (WIDE,)
    cell.state.symptoms["off_bus_cell@cell"] = SymptomState(
        name="off_bus_cell", scope="cell", active=active, since=NOW, members=dict.fromkeys(nodes, NOW)
    )
    about = replace(cell.incident, scope="cell", node="", rule="wide")
    assert set(common_to(cell.ctx(), about)) == set(common)
    assert common_to(cell.ctx(), replace(about, node="n1")) == ()

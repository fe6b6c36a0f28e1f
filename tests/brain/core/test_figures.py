"""A figure beside those of its peers: what is refused, and what is kept."""

import pytest

from agent.contract.figures import Figure
from brain.core.healing import figures
from brain.core.state import State

FLEET = [371.0, 372, 369, 370, 371]
MIXED = [300.0, 330, 360, 390, 420]
EQUAL = [16.0] * 5


def bus(value: float, *, lower: bool = False) -> Figure:
    return Figure(name="x", value=value, lower_is_better=lower)


@pytest.mark.parametrize(
    ("peers", "value", "refused"),
    [
        (FLEET, 371, False),
        (FLEET, 360, False),  # beyond five deviations of 1, and only 3 % below
        (FLEET, 351, True),
        (FLEET, 353, False),  # the limit is 95 % of the median, 352.45
        (FLEET, 900, False),  # better is no fault
        (MIXED, 250, False),  # 31 % below, and within five deviations of 30
        (MIXED, 209, True),
        (EQUAL, 16, False),
        (EQUAL, 15.5, False),
        (EQUAL, 8, True),
        ([0.0] * 5, -1, True),
        (FLEET[:4], 1, False),  # too few peers
        ([371.0, 372, 369, 370, 371, 90, 91], 300, True),  # bad peers do not move the median
    ],
)
def test_what_is_refused(peers: list[float], value: float, refused: bool) -> None:
    """Far below the median by its deviation, and by a share of it; in a figure where lower is better, far above."""
    assert figures.compare(bus(value), peers).refused is refused
    mirrored = figures.compare(bus(-value, lower=True), [-one for one in peers])
    assert mirrored.refused is refused


def test_the_text_for_people() -> None:
    """With the number of peers, and with why nothing was compared."""
    assert figures.compare(bus(180), FLEET).text == "x 180 (median of 5 peers 371)"
    assert figures.compare(bus(180), FLEET[:3]).text == "x 180 (3 peers: not compared)"


def test_the_newest_value_of_each_node_counts_and_no_node_is_its_own_peer() -> None:
    """A node that has measured a hundred times is one peer; nodes of other parts are none."""
    state = State()
    for number in range(5):
        for value in (100, 371):
            figures.take(state, f"n{number}", "8 H100", [bus(value)])
    (found,) = figures.take(state, "n0", "8 H100", [bus(371)])
    assert (found.peers, found.refused) == (4, False)
    (found,) = figures.take(state, "n9", "8 H100", [bus(180)])
    assert (found.peers, found.refused) == (5, True)
    (found,) = figures.take(state, "n9", "8 A100", [bus(180)])
    assert (found.peers, found.refused) == (0, False)
    assert figures.take(state, "n9", "", [bus(180)]) == []


def test_the_whole_fleet_may_become_slower() -> None:
    """The first nodes are refused; once most are as slow, it is the new median."""
    state = State()
    for number in range(11):
        figures.take(state, f"n{number}", "8 H100", [bus(371)])
    refused = [
        figures.take(state, f"n{number}", "8 H100", [bus(300)])[0].refused for number in range(11)
    ]  # fmt: skip
    assert refused == [True] * 5 + [False] * 6


def test_the_memory_is_bounded() -> None:
    """What was measured longest ago is forgotten."""
    state = State()
    for number in range(figures.MAX_NODES + 10):
        figures.take(state, f"n{number}", "8 H100", [bus(1)])
    (table,) = state.figures.values()
    assert (len(table), next(iter(table))) == (figures.MAX_NODES, "n10")
    for number in range(figures.MAX_TABLES + 10):
        figures.take(state, f"m{number % 40}", f"kind {number}", [bus(1)])
    assert len(state.figures) == figures.MAX_TABLES


def test_one_node_pushes_out_only_what_it_alone_has_filled() -> None:
    """Law 15: figures of its own invention take the place of its own first ones."""
    state = State()
    for number in range(5):
        figures.take(state, f"n{number}", "8 H100", [bus(371)])
    for number in range(300):
        figures.take(state, "thief", f"kind {number}", [bus(1)])
    assert len(state.figures) == 1 + figures.MAX_OF_NODE
    for node in range(40):
        for number in range(20):
            figures.take(state, f"m{node}", f"kind {node} {number}", [bus(1)])
    assert len(state.figures) == figures.MAX_TABLES
    assert len(state.figures["x 8 H100"]) == 5

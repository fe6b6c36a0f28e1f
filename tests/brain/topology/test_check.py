"""What looks like a slip in where nodes stand, and what does not."""

import pytest

from brain.core.pack.spec import Place
from brain.topology import check, trees
from brain.topology.site_map import SiteMap


def told(places: dict[str, Place], heard: set[str] | None = None) -> list[str]:
    """The warnings, without the file."""
    site = SiteMap(source="t", places=places, lines={node: at for at, node in enumerate(places, 1)})
    check.add(site, heard)
    return [str(one).removeprefix("t:") for one in site.warnings]


def rack(name: str, count: int, at: int = 0) -> dict[str, Place]:
    """So many nodes of a rack."""
    return {f"{name}-n{number}": Place(rack=name) for number in range(at, at + count)}


@pytest.mark.parametrize(
    ("places", "heard", "says"),
    [
        (rack("a", 2) | rack("b", 2), None, []),
        ({"n1": Place(rack="a")}, None, []),  # a site of one node
        (rack("a", 2) | rack("b", 1), None, ["3: rack/b: only b-n0 stands there: is the name right?"]),
        (
            rack("a", 1) | rack("b", 1),
            None,
            ["1: rack: each of the 2 has one node only: they tell nothing of shared causes"],
        ),
        (
            rack("a", 2) | rack("b", 2) | rack("c", 8),
            None,
            ["5: rack/c: 8 nodes, and half of the others have at most 2: are these two of one name?"],
        ),
        (rack("r-1", 2) | rack("R1", 2), None, ["1: rack/r-1: is it another rack than R1?"]),
        (
            {"n1": Place(leaf="l", fabric="a"), "n2": Place(leaf="l", fabric="b")},
            None,
            ["2: leaf/l: is in fabric a by n1 and in fabric b by n2"],
        ),
        ({"n1": Place(leaf="l"), "n2": Place(leaf="l")}, {"n1", "n2"}, []),
        (
            {"n1": Place(leaf="l"), "n22": Place(leaf="l")},
            {"n1", "n2"},
            ["2: there is no node n22: is n22 meant to be n2?", " leaf: not known of 1 of 3 nodes: n2"],
        ),
        (
            {"n1": Place(leaf="l", rack="r"), "n2": Place(leaf="l", rack="r"), "n3": Place(leaf="l")},
            None,
            [" rack: not known of 1 of 3 nodes: n3"],
        ),
    ],
)
def test_slips(places: dict[str, Place], heard: set[str] | None, says: list[str]) -> None:
    """Each with the line of a node that it is about."""
    assert told(places, heard) == says


def test_a_leaf_of_nodes_in_two_fabrics_is_in_neither_by_mistake() -> None:
    """A node with cards in both says nothing against its leaf's being in one of them."""
    both = Place(leaf="l", fabric="a", also=("fabric/b",))
    assert told({"n1": both, "n2": Place(leaf="l", fabric="b"), "n3": Place(leaf="l", fabric="b")}) == []


def test_the_trees() -> None:
    """The wider places first, numbers in their order; a node without one of a kind stands a level higher."""
    places = {
        "n1": Place(leaf="l10", rack="r1", row="a"),
        "n2": Place(leaf="l2", rack="r2"),
        "n3": Place(power="a", also=("power/b",)),
    }
    found = {
        name: [(one.depth, one.scope, len(one.nodes)) for one in all_]
        for name, all_ in trees.of(places).items()
    }
    assert found == {
        "network": [(0, "fabric/default", 3), (1, "leaf/l2", 1), (1, "leaf/l10", 1)],
        "building": [(0, "row/a", 1), (1, "rack/r1", 1), (0, "rack/r2", 1)],
        "power": [(0, "power/a", 1), (0, "power/b", 1)],
    }
    assert trees.of({"n1": Place()}) == {}
    assert trees.data(places, places)["unknown"] == {
        "leaf": ["n3"],
        "rack": ["n3"],
        "power": ["n1", "n2"],
        "row": ["n2", "n3"],
    }

"""Which place has the incident of a shared cause, and which others it explains. The site: ill_site.py."""

from brain.core.faults import wider
from tests.brain.core.ill_site import RULES, Site, match, named

# Which place explains which.


def test_a_leaf_that_is_ill_as_a_whole_explains_its_pod() -> None:
    """Half of the pod is ill, and all of it is on one leaf switch: the switch has the incident."""
    site = Site(range(8)).spread("leaf/l0", "pod/p0", "cell")
    assert site.explainer("pod/p0") == match("leaf/l0")
    assert site.explainer("leaf/l0") == ""


def test_a_pod_that_is_ill_as_a_whole_explains_its_leaves() -> None:
    """Both leaf switches of it are ill: each is a part of something larger."""
    site = Site(range(16)).spread("leaf/l0", "leaf/l1", "pod/p0")
    assert [site.explainer(scope) for scope in ("leaf/l0", "leaf/l1", "pod/p0")] == [match("pod/p0")] * 2 + [
        ""
    ]


def test_what_counts_no_nodes_is_explained_by_no_place() -> None:
    """A rule of single nodes; a place where it is no shared cause (any more); and one where nobody shows it."""
    site = Site(range(8)).spread("leaf/l0").spread("pod/p0", active=False)
    assert wider.explainer(site.ctx(), RULES[0], "node/n0") == ""
    assert site.explainer("pod/p0") == ""
    assert site.explainer("leaf/l7") == ""
    assert Site([]).spread("leaf/l0", "pod/p0").explainer("leaf/l0") == ""


def test_a_symptom_is_explained_by_places_of_its_own_kind_only() -> None:
    """All of a leaf switch is sick; what is slow in its pod is another matter."""
    site = Site(range(8)).spread("leaf/l0").spread("pod/p0", of="slow")
    assert site.explainer("pod/p0", of="slow") == ""


def test_a_place_of_few_nodes_is_compared_with_the_places_of_its_nodes_alone() -> None:
    """Four racks are ill elsewhere: a leaf switch of four ill nodes is asked about, and what its nodes stand in is found all the
    same.
    """
    site = Site(range(4), range(32, 64)).spread("leaf/l0", "pod/p0", *(f"leaf/l{at}" for at in range(4, 8)))
    assert len(site.ctx().index.spread_at["shared_sick_leaf"]) > 4
    assert site.explainer("pod/p0") == match("leaf/l0")
    assert site.explainer("leaf/l0") == ""


# A much larger place that was judged as it grew.


def scattered(*further: int) -> Site:
    """A whole pod is ill, four nodes of a leaf switch elsewhere, and so the cell: 20 nodes."""
    return Site(range(16), range(32, 36), further).spread("leaf/l4", "pod/p0", "cell")


def test_a_much_larger_place_with_an_incident_explains_its_parts() -> None:
    """The pod explains the cell, and would leave the leaf switch to itself; but the cell has the incident, with its nodes."""
    assert scattered().explainer("leaf/l4") == ""
    site = scattered()
    site.incident("cell")
    assert site.explainer("leaf/l4") == match("cell")


def test_a_place_that_is_not_much_larger_does_not() -> None:
    """Fewer than twice as many nodes show it in the cell: the pod explains the leaf switch."""
    site = Site(range(32, 47)).spread("leaf/l4", "pod/p2", "cell")
    site.incident("cell")
    assert site.explainer("leaf/l4") == match("pod/p2")


def test_a_place_that_holds_not_all_of_them_does_not() -> None:
    """One node of the leaf switch is not counted in the cell."""
    site = scattered()
    site.incident("cell")
    del site.state.symptoms["shared_sick_cell@cell"].members["n33"]
    assert site.explainer("leaf/l4") == ""


def test_a_wider_match_in_the_incident_of_a_narrower_place_does_not() -> None:
    """The match of the cell is part of the pod's incident: that says nothing of the leaf switch."""
    site = scattered()
    site.incident("pod/p0").matching_rules[match("cell")] = named("cell")
    assert site.explainer("leaf/l4") == ""


def test_no_place_is_a_part_of_itself() -> None:
    """The cell's own incident is not asked to explain the cell: the pod does."""
    site = scattered()
    site.incident("cell")
    assert site.explainer("cell") == match("pod/p0")


# A place beside the one that explains the whole cell.


def beside(*further: int, by: str = "pod/p0") -> Site:
    """A whole pod is ill, some nodes of the leaf switch l4, and few others: the incident of the pod stands for the cell."""
    site = Site(range(16), further).spread("pod/p0", "leaf/l4", "cell")
    site.incident(by, match("cell"))
    return site


THREE_THERE, FOUR_THERE = (32, 33, 34, 50, 58), (32, 33, 34, 35, 58)


def test_a_place_that_is_no_more_ill_than_the_cell_is_explained_with_it() -> None:
    """21 of 64 nodes are ill. Three of eight is no more than that; four of eight is more than one and a half times as much."""
    assert beside(*THREE_THERE).explainer("leaf/l4") == match("pod/p0")
    assert beside(*FOUR_THERE).explainer("leaf/l4") == ""


def test_it_is_not_where_nothing_stands_for_the_cell() -> None:
    """The pod's incident stands for no more than itself."""
    site = beside(*THREE_THERE)
    site.state.incidents["inc-0"].stands_for.clear()
    assert site.explainer("leaf/l4") == ""


def test_what_stands_for_the_cell_explains_neither_itself_nor_the_cell() -> None:
    """The leaf switch's incident stands for the cell, from when it was the only place that was ill."""
    assert beside(*THREE_THERE, by="leaf/l4").explainer("leaf/l4") == ""
    site = Site(range(32, 35), range(0, 32, 2)).spread("leaf/l4", "cell")
    site.incident("leaf/l4", match("cell"))
    assert site.explainer("cell") == ""


def test_it_is_not_where_the_cell_is_no_shared_cause_any_more() -> None:
    """What stands for it is left over."""
    site = beside(*THREE_THERE)
    site.ctx()
    del site.state.symptoms["shared_sick_cell@cell"]
    assert site.explainer("leaf/l4") == ""

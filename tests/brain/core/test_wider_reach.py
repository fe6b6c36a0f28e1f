"""How far the incident of a place explains, and for which other places it stands. The site: ill_site.py."""

import pytest

from brain.core.faults import asking, closed_places, reach, wider
from brain.core.state import SymptomState
from tests.brain.core.ill_site import COMPILED, NOW, Site, match, named

# How far an incident explains.


def test_rules_are_related_that_count_the_same_symptom() -> None:
    """Then the judgement decides between them."""
    ctx = Site().ctx()
    assert wider.related(ctx, named("leaf/l0"), named("cell"))
    assert not wider.related(ctx, named("leaf/l0"), named("cell", "slow"))
    assert not wider.related(ctx, "node-sick", "node-sick")


def test_an_incident_reaches_what_is_within_its_place() -> None:
    """And nothing beside it."""
    site = Site(range(8)).spread("leaf/l0")
    leaf = site.incident("leaf/l0")
    reached = [
        scope for scope in ("leaf/l0", "node/n0", "node/n8", "cell") if wider.reaches(site.ctx(), leaf, scope)
    ]
    assert reached == ["leaf/l0", "node/n0"]


@pytest.mark.parametrize("over", [False, True])
def test_it_reaches_what_it_stands_for(over: bool) -> None:
    """The leaf switch stands for the pod and a rack: for all nodes there, and for these places, also when it is over by now."""
    site = Site(range(8)).spread("leaf/l0")
    leaf = site.incident("leaf/l0", match("pod/p0"), match("rack/r3"))
    if over:
        site.ctx().index.remove_incident(leaf)
    asked = ("node/n9", "node/n19", "node/n20", "pod/p0", "pod/p1", "rack/r3", "leaf/l1", "cell")
    assert [scope for scope in asked if wider.reaches(site.ctx(), leaf, scope)] == [
        "node/n9",
        "node/n19",
        "pod/p0",
        "rack/r3",
    ]


def test_it_reaches_the_whole_cell_where_it_stands_for_that() -> None:
    """Nodes without a known place are in it, too."""
    site = Site(range(8)).spread("leaf/l0")
    leaf = site.incident("leaf/l0", match("cell"))
    assert all(
        wider.reaches(site.ctx(), leaf, scope) for scope in ("node/n60", "node/stranger", "rack/r7", "cell")
    )


def test_an_incident_explains_the_others_of_its_family() -> None:
    """The pod took over: the leaf switches' incidents are explained by it; that of another symptom is not, nor is its own."""
    site = Site(range(16)).spread("leaf/l0", "leaf/l1", "pod/p0").spread("leaf/l0", of="slow")
    pod, first, second = (site.incident(scope) for scope in ("pod/p0", "leaf/l0", "leaf/l1"))
    slow = site.incident("leaf/l0", of="slow")
    assert [one.id for one in closed_places.explained(site.ctx(), pod)] == [first.id, second.id]
    assert list(closed_places.explained(site.ctx(), first)) == []
    assert list(closed_places.explained(site.ctx(), slow)) == []


def test_it_explains_none_whose_match_is_in_the_incident_of_another_place() -> None:
    """The leaf switch's match belongs to an incident of its rack: only its own place's would be explained."""
    site = Site(range(16)).spread("leaf/l0", "pod/p0")
    pod = site.incident("pod/p0")
    site.incident("rack/r0").matching_rules = {match("leaf/l0"): named("leaf/l0")}
    assert list(closed_places.explained(site.ctx(), pod)) == []


def test_what_counts_no_nodes_explains_no_other_place() -> None:
    """The incident of a node; one of a rule that is no more; one whose cause is over."""
    site = Site(range(8)).spread("leaf/l0", "pod/p0")
    site.incident("leaf/l0")
    node, gone, over = site.incident("node/n0"), site.incident("cell"), site.incident("pod/p2")
    gone.rule = "removed"
    assert [list(closed_places.explained(site.ctx(), one)) for one in (node, gone, over)] == [[], [], []]


def test_what_was_taken_over_by_its_family() -> None:
    """Its pages and drains follow; not those of a node, nor of what another symptom explains, nor where nothing explains it."""
    site = Site()
    pod, leaf, node = (site.incident(scope) for scope in ("pod/p0", "leaf/l0", "node/n1"))
    slow = site.incident("leaf/l1", of="slow")
    assert not wider.taken_over(site.ctx(), leaf)
    for one in (leaf, slow, node):
        one.explained_by = pod.id
    assert [wider.taken_over(site.ctx(), one) for one in (leaf, slow, node)] == [True, False, False]


# Whether an incident explains still what it stood for.


@pytest.mark.parametrize(
    ("outside", "still"),
    [pytest.param([40], True, id="one stray"), pytest.param([40, 48], False, id="two strays")],
)
def test_a_place_is_still_explained_while_nearly_all_of_it_is(outside: list[int], still: bool) -> None:
    """Three of the rack are in the pod; one node outside of it may be chance, two may be more than the pod explains."""
    site = Site(range(16), outside).spread("pod/p0", "rack/r0")
    pod = site.incident("pod/p0")
    assert wider.still_explained(site.ctx(), COMPILED.rules[named("rack/r0")], "rack/r0", pod) is still


def test_a_place_with_as_many_nodes_is_not_explained_as_before() -> None:
    """The same nodes: neither is a part of the other."""
    site = Site(range(8)).spread("leaf/l0", "pod/p0")
    leaf = site.incident("leaf/l0")
    assert not wider.still_explained(site.ctx(), COMPILED.rules[named("pod/p0")], "pod/p0", leaf)


def test_it_is_not_where_the_cause_is_over_or_another_one() -> None:
    """Neither where one of both counts nothing, nor where they count different symptoms."""
    site = Site(range(16)).spread("pod/p0", "leaf/l0").spread("pod/p0", of="slow")
    pod, gone, over = (site.incident(scope) for scope in ("pod/p0", "cell", "pod/p3"))
    slow = site.incident("pod/p0", of="slow")
    gone.rule = "removed"
    leaf = COMPILED.rules[named("leaf/l0")]
    assert wider.still_explained(site.ctx(), leaf, "leaf/l0", pod)
    assert not wider.still_explained(site.ctx(), leaf, "leaf/l1", pod)
    assert [wider.still_explained(site.ctx(), leaf, "leaf/l0", by) for by in (slow, gone, over)] == [
        False
    ] * 3


# Standing for other places.


def test_an_incident_stands_for_a_place_with_nodes_elsewhere() -> None:
    """A stray in the pod is not where the leaf switch is: from now on the incident stands for it, once."""
    site = Site(range(8), [9]).spread("leaf/l0", "pod/p0")
    leaf, ctx = site.incident("leaf/l0"), site.ctx()
    assert wider.standing(ctx, COMPILED.rules[named("pod/p0")], "pod/p0") is None
    assert wider.stand_for(ctx, leaf, named("pod/p0"), "pod/p0", ())
    assert leaf.stands_for == [match("pod/p0")]
    assert wider.standing(ctx, COMPILED.rules[named("pod/p0")], "pod/p0") is leaf
    assert wider.reaches(ctx, leaf, "node/n12")
    assert not wider.stand_for(ctx, leaf, named("pod/p0"), "pod/p0", ())


@pytest.mark.parametrize("scope", ["leaf/l0", "rack/r1", "pod/p1"])
def test_it_does_not_where_all_nodes_are_its_own(scope: str) -> None:
    """Itself; a rack whose one ill node is on the leaf switch; and a place where nobody is ill."""
    site = Site(range(8)).spread("leaf/l0", "rack/r1")
    leaf = site.incident("leaf/l0")
    assert not wider.stand_for(site.ctx(), leaf, named(scope), scope, ())
    assert leaf.stands_for == []


def test_the_cell_stands_for_nothing_and_nothing_for_another_symptom() -> None:
    """All nodes are in the cell; and what is slow is no part of what is sick."""
    site = Site(range(8), [9]).spread("leaf/l0", "pod/p0", "cell").spread("pod/p0", of="slow")
    cell, leaf = site.incident("cell"), site.incident("leaf/l0")
    assert not wider.stand_for(site.ctx(), cell, named("pod/p0"), "pod/p0", ())
    assert not wider.stand_for(site.ctx(), leaf, named("pod/p0", "slow"), "pod/p0", ["x"])
    assert (cell.stands_for, leaf.stands_for, leaf.inhibits) == ([], [], [])


def test_it_explains_what_the_place_explains() -> None:
    """What the match inhibits, each cause once, and it is found by that."""
    site = Site(range(8)).spread("leaf/l0", "rack/r1")
    leaf = site.incident("leaf/l0", inhibits=["a"])
    assert wider.stand_for(site.ctx(), leaf, named("rack/r1"), "rack/r1", ["a", "b"])
    assert (leaf.inhibits, leaf.stands_for) == (["a", "b"], [])
    assert list(site.ctx().index.inhibitors["b"]) == [leaf.id]
    assert not wider.stand_for(site.ctx(), leaf, named("rack/r1"), "rack/r1", ["b"])


def test_who_takes_over_stands_for_all_that_the_other_stood_for() -> None:
    """The pod takes over the leaf switch, with the rack; the incident of a node or of another symptom leaves it nothing."""
    site = Site(range(16), [17, 33]).spread("pod/p0", "leaf/l0", "rack/r1")
    pod, leaf = site.incident("pod/p0"), site.incident("leaf/l0", match("rack/r1"), inhibits=["a"])
    node = site.incident("node/n1", inhibits=["b"])
    slow = site.incident("leaf/l1", match("rack/r1"), of="slow", inhibits=["b"])
    for other in (node, slow):
        wider.inherits(site.ctx(), pod, other)
    assert (pod.stands_for, pod.inhibits) == ([], [])
    wider.inherits(site.ctx(), pod, leaf)
    assert (pod.stands_for, pod.inhibits) == ([match("rack/r1")], ["a"])


def test_it_stands_no_more_for_what_has_ended() -> None:
    """Its reach ends with it; and where nothing stood for it, nothing happens."""
    site = Site(range(8)).spread("leaf/l0")
    leaf = site.incident("leaf/l0", match("pod/p0"), match("rack/r3"))
    assert wider.stands_no_more(site.ctx(), match("pod/p0")) is leaf
    assert leaf.stands_for == [match("rack/r3")]
    assert not wider.reaches(site.ctx(), leaf, "node/n9")
    assert wider.reaches(site.ctx(), leaf, "node/n11")
    assert wider.stands_no_more(site.ctx(), match("pod/p0")) is None


def test_two_rules_of_one_place_end_one_by_one() -> None:
    """It stands for two matches at the pod: with one of them over it still reaches the nodes there."""
    site = Site(range(8)).spread("leaf/l0")
    leaf = site.incident("leaf/l0", match("pod/p0"), "by-hand@pod/p0")
    wider.stands_no_more(site.ctx(), "by-hand@pod/p0")
    assert wider.reaches(site.ctx(), leaf, "node/n9")
    wider.stands_no_more(site.ctx(), match("pod/p0"))
    assert not wider.reaches(site.ctx(), leaf, "node/n9")


# Where it is looked for.


def test_the_shared_causes_around_a_node() -> None:
    """Those that count it, narrow first; not where it is only counted, nor where no rule matches."""
    site = Site(range(8)).spread("leaf/l0", "pod/p0", "cell").spread("rack/r0", active=False)
    site.state.matched.pop("cell")
    sick = SymptomState(name="sick", scope="node/n0", active=True, since=NOW)
    found = list(wider.shared_around(site.ctx(), [sick]))
    assert found == [(named("leaf/l0"), "leaf/l0"), (named("pod/p0"), "pod/p0")]


def test_the_places_that_wait_for_an_incident() -> None:
    """Widest first: not the one that has one, nor what an operator has closed, nor another symptom's."""
    site = Site(range(16)).spread("leaf/l0", "leaf/l1", "pod/p0", "cell").spread("pod/p1", of="slow")
    site.incident("pod/p0")
    site.state.dismissed[match("leaf/l1")] = NOW
    found = list(wider.unexplained(site.ctx(), named("leaf/l0")))
    assert found == [(named("cell"), "cell"), (named("leaf/l0"), "leaf/l0")]


def test_a_place_is_judged_twice_for_each_doubling() -> None:
    """The larger it is, the more nodes make a difference; where it is counted in one kind of place only, there is no question."""
    site = Site(range(40)).spread("cell")
    spec = COMPILED.symptoms["shared_sick_cell"]
    wide = site.state.symptoms["shared_sick_cell@cell"]
    asked = []
    while wide.members:
        if asking.judged_again(site.ctx(), spec, wide):
            asked.append(len(wide.members))
        wide.members.popitem()
    assert asked == [40, 32, 24, 20, 16, 12, 10, 8, 6, 5, 4, 3, 2, 1][:0] or asked == [
        32,
        24,
        16,
        12,
        8,
        6,
        4,
        3,
        2,
        1,
    ]


@pytest.mark.parametrize(("strays", "held"), [(0, True), (1, True), (2, False)])
def test_a_place_explains_what_is_nearly_all_within_it(strays: int, held: bool) -> None:
    """Nodes of one leaf switch are slow, and their pod is told: the switch explains it, unless others of it are slow, too."""
    site = Site(range(8), range(8, 8 + strays)).spread("leaf/l0").spread("pod/p0", of="slow")
    leaf = site.incident("leaf/l0", inhibits=[named("pod/p0", "slow")])
    ctx = site.ctx()
    assert wider.holds_nearly_all(ctx, leaf, named("pod/p0", "slow"), "pod/p0") is held
    assert reach.may_explain(ctx, leaf, named("pod/p0", "slow"), "pod/p0") is held
    assert not reach.may_explain(ctx, leaf, named("pod/p0"), "pod/p0")


def test_a_place_explains_neither_the_cell_nor_a_node_beside_it_so() -> None:
    """Of the cell law 6 speaks; a node is in a place, or it is not."""
    site = Site(range(8)).spread("leaf/l0").spread("cell", "pod/p0", of="slow")
    leaf = site.incident("leaf/l0", inhibits=[named("cell", "slow"), "node-slow"])
    assert not reach.may_explain(site.ctx(), leaf, named("cell", "slow"), "cell")
    assert not reach.may_explain(site.ctx(), leaf, "node-slow", "node/n9")

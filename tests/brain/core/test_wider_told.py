"""What people read of the places that were considered, and how long an incident waits for others. The site: ill_site.py."""

import pytest

from brain.core.faults import growing, wider
from brain.core.state import Incident
from tests.brain.core.ill_site import NOW, Site, match

# What people read, and how long they wait.


def considered(site: Site, incident: Incident) -> dict[str, str]:
    """place -> why it is the one, or is not."""
    wider.consider(site.ctx(), incident)
    return {one.place: one.why for one in incident.places}


def test_an_incident_lists_the_places_that_were_considered() -> None:
    """The leaf switch; the pod, which holds no more; and the racks, where too few are ill."""
    site = Site(range(8)).spread("leaf/l0", "pod/p0").spread("rack/r0", active=False)
    site.state.symptoms["shared_sick_rack@rack/r0"].members["n1"] = NOW
    leaf = site.incident("leaf/l0")
    assert considered(site, leaf) == {
        "leaf/l0": "all of its 8 nodes show it; none outside of it does",
        "pod/p0": "8 nodes of it are well; nearly all that show it are in leaf/l0",
        "rack/r0": "it holds only 2 of the 8 nodes of leaf/l0",
    }
    assert leaf.sure > 0.9


def test_strays_are_those_of_the_widest_place_for_which_it_stands() -> None:
    """The pod has one ill node more, the cell three: people read of three."""
    site = Site(range(8), [9, 20, 40]).spread("leaf/l0", "pod/p0", "cell")
    leaf = site.incident(
        "leaf/l0", match("pod/p0"), match("cell"), match("pod/p0", "slow"), "removed@rack/r0"
    )
    assert considered(site, leaf)["leaf/l0"] == "all of its 8 nodes show it; 3 nodes outside of it do, too"


def test_it_is_less_sure_of_nodes_without_a_known_place() -> None:
    """Half of those that are ill may stand anywhere."""
    sure = []
    for strangers in (0, 20):
        site = Site(range(0, 40, 2)).spread("cell")
        members = site.state.symptoms["shared_sick_cell@cell"].members
        for at in range(strangers):
            members[f"s{at}"] = members.pop(next(iter(members)))
        cell = site.incident("cell")
        wider.consider(site.ctx(), cell)
        sure.append(cell.sure)
    assert sure[0] > sure[1] > 0


def test_nothing_is_considered_of_what_counts_no_nodes() -> None:
    """The incident of a node, of a removed rule, of a cause that is over."""
    site = Site(range(8)).spread("leaf/l0")
    for one in (site.incident("node/n0"), site.incident("leaf/l1"), site.incident("leaf/l0")):
        one.rule = "removed" if one.scope == "leaf/l0" else one.rule
        wider.consider(site.ctx(), one)
        assert (one.places, one.sure) == ([], 0.0)


def test_what_stood_before_the_cause_says_nothing_of_where_it_is() -> None:
    """Eight nodes of other leaf switches have been ill for an hour; the eight that fell ill now are one leaf switch."""
    site = Site(range(8, 16), began=NOW - 3600)
    site.ill |= {f"n{at}": NOW for at in range(8)}
    site.spread("leaf/l0", "pod/p0", cause_at=NOW - 10)
    assert site.explainer("pod/p0") == match("leaf/l0")


def test_a_shared_cause_wanes_when_few_show_it() -> None:
    """One of its nodes is left, and it grew lately: nobody is called for it anew. Other symptoms of the incident do not count."""
    site = Site(range(1), began=NOW - 10).spread("leaf/l0", cause_at=NOW - 20)
    leaf = site.incident("leaf/l0")
    assert not growing.wanes(site.ctx(), leaf)
    leaf.symptoms = ["sick@leaf/l0", "removed@leaf/l0", "shared_slow_leaf@leaf/l0"]
    assert not growing.wanes(site.ctx(), leaf)
    leaf.symptoms.append("shared_sick_leaf@leaf/l0")
    assert growing.wanes(site.ctx(), leaf)


def test_a_shared_cause_of_many_does_not_wane() -> None:
    """All of its nodes show it."""
    site = Site(range(8), began=NOW - 10).spread("leaf/l0", cause_at=NOW - 20)
    leaf = site.incident("leaf/l0")
    leaf.symptoms = ["shared_sick_leaf@leaf/l0"]
    assert not growing.wanes(site.ctx(), leaf)


def test_a_second_node_of_a_leaf_waits_for_a_third() -> None:
    """Another one of the same leaf switch fell ill a minute ago: it may be the switch."""
    site = Site([0, 1], began=NOW - 60).spread("leaf/l0", "pod/p0", active=False)
    node = site.incident("node/n1")
    node.symptoms = ["sick@node/n1"]
    assert growing.may_be_shared(site.ctx(), node) == (
        "n0 of the same leaf fell ill a short while ago: it is judged with it"
    )


@pytest.mark.parametrize(
    ("began", "opened", "scope", "active"),
    [
        pytest.param(NOW - 180, NOW, "leaf/l0", False, id="it fell ill three minutes ago"),
        pytest.param(NOW - 60, NOW - 120, "leaf/l0", False, id="it has waited for two minutes"),
        pytest.param(NOW - 60, NOW, "pod/p0", False, id="a large place needs more than a few"),
        pytest.param(NOW - 60, NOW, "leaf/l0", True, id="it is a shared cause already"),
    ],
)
def test_a_node_waits_for_others_no_longer(began: float, opened: float, scope: str, active: bool) -> None:
    """Each of these ends the wait, or there was none."""
    site = Site([0, 1], began=began).spread(scope, active=active)
    node = site.incident("node/n1")
    node.symptoms, node.opened_at = ["sick@node/n1"], opened
    assert growing.may_be_shared(site.ctx(), node) == ""


def test_neither_a_first_node_nor_a_place_waits() -> None:
    """It alone is ill; and a place has others for its judgement."""
    site = Site([1], began=NOW - 60).spread("leaf/l0", active=False)
    node, leaf = site.incident("node/n1"), site.incident("leaf/l0")
    node.symptoms = leaf.symptoms = ["sick@node/n1"]
    assert growing.may_be_shared(site.ctx(), node) == ""
    site.state.symptoms["shared_sick_leaf@leaf/l0"].members["n0"] = NOW
    assert growing.may_be_shared(site.ctx(), node)
    assert growing.may_be_shared(site.ctx(), leaf) == ""

"""One node that opens many incidents has an alert group of its own, and hides nobody else's."""

from brain.core.paging import escalation
from tests.brain.core.pager import Pager
from tests.brain.core.test_grouping import collected, pager


def test_a_node_that_opens_many_has_an_alert_group_of_its_own() -> None:
    """Its two single pages and its group make no storm for others: they are paged at once, by themselves."""
    it = pager()
    it.opens("a", "b", "c", "d", node="n1")
    assert (it.group.node, collected(it)) == ("n1", ["c", "d"])
    it.opens("x")
    assert it.told("open") == ["0 open oncall a", "0 open oncall b", "0 open oncall x"]
    it.passes(30)
    group = it.group.id
    assert it.told("open")[3:] == [f"30 open oncall {group}"]
    it.opens("e", node="n1")
    assert it.group.id != group
    assert (it.group.node, collected(it)) == ("n1", ["e"])


def test_in_a_storm_of_many_nodes_one_has_few_lines() -> None:
    """Then it has an alert group of its own."""
    it = pager()
    it.opens("x", "y", "a")
    it.opens("p", "q", "r", "s", node="n9")
    shared, own = it.state.alert_groups.values()
    assert (list(shared.listed), shared.node) == (["a", "p", "q"], "")
    assert (list(own.listed), own.node) == (["r", "s"], "n9")


def test_more_urgent_than_all_else_of_its_node() -> None:
    """It is paged at once, as in any storm."""
    it = pager()
    it.opens("a", "b", "c", node="n1", severity="P2")
    it.opens("d", node="n1")
    it.opens("e", node="n1", severity="P0")
    it.opens("f", node="n1", severity="P0")
    assert [one.subject.id for _, one in it.sent] == ["a", "b", "d", "e"]
    assert collected(it) == ["c", "f"]


def loud(it: Pager, node: str = "n1") -> None:
    """So many faults of the node came up within an hour."""
    it.state.recurred = {f"gpu_lost@gpu/{node}/{number}": [it.state.now] for number in range(31)}


def test_a_loud_node_is_told_every_half_hour() -> None:
    """In one page that says so; what other nodes have is told as before."""
    it = pager()
    loud(it)
    it.opens("a", node="n1", severity="P2")
    it.passes(600)
    it.opens("b", node="n1", severity="P2")
    it.opens("x", severity="P2")
    assert it.told("open") == ["600 open oncall x"]
    it.passes(1200)
    assert it.told("open")[1:] == [f"1800 open oncall {it.group.id}"]
    assert "2 more incidents of n1, which had 30 faults within an hour" in it.words()[-1]
    loud(it)
    it.opens("c", node="n1", severity="P2")
    assert collected(it) == ["a", "b", "c"]
    it.passes(1799)
    assert it.told("update") == []
    it.passes(1)
    assert it.told("update") == [f"3600 update oncall {it.group.id}"]


def test_what_concerns_more_than_a_loud_node_does_not_wait_with_it() -> None:
    """A breaker that trips is told within the half minute of any storm."""
    it = pager()
    loud(it)
    (one,) = it.opens("a", node="n1", severity="P2")
    it.handles(lambda ctx: escalation.urgent(ctx, one, "the breaker has tripped"))
    it.passes(30)
    assert it.told("open") == [f"30 open oncall {it.group.id}"]

"""Who is paged in a storm: the alert group is repeated, acknowledged and escalated as one."""

from typing import Any

from tests.brain.core.pager import Pager

STORM: dict[str, Any] = {"group_at_least": 2, "group_within_s": 30}


def storm(**settings: Any) -> Pager:
    """`a` is paged by itself; `b` and `c` are in an alert group."""
    it = Pager(**(STORM | settings))
    it.opens("a", "b", "c")
    return it


def test_news_of_an_incident_in_an_alert_group_goes_there() -> None:
    """What it is and that it is over; but no repeats, since the group has its own."""
    it = storm()
    it.passes(30)
    assert it.told() == ["0 open oncall a", f"30 open oncall {it.group.id}"]
    it.pages("b", "update", "the link is up")
    assert it.group.listed["b"].text == "the link is up"
    it.pages("b", "repeat", "nobody has acknowledged")
    assert it.group.listed["b"].text == "the link is up"
    assert it.told()[2:] == []
    it.ends("b")
    assert it.group.listed["b"].over
    assert it.group.listed["b"].text == "it is back"


def test_an_alert_group_is_repeated_as_one() -> None:
    """Since its own first page, as often as an incident is, until it is acknowledged."""
    it = storm(escalation={})
    it.acknowledges("a")
    it.passes(30 + 600)
    name = it.group.id
    assert it.told("repeat") == [f"330 repeat oncall {name}", f"630 repeat oncall {name}"]
    assert it.words()[-1] == "nobody has acknowledged for 10 minutes"
    assert it.timers[f"page:{name}"] == 1230
    assert not [timer for timer in it.timers if timer.startswith("escalate")]
    it.acknowledges(name)
    it.passes(9000)
    assert len(it.told("repeat")) == 2


def test_an_alert_group_whose_page_is_not_delivered_is_not_repeated() -> None:
    """It is tried again as it is."""
    it = storm()
    it.delivers = False
    it.passes(30)
    name = it.group.id
    it.fires("page", name)
    assert it.told("repeat") == []
    assert [*it.group.pages.waiting] == [f"{name}.p1"]
    assert it.timers[f"page:{name}"] == 330
    it.answers(f"{name}.p1")
    it.fires("page", name)
    assert it.told("repeat") == [f"30 repeat oncall {name}"]


def test_one_word_acknowledges_a_whole_alert_group() -> None:
    """Each of its incidents that is not over, and none twice."""
    it = storm()
    it.passes(30)
    it.acknowledges("b", who="bob")
    it.ends("c")
    del it.state.incidents["c"]
    (d, e) = it.opens("d", "e")
    it.passes(30)
    first, second = it.state.alert_groups.values()
    assert [*first.listed] == ["b", "c"]
    assert (d.id, e.id) == (*second.listed,)
    it.ends("e")
    it.acknowledges(second.id)
    assert (d.pages.acked_by, e.pages.acked_by) == ("ann", "")
    assert it.state.incidents["b"].pages.acked_by == "bob"
    assert it.state.incidents["a"].pages.acked_by == ""


def test_an_incident_of_an_alert_group_that_is_gone() -> None:
    """Its page and its acknowledgement go by its own queue."""
    it = storm()
    it.passes(30)
    it.state.alert_groups.clear()
    it.acknowledges("b")
    it.pages("b", "update", "the link is up")
    assert it.told()[2:] == ["30 ack oncall b", "30 update oncall b"]


def test_an_acknowledgement_of_a_listed_incident_is_told_by_its_group() -> None:
    """By a page when all the others are acknowledged, too."""
    it = storm(escalation={})
    it.passes(30)
    it.acknowledges("b")
    assert it.group.listed["b"].acked
    assert it.told("ack") == []
    it.acknowledges("c")
    assert it.told("ack") == [f"30 ack oncall {it.group.id}"]


def test_escalation_in_a_storm_is_by_alert_groups_of_the_next_group() -> None:
    """The lead hears of `a` alone, and of the others in one page."""
    it = storm()
    it.passes(330)
    lead = it.group
    assert it.told("open") == [
        "0 open oncall a",
        f"30 open oncall {next(iter(it.state.alert_groups))}",
        "300 open lead a",
        f"330 open lead {lead.id}",
    ]
    assert [*lead.listed] == ["b", "c"]

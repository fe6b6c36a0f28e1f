"""Delivery queues of alert groups: a page delivers what it carries, and a group lives until its last page."""

import pytest

from brain.core.paging import queue
from tests.brain.core.pager import Pager
from tests.brain.core.test_delivery_queue import post, sent


def collected(*, delivers: bool = False) -> Pager:
    """`a` was paged by itself; the page of an alert group with `b` and `c` is under way."""
    it = Pager(delivers=True, escalation={}, group_at_least=2)
    it.opens("a", "b", "c")
    it.delivers = delivers
    it.passes(30)
    return it


def test_the_page_of_an_alert_group_delivers_what_it_carries() -> None:
    """Every incident in it has a page less, but for those that are forgotten or were delivered already."""
    it = collected()
    name = it.group.id
    assert it.group.pages.waiting[f"{name}.p1"].carries == ["b.p1", "c.p1"]
    it.opens("d")
    assert it.answers(f"{name}.p1") == ["b", "c"]
    assert it.state.incidents["b"].pages.waiting == {}
    assert it.said("page.delivered")[-2:] == [
        ("b", f"by chat, in one page with others ({name})"),
        ("c", f"by chat, in one page with others ({name})"),
    ]
    by_chat = {"channel": "chat"}
    assert [note.data for note in it.notes[-2:]] == [{"page": "b.p1"} | by_chat, {"page": "c.p1"} | by_chat]
    assert {note.scope for note in it.notes if note.incident == name} == {"cell"}


def test_a_carried_page_whose_incident_is_forgotten() -> None:
    """The others are delivered all the same."""
    it = collected()
    del it.state.incidents["b"]
    assert it.answers(f"{it.group.id}.p1") == ["c"]


def test_a_carried_page_that_was_delivered() -> None:
    """It is not reported twice."""
    it = collected()
    it.state.incidents["b"].pages.waiting.clear()
    assert it.answers(f"{it.group.id}.p1") == ["c"]


@pytest.mark.parametrize("ok", [True, False])
def test_an_outcome_of_a_carried_page(*, ok: bool) -> None:
    """It is not sent by itself, so it has none."""
    it = collected()
    assert it.answers("b.p1", ok=ok) == []
    assert [*it.state.incidents["b"].pages.waiting] == ["b.p1"]
    assert "redeliver:b.p1" not in it.timers


def test_what_is_carried_stays_with_the_page_that_takes_its_place() -> None:
    """In its order: an incident's page counts as delivered when the news of it were."""
    it = collected()
    name = it.group.id
    it.pages("c", "update", "the link is up")
    it.passes(30)
    assert it.group.pages.waiting[f"{name}.p2"].carries == ["c.p2"]
    it.refuses(f"{name}.p1")
    ((page_id, pending),) = it.group.pages.waiting.items()
    assert (page_id, pending.what, pending.carries) == (f"{name}.p2", "open", ["b.p1", "c.p1", "c.p2"])
    it.passes(5)
    assert it.answers(page_id) == ["b", "c", "c"]
    assert [one.pages.waiting for one in it.state.incidents.values()] == [{}] * 3


def test_a_carried_page_is_not_in_the_incidents_own_queue() -> None:
    """A page of its own to the same channel group is sent at once, and its failure leaves the carried one."""
    it = collected()
    b = it.state.incidents["b"]
    post(it, b, "open", "alone")
    assert sent(it)[-1] == "open alone"
    assert queue.busy(b, "oncall")
    post(it, b, "resolve", "over")
    it.refuses("b.p2")
    assert [*b.pages.waiting] == ["b.p1", "b.p3"]
    it.sent.clear()
    it.handles(queue.resend_all)
    assert [page.id for _, page in it.sent] == ["b.p3", f"{it.group.id}.p1"]


def test_a_group_is_forgotten_with_its_last_page() -> None:
    """Not before its resolution was delivered, and not while it lasts."""
    it = collected()
    name = it.group.id
    it.answers(f"{name}.p1")
    assert name in it.state.alert_groups
    it.ends("b", "c")
    assert name in it.state.alert_groups
    assert it.answers(f"{name}.p2") == []
    assert it.state.alert_groups == {}


def test_a_group_with_two_pages_left() -> None:
    """It is kept until both are delivered."""
    it = collected()
    name = it.group.id
    it.ends("b", "c")
    assert [*it.group.pages.waiting] == [f"{name}.p1", f"{name}.p2"]
    it.answers(f"{name}.p1")
    assert name in it.state.alert_groups
    it.answers(f"{name}.p2")
    assert it.state.alert_groups == {}


def test_everything_that_can_be_paged() -> None:
    """Incidents and alert groups, by their ids."""
    it = collected()
    about = queue.everything(it.state)
    assert [one.id for one in about] == ["a", "b", "c", it.group.id]
    for one in about:
        assert it.handles(lambda ctx, id_=one.id: queue.paged(ctx, id_)) is one  # type: ignore[misc]
    assert it.handles(lambda ctx: queue.paged(ctx, "gone")) is None

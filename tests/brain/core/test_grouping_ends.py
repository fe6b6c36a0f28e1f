"""Alert groups: when one is acknowledged, and when it is over."""

import pytest

from brain.core.pack.spec import Priority
from brain.core.paging import grouping
from brain.core.state import IncidentState
from tests.brain.core.pager import Pager
from tests.brain.core.test_grouping import pager, stormy


def test_it_is_acknowledged_when_each_is() -> None:
    """Then people are told once, and its repeats end."""
    it = stormy("a", "b")
    it.acknowledges("a")
    assert it.group.pages.acked_by == ""
    it.acknowledges("b", who="bob")
    it.acknowledges("b")
    assert it.group.pages.acked_by == "bob"
    assert it.told("ack") == [f"30 ack oncall {it.group.id}"]
    assert it.words()[-1] == "acknowledged by bob"
    assert f"page:{it.group.id}" not in it.timers


@pytest.mark.parametrize(
    ("steps", "whats"),
    [
        pytest.param(["a ends"], [], id="one is over"),
        pytest.param(["a ends", "b ends"], [], id="two are over"),
        pytest.param(["a ends", "b ends", "c ends"], ["resolve"], id="all are over"),
        pytest.param(["a ends", "b ends", "c acked"], ["ack"], id="over but for one, which is acknowledged"),
        pytest.param(["a acked", "a ends", "b acked"], [], id="acknowledged and over is one, not two"),
        pytest.param(["a ends", "a acked", "b acked"], [], id="nor is over and acknowledged"),
        pytest.param(["a acked", "a ends", "b ends", "c ends"], ["resolve"], id="all are over, one was acknowledged"),
        pytest.param(["a acked", "b acked", "c acked"], ["ack"], id="all are acknowledged"),
        pytest.param(["a acked", "b acked", "c acked", "a ends"], ["ack"], id="then one is over"),
        pytest.param(["a acked", "b acked", "c ends"], ["ack"], id="the last that nobody acknowledged is over"),
        pytest.param(
            ["a acked", "b acked", "c acked", "a ends", "b ends", "c ends"], ["ack", "resolve"], id="acknowledged, then over"
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("early", [False, True], ids=["after its page", "before its page"])
def test_what_becomes_of_a_group(steps: list[str], whats: list[str], *, early: bool) -> None:
    """Told before its page, it says so right after its page: no alert is left open, and none is hidden."""
    it = pager()
    it.opens("x", "y", "a", "b", "c")
    name = it.group.id
    if not early:
        it.passes(30)
    for step in steps:
        id_, _, came = step.partition(" ")
        it.ends(id_) if came == "ends" else it.acknowledges(id_)
    if early:
        assert not [page for _, page in it.sent if page.subject.id == name]
        it.passes(30)
        whats = whats[-1:]  # nobody needs to hear of an acknowledgement of what is over
    assert [page.what for _, page in it.sent if page.subject.id == name] == ["open", *whats]
    assert (f"page:{name}" in it.timers) == (not whats)
    assert (name in it.state.alert_groups) == ("resolve" not in whats)
    assert f"group:{name}" not in it.timers


def test_who_acknowledged_before_the_page() -> None:
    """The page is followed by that person's name."""
    it = pager()
    it.opens("x", "y", "a", "b")
    it.ends("a")
    it.acknowledges("b", who="bob")
    assert it.group.pages.acked_by == ""
    it.passes(30)
    assert it.group.pages.acked_by == "bob"
    assert it.words()[-1] == "all of them are over or acknowledged"


def test_the_last_word_when_the_one_who_acknowledged_is_forgotten() -> None:
    """An incident that is over and forgotten names nobody: people did it."""
    it = pager()
    it.opens("x", "y", "a")
    it.acknowledges("a", who="bob")
    del it.state.incidents["a"]
    it.passes(30)
    assert it.group.pages.acked_by == "people"


def test_the_last_one_is_over_without_any_acknowledgement_of_its_own() -> None:
    """Nobody in particular acknowledged the group."""
    it = stormy("a", "b")
    it.acknowledges("a", who="bob")
    it.ends("b")
    assert it.group.pages.acked_by == "people"
    assert it.words()[-1] == "it is back"


def test_a_group_that_is_over() -> None:
    """Its resolution carries what still waited, its timers end, and then it is forgotten."""
    it = stormy("a", "b")
    it.pages("a", "update", "the link is down too")
    it.ends("a", why="closed by hand")
    it.delivers = False
    it.ends("b")
    name = it.group.id
    assert it.words()[-1] == "all 2 are over; the last: it is back"
    assert it.sent[-1][1].subject.state == "closed"
    assert [line.text for line in it.sent[-1][1].subject.listed] == ["closed by hand", "it is back"]
    assert it.group.queued == []
    assert not [timer for timer in it.timers if name in timer and "redeliver" not in timer]
    assert [*it.state.incidents["a"].pages.waiting] == ["a.p2"]
    assert it.answers(f"{name}.p2") == ["a"]
    assert it.state.incidents["a"].pages.waiting == {}
    assert it.state.alert_groups == {}


def test_news_of_a_group_that_is_over() -> None:
    """It opens no alert again."""
    it = stormy("a")
    it.delivers = False
    it.ends("a")
    told = it.told()
    it.pages("a", "update", "the link is down too")
    it.passes(30)
    assert it.told() == told
    assert it.words()[-1] == "all 1 are over; the last: it is back"
    it.handles(lambda ctx: grouping.ended(ctx, it.group, it.state.incidents["a"], "again"))
    assert (it.group.over, it.group.seen) == (1, 1)
    assert it.told() == told
    assert len(it.group.pages.waiting) == 1


def test_an_acknowledgement_counts_once() -> None:
    """Although it is reported twice."""
    it = stormy("a", "b")
    for _ in range(2):
        it.handles(lambda ctx: grouping.acknowledged(ctx, it.group, it.state.incidents["a"], "ann"))
    assert it.group.seen == 1
    assert it.told("ack") == []


def test_an_acknowledged_group_goes_on_with_its_news() -> None:
    """But it is not acknowledged twice."""
    it = stormy("a", "b")
    it.acknowledges("a", "b")
    it.pages("a", "update", "the link is up")
    it.passes(30)
    assert [page.what for _, page in it.sent[2:]] == ["open", "ack", "update"]
    it.ends("a")
    assert it.group.pages.acked_by == "ann"
    assert len(it.told("ack")) == 1


def explained(it: Pager, *ids: str) -> None:
    """The switch explains them."""
    for id_ in ids:
        it.state.incidents[id_].explained_by = "inc-switch"
    it.ends(*ids, why="the switch explains it")


def test_what_another_incident_explains_before_the_page_is_not_told() -> None:
    """Neither that it was, nor that it is over: people are told of the other one."""
    it = pager()
    it.opens("x", "y", "a", "b", "c", severity="P2", affected={"n1": True})
    group = it.group
    it.state.incidents["a"].severity = Priority.P0
    it.acknowledges("b")
    explained(it, "a", "b")
    assert (list(group.listed), group.queued, group.seen, group.severity) == (["c"], ["c.p1"], 0, "P2")
    assert [one.pages.waiting for id_, one in it.state.incidents.items() if id_ in "ab"] == [{}, {}]
    it.passes(30)
    page = it.sent[-1][1]
    assert (page.what, [line.incident for line in page.subject.listed]) == ("open", ["c"])
    assert it.said("page.withdrawn") == [(id_, "nobody was told yet: the switch explains it") for id_ in "ab"]


def test_a_group_of_which_all_is_explained_is_taken_over() -> None:
    """After its page: each line says so, and the group is not told as over; with one that is well it is."""
    for well, state, text in (
        (False, IncidentState.EXPLAINED, "others explain all 3; the last: x explains it"),
        (
            True,
            IncidentState.CLOSED,
            "all 3 are over, 2 because others explain them; the last: x explains it",
        ),
    ):
        it = Pager(group_at_least=1, group_within_s=30)
        it.opens("a", "b", "c")
        it.passes(30)
        if well:
            it.ends("c")
        for id_ in ("a", "b") if well else ("a", "b", "c"):
            it.state.incidents[id_].explained_by = "x"
            it.ends(id_, why="x explains it")
        last = it.sent[-1][1]
        assert (last.what, last.subject.state, last.text) == ("resolve", state, text)
        assert [line.explained for line in last.subject.listed] == [True, True, not well]


def test_a_group_of_which_all_is_explained_before_its_page_is_none() -> None:
    """No page, no resolution; and the next storm has a group of its own."""
    it = pager()
    it.opens("x", "y", "a", "b")
    name = it.group.id
    explained(it, "a", "b")
    assert name not in it.state.alert_groups
    assert f"group:{name}" not in it.timers
    it.opens("c")
    assert it.group.id != name
    it.passes(100)
    assert name not in [page.subject.id for _, page in it.sent]
    it.ends("x", "y", "c")
    it.passes(1000)
    assert not it.state.alert_groups
    assert not it.state.groups


def test_what_is_explained_after_its_page_is_taken_over() -> None:
    """People know of it: they are told that others explain it, not that it is over."""
    it = stormy("a", "b")
    explained(it, "a", "b")
    assert it.told("resolve") == [f"30 resolve oncall {it.sent[-1][1].subject.id}"]
    assert it.words()[-1] == "others explain all 2; the last: the switch explains it"

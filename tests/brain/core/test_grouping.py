"""Storms: which incidents are collected, what their one page says, and when it is acknowledged and over."""

import re
from typing import Any

import pytest

from brain.core.context import Context
from brain.core.jobs_seen import JobSeen
from brain.core.pack.spec import Priority
from brain.core.paging import grouping
from brain.core.state import GroupedAlert, HitJob, HitNode, Incident
from brain.notify.compose import compose_from
from tests.brain.core.pager import BEGAN, Pager, fact

STORM: dict[str, Any] = {"group_at_least": 3, "group_within_s": 30, "escalation": {}}


def pager(**settings: Any) -> Pager:
    """The third incident within half a minute, and those after it, are collected."""
    return Pager(**(STORM | settings))


def collected(it: Pager) -> list[str]:
    """The incidents of the newest alert group."""
    return [*it.group.listed] if it.state.alert_groups else []


def stormy(*ids: str, **settings: Any) -> Pager:
    """`x` and `y` are paged one by one; these are paged together, at 30 s."""
    it = pager(**settings)
    it.opens("x", "y", *ids)
    it.passes(30)
    return it


# Which incidents are collected.


@pytest.mark.parametrize(
    ("at", "severities", "together"),
    [
        pytest.param([0, 1], ["P1", "P1"], "", id="two are no storm"),
        pytest.param([0, 1, 2], ["P1", "P1", "P1"], "2", id="the third is"),
        pytest.param([0, 1, 2, 3], ["P1"] * 4, "23", id="and those after it"),
        pytest.param([0, 15, 30], ["P1"] * 3, "2", id="half a minute is still the same storm"),
        pytest.param([0, 15, 30.01], ["P1"] * 3, "", id="more than half a minute is not"),
        pytest.param([0, 20, 40, 45], ["P1"] * 4, "3", id="the window moves"),
        pytest.param([0, 1, 29, 45], ["P1"] * 4, "23", id="while a group collects, all that come"),
        pytest.param([0, 1, 2], ["P1", "P1", "P2"], "2", id="less urgent"),
        pytest.param([0, 1, 2], ["P1", "P2", "P0"], "", id="more urgent than all the others"),
        pytest.param([0, 1, 2], ["P1", "P2", "P1"], "2", id="as urgent as one of them"),
        pytest.param([0, 1, 2, 3], ["P1", "P1", "P0", "P0"], "3", id="only the first of the more urgent ones"),
        pytest.param([0, 1, 2, 3, 4], ["P2", "P2", "P2", "P1", "P1"], "24", id="more urgent than the storm"),
        pytest.param([0, 1, 2, 31.5], ["P1", "P1", "P2", "P1"], "2", id="more urgent than all that is recent"),
    ],
)  # fmt: skip
def test_what_is_collected(at: list[float], severities: list[str], together: str) -> None:
    """The rest is paged at once, by itself."""
    it = pager()
    for number, (when, severity) in enumerate(zip(at, severities, strict=True)):
        it.passes(when - it.now)
        it.opens(str(number), severity=severity)
    assert "".join(collected(it)) == together
    alone = [str(number) for number in range(len(at)) if str(number) not in together]
    assert [page.subject.id for _, page in it.sent if not page.subject.listed] == alone


@pytest.mark.parametrize(("at_least", "together"), [(0, []), (1, ["a", "b"]), (2, ["b"])])
def test_from_which_one_on_is_the_sites_choice(at_least: int, together: list[str]) -> None:
    """0: no alert groups, and nothing is remembered for any."""
    it = pager(group_at_least=at_least)
    it.opens("a", "b")
    assert collected(it) == together
    assert (it.state.groups == {}) == (at_least == 0)


def test_each_channel_group_has_storms_of_its_own() -> None:
    """Two for those on call and two for the spares are no storm anywhere."""
    it = pager()
    it.opens("a", "b")
    it.knows("c")
    it.knows("d")
    it.pages("c", "update", "no spare", to="spares")
    it.pages("d", "update", "no spare", to="spares")
    assert it.state.alert_groups == {}
    it.knows("e")
    it.pages("e", "update", "no spare", to="spares")
    assert (it.group.to, collected(it)) == ("spares", ["e"])


def test_a_storm_that_goes_on_is_a_new_group_at_once() -> None:
    """Until half a minute after the last group was paged; each group has an id of its own."""
    it = stormy("a")
    first = it.group.id
    it.passes(29.9)
    it.opens("b")
    assert collected(it) == ["b"]
    assert it.group.id != first
    it.passes(30)
    it.state.now += 30  # the timer is late
    it.opens("c")
    assert collected(it) == ["b"]
    assert it.told("open")[-1] == "119.9 open oncall c"


@pytest.mark.parametrize(("severity", "together"), [("P1", "b"), ("P0", "a")])
def test_a_storm_that_goes_on_is_as_urgent_as_its_last_group(severity: str, together: str) -> None:
    """What is more urgent is paged at once."""
    it = stormy("a")
    it.passes(10)
    it.opens("b", severity=severity)
    assert collected(it) == [together]


def test_a_storm_is_forgotten() -> None:
    """Half a minute after its last alert, nothing is left of it; not while a group collects."""
    it = pager()
    it.opens("a")
    assert it.timers["storm:oncall"] == 30
    it.passes(20)
    it.opens("b", "c")
    assert it.timers["storm:oncall"] == 50
    assert it.timers[f"group:{it.group.id}"] == 50
    it.fires("storm", "oncall")
    assert it.state.groups["oncall"].alert_group
    assert it.timers["storm:oncall"] == 50
    it.passes(30)
    assert it.state.groups["oncall"].alert_group == ""
    assert it.state.groups["oncall"].storm_until == BEGAN + 80
    assert it.timers["storm:oncall"] == 80
    it.passes(30)
    assert it.state.groups == {}
    it.fires("storm", "oncall")
    assert it.state.groups == {}


def test_a_storm_whose_last_group_was_just_paged() -> None:
    """Its timer is due at that moment too, and is put off: the storm goes on."""
    it = pager()
    it.opens("a", "b", "c")
    it.state.now += 30
    del it.state.timers[f"group:{it.group.id}"]
    it.fires("group", it.group.id)
    it.passes(0)
    assert it.timers["storm:oncall"] == 60
    it.opens("d")
    assert collected(it) == ["d"]


def test_a_storms_timer_comes_before_the_groups() -> None:
    """It waits for another half minute, since the group still collects."""
    it = pager()
    it.opens("a", "b", "c")
    it.passes(10)
    it.fires("storm", "oncall")
    assert it.timers["storm:oncall"] == 40
    it.opens("d")
    assert collected(it) == ["c", "d"]


def test_an_alert_groups_id() -> None:
    """Like an incident's, with a prefix of its own: another one for each input, channel group and incident."""
    it = pager(group_at_least=1)
    a, b = it.knows("a"), it.knows("b")

    def opened(ctx: Context, incident: Incident, to: str) -> str:
        ctx.state.groups.clear()
        group = grouping.alert_group_for(ctx, incident, to)
        return group.id if group is not None else ""

    first, second, third = it.handles(
        lambda ctx: (opened(ctx, a, "oncall"), opened(ctx, a, "lead"), opened(ctx, b, "oncall"))
    )
    fourth = it.handles(lambda ctx: opened(ctx, a, "oncall"))
    assert len({first, second, third, fourth}) == 4
    assert re.fullmatch("grp-[a-z2-7]{8}", first)


# What the page says.


def test_one_page_for_all_of_them() -> None:
    """It lists each with what is known of it, and every incident's own page counts as delivered with it."""
    it = pager()
    it.passes(5)
    it.opens("x", "y")
    it.opens("a", severity="P2", evidence=[fact(2, "Xid 79"), fact(1, "Xid 13")])
    it.opens("b", scope="leaf/l1", node="", nodes=4)
    assert it.told() == ["5 open oncall x", "5 open oncall y"]
    assert [one.pages.grouped for one in it.state.incidents.values()] == [
        {},
        {},
        *[{"oncall": it.group.id}] * 2,
    ]
    it.passes(30)
    assert it.told()[2:] == [f"35 open oncall {it.group.id}"]
    page = it.sent[-1][1]
    assert page.text == "2 more incidents within 30 s"
    assert page.subject.severity == "P1"
    assert page.subject.listed == (
        GroupedAlert(
            incident="a", severity=Priority.P2, cause="gpu_lost", scope="node/n-a", node="n-a", since=BEGAN + 1,
            evidence="Xid 79", text="it is lost",
        ),
        GroupedAlert(
            incident="b", severity=Priority.P1, cause="gpu_lost", scope="leaf/l1", node="", since=BEGAN + 5,
            evidence="", text="it is lost",
        ),
    )  # fmt: skip
    assert [one.pages.waiting for one in it.state.incidents.values()] == [{}] * 4
    name = it.group.id
    assert it.group.pages.notified == ["oncall"]
    assert it.timers[f"page:{name}"] == 335
    assert it.said("page.sent")[2:] == [
        ("a", f"open to oncall, with others ({name}): it is lost"),
        ("b", f"open to oncall, with others ({name}): it is lost"),
        (name, "open to oncall: 2 more incidents within 30 s"),
    ]
    assert it.said("page.delivered")[2:] == [
        (name, "by chat"),
        ("a", f"by chat, in one page with others ({name})"),
        ("b", f"by chat, in one page with others ({name})"),
    ]


def test_the_page_of_a_single_one() -> None:
    """The group was opened for it, and nothing followed."""
    it = stormy("a")
    assert it.words()[-1] == "1 more incident within 30 s"


def test_until_the_page_an_incidents_own_waits() -> None:
    """It names the group that carries it, and the notes name the page."""
    it = pager()
    (*_, a) = it.opens("x", "y", "a")
    ((page_id, pending),) = a.pages.waiting.items()
    assert page_id == "a.p1"
    assert (pending.what, pending.to, pending.text, pending.alert_group) == (
        "open",
        "oncall",
        "it is lost",
        it.group.id,
    )
    (note,) = [note for note in it.notes if note.incident == "a"]
    assert note.data == {"page": "a.p1", "what": "open", "to": "oncall"}
    assert it.shown[-1] == "a"
    assert it.group.opened_at == BEGAN


def test_a_long_list_has_evidence_for_its_first_forty_only() -> None:
    """The state stays small; every incident is listed all the same."""
    it = pager()
    it.opens("x", "y")
    it.opens(*[f"i{number}" for number in range(42)], evidence=[fact(0, "Xid 79")])
    lines = list(it.group.listed.values())
    assert [line.evidence for line in lines] == ["Xid 79"] * 40 + ["", ""]


def test_the_group_is_as_urgent_as_its_most_urgent_incident() -> None:
    """In whatever order they come."""
    it = pager()
    for id_, severity in [("x", "P0"), ("y", "P0"), ("a", "P2"), ("b", "P1"), ("c", "P3")]:
        it.opens(id_, severity=severity)
    assert (collected(it), it.group.severity) == (["a", "b", "c"], "P1")


# News.


def test_news_before_the_page_is_in_the_page() -> None:
    """Nothing is sent twice: the page shows the newest of each."""
    it = pager()
    it.opens("x", "y", "a", "b")
    it.state.incidents["a"].scope = "leaf/l1"
    it.pages("a", "update", "the link is down too")
    it.raises("b", "P0")
    assert it.group.pages.severities == []
    it.passes(30)
    assert len(it.sent) == 3
    subject = it.sent[-1][1].subject
    assert [(line.severity, line.scope, line.text) for line in subject.listed] == [
        ("P1", "leaf/l1", "the link is down too"),
        ("P0", "node/n-b", "raised from P1 to P0"),
    ]
    assert (subject.severity, subject.severities_before) == ("P0", ())
    assert it.state.incidents["a"].pages.waiting == it.state.incidents["b"].pages.waiting == {}


def test_news_after_the_page_are_collected_for_an_update() -> None:
    """For half a minute from the first of them; the newest one's words stand for all."""
    it = stormy("a", "b", "c")
    it.passes(10)
    it.pages("a", "update", "the link is down too")
    assert it.timers[f"group:{it.group.id}"] == 70
    it.passes(20)
    it.pages("b", "update", "no spare is left")
    it.pages("a", "update", "the link is up")
    assert it.timers[f"group:{it.group.id}"] == 70
    it.passes(10)
    assert it.told("update") == [f"70 update oncall {it.group.id}"]
    assert it.words()[-1] == "gpu lost on node/n-b: no spare is left (and 1 more)"
    assert [one.pages.waiting for one in it.state.incidents.values()] == [{}] * 5


def test_news_of_one_incident() -> None:
    """The update is of nothing else; it says what is newest."""
    it = stormy("a", "b")
    it.pages("a", "update", "the link is down too")
    it.pages("a", "update", "the link is up")
    it.passes(30)
    assert it.words()[-1] == "gpu lost on node/n-a: the link is up"
    assert it.group.queued == []


def test_a_group_that_is_raised_twice() -> None:
    """It was of two other severities before."""
    it = pager()
    it.opens("x", "y", "a", "b", severity="P2")
    it.passes(30)
    it.raises("a", "P1")
    it.raises("b", "P0")
    assert (it.group.severity, it.group.pages.severities) == ("P0", ["P2", "P1"])


def test_news_that_raise_the_group() -> None:
    """It is raised once for each step, and never lowered."""
    it = stormy("a", "b", "c")
    it.raises("a", "P0")
    assert (it.group.severity, it.group.pages.severities) == ("P0", ["P1"])
    it.raises("b", "P0")
    it.state.incidents["c"].severity = it.state.incidents["c"].severity.P3
    it.pages("c", "update", "not so bad")
    assert (it.group.severity, it.group.pages.severities) == ("P0", ["P1"])
    assert it.group.listed["c"].severity == "P3"
    it.passes(30)
    assert it.sent[-1][1].subject.severities_before == ("P1",)


# Storms of one node.


def test_the_page_of_an_alert_group_says_who_is_hit() -> None:
    """Jobs, users and how much of the largest, over the incidents that it lists; what is forgotten by then is left out."""
    it = Pager(delivers=True, escalation={}, group_at_least=2)
    it.opens("a", "b", "c", "d")
    train = JobSeen(id="4711", name="train", user="alice", nodes=16, gpus=8)
    small = JobSeen(id="4712", name="nb", user="bob", nodes=1)
    for name, jobs in (("b", [train]), ("c", [train, small])):
        kept = [HitJob(job=job, since=1.0) for job in jobs]
        it.state.incidents[name].hit[f"node-{name}"] = HitNode(
            asked=1, at=2.0, known_since=2.0, scheduler="slurm", jobs=kept
        )
    it.state.incidents["a"].hit["node-a"] = HitNode(
        asked=1, at=2.0, scheduler="slurm", jobs=[HitJob(job=small, since=1.0)]
    )
    del it.state.incidents["d"]
    it.passes(30)
    page = it.sent[-1][1]
    assert page.subject.listed
    assert page.subject.hit == "2 jobs of 2 users; the largest: alice's 4711 (2 of its 16 nodes)"
    message = compose_from(it.state, page)
    assert message.hit == page.subject.hit
    assert page.subject.hit in message.body("en", 4000)

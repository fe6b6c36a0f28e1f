"""An alert goes on when another incident explains its own: one key, one acknowledgement, one queue (decision 69)."""

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from brain.core.inputs import OperatorCommand
from brain.core.operators import commands
from brain.core.pack.spec import EscalationStep, Paging, Place, Priority
from brain.core.paging import alerts, escalation
from brain.core.state import AlertFace, Incident, IncidentState
from tests.brain.core.pager import Pager
from tests.brain.world import Story, pack

LEAF = {f"n{number}": Place(leaf="l1") for number in range(6)}


def told(text: str = "its ports are down") -> str:
    """What people hear of the leaf switch."""
    return f"it is switch suspected on leaf/l1, which explains gpu lost on node/n-a (14 more nodes): {text}"


def a_leaf(it: Pager, severity: str = "P1", **more: Any) -> Incident:
    """The incident of a leaf switch, of which nobody was told."""
    leaf = it.knows("leaf", severity, scope="leaf/l1", node="", nodes=15, **more)
    leaf.cause = "switch_suspected"
    return leaf


def explains(it: Pager, by: Incident, *ids: str) -> None:
    """One incident explains others, which end."""
    for id_ in ids:
        other = it.state.incidents[id_]
        it.handles(partial(escalation.passed_on, by=by, other=other))
        other.explained_by, other.state = by.id, IncidentState.EXPLAINED
        it.ends(id_, why="the leaf explains it")


def test_the_alert_goes_on_as_news() -> None:
    """The node's alert is not resolved; its next page says that it is the leaf switch, and of how many nodes more."""
    it = Pager()
    it.opens("a")
    leaf = a_leaf(it)
    explains(it, leaf, "a")
    assert [page.id for _, page in it.sent] == ["a.p1"]
    it.passes(30)
    it.handles(lambda ctx: escalation.open_page(ctx, leaf, "its ports are down"))
    (_, page) = it.sent[-1]
    assert (page.id, page.what, page.to, page.text) == ("a.p2", "update", "oncall", told())
    assert (page.subject.id, page.subject.key, page.subject.severity) == ("leaf", "a", "P1")
    assert page.subject.before == (
        AlertFace(cause="gpu_lost", scope="node/n-a", node="n-a", nodes=1, severity=Priority.P1),
    )
    assert page.alerted == ("chat",)
    it.handles(lambda ctx: escalation.open_page(ctx, leaf, "its ports are down"))
    assert len(it.sent) == 2, "they know"


def test_escalation_goes_on_where_it_was() -> None:
    """The lead hears five minutes after the first page, as if the place had not changed. Who was called just now with another
    place is called again after as long as of any new fault.
    """
    it = Pager()
    it.opens("a")
    it.passes(100)
    leaf = a_leaf(it)
    explains(it, leaf, "a")
    it.handles(lambda ctx: escalation.open_page(ctx, leaf, "its ports are down"))
    assert it.timers == {"page:a": 400, "escalate:a": 300}
    it.passes(350)
    assert [(at, page.what, page.to, page.subject.id) for at, page in it.sent[2:]] == [
        (300, "open", "lead", "leaf"), (400, "repeat", "oncall", "leaf"), (400, "repeat", "lead", "leaf"),
    ]  # fmt: skip
    it.passes(1000)
    assert [at for at, page in it.sent if page.what == "repeat" and page.to == "oncall"] == [400, 700, 1300]


@pytest.mark.parametrize(("every_s", "repeats"), [(240.0, 0), (1000.0, 8)])
def test_what_goes_to_and_fro_keeps_one_rhythm(every_s: float, repeats: int) -> None:
    """A leaf switch and its pod in turn. Who knows both places is not called as of a new fault with each news of them; no repeat
    follows sooner than the rhythm ever does, and nobody hears nothing for longer than it.
    """
    it = Pager(escalation={})
    it.opens("a")
    it.passes(100)
    before = "a"
    for number in range(12):
        place = f"{('leaf', 'pod')[number % 2]}{number}"
        by = it.knows(place, scope=("leaf/l1", "pod/p")[number % 2], node="", nodes=15)
        explains(it, by, before)
        it.handles(partial(escalation.open_page, incident=by, text="it is down"))
        before = place
        it.passes(every_s)
    assert len(it.told("repeat")) == repeats
    it.passes(20_000)
    calls = [(at, page.what) for at, page in it.sent]
    pauses = [(at - earlier, what) for (earlier, _), (at, what) in pairwise(calls)]
    assert min(pause for pause, what in pauses if what == "repeat") >= 300
    assert max(pause for pause, _ in pauses) <= 4800


def test_while_it_is_not_decided_the_repeats_say_so_far_what_is_known() -> None:
    """The leaf's incident settles still: the repeat says what explains the node, and the news comes with its own page."""
    it = Pager()
    it.opens("a")
    leaf = a_leaf(it)
    explains(it, leaf, "a")
    it.passes(310)
    assert it.words()[-2:] == [
        told("nobody has acknowledged for 5 minutes"),
        "oncall told 5 minutes ago, nobody has acknowledged",
    ]
    it.handles(lambda ctx: escalation.open_page(ctx, leaf, "its ports are down"))
    assert [page.text for _, page in it.sent[-2:]] == [told(), told()]
    assert [page.to for _, page in it.sent[-2:]] == ["oncall", "lead"]


def test_who_has_acknowledged_the_node_has_acknowledged_the_leaf() -> None:
    """Nobody is called again; what the leaf's alert is, they are told."""
    it = Pager()
    it.opens("a")
    it.acknowledges("a")
    leaf = a_leaf(it)
    explains(it, leaf, "a")
    it.handles(lambda ctx: escalation.open_page(ctx, leaf, "its ports are down"))
    it.passes(10_000)
    assert leaf.pages.acked_by == "ann"
    assert [page.what for _, page in it.sent] == ["open", "ack", "update"]


def test_what_is_more_urgent_calls_them_anew() -> None:
    """They have acknowledged a P2; the leaf is a P1: the chain is called from its beginning, by the same alert."""
    it = Pager()
    it.opens("a", severity="P2")
    it.acknowledges("a")
    leaf = a_leaf(it)
    explains(it, leaf, "a")
    it.handles(lambda ctx: escalation.open_page(ctx, leaf, "its ports are down"))
    (_, page) = it.sent[-1]
    assert (page.id, page.what) == ("a.p3", "open")
    assert page.text == told("raised from P2 to P1: ann has acknowledged it as P2, nobody as P1")
    assert not leaf.pages.acked_by
    assert it.timers == {"page:a": 300, "escalate:a": 300}


def test_who_had_acknowledged_the_leaf_first_is_told_to_the_others() -> None:
    """Somebody saw it in the console before anybody was called for it."""
    it = Pager()
    it.opens("a")
    leaf = a_leaf(it)
    it.acknowledges("leaf", who="bob")
    explains(it, leaf, "a")
    assert (leaf.pages.acked_by, it.timers) == ("bob", {})
    assert it.told()[-1] == "0 ack oncall leaf"


def test_of_two_the_first_goes_on() -> None:
    """The other one is resolved, with the words that say where it went."""
    it = Pager()
    it.opens("a", "b")
    leaf = a_leaf(it)
    explains(it, leaf, "a", "b")
    it.handles(lambda ctx: escalation.open_page(ctx, leaf, "its ports are down"))
    assert [(page.id, page.what) for _, page in it.sent] == [
        ("a.p1", "open"), ("b.p1", "open"), ("b.p2", "resolve"), ("a.p2", "update"),
    ]  # fmt: skip
    assert it.state.alerts == {"a": "leaf"}


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        pytest.param({}, {"page": Paging.NEVER}, id="nobody is paged for it"),
        pytest.param({"group_at_least": 1, "group_within_s": 30}, {}, id="told in one page with others"),
    ],
)
def test_what_does_not_go_on(settings: dict[str, Any], more: dict[str, Any]) -> None:
    """An incident of which nobody is told takes no alert over; nor does a line of an alert group become one."""
    it = Pager(**settings)
    it.opens("a")
    leaf = a_leaf(it)
    leaf.page = more.get("page", leaf.page)
    explains(it, leaf, "a")
    assert (leaf.pages.first_at, it.state.alerts) == (0, {})


def test_what_has_an_alert_keeps_it() -> None:
    """People know of the leaf already: the node's alert is over."""
    it = Pager()
    it.opens("a")
    leaf = a_leaf(it)
    it.handles(lambda ctx: escalation.open_page(ctx, leaf, "its ports are down"))
    explains(it, leaf, "a")
    assert it.told()[-1] == "0 resolve oncall a"
    assert (alerts.key(leaf), it.state.alerts) == ("leaf", {})


def test_what_waits_to_be_delivered_goes_on() -> None:
    """The first page is not delivered yet: its outcome, under the old name, counts for the leaf, and the news follows it."""
    it = Pager(delivers=False)
    it.opens("a")
    leaf = a_leaf(it)
    explains(it, leaf, "a")
    it.handles(lambda ctx: escalation.open_page(ctx, leaf, "its ports are down"))
    assert [page.id for _, page in it.sent] == ["a.p1"]
    it.refuses("a.p1")
    it.passes(10)
    assert [(page.id, page.what) for _, page in it.sent] == [("a.p1", "open"), ("a.p2", "open")]
    assert it.answers("a.p2") == ["leaf"]
    assert not leaf.pages.waiting


def test_it_goes_from_place_to_place_and_is_forgotten_with_the_last() -> None:
    """The pod explains the leaf before anybody was told of that: people read of the node and the pod."""
    it = Pager()
    it.opens("a")
    leaf = a_leaf(it)
    explains(it, leaf, "a")
    pod = it.knows("pod", scope="pod/p", node="", nodes=40)
    explains(it, pod, "leaf")
    it.handles(lambda ctx: escalation.open_page(ctx, pod, "much is down"))
    assert (
        it.words()[-1]
        == "it is gpu lost on pod/p, which explains gpu lost on node/n-a (39 more nodes): much is down"
    )
    assert [one.scope for one in pod.pages.faces] == ["node/n-a", "leaf/l1"]
    assert (leaf.pages.passed_to, it.state.alerts) == ("pod", {"a": "pod"})
    for one in (it.state.incidents["a"], leaf):
        it.handles(partial(escalation.forget, incident=one))
        del it.state.incidents[one.id]
    assert alerts.holder(it.state, "a") is pod
    assert it.timers == {"page:a": 300, "escalate:a": 300}
    it.ends("pod")
    it.handles(lambda ctx: escalation.forget(ctx, pod))
    assert (it.state.alerts, it.timers) == ({}, {})


def test_what_they_know_already_is_no_news() -> None:
    """The leaf has a new incident, after the pod had explained its former one for a moment of which nobody heard."""
    it = Pager()
    it.opens("a")
    pod = it.knows("pod", scope="pod/p", node="", nodes=40)
    explains(it, pod, "a")
    again = it.knows("b", scope="node/n-a", node="n-a")
    explains(it, again, "pod")
    it.handles(lambda ctx: escalation.open_page(ctx, again, "it is lost"))
    assert it.told() == ["0 open oncall a"]
    assert (again.pages.was, again.pages.key) == (None, "a")
    it.ends("b")
    assert it.words()[-1] == "it is back"


def test_what_ends_before_it_is_told_says_what_it_was() -> None:
    """The ports are back within the leaf's hold-off: whoever was called for the node reads what it was."""
    it = Pager()
    it.opens("a")
    leaf = a_leaf(it)
    explains(it, leaf, "a")
    it.ends("leaf")
    assert it.words()[-1] == told("it is back")
    assert it.sent[-1][1].what == "resolve"


def test_a_chain_without_the_group_that_was_called_is_called_too() -> None:
    """The node's P2 went to the chat; the leaf is a P3 of another group: both hear what it is."""
    chains = {Priority.P2: (EscalationStep(to="chat"),), Priority.P3: (EscalationStep(to="later"),)}
    it = Pager(escalation=chains)
    it.opens("a", severity="P2")
    leaf = a_leaf(it, "P3")
    explains(it, leaf, "a")
    it.handles(lambda ctx: escalation.open_page(ctx, leaf, "its ports are down"))
    assert [(page.what, page.to) for _, page in it.sent[1:]] == [("update", "chat"), ("open", "later")]


def said(it: Pager, verb: str, **args: str) -> list[str]:
    """What comes of an operator's command."""
    before = len(it.notes)
    it.handles(lambda ctx: commands.handle(ctx, OperatorCommand(id="c", who="ann", verb=verb, args=args)))
    return [f"{note.kind} {note.incident}: {note.text}" for note in it.notes[before:]]


def test_what_people_say_to_the_alert_is_said_to_who_has_it() -> None:
    """Chats and PagerDuty know the alert by its key: an acknowledgement and a note reach the leaf; a close does not."""
    it = Pager()
    it.opens("a")
    leaf = a_leaf(it)
    explains(it, leaf, "a")
    name = "inc-a"
    it.state.alerts = {name: "leaf"}
    leaf.pages.key = name
    assert said(it, "note", id=name, text="I look") == ["operator.note leaf: ann: I look"]
    assert said(it, "close", id=name) == [
        "operator.refused : ann: close id=inc-a: it is over: switch_suspected at leaf/l1 explains it, and has its alert (leaf)"
    ]
    said(it, "ack", id=name)
    assert leaf.pages.acked_by == "ann"


def test_a_leaf_that_takes_over_a_paged_node() -> None:
    """The whole engine: n0 is silent, and somebody looks; then its leaf's nodes are, one after the other. One alert stays."""
    story = Story(pack(places=LEAF), heals=False)
    story.event(10, "node.unreachable", "node", "n0")
    story.run(30)
    (first,) = story.incidents("node-unreachable")
    story.say(35, "ack", id=first.id)
    for node in ("n1", "n2", "n3", "n4"):
        story.event(40, "node.unreachable", "node", node)
    story.run(200)
    leaf = next(one for one in story.time.incidents.values() if one.scope == "leaf/l1")
    assert (leaf.pages.key, leaf.pages.acked_by) == (first.id, "ann")
    assert [page.what for page in story.time.pages if page.id.startswith(f"{first.id}.")] == [
        "open",
        "ack",
        "update",
    ]
    assert story.engine.state.alerts == {first.id: leaf.id}
    for node in LEAF:
        story.event(300, "node.returned", "node", node)
    story.run(2000)
    ends = [page for page in story.time.pages if page.what == "resolve" and page.subject.key == first.id]
    assert [page.subject.id for page in ends] == [leaf.id]
    assert story.engine.state.fault_free()


def test_a_fault_that_stood_before_keeps_its_alert() -> None:
    """A node that was silent for an hour says nothing of the leaf that dies now, nor does whoever has acknowledged it."""
    story = Story(pack(places=LEAF), heals=False)
    story.event(10, "node.unreachable", "node", "n0")
    story.run(3600)
    (first,) = story.incidents("node-unreachable")
    story.say(3700, "ack", id=first.id)
    for node in ("n1", "n2", "n3", "n4"):
        story.event(4000, "node.unreachable", "node", node)
    story.run(4200)
    leaf = next(one for one in story.time.incidents.values() if one.scope == "leaf/l1")
    assert leaf.state is IncidentState.OPEN
    assert leaf.pages.key != first.id
    assert not leaf.pages.acked_by


def test_faces_are_told_apart_by_severity() -> None:
    """It was raised before it passed on: the alert had two faces."""
    it = Pager()
    (node,) = it.opens("a", severity="P2")
    it.raises("a", "P1")
    leaf = a_leaf(it)
    explains(it, leaf, "a")
    face = AlertFace(cause="gpu_lost", scope="node/n-a", node="n-a", nodes=1, severity=Priority.P1)
    assert leaf.pages.faces == [replace(face, severity=Priority.P2), face]
    assert leaf.pages.severities == []
    assert node.pages.resolved

"""Delivery queues: pages in order, one at a time, tried again for ever, and replaced when they say nothing any more."""

from typing import Any

import pytest

from brain.core.paging import queue
from brain.core.paging.queue import What
from brain.core.state import Incident
from tests.brain.core.pager import Pager


def pager(**settings: Any) -> Pager:
    """The test is the notifier too."""
    return Pager(delivers=False, escalation={}, **settings)


def posted(*whats: What) -> tuple[Pager, Incident]:
    """These pages of `a` wait for the delivery of the first, which is under way. The nth one's text is its number."""
    it = pager()
    incident = it.knows("a")
    for number, what in enumerate(whats):
        post(it, incident, what, str(number + 1))
    return it, incident


def post(it: Pager, incident: Incident, what: What, text: str, to: str = "oncall") -> None:
    """One more page."""
    it.handles(lambda ctx: queue.post(ctx, incident, what, to, text))


def waiting(incident: Incident) -> list[str]:
    """What is not delivered yet: `open 1`."""
    return [f"{pending.what} {pending.text}" for pending in incident.pages.waiting.values()]


def sent(it: Pager) -> list[str]:
    """What went to the notifier."""
    return [f"{page.what} {page.text}" for _, page in it.sent]


# One at a time.


def test_one_page_of_a_queue_is_under_way_at_a_time() -> None:
    """The next one follows when it is delivered, until nothing is left."""
    it, incident = posted("open", "update", "resolve")
    assert sent(it) == ["open 1"]
    assert [page.id for _, page in it.sent] == ["a.p1"]
    assert it.timers == {"redeliver:a.p1": 300}
    assert it.answers("a.p1") == ["a"]
    assert sent(it) == ["open 1", "update 2"]
    assert it.timers == {"redeliver:a.p2": 300}
    it.answers("a.p2")
    it.answers("a.p3")
    assert sent(it) == ["open 1", "update 2", "resolve 3"]
    assert it.timers == {}
    assert waiting(incident) == []
    assert it.said("page.sent") == [
        ("a", "open to oncall: 1"),
        ("a", "update to oncall: 2"),
        ("a", "resolve to oncall: 3"),
    ]
    assert it.said("page.delivered") == [("a", "by chat")] * 3


def test_a_queue_for_each_channel_group() -> None:
    """The lead's page does not wait for that of those on call; an outcome moves its own queue only."""
    it, incident = posted("open")
    post(it, incident, "open", "2", to="lead")
    post(it, incident, "update", "3")
    assert sent(it) == ["open 1", "open 2"]
    assert queue.busy(incident, "oncall")
    assert queue.busy(incident, "lead")
    it.answers("a.p2")
    assert sent(it) == ["open 1", "open 2"]
    assert not queue.busy(incident, "lead")
    assert queue.busy(incident, "oncall")


def test_every_incident_has_queues_of_its_own() -> None:
    """One that is not delivered holds up no other."""
    it, _ = posted("open")
    post(it, it.knows("b"), "open", "2")
    assert sent(it) == ["open 1", "open 2"]
    assert it.answers("b.p1") == ["b"]


def test_an_incident_is_shown_with_each_change_of_its_pages() -> None:
    """And the note names the page: what it is and for whom, and in the end the channel that took it."""
    it, incident = posted("open")
    it.shown.clear()
    it.refuses("a.p1")
    it.passes(5)
    it.answers("a.p1")
    assert it.shown == ["a", "a"]
    assert [note.data for note in it.notes] == [
        {"page": "a.p1", "what": "open", "to": "oncall"},
        {"page": "a.p1"},
        {"page": "a.p1", "channel": "chat"},
    ]
    assert {note.scope for note in it.notes} == {incident.scope}


def test_a_note_that_is_about_no_page() -> None:
    """Names none; the incident is shown all the same."""
    it, incident = posted()
    it.handles(lambda ctx: queue.note(ctx, incident, "page.acked", "acknowledged by ann"))
    (note,) = it.notes
    assert (note.incident, note.data) == ("a", {})
    assert it.shown == ["a"]


# Outcomes.


@pytest.mark.parametrize("page", ["a.p1", "a.p9", "gone.p1", "nonsense", ""])
@pytest.mark.parametrize("ok", [True, False])
def test_an_outcome_that_nobody_waits_for(page: str, *, ok: bool) -> None:
    """It came twice, or for something that is forgotten. It changes nothing."""
    it, incident = posted("open")
    it.answers("a.p1")
    notes = list(it.notes)
    assert it.answers(page, ok=ok) == []
    assert (it.notes, it.timers, waiting(incident)) == (notes, {}, [])


@pytest.mark.parametrize(
    ("what", "channel", "by"),
    [
        ("open", "chat", {"oncall": ["chat"]}),
        ("repeat", "mail", {"oncall": ["mail"]}),
        ("update", "chat", {"oncall": ["chat"]}),
        ("ack", "chat", {}),
        ("resolve", "chat", {}),
        ("open", "", {}),
    ],
)
def test_the_channels_that_have_the_alert(what: What, channel: str, by: dict[str, list[str]]) -> None:
    """A resolution must go where an alert went."""
    it, incident = posted(what)
    it.answers("a.p1", channel=channel)
    assert incident.pages.by == by


def test_a_channel_is_named_once() -> None:
    """In the order in which they accepted it; each page says which of its group have the alert."""
    it, incident = posted("open", "repeat", "repeat", "resolve")
    for number, channel in enumerate(["chat", "mail", "chat"]):
        it.answers(f"a.p{number + 1}", channel=channel)
    assert incident.pages.by == {"oncall": ["chat", "mail"]}
    assert [page.alerted for _, page in it.sent] == [(), ("chat",), ("chat", "mail"), ("chat", "mail")]
    post(it, incident, "open", "5", to="lead")
    assert it.sent[-1][1].alerted == ()


# Not delivered.


def test_a_page_is_tried_for_ever_with_growing_pauses() -> None:
    """5, 10, 20 … seconds, at most five minutes. A page is never given up."""
    it, incident = posted("open")
    pauses = []
    for _ in range(14):
        it.refuses("a.p1")
        pauses.append(it.timers["redeliver:a.p1"] - it.now)
        it.passes(pauses[-1])
    assert pauses == [5, 10, 20, 40, 80, 160] + [300] * 8
    assert sent(it) == ["open 1"] * 15
    assert it.said("page.undelivered")[0] == ("a", "no route; again in 5 s")
    it.answers("a.p1")
    assert waiting(incident) == []
    assert it.timers == {}


def test_a_failure_for_years_costs_no_more_than_one_for_a_day() -> None:
    """The pause is not computed from ever larger numbers."""
    it, incident = posted("open")
    incident.pages.waiting["a.p1"].tries = 100_000
    it.refuses("a.p1")
    assert it.timers == {"redeliver:a.p1": 300}


def test_a_page_without_an_outcome_is_sent_again() -> None:
    """After five minutes; its failures are not counted, since nothing failed."""
    it, incident = posted("open")
    it.passes(299)
    assert sent(it) == ["open 1"]
    it.passes(1)
    assert sent(it) == ["open 1", "open 1"]
    assert it.timers == {"redeliver:a.p1": 600}
    assert incident.pages.waiting["a.p1"].tries == 0


def test_a_page_that_pauses_is_not_under_way() -> None:
    """A later page that leaves it its sense does not hasten it."""
    it, incident = posted("open")
    it.refuses("a.p1")
    it.passes(2)
    post(it, incident, "ack", "2")
    assert sent(it) == ["open 1"]
    assert waiting(incident) == ["open 1", "ack 2"]
    assert it.timers == {"redeliver:a.p1": 5}
    it.passes(3)
    assert sent(it) == ["open 1", "open 1"]


def test_a_timer_of_a_page_that_was_delivered() -> None:
    """It sends nothing."""
    it, _ = posted("open")
    it.answers("a.p1")
    for page in ("a.p1", "gone.p1"):
        it.fires("redeliver", page)
    assert sent(it) == ["open 1"]


def test_a_new_leader_sends_the_first_of_each_queue_again() -> None:
    """Those behind it still wait for it; what an alert group carries is none of them."""
    it, incident = posted("open", "update")
    post(it, incident, "open", "3", to="lead")
    post(it, it.knows("b"), "open", "4")
    it.handles(queue.resend_all)
    assert sent(it)[3:] == ["open 1", "open 3", "open 4"]
    it.passes(100)
    it.handles(queue.resend_all)
    assert {name: due for name, due in it.timers.items() if due == 400} == {
        "redeliver:a.p1": 400,
        "redeliver:a.p3": 400,
        "redeliver:b.p1": 400,
    }


# What takes the place of what.


@pytest.mark.parametrize(
    ("whats", "then"),
    [
        pytest.param(["open"], ["open 1"], id="nothing came after it"),
        pytest.param(["open", "update"], ["open 2"], id="no channel has the alert yet: the update opens it"),
        pytest.param(["open", "repeat"], ["open 2"], id="so does a repeat"),
        pytest.param(["open", "ack"], ["open 1", "ack 2"], id="an acknowledgement needs its alert"),
        pytest.param(["open", "resolve"], ["resolve 2"], id="a resolution replaces the alert"),
        pytest.param(["open", "update", "resolve"], ["resolve 3"], id="and all that came between"),
        pytest.param(["open", "ack", "resolve"], ["resolve 3"], id="the acknowledgement too"),
        pytest.param(["update", "repeat"], ["repeat 2"], id="an alert that is open stays open"),
        pytest.param(["update", "update", "repeat"], ["update 2", "repeat 3"], id="only the one before it"),
        pytest.param(["open", "update", "update"], ["open 2", "update 3"], id="only the one before it, which opens"),
        pytest.param(["repeat", "ack"], ["repeat 1", "ack 2"], id="after a repeat"),
        pytest.param(["ack", "update"], ["update 2"], id="news say who acknowledged"),
        pytest.param(["ack", "ack"], ["ack 2"], id="the newer acknowledgement"),
        pytest.param(["ack", "resolve"], ["resolve 2"], id="a resolution replaces an acknowledgement"),
        pytest.param(["resolve"], ["resolve 1"], id="a resolution alone"),
        pytest.param(["resolve", "ack"], ["resolve 1", "ack 2"], id="nothing replaces a resolution but an alert"),
    ],
)  # fmt: skip
def test_what_waits_after_a_failure(whats: list[What], then: list[str]) -> None:
    """The first one failed while the others waited: after the pause, what is left is sent in its order."""
    it, incident = posted(*whats)
    it.refuses("a.p1")
    assert waiting(incident) == then
    head = next(iter(incident.pages.waiting))
    assert it.timers == {f"redeliver:{head}": 5}
    why = "no route; again in 5 s" + ("" if head == "a.p1" else f" as {head}, which says more")
    assert it.said("page.undelivered") == [("a", why)]
    it.passes(5)
    while pages := list(incident.pages.waiting):
        it.answers(pages[0])
    assert sent(it)[1:] == then


@pytest.mark.parametrize(
    ("first", "later", "then"),
    [
        pytest.param("open", "update", ["open 2"], id="news"),
        pytest.param("open", "resolve", ["resolve 2"], id="its resolution"),
        pytest.param("open", "ack", ["open 1", "ack 2"], id="an acknowledgement"),
        pytest.param("ack", "update", ["update 2"], id="news after an acknowledgement"),
    ],
)
def test_what_comes_while_a_page_pauses(first: What, later: What, then: list[str]) -> None:
    """It takes over the pause, no more and no less of it, and how often it failed."""
    it, incident = posted(first)
    it.refuses("a.p1")
    it.passes(2)
    post(it, incident, later, "2")
    assert waiting(incident) == then
    head = next(iter(incident.pages.waiting))
    assert it.timers == {f"redeliver:{head}": 5}
    assert len(it.sent) == 1
    it.passes(3)
    assert sent(it)[1:] == then[:1]
    it.refuses(head)
    assert it.timers == {f"redeliver:{head}": 15}, "the second failure: ten seconds"


def test_other_queues_keep_their_pages() -> None:
    """A resolution replaces what waits for its own channel group."""
    it, incident = posted("open")
    post(it, incident, "open", "2", to="lead")
    post(it, incident, "resolve", "3")
    it.refuses("a.p1")
    assert waiting(incident) == ["open 2", "resolve 3"]


# What nobody was told of.


def test_what_is_over_before_any_channel_took_its_page_is_told_once() -> None:
    """The story of a night without a chat server: its end is one page, to a channel that has no alert of it, which says both."""
    it = pager()
    (incident,) = it.opens("a")
    it.refuses("a.p1")
    it.passes(60)
    it.ends("a", why="its symptoms have been gone for 60 s")
    while it.now < 3600:
        it.refuses(it.sent[-1][1].id)
        it.passes(300)
    it.answers(it.sent[-1][1].id)
    it.passes(3600)
    last = it.sent[-1][1]
    assert (last.what, last.alerted, last.text) == ("resolve", (), "its symptoms have been gone for 60 s")
    assert waiting(incident) == []
    assert [page.what for at, page in it.sent if at > 60] == ["resolve"] * len(
        [at for at, _ in it.sent if at > 60]
    )


def test_what_a_channel_took_is_resolved_there() -> None:
    """Also where its repeats failed: somebody has the alert."""
    it, _ = posted("open", "repeat", "resolve")
    it.answers("a.p1")
    it.refuses("a.p2")
    it.passes(5)
    assert sent(it)[-1] == "resolve 3"
    assert it.sent[-1][1].alerted == ("chat",)


def test_what_is_taken_over_after_its_page_is_told_so() -> None:
    """To the channel that has the alert."""
    it, incident = posted("open")
    it.answers("a.p1")
    incident.explained_by = "b"
    post(it, incident, "resolve", "b explains it")
    it.refuses("a.p2")
    it.passes(5)
    assert sent(it) == ["open 1", "resolve b explains it", "resolve b explains it"]


# What a page says.


def test_a_page_is_of_the_moment_when_it_is_sent() -> None:
    """Of all that the same input led to; what comes later does not change it."""
    it = pager()
    incident = it.knows("a")

    def opens_and_runs(ctx: Any) -> None:
        queue.post(ctx, incident, "open", "oncall", "it is lost")
        incident.runs.append("a.r1")

    it.handles(opens_and_runs)
    incident.runs.append("a.r2")
    assert it.sent[0][1].subject.runs == ("a.r1",)


@pytest.mark.parametrize(("who", "seen"), [("", "nobody has acknowledged"), ("ann", "acknowledged by ann")])
def test_a_refresh_of_an_alert(who: str, seen: str) -> None:
    """For a channel that forgets alerts: the newest page's id, and no delivery of its own."""
    it, incident = posted("open", "update")
    it.answers("a.p1")
    incident.pages.acked_by = who
    page = queue.still_open(it.state, incident, "oncall")
    assert (page.id, page.what, page.to, page.text) == ("a.p2", "repeat", "oncall", f"still open, {seen}")
    assert page.alerted == ("chat",)
    assert page.subject.id == "a"
    assert incident.pages.sent == 2

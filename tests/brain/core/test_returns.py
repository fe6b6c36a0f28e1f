"""What comes back before all of its former time is over, or after longer than usual: each alert begins, lasts and ends."""

from dataclasses import replace
from typing import Any

import pytest

from brain.core.effects import SendPage
from brain.core.inputs import PackLoaded
from brain.core.pack.spec import (
    Digest,
    EscalationStep,
    Mode,
    ModeSetting,
    Pack,
    Paging,
    Place,
    Priority,
    Rung,
    Tickets,
)
from tests.brain.core.test_reopening import HOUR, LINK, down, news, only, restarted, silent, site
from tests.brain.world import Story, pack

PLACES = {f"n{number:03}": Place(leaf=f"l{number // 8}") for number in range(64)}
NODES = list(PLACES)
DIGESTS = {Priority.P2: Digest(to="mail", hours=(), every_s=HOUR)}


def told(story: Story, to: str = "") -> list[str]:
    """What the pages are, in order, of one channel group or all."""
    return [page.what for page in story.time.pages if not to or page.to == to]


def cell() -> Story:
    """64 nodes, eight under each leaf switch."""
    story = Story(pack(places=PLACES), heals=False)
    for node in NODES:
        story.event(1, "agent.started", "node", node)
    return story


def links(story: Story, nodes: list[str], at: float, *, up: bool = False) -> None:
    """They lose their links at once, or have them again."""
    for number, node in enumerate(nodes):
        story.event(at + number * 0.02, "link.state", LINK, node, up=up)


def ends(story: Story) -> dict[tuple[str, str], str]:
    """(alert, channel group) -> the last page of it that was delivered."""
    taken = {note.data["page"] for note in story.time.notes if note.kind == "page.delivered"}
    return {
        (page.id.rpartition(".p")[0], page.to): page.what for page in story.time.pages if page.id in taken
    }


def pages_at(story: Story) -> list[tuple[float, SendPage]]:
    """The pages, each with the time at which it was sent first."""
    sent = {note.data["page"]: note.at for note in story.time.notes if note.kind == "page.sent"}
    return [(sent[page.id], page) for page in story.time.pages]


def test_a_digest_that_collects_yet_lists_it_as_open_again() -> None:
    """What was over before anybody read of it, and is back: the digest is not resolved while it is there."""
    story = site(digests=DIGESTS)
    down(story, 100, 20)
    story.run(999)
    story.event(1000, "link.state", LINK, up=False)
    story.run(4000)
    assert only(story).times == 2
    assert told(story, "mail") == ["open"]
    assert [(line.over, line.acked) for line in story.time.pages[-1].subject.listed] == [(False, False)]
    story.event(4100, "link.state", LINK, up=True)
    story.run(5 * HOUR)
    assert told(story, "mail") == ["open", "resolve"]
    assert not story.engine.state.alert_groups


def test_what_stayed_for_longer_than_a_day_is_the_same_when_it_comes_back() -> None:
    """How long people needed to mend it says nothing of what it is."""
    story = site()
    for at in range(100, int(30 * HOUR), 3000):  # each fact lasts for an hour
        story.event(at, "link.state", LINK, up=False)
        story.run(at)
    story.event(30 * HOUR, "link.state", LINK, up=True)
    story.run(31 * HOUR)
    down(story, 32 * HOUR, 400)
    story.run(34 * HOUR)
    assert only(story).times == 2
    assert any("it is back, the 2nd time in 32 hours" in text for text in news(story))
    story.run(70 * HOUR)
    state = story.engine.state
    assert (state.lately_closed, state.recurred) == ({}, {})


def test_a_place_that_is_back_and_has_the_alert_of_a_node_leaves_none_behind() -> None:
    """The leaf switch goes on with the alert that people have now; its former one is nobody's."""
    story = cell()
    links(story, NODES[:8], 100)
    links(story, NODES[:8], 1000, up=True)
    links(story, NODES[:1], 4000)
    links(story, NODES[1:8], 4100)
    links(story, NODES[:8], 6000, up=True)
    links(story, NODES[:1], 16_000)
    links(story, NODES[1:8], 16_100)
    links(story, NODES[:8], 20_000, up=True)
    story.run(30_000)
    leaf = next(one for one in story.incidents() if one.scope == "leaf/l0")
    assert leaf.times == 3
    assert set(ends(story).values()) == {"resolve"}
    assert story.engine.state.alerts == {}


def test_an_end_that_is_not_delivered_yet_is_not_lost_by_the_alert_of_another_one() -> None:
    """The channel refuses the end of the leaf switch's former time, and then takes everything."""
    story = cell()
    links(story, NODES[:8], 100)
    story.run(1000)
    story.undelivered = 12
    links(story, NODES[:8], 1000, up=True)
    links(story, NODES[:1], 1200)
    links(story, NODES[1:8], 1260)
    story.run(3000)
    links(story, NODES[:8], 3000, up=True)
    story.run(20_000)
    assert set(ends(story).values()) == {"resolve"}
    assert not story.engine.state.incidents


def of_operators(text: str = "a link is down. $evidence") -> Pack:
    """A link that is down: the scheduler's operators are told, then it is bounced, and then those on call are told."""
    look = Rung(name="collect", do="evidence.collect", params={"component": "$component"})
    tell = Rung(name="operators", do="page", params={"to": "scheduler", "text": text})
    books = [
        replace(one, rungs=(look, tell, *one.rungs)) if one.name == "bounce" else one
        for one in pack().runbooks
    ]
    rules = [replace(one, page=Paging.FAILURE) if one.name == "link-down" else one for one in pack().rules]
    return replace(pack(), runbooks=tuple(books), rules=tuple(rules))


def test_who_has_not_heard_that_it_is_back_does_not_hear_its_end() -> None:
    """The second time the bounce helps, and only the scheduler's operators are told of it."""
    story = Story(of_operators(), heals=False)
    down(story, 100)
    story.run(HOUR)
    assert told(story, "oncall")[-1] == "resolve"
    before = len(story.time.pages)
    story.heals = True
    # The same words again would be no news, so soon after.
    given = of_operators("a link is down again. $evidence")
    story.time.feed(PackLoaded(id="pack-2", pack=replace(given, version="p2")), HOUR + 1)
    down(story, 2 * HOUR)
    story.run(8 * HOUR)
    assert only(story).times == 2
    assert [(page.to, page.what) for page in story.time.pages[before:]] == [
        ("scheduler", "update"),
        ("scheduler", "resolve"),
    ]


def test_what_is_more_urgent_than_before_waits_for_nothing() -> None:
    """Whoever is called for what is urgent was not called for what was not."""
    chains = {Priority.P0: (EscalationStep(to="pager"),), Priority.P2: (EscalationStep(to="chat"),)}
    story = site(escalation=chains)
    down(story, 100)
    down(story, 3 * HOUR, 400)
    story.run(6 * HOUR)
    rules = tuple(
        replace(one, severity=Priority.P0) if one.name == "link-down" else one for one in pack().rules
    )
    story.time.feed(
        PackLoaded(id="p2", pack=replace(pack(version="p2", escalation=chains), rules=rules)), 6 * HOUR
    )
    story.event(7 * HOUR, "link.state", LINK, up=False)
    story.run(7 * HOUR + 30)
    assert only(story).times == 3
    assert [(page.to, page.what) for page in story.time.pages if page.subject.severity is Priority.P0] == [
        ("pager", "open"),
        ("pager", "update"),
    ]


def failing() -> Story:
    """A service whose restart does not help, of which people hear when it was tried."""
    return Story(
        replace(
            pack(),
            rules=tuple(
                replace(one, severity=Priority.P1) if one.name == "service-failed" else one
                for one in pack().rules
            ),
        ),
        heals=False,
    )


def fails(story: Story, at: float, lasts: float) -> None:
    """The service is down for a while."""
    story.run(at - 0.01)
    story.event(at, "service.state", "service/x.service", active="failed")
    story.event(at + lasts, "service.state", "service/x.service", active="active")
    story.run(at + lasts)


def test_the_same_reason_is_told_again_when_it_lasts() -> None:
    """That gpuward gave up was told before in the same words. A blink says nothing; what lasts says it within minutes."""
    story = failing()
    for number in range(4):
        fails(story, 100 + number * 3 * HOUR, 60)
    at = 100 + 12 * HOUR
    before = len(story.time.pages)
    fails(story, at, 60)
    story.run(at + HOUR)
    assert len(story.time.pages) == before
    fails(story, at + 3 * HOUR, HOUR)
    texts = [page.text for page in story.time.pages[before:] if page.what in ("open", "update")]
    assert len(texts) == 1
    assert "it lasts this time: gpuward gave up" in texts[0]
    assert "repeat" in told(story)[before:]


def test_it_is_told_as_often_as_it_lasts() -> None:
    """Also when it has come more often than is counted, in the same rhythm: each time in the same words."""
    story = site()
    for number in range(31):
        silent(story, 100 + number * 300, 20)
    for number in range(6):
        silent(story, 6 * HOUR + number * 3 * HOUR, 600)
    story.run(30 * HOUR)
    assert sum("it lasts this time" in text for text in news(story)) == 6


def test_what_lasts_after_a_pause_is_told_within_minutes() -> None:
    """Its incident is open all day, as it comes and goes, and nobody has acknowledged it."""
    story = site()
    for number in range(12):
        silent(story, 100 + number * 2100, 20)
    at = 100 + 12 * 2100
    before = len(story.time.pages)
    silent(story, at, 600)
    assert [(page.what, round(page_at - at)) for page_at, page in pages_at(story)[before:]] == [
        ("repeat", 300)
    ]


def test_who_waits_hears_of_what_comes_and_goes_meanwhile() -> None:
    """Down for two minutes of every six, and never at the moment when it is asked whether it lasts."""
    story = site()
    silent(story, 100, 20)
    for number in range(8):
        silent(story, 500 + number * 360, 120)
    assert only(story).times == 2
    assert any("it is back" in text for text in news(story))


def test_many_that_come_back_at_once_are_told_in_one_page() -> None:
    """As the first time; and the third time nobody hears of them, as they do not last."""
    story = Story(pack(mode=Mode.OBSERVE, group_at_least=3))
    parts = [f"link/eth{number}" for number in range(6)]
    for at, lasts in ((100.0, 400), (4 * HOUR, 400), (8 * HOUR, 100)):
        before = len(story.time.pages)
        for when, up in ((at, False), (at + lasts, True)):
            for part in parts:
                story.event(when, "link.state", part, up=up)
        story.run(at + 3 * HOUR)
        calls = [page for page in story.time.pages[before:] if page.what in ("open", "update")]
        assert len(calls) == (3 if lasts > 300 else 0)
    assert {one.times for one in story.incidents()} == {3}


def test_each_time_has_its_ticket_and_knows_the_former_one() -> None:
    """The ticket of the former time was ended with it: its key stands on the log for the next one, over a restart, too."""
    story = Story(pack(mode=Mode.OBSERVE, tickets=Tickets(to="tickets")), heals=False)
    for number in range(2):
        down(story, 100 + number * 2 * HOUR, 700)
        restarted(story)
    story.run(20 * HOUR)
    sent = [page for page in story.time.pages if page.to == "tickets"]
    assert [(page.what, page.subject.time) for page in sent] == [
        (what, time) for time in (1, 2) for what in ("open", "resolve")
    ]
    assert [(dict(page.subject.tickets), dict(page.subject.tickets_before)) for page in sent] == [
        ({}, {}),
        ({"desk": "T-1"}, {}),
        ({}, {"desk": "T-1"}),
        ({"desk": "T-2"}, {"desk": "T-1"}),
    ]


def test_a_ticket_whose_end_no_channel_took_is_that_of_the_next_time() -> None:
    """It is open yet: who reads it reads that the fault is back."""
    story = Story(pack(mode=Mode.OBSERVE, tickets=Tickets(to="tickets")), heals=False)
    down(story, 100, 700)
    story.undelivered = 24
    down(story, 2000, 700)
    story.run(20 * HOUR)
    assert only(story).times == 2
    sent = [page for page in story.time.pages if page.to == "tickets"]
    assert dict(sent[-1].subject.tickets)["desk"] == "T-1"
    assert sent[-1].what == "resolve"


@pytest.mark.parametrize("settings", [{"tickets": Tickets(to="tickets")}, {"digests": DIGESTS}], ids=str)
def test_each_time_ends_everywhere(settings: dict[str, Any]) -> None:
    """With tickets and digests: as often as it begins."""
    story = Story(pack(mode=Mode.OBSERVE, **settings), heals=False)
    assert story.engine.state.pack is not None
    assert story.engine.state.pack.settings.modes == (ModeSetting(mode=Mode.OBSERVE),)
    for number in range(4):
        down(story, 100 + number * 2 * HOUR, 700)
    story.run(20 * HOUR)
    for to in {page.to for page in story.time.pages}:
        opens = [what for what in told(story, to) if what in ("open", "update", "resolve")]
        assert opens[-1] == "resolve"
    assert not story.engine.state.alert_groups

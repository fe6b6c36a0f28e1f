"""Digests: what wakes nobody waits for the site's hours and goes in one message. The story begins on a Thursday, 13:53:20 UTC."""

from datetime import datetime
from typing import Any

import pytest

from brain.core import ids
from brain.core.pack.spec import Digest, EscalationStep, Hours, Priority, Settings
from brain.core.paging import hours
from brain.core.state import IncidentState
from brain.zones import utc_offsets
from tests.brain.core.pager import BEGAN, Pager

CHAIN = {Priority.P1: (EscalationStep(to="oncall"), EscalationStep(to="lead", after_s=300))}
FRIDAY = 86_400 + 8 * 3600 - BEGAN  # 08:00
EVENING = 18 * 3600 - BEGAN  # of Thursday


def pager(*days: Any, every_s: float = 3600, **settings: Any) -> Pager:
    """P2 goes to `tickets` on these days, from 8 to 18."""
    digest = Digest(to="tickets", hours=(Hours(days=days or ("thu", "fri")),), every_s=every_s)
    given: dict[str, Any] = {"escalation": CHAIN, "digests": {Priority.P2: digest}}
    return Pager(**(given | settings))


def test_a_digest_outside_its_hours_waits_for_them() -> None:
    """Three incidents of Thursday go as one message on Friday at eight, and nobody on call hears of them."""
    it = pager("fri")
    it.opens("a", "b", severity="P2")
    it.passes(3600)
    it.opens("c", severity="P2")
    assert it.told() == []
    it.passes(FRIDAY - it.now)
    ((at, page),) = it.sent
    assert (at, page.what, page.to) == (FRIDAY, "open", "tickets")
    assert [line.incident for line in page.subject.listed] == ["a", "b", "c"]
    assert page.text == "3 incidents in the last 19 h"
    assert not any(one.pages.waiting for one in it.state.incidents.values())


def test_within_its_hours_a_digest_collects_for_a_while() -> None:
    """An hour from the first one on; the next incident begins another digest."""
    it = pager()
    it.opens("a", severity="P2")
    it.passes(1800)
    it.opens("b", severity="P2")
    it.passes(1800)
    it.opens("c", severity="P2")
    it.passes(3600)
    assert [(at, [line.incident for line in page.subject.listed]) for at, page in it.sent] == [
        (3600, ["a", "b"]),
        (7200, ["c"]),
    ]


def test_a_digest_that_would_leave_after_hours_leaves_in_the_morning() -> None:
    """It began at 17:53."""
    it = pager()
    it.passes(EVENING - 400)
    it.opens("a", severity="P2")
    it.passes(FRIDAY - it.now)
    assert [at for at, _ in it.sent] == [FRIDAY]


def test_a_digest_that_begins_just_before_its_hours_leaves_with_them() -> None:
    """It waits for no full hour: people read it when they come."""
    it = pager("fri")
    it.passes(FRIDAY - 1800)
    it.opens("a", severity="P2")
    it.passes(3600)
    assert [at for at, _ in it.sent] == [FRIDAY]


def test_what_is_over_before_a_digest_leaves_is_listed_as_over() -> None:
    """Nothing is lost: the morning reads what the night was like."""
    it = pager("fri")
    it.opens("a", "b", severity="P2")
    it.ends("a", why="it is back")
    it.passes(FRIDAY)
    ((_, page),) = it.sent
    assert [(line.incident, line.over, line.text) for line in page.subject.listed] == [
        ("a", True, "it is back"),
        ("b", False, "it is lost"),
    ]


def test_a_digest_whose_incidents_are_all_over_is_told_and_resolved() -> None:
    """And then forgotten."""
    it = pager("fri")
    it.opens("a", severity="P2")
    it.ends("a")
    assert it.sent == []
    it.passes(FRIDAY)
    assert [page.what for _, page in it.sent] == ["open", "resolve"]
    assert it.state.alert_groups == {}
    assert it.timers == {}


def test_a_digest_is_not_repeated() -> None:
    """Also where the site repeats such pages to those on call."""
    it = pager(page_repeats=(Priority.P2,))
    it.opens("a", severity="P2")
    it.passes(3 * 86_400)
    assert [page.what for _, page in it.sent] == ["open"]


def test_news_and_the_resolution_wait_for_the_hours_too() -> None:
    """The digest left at 14:53; the evening's news and the night's end are told in the morning."""
    it = pager()
    it.opens("a", "b", severity="P2")
    it.passes(EVENING + 60)
    it.pages("a", "update", "it is worse", to="oncall")
    it.passes(60)
    it.ends("a", "b")
    it.passes(FRIDAY - it.now)
    assert [(at, page.what) for at, page in it.sent] == [(3600, "open"), (FRIDAY, "resolve")]
    assert it.state.alert_groups == {}
    assert not any(one.pages.waiting for one in it.state.incidents.values())


def test_an_end_in_the_night_is_told_in_the_morning() -> None:
    """When the last of them is over; the end of one of them is no news by itself."""
    it = pager()
    it.opens("a", "b", severity="P2")
    it.passes(EVENING + 60)
    it.ends("a")
    assert f"group:{it.group.id}" not in it.timers
    it.ends("b")
    it.passes(FRIDAY - it.now)
    assert [(at, page.what, page.text) for at, page in it.sent][1:] == [
        (FRIDAY, "resolve", "all 2 are over; the last: it is back")
    ]


@pytest.mark.parametrize(
    ("opens", "every_s", "text"),
    [
        ("a", 60, "1 incident in the last 1 h"),
        ("ab", 3600, "2 incidents in the last 1 h"),
        ("abc", 7200, "3 incidents in the last 2 h"),
        ("ab", 7201, "2 incidents in the last 3 h"),
    ],
)
def test_a_digest_says_how_many_incidents_of_how_many_hours(opens: str, every_s: float, text: str) -> None:
    """In whole hours, that nobody thinks it was less."""
    it = pager(every_s=every_s)
    it.opens(*opens, severity="P2")
    it.passes(every_s)
    assert it.words() == [text]


def test_each_severity_and_each_receiver_has_a_digest_of_its_own() -> None:
    """One that has left collects no more; nor does one for a receiver that the site has changed since, or a storm's."""
    fridays = (Hours(days=("fri",)),)
    tickets, mails = (Digest(to=to, hours=fridays) for to in ("tickets", "mails"))
    it = pager(digests={Priority.P2: tickets, Priority.P3: tickets}, group_at_least=1)
    it.opens("a", severity="P2")
    it.opens("b", severity="P3")
    it.knows("c", "P1")
    it.pages("c", "open", "it is lost", to="tickets")
    it.opens("d", severity="P2")
    changed = pager(digests={Priority.P2: mails})
    changed.state = it.state
    changed.opens("e", severity="P2")
    assert [(group.to, group.digest, [*group.listed]) for group in it.state.alert_groups.values()] == [
        ("tickets", "P2", ["a", "d"]),
        ("tickets", "P3", ["b"]),
        ("tickets", "", ["c"]),
        ("mails", "P2", ["e"]),
    ]


def test_a_digest_has_an_id_of_its_own() -> None:
    """It is made of what led to it, so that a replay names it the same."""
    it = pager("fri")
    it.opens("a", severity="P2")
    assert [*it.state.alert_groups] == [ids.hashed(ids.ALERT_GROUP, "i1", "tickets", "a")]


def test_a_digest_counts_the_nodes_of_all_its_incidents() -> None:
    """Also those that came later."""
    it = pager("fri")
    it.opens("a", severity="P2", affected={"n1": True})
    (b,) = it.opens("b", severity="P2", affected={"n2": True})
    assert [*it.group.affected] == ["n1", "n2"]
    b.affected = {"n3": True}
    it.pages("b", "update", "it spreads", to="tickets")
    assert [*it.group.affected] == ["n1", "n2", "n3"]


def test_what_is_raised_does_not_wait() -> None:
    """As a P1 it is paged at once, with its chain; the digest lists it with its new severity."""
    it = pager("fri")
    it.opens("a", severity="P2")
    it.passes(60)
    it.raises("a", "P1")
    it.passes(300)
    assert it.told("open") == ["60 open oncall a", "360 open lead a"]
    it.passes(FRIDAY)
    digest = next(page for _, page in it.sent if page.to == "tickets")
    assert [(line.incident, line.severity) for line in digest.subject.listed] == [("a", "P1")]


def test_without_a_pause_each_incident_is_a_ticket_of_its_own() -> None:
    """Within the hours; outside them they wait and go together."""
    it = pager(every_s=0)
    it.opens("a", "b", severity="P2")
    assert it.told() == ["0 open tickets a", "0 open tickets b"]
    it.passes(EVENING + 1)
    it.opens("c", "d", severity="P2")
    it.passes(FRIDAY - it.now)
    assert [line.incident for line in it.sent[-1][1].subject.listed] == ["c", "d"]


def test_an_acknowledged_incident_is_listed_so() -> None:
    """Somebody saw it in the console during the night."""
    it = pager("fri")
    it.opens("a", "b", severity="P2")
    it.acknowledges("a")
    it.passes(FRIDAY)
    (page,) = [page for _, page in it.sent if page.what == "open"]
    assert [line.acked for line in page.subject.listed] == [True, False]


def test_other_severities_and_other_groups_do_not_wait() -> None:
    """P1 goes by its chain, P3 has no digest here, and a runbook's own receiver is paged by name."""
    it = pager("fri")
    it.opens("a", severity="P1")
    it.opens("b", severity="P3")
    it.knows("c", "P2")
    it.pages("c", "update", "a job hangs", to="scheduler")
    assert it.told() == ["0 open oncall a", "0 open oncall b", "0 open scheduler c"]
    assert it.state.incidents["c"].state is IncidentState.OPEN


@pytest.mark.parametrize(
    ("zone", "now", "opens"),
    [
        pytest.param("", "2026-11-20T09:00Z", "2026-11-20T09:00Z", id="Friday morning"),
        pytest.param("", "2026-11-20T18:00Z", "2026-11-23T08:00Z", id="the end of the week"),
        pytest.param("", "2026-11-21T12:00Z", "2026-11-23T08:00Z", id="the weekend"),
        pytest.param("", "2026-11-23T07:59Z", "2026-11-23T08:00Z", id="a minute before"),
        pytest.param("Europe/Berlin", "2026-11-20T17:30Z", "2026-11-23T07:00Z", id="winter in Berlin"),
        pytest.param("Europe/Berlin", "2026-07-03T16:30Z", "2026-07-06T06:00Z", id="summer in Berlin"),
        pytest.param("Europe/Berlin", "2026-03-27T18:00Z", "2026-03-30T06:00Z", id="the clocks go forward"),
        pytest.param("Europe/Berlin", "2026-10-23T17:00Z", "2026-10-26T07:00Z", id="the clocks go back"),
        pytest.param("America/Los_Angeles", "2026-11-21T02:30Z", "2026-11-23T16:00Z", id="far west"),
        pytest.param(
            "America/Los_Angeles", "2026-11-23T23:00Z", "2026-11-23T23:00Z", id="an afternoon there"
        ),
        pytest.param("Asia/Shanghai", "2026-11-22T23:00Z", "2026-11-23T00:00Z", id="far east"),
    ],
)
def test_the_hours_are_those_of_the_site(zone: str, now: str, opens: str) -> None:
    """Monday to Friday, from 8 to 18, by the clocks on its walls."""
    settings = Settings(zone=zone, utc_offsets=utc_offsets(zone))
    assert hours.next_open(settings, (Hours(),), _at(now)) == _at(opens)


@pytest.mark.parametrize(
    ("zone", "now", "opens"),
    [
        pytest.param("America/Los_Angeles", "2026-11-01T12:00Z", "2026-11-01T16:00Z", id="back, in the far west"),
        pytest.param("America/Los_Angeles", "2026-03-08T12:00Z", "2026-03-08T15:00Z", id="forward, in the far west"),
        pytest.param("Europe/Berlin", "2026-10-25T00:00Z", "2026-10-25T07:00Z", id="back, in Berlin"),
        pytest.param("Europe/Berlin", "2026-03-29T00:00Z", "2026-03-29T06:00Z", id="forward, in Berlin"),
    ],
)  # fmt: skip
def test_a_sunday_on_which_the_clocks_change(zone: str, now: str, opens: str) -> None:
    """It opens at eight by the new time."""
    settings = Settings(zone=zone, utc_offsets=utc_offsets(zone))
    assert hours.next_open(settings, (Hours(days=("sun",)),), _at(now)) == _at(opens)


@pytest.mark.parametrize(("at", "offset"), [(99, 0), (100, 3600), (199, 3600), (200, 7200), (9e9, 7200)])
def test_the_sites_offset_from_utc(at: float, offset: float) -> None:
    """A new one holds from its very moment on; before the first one that is known, none."""
    assert hours.offset_s(Settings(utc_offsets=((100, 3600), (200, 7200))), at) == offset


def test_no_hours_are_all_hours() -> None:
    """And hours that never come lose no page."""
    assert hours.next_open(Settings(), (), 5.0) == 5.0
    assert hours.next_open(Settings(), (Hours(days=()),), 5.0) == 5.0


def _at(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()

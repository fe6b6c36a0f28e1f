"""Who is paged and when: first pages, repeats, the chain's deadlines, acknowledgements and resolutions. Law 10."""

from typing import Any

import pytest

from brain.core.pack.spec import EscalationStep, Priority
from brain.core.paging import escalation
from tests.brain.core.pager import BEGAN, Pager

REPEATS = (300.0, 600.0, 1200.0, 2400.0, 4800.0)
STORM: dict[str, Any] = {"group_at_least": 2, "group_within_s": 30}


def chain(*steps: tuple[str, float]) -> dict[str, Any]:
    """The site's chain for P1."""
    return {"escalation": {Priority.P1: tuple(EscalationStep(to=to, after_s=after) for to, after in steps)}}


def test_the_first_page_starts_the_repeats_and_the_chain() -> None:
    """On call at once; the first repeat and the lead's deadline are five minutes later."""
    it = Pager()
    (incident,) = it.opens("a")
    assert it.told() == ["0 open oncall a"]
    assert it.words() == ["it is lost"]
    assert (incident.pages.first_at, incident.pages.notified) == (BEGAN, ["oncall"])
    assert it.timers == {"page:a": 300, "escalate:a": 300}


def test_the_first_page_is_the_first() -> None:
    """Later ones move neither the repeats nor the deadlines."""
    it = Pager()
    (incident,) = it.opens("a")
    it.passes(200)
    it.pages("a", "update", "the link is up")
    assert it.told() == ["0 open oncall a", "200 update oncall a"]
    assert incident.pages.first_at == BEGAN
    assert it.timers == {"page:a": 300, "escalate:a": 300}


@pytest.mark.parametrize(
    ("steps", "at_once", "timers"),
    [
        pytest.param([("oncall", 0), ("lead", 300)], ["oncall"], {"escalate:a": 300}, id="one group"),
        pytest.param([("oncall", 0), ("noc", 0), ("lead", 300)], ["oncall", "noc"], {"escalate:a": 300}, id="two at once"),
        pytest.param([("oncall", 60), ("lead", 300)], ["oncall"], {"escalate:a": 300}, id="the first step waits for nothing"),
        pytest.param([("oncall", 0), ("lead", 1)], ["oncall"], {"escalate:a": 1}, id="the lead after a second"),
        pytest.param([("lead", 0), ("oncall", 60), ("boss", 30)], ["lead"], {"escalate:a": 30}, id="the nearest deadline"),
        pytest.param([("oncall", 0)], ["oncall"], {}, id="nobody to escalate to"),
        pytest.param([("oncall", 0), ("oncall", 0)], ["oncall"], {}, id="a group that is named twice is paged once"),
    ],
)  # fmt: skip
def test_who_is_paged_at_once(
    steps: list[tuple[str, float]], at_once: list[str], timers: dict[str, float]
) -> None:
    """The first step, and those whose deadline is no time at all."""
    it = Pager(**chain(*steps))
    it.opens("a")
    assert [page.to for _, page in it.sent] == at_once
    assert it.timers == {"page:a": 300, **timers}


@pytest.mark.parametrize("severity", ["P0", "P2"])
def test_a_severity_without_a_chain_is_for_those_on_call(severity: str) -> None:
    """And for nobody else, however long it lasts."""
    it = Pager()
    it.opens("a", severity=severity)
    it.passes(7000)
    assert {page.to for _, page in it.sent} == {"oncall"}


def test_the_chain_goes_on_until_somebody_acknowledges() -> None:
    """Each group at its deadline, with words that say who was told and when; a repeat goes to all who were."""
    it = Pager()
    (incident,) = it.opens("a")
    it.passes(1300)
    assert it.told("open") == ["0 open oncall a", "300 open lead a", "900 open manager a"]
    assert it.told("repeat") == [
        "300 repeat oncall a",
        "600 repeat oncall a",
        "600 repeat lead a",
        "1200 repeat oncall a",
        "1200 repeat lead a",
        "1200 repeat manager a",
    ]
    texts = [page.text for _, page in it.sent if page.to == "manager"]
    assert texts == [
        "oncall, lead told 15 minutes ago, nobody has acknowledged",
        "nobody has acknowledged for 20 minutes",
    ]
    assert incident.pages.notified == ["oncall", "lead", "manager"]
    assert it.timers == {"page:a": 2400}


def test_groups_of_one_deadline_are_paged_together() -> None:
    """In the order of the chain, each told of those before it."""
    it = Pager(**chain(("oncall", 0), ("lead", 7200), ("noc", 7200), ("boss", 7201)))
    it.opens("a")
    it.passes(7200)
    assert it.told("open") == ["0 open oncall a", "7200 open lead a", "7200 open noc a"]
    assert [page.text for _, page in it.sent if page.what == "open"][1:] == [
        "oncall told 120 minutes ago, nobody has acknowledged",
        "oncall, lead told 120 minutes ago, nobody has acknowledged",
    ]
    assert it.timers["escalate:a"] == 7201


@pytest.mark.parametrize(
    ("at", "paged"),
    [
        pytest.param(300, True, id="on time"),
        pytest.param(299.9995, True, id="half a millisecond early: as good as on time"),
        pytest.param(299.998, False, id="two milliseconds early"),
    ],
)
def test_a_deadline_that_the_clock_misses_by_a_hair_has_passed(at: float, *, paged: bool) -> None:
    """A millisecond is the grain of the log's clock. What is earlier waits for its time."""
    it = Pager()
    it.opens("a")
    it.state.now = BEGAN + at
    it.fires("escalate", "a")
    assert [page.to for _, page in it.sent] == ["oncall", *(["lead"] if paged else [])]
    assert it.timers["escalate:a"] == (900 if paged else 300)


def test_a_deadline_in_just_a_millisecond() -> None:
    """It has passed too."""
    it = Pager(**chain(("oncall", 0), ("lead", 300.001)))
    it.opens("a")
    it.state.now = BEGAN + 300
    it.fires("escalate", "a")
    assert it.told("open") == ["0 open oncall a", "300 open lead a"]


def test_a_repeat_may_be_the_first_page_to_those_on_call() -> None:
    """Only the spares were paged: the repeat opens the alert on call, and then nobody is left to escalate to."""
    it = Pager(**chain(("oncall", 600)))
    it.knows("a")
    it.pages("a", "update", "no spare is left", to="spares")
    assert it.timers == {"page:a": 300, "escalate:a": 600}
    it.passes(300)
    assert it.told() == ["0 open spares a", "300 open oncall a"]
    assert it.timers == {"page:a": 600}


def test_repeats_come_ever_more_rarely_and_never_end() -> None:
    """After 5, 10, 20, 40 and 80 minutes since the first page, then every 80 minutes."""
    it = Pager()
    it.opens("a", severity="P0")
    it.passes(4800 * 4)
    assert it.told("repeat") == [f"{at:g} repeat oncall a" for at in (*REPEATS, 9600, 14400, 19200)]
    assert it.words()[-1] == "nobody has acknowledged for 320 minutes"


@pytest.mark.parametrize(
    ("severity", "repeats", "times"),
    [
        ("P0", {}, 2),
        ("P1", {}, 2),
        ("P2", {}, 0),
        ("P3", {}, 0),
        ("P3", {"page_repeats": (Priority.P3,)}, 2),
        ("P1", {"page_repeats": ()}, 0),
    ],
)
def test_which_pages_are_repeated_is_the_sites_choice(
    severity: str, repeats: dict[str, Any], times: int
) -> None:
    """By default nobody is called twice for what can wait until the morning."""
    it = Pager(escalation={}, **repeats)
    it.opens("a", severity=severity)
    it.passes(700)
    assert it.told("open") == ["0 open oncall a"]
    assert len(it.told("repeat")) == times


def test_what_is_raised_is_repeated_from_then_on() -> None:
    """As a P2 it was told once; as a P1 it is repeated at the times since its first page."""
    it = Pager()
    it.opens("a", severity="P2")
    it.passes(400)
    it.raises("a", "P1")
    it.passes(300)
    assert it.told("repeat") == ["600 repeat oncall a", "600 repeat lead a"]


@pytest.mark.parametrize(
    ("at", "then"),
    [
        pytest.param(298.5, 300, id="too early by more than a second: this repeat is still to come"),
        pytest.param(299, 600, id="too early by a second: it was this one"),
        pytest.param(450, 600, id="late"),
        pytest.param(1900, 2400, id="so late that two were missed"),
    ],
)
def test_a_repeat_that_the_timer_brings_early_or_late(at: float, then: float) -> None:
    """The next one is due at its own time since the first page."""
    it = Pager()
    it.opens("a", severity="P0")
    it.state.now = BEGAN + at
    it.fires("page", "a")
    assert it.told("repeat") == [f"{at:g} repeat oncall a"]
    assert it.timers["page:a"] == then


def test_a_group_whose_page_is_not_delivered_gets_no_repeat() -> None:
    """The page is tried again as it is; others get their repeats, and the repeats go on."""
    it = Pager(**chain(("oncall", 0), ("noc", 0)), delivers=False)
    it.opens("a")
    it.answers("a.p2")
    it.fires("page", "a")
    assert it.told("repeat") == ["0 repeat noc a"]
    assert it.timers["page:a"] == 300


def test_a_page_for_a_group_of_its_own() -> None:
    """A runbook's page step may name any channel group: that one only, and nobody twice as `open`."""
    it = Pager()
    it.opens("a")
    it.pages("a", "update", "no spare is left", to="spares")
    it.pages("a", "update", "none at all", to="spares")
    assert it.told() == ["0 open oncall a", "0 open spares a", "0 update spares a"]


def test_those_on_call_are_those_of_the_chain_who_were_paged() -> None:
    """A group outside the chain is none of them; what the lead has not heard of does not go to the lead."""
    it = Pager()
    it.opens("a")
    it.pages("a", "update", "to the spares", to="spares")
    it.pages("a", "update", "the link is up")
    assert it.told("update") == ["0 update oncall a"]
    it.passes(400)
    it.pages("a", "update", "and down")
    assert it.told("update") == ["0 update oncall a", "400 update oncall a", "400 update lead a"]


@pytest.mark.parametrize(
    ("to", "opened"),
    [
        pytest.param("oncall", ["0 open oncall a"], id="those on call"),
        pytest.param("lead", ["0 open lead a"], id="another group of the chain"),
        pytest.param("spares", ["0 open spares a", "0 open oncall a"], id="a group outside the chain"),
    ],
)
def test_an_incident_is_opened_once(to: str, opened: list[str]) -> None:
    """Not again when a group of its chain has been paged for it."""
    it = Pager()
    it.knows("a")
    it.pages("a", "update", "first", to=to)
    it.handles(lambda ctx: escalation.open_page(ctx, it.state.incidents["a"], "it is lost"))
    assert it.told() == opened
    assert it.words() == ["first", "it is lost"][: len(opened)]


def test_a_raised_incident_goes_by_the_new_chain() -> None:
    """All who were paged learn of it, and groups whose deadline has passed are paged at once."""
    it = Pager()
    (incident,) = it.opens("a", severity="P2")
    it.pages("a", "update", "to the spares", to="spares")
    it.passes(299)
    it.raises("a", "P1")
    assert it.told("update") == ["299 update oncall a", "299 update spares a"]
    assert it.words()[-1] == "raised from P2 to P1"
    assert incident.pages.severities == ["P2"]
    assert it.timers == {"page:a": 300, "escalate:a": 300}
    it.passes(1)
    it.raises("a", "P0")
    assert incident.pages.severities == ["P2", "P1"]
    assert "escalate:a" not in it.timers, "P0 has no chain here"


def test_a_raised_incident_whose_deadlines_have_passed() -> None:
    """The lead is paged with the news, not five minutes later."""
    it = Pager()
    it.opens("a", severity="P2")
    it.passes(400)
    it.raises("a", "P1")
    assert it.told("open") == ["0 open oncall a", "400 open lead a"]
    assert it.timers["escalate:a"] == 900


def test_an_incident_that_is_raised_before_its_first_page() -> None:
    """Nobody was told, so nobody is told that it was something else."""
    it = Pager()
    incident = it.knows("a", "P2")
    it.raises("a", "P1")
    assert it.told() == []
    assert incident.pages.severities == []
    assert it.timers == {}


def test_an_incident_that_is_raised_after_its_resolution() -> None:
    """No alert is opened again."""
    it = Pager()
    (incident,) = it.opens("a", severity="P2")
    it.ends("a")
    it.raises("a", "P1")
    assert it.told() == ["0 open oncall a", "0 resolve oncall a"]
    assert incident.pages.severities == []


def test_an_acknowledgement() -> None:
    """Repeats and escalation end, and every group that was paged learns who it is. A second one changes nothing."""
    it = Pager()
    (incident,) = it.opens("a")
    it.passes(300)
    it.acknowledges("a")
    it.acknowledges("a", who="bob")
    assert it.told("ack") == ["300 ack oncall a", "300 ack lead a"]
    assert it.words()[-1] == "acknowledged by ann"
    assert incident.pages.acked_by == "ann"
    assert it.said("page.acked") == [("a", "acknowledged by ann")]
    assert it.timers == {}
    it.passes(9000)
    assert it.told("repeat") == ["300 repeat oncall a"]


@pytest.mark.parametrize("over", ["acknowledged", "resolved", "never paged"])
@pytest.mark.parametrize("kind", ["page", "escalate"])
def test_a_timer_that_fires_too_late(kind: str, over: str) -> None:
    """It pages nobody, and sets no other."""
    it = Pager()
    it.knows("a") if over == "never paged" else it.opens("a")
    if over == "acknowledged":
        it.acknowledges("a")
    if over == "resolved":
        it.ends("a")
    told = it.told()
    it.state.now += 1000
    it.fires(kind, "a")
    assert it.told() == told
    assert it.timers == {}


def test_a_resolution_goes_to_every_group_that_was_paged() -> None:
    """Once, with its reason; then nothing is repeated or escalated."""
    it = Pager()
    (incident,) = it.opens("a")
    it.pages("a", "update", "to the spares", to="spares")
    it.passes(300)
    it.ends("a")
    it.ends("a")
    assert it.told("resolve") == ["300 resolve oncall a", "300 resolve spares a", "300 resolve lead a"]
    assert it.words()[-1] == "it is back"
    assert incident.pages.resolved
    assert it.timers == {}


def test_an_incident_that_ends_before_it_was_paged() -> None:
    """Nobody hears of it."""
    it = Pager()
    incident = it.knows("a")
    it.ends("a")
    assert it.told() == []
    assert not incident.pages.resolved


def test_an_incident_that_is_forgotten() -> None:
    """So are its timers, and only its."""
    it = Pager()
    (incident, _) = it.opens("a", "b")
    it.handles(lambda ctx: escalation.forget(ctx, incident))
    assert it.timers == {"page:b": 300, "escalate:b": 300}


def test_timers_of_what_is_forgotten() -> None:
    """They page nobody."""
    it = Pager()
    for kind in escalation.TIMERS:
        it.fires(kind, "gone")
    assert it.told() == []
    assert it.timers == {}


def test_a_new_leader_sends_what_is_under_way_again() -> None:
    """It cannot know what became of it."""
    it = Pager(delivers=False)
    it.opens("a")
    it.handles(escalation.resend_all)
    assert it.told() == ["0 open oncall a", "0 open oncall a"]
    assert [page.id for _, page in it.sent] == ["a.p1", "a.p1"]


def test_the_timers_of_deliveries_and_storms_are_for_the_queue_and_the_groups() -> None:
    """A page that failed is tried again, and a storm is forgotten."""
    it = Pager(delivers=False, **STORM)
    it.opens("a")
    it.refuses("a.p1")
    it.passes(5)
    assert it.told() == ["0 open oncall a", "5 open oncall a"]
    assert [*it.state.groups] == ["oncall"]
    it.passes(30)
    assert it.state.groups == {}

"""A fault that comes back soon opens its incident again: one id, one alert, one trail, and few words."""

from typing import Any

import pytest

from brain.adapters.snapshot import dump, parse
from brain.core.engine import Engine
from brain.core.incidents import OVER, TRANSITIONS, IncidentTrigger
from brain.core.inputs import NodeState, Pulse
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Mode, ModeSetting, Settings
from brain.core.state import Incident, IncidentState
from tests.brain.world import GPU, Story, pack
from tests.shipped import shipped_pack

HOUR = 3600.0
LINK = "link/eth1"


def site(**settings: Any) -> Story:
    """One node; its link comes back by itself, and no remedy helps."""
    return Story(pack(**settings), heals=False)


def down(story: Story, at: float, lasts: float = 100.0, link: str = LINK) -> None:
    """A link is down for a while."""
    for when, up in ((at, False), (at + lasts, True)):
        story.run(when - 0.01)
        story.event(when, "link.state", link, up=up)
    story.run(at + lasts)


def silent(story: Story, at: float, lasts: float = 100.0) -> None:
    """The node is silent for a while, for which there is no runbook."""
    for when, alive in ((at, False), (at + lasts, True)):
        story.time.feed(NodeState(id=f"n1-{when}", node="n1", alive=alive), when)
    story.run(at + lasts)


def news(story: Story) -> list[str]:
    """What calls people, without repeats and resolutions."""
    return [f"{page.what}: {page.text}" for page in story.time.pages if page.what in ("open", "update")]


def restarted(story: Story) -> None:
    """The engine goes on from a snapshot."""
    story.engine = Engine(parse(dump(story.engine.state)), actions=ACTIONS)
    story.time.engine = story.engine


def only(story: Story) -> Incident:
    """The only incident that there ever was."""
    (incident,) = story.time.incidents.values()
    return incident


@pytest.mark.parametrize("again", [False, True], ids=["", "over a restart"])
def test_it_is_the_same_incident(again: bool) -> None:
    """With its former times, their ends, and runs that are numbered on."""
    story = site()
    down(story, 100)
    story.run(HOUR)
    first = only(story)
    if again:
        restarted(story)
    down(story, 2 * HOUR)
    story.run(5 * HOUR)
    incident = only(story)
    assert (incident.id, incident.state, incident.times) == (first.id, IncidentState.CLOSED, 2)
    assert [(one.opened_at, one.closed_at, one.why) for one in incident.episodes] == [
        (first.opened_at, first.closed_at, first.closed_why)
    ]
    assert incident.opened_at == 2 * HOUR
    assert incident.runs == [f"{incident.id}.r{len(first.runs) + 1}"]
    kinds = [
        note.kind
        for note in story.time.notes
        if note.kind.startswith("incident.") and note.incident == incident.id
    ]
    assert (kinds.count("incident.opened"), kinds.count("incident.reopened")) == (1, 1)


def test_the_table_has_it() -> None:
    """Only what is over comes back, and it settles first."""
    back = [
        (state, after)
        for (state, trigger), after in TRANSITIONS.items()
        if trigger is IncidentTrigger.CAME_BACK
    ]
    assert back == [(state, IncidentState.SETTLING) for state in OVER]


def test_its_alert_is_the_same() -> None:
    """All pages have one key, and their numbers go on."""
    story = site()
    for number in range(3):
        down(story, 100 + number * 2 * HOUR)
    story.run(10 * HOUR)
    assert len({page.id.rpartition(".p")[0] for page in story.time.pages}) == 1
    ids = [page.id for page in story.time.pages]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("pauses", "told"),
    [
        pytest.param([4 * HOUR] * 5, 1, id="six times a day: once that it is back"),
        pytest.param(
            [HOUR, 7 * HOUR, 7 * HOUR, 7 * HOUR, 7 * HOUR], 2, id="all day and night: again after a day"
        ),
        pytest.param([200], 0, id="after minutes: they were called just now"),
    ],
)
def test_how_often_people_hear_of_it(pauses: list[float], told: int) -> None:
    """It is back, once; that it comes and goes, once a day."""
    story = site()
    at = 100.0
    silent(story, at, 20)
    for pause in pauses:
        at += pause
        silent(story, at, 20)
    story.run(at + HOUR)
    assert sum("it is back" in text for text in news(story)) == told
    assert only(story).times > len(pauses) / 2


def test_evidence_that_is_kept_each_time_is_no_news() -> None:
    """A tool that hangs every ten minutes, all day: each time its evidence is kept, under a name of its own. It was a page each
    time.
    """
    story = Story(shipped_pack(Settings(modes=(ModeSetting(mode=Mode.AUTO),))))
    for turn in range(6 * 24):
        at = 10 + turn * 600.0
        story.event(at, "gpu.tool_hung", tool="npu-smi", waited_s=20.0, times=turn + 1)
        story.event(at + 300, "gpu.tool_answers", tool="npu-smi", after_s=300.0)
    story.run(25 * HOUR)
    assert len([action for _, action in story.actions() if action == "evidence.collect"]) > 100
    told = [text for text in news(story) if "gpuward has no remedy" in text or "tool that hangs" in text]
    assert 2 <= len(told) <= 4


def test_it_is_told_when_it_lasts() -> None:
    """The third time nobody hears of it at first; after five minutes they do, with repeats until somebody acknowledges."""
    story = site()
    silent(story, 100, 20)
    silent(story, 4 * HOUR, 20)
    story.run(8 * HOUR)
    story.time.feed(NodeState(id="n1-lasts", node="n1", alive=False), 8 * HOUR)
    story.run(8 * HOUR + 290)
    before = len(news(story))
    story.run(8 * HOUR + 310)
    assert [text for text in news(story)[before:] if "it lasts this time" in text]
    story.run(9 * HOUR)
    assert [page.text for page in story.time.pages if page.what == "repeat"][-1].startswith(
        "nobody has acknowledged"
    )


def test_what_is_over_by_then_is_not_told() -> None:
    """Nor is its end: nobody heard of its beginning."""
    story = site()
    for at in (100, 4 * HOUR):
        silent(story, at, 20)
    story.run(7 * HOUR)
    before = len(story.time.pages)
    silent(story, 8 * HOUR, 20)
    story.run(11 * HOUR)
    assert only(story).times == 3
    assert len(story.time.pages) == before


@pytest.mark.parametrize("settings", [{}, {"reopens_s": 0.0}, {"reopens_s": 3600.0}], ids=str)
def test_after_a_while_it_is_another_incident(settings: dict[str, float]) -> None:
    """Eight hours, or what the site says."""
    story = site(**settings)
    down(story, 100)
    down(story, 9 * HOUR)
    story.run(10 * HOUR)
    assert [one.times for one in story.time.incidents.values()] == [1, 1]
    assert sum(text.startswith("open") for text in news(story)) == 2


def test_what_an_operator_has_closed_is_not_opened_again() -> None:
    """Who says that it is over hears of it as of a new one."""
    story = site()
    story.event(100, "link.state", LINK, up=False)
    story.run(200)
    story.say(300, "close", id=only(story).id, why="a spare")
    story.event(400, "link.state", LINK, up=True)
    down(story, 500)
    story.run(HOUR)
    assert [one.times for one in story.time.incidents.values()] == [1, 1]


def test_who_gives_up_says_how_often_it_came() -> None:
    """A remedy that is not tried a third time is news, whatever people know."""
    story = site()
    for at in (100, 4 * HOUR, 8 * HOUR):
        down(story, at, 20)
    story.run(11 * HOUR)
    assert news(story)[-1].startswith(
        "update: it is back, the 3rd time in 8 hours: gpuward gave up: bounce was tried 2 times"
    )


def test_another_part_is_another_incident() -> None:
    """Each link has its own."""
    story = site()
    down(story, 100)
    down(story, 2 * HOUR, link="link/eth2")
    story.run(3 * HOUR)
    assert [one.times for one in story.time.incidents.values()] == [1, 1]


@pytest.mark.parametrize(
    ("serial", "times"), [("S0001", [2]), ("S0002", [1, 1])], ids=["the same card", "another card"]
)
def test_another_card_has_faults_of_its_own(serial: str, times: list[int]) -> None:
    """Whoever has replaced a GPU hears of the new one as of a new one."""
    story = site()
    story.event(50, "node.inventory.gpu", GPU, serial="S0001")
    story.event(100, "gpu.off_bus", GPU)
    story.event(200, "gpu.returned", GPU)
    story.run(HOUR)
    story.event(HOUR, "node.inventory.gpu", GPU, serial=serial)
    story.event(2 * HOUR, "gpu.off_bus", GPU)
    story.run(2 * HOUR + 100)
    assert [one.times for one in story.time.incidents.values()] == times


@pytest.mark.parametrize("lost", [False, True])
def test_a_node_that_is_gone_for_good_comes_back_as_a_new_one(lost: bool) -> None:
    """Nothing is left of a forgotten node."""
    story = site()
    down(story, 100)
    story.run(HOUR)
    if lost:
        story.say(HOUR, "forget", node="n1", revoked=True)
    story.run(HOUR + 10)
    assert bool(story.engine.state.lately_closed) is not lost


def test_a_blink_within_the_hold_off_is_no_time() -> None:
    """It does not count, and its incident can still be opened again."""
    story = site()
    down(story, 100)
    down(story, 2 * HOUR, 0.5)
    down(story, 3 * HOUR)
    story.run(4 * HOUR)
    incident = only(story)
    assert (incident.times, len(incident.episodes)) == (2, 1)
    assert not any(note.data.get("quiet") for note in story.time.notes if note.kind == "incident.closed")


def test_it_is_opened_again_before_its_end_was_delivered() -> None:
    """The resolution waits for a channel; the alert goes on in its queue, and both arrive in order."""
    story = Story(pack(), heals=False)
    down(story, 100, 20)
    story.run(118)
    story.undelivered = 4
    down(story, 150, 20)
    story.run(2 * HOUR)
    incident = only(story)
    assert incident.times == 2 or incident.episodes == []
    assert not incident.pages.waiting


def test_nothing_is_left_of_it_after_a_day() -> None:
    """The law "forget", by a timer."""
    story = site()
    down(story, 100)
    story.run(HOUR)
    assert story.engine.state.lately_closed
    story.run(26 * HOUR)
    story.engine.handle(Pulse(id="pulse"), 26 * HOUR)
    state = story.engine.state
    assert (state.lately_closed, state.recurred, state.incidents) == ({}, {}, {})
    assert state.fault_free()

"""From facts to symptoms: when each way of detection begins, is renewed, and ends, to the second."""

import pytest

from brain.core.effects import SetTimer
from brain.core.faults import facts, symptoms
from brain.core.pack.spec import Match
from tests.brain.core.watch import BAD, Watch, symptom

KEY = "sick@gpu/n1/0"
ON, OFF = [f"+{KEY}"], [f"-{KEY}"]
NOTHING: list[str] = []


def test_seen() -> None:
    """It begins with the first fact, says so once, and ends when it is cleared; then nothing of it is left."""
    watch = Watch(symptom())
    assert watch.fact(100, "x.other") == NOTHING
    assert watch.fact(100, "x.good") == NOTHING
    assert watch.fact(100, evidence="Xid 79") == ON
    assert (watch.active, watch.due()) == ([KEY], 3700)
    assert watch.known().on
    assert watch.fact(200, "x.good") == OFF
    assert (watch.active, watch.state.symptoms, watch.state.timers) == ([], {}, {})
    assert watch.told() == [
        ("symptom.started", "sick at gpu/n1/0: Xid 79"),
        ("symptom.ended", "sick at gpu/n1/0 ended: x.good on gpu/0"),
    ]
    assert [note.scope for note in watch.notes] == ["gpu/n1/0"] * 2
    assert [note.data for note in watch.notes] == [
        {"symptom": "sick", "events": ["n1:s:100"]},
        {"symptom": "sick"},
    ]


def test_what_is_known_of_it() -> None:
    """When it began, when it was seen last (by the time of the facts), when a fact arrived last, and how many there were."""
    watch = Watch(symptom())
    for at, age_s, count, wanted in (
        (100, 30, 1, (70, 70, 100, 1)),
        (110, 5, 4, (70, 105, 110, 5)),
        (120, 90, 1, (70, 105, 120, 6)),
    ):
        watch.fact(at, age_s=age_s, count=count)
        state = watch.known()
        assert (state.since, state.last, state.arrived, state.total) == wanted


def test_a_fact_that_comes_too_late() -> None:
    """Older than the time to live it is only noted; just as old it counts, and its timer fires at once."""
    watch = Watch(symptom(ttl_s=60))
    assert watch.fact(1000, age_s=60.5) == NOTHING
    assert watch.state.symptoms == {}
    assert watch.told() == [("symptom.late", "sick: a fact 60 s old is past its time to live of 60 s")]
    assert watch.notes[0].scope == "gpu/n1/0"
    assert watch.fact(1000, age_s=60) == ON
    assert (watch.known().since, watch.due()) == (940, 1060)


def test_time_to_live() -> None:
    """It ends when nothing has renewed it for so long since a fact arrived; the timer that was set earlier asks again."""
    watch = Watch(symptom(ttl_s=60))
    watch.fact(100)
    watch.fact(130, age_s=50)
    assert watch.due() == 160
    assert watch.wait(189.9) == []
    assert watch.due() == 190
    assert watch.wait(200) == [(190, f"-{KEY}")]
    assert watch.told()[-1][1] == "sick at gpu/n1/0 ended: nothing renewed it within its time to live"
    assert (watch.state.symptoms, watch.state.timers, watch.active) == ({}, {}, [])


def test_an_older_fact_that_clears() -> None:
    """What cleared it before the newest fact does not count; at the same moment it does."""
    watch = Watch(symptom())
    watch.fact(100)
    assert watch.fact(105, "x.good", age_s=5.1) == NOTHING
    assert watch.active == [KEY]
    assert watch.fact(105, "x.good", age_s=5) == OFF


def test_something_new_in_it() -> None:
    """Judged again: with each of the first facts, and whenever a carried field changes; else it is only renewed."""
    watch = Watch(symptom(carry={"xid": "code", "gpu_serial": "serial"}))
    assert watch.fact(100, code=79) == ON
    for at in range(101, 106):
        assert watch.fact(at, code=79) == ON
    assert watch.fact(106, code=79) == NOTHING
    assert watch.fact(107, code=62) == ON
    assert watch.fact(108, code=62, serial="s") == ON
    assert watch.fact(109, serial="s") == NOTHING
    assert watch.known().carried == {"xid": 62, "gpu_serial": "s"}
    assert [note.kind for note in watch.notes] == ["symptom.started"]


COUNT = symptom(detect="count", at_least=3, within_s=60)


def test_count() -> None:
    """So many within the window, by when they occurred; a fact that stands for several counts as several."""
    watch = Watch(COUNT)
    assert watch.fact(100) == NOTHING
    assert (watch.known().since, watch.due()) == (100, 160)
    assert watch.fact(130) == NOTHING
    assert watch.fact(160) == NOTHING, "the first is out of the window"
    assert watch.known().since == 130
    assert watch.fact(189.9) == ON
    assert watch.known().since == 130
    assert watch.due() == 220
    watch.fact(300)
    assert watch.known().since == 130, "when it began stays"
    watch.fact(301, "x.good")
    assert watch.fact(400, count=3) == ON


def test_a_backlog_is_no_burst() -> None:
    """Facts that arrive together after an outage count by their age, in any order."""
    watch = Watch(COUNT)
    for age_s in (0, 70, 140, 210):
        assert watch.fact(1000, age_s=age_s) == NOTHING
    assert [hit[0] for hit in watch.known().hits] == [1000]
    assert watch.fact(1001, age_s=31) == NOTHING
    assert watch.fact(1001, age_s=61) == NOTHING, "a minute before the newest is just outside"
    assert [hit[0] for hit in watch.known().hits] == [970, 1000]
    assert watch.known().since == 970
    assert watch.fact(1002, age_s=61) == ON
    assert [hit[0] for hit in watch.known().hits] == [941, 970, 1000]


def test_a_window_that_does_not_fill() -> None:
    """It is forgotten once it is empty, without a word; a clearing fact empties it too."""
    watch = Watch(COUNT)
    watch.fact(100)
    watch.fact(130)
    assert watch.wait(189) == []
    assert KEY in watch.state.symptoms
    assert watch.wait(190) == []
    assert (watch.state.symptoms, watch.state.timers, watch.notes) == ({}, {}, [])
    watch.fact(200)
    assert watch.fact(201, "x.good") == NOTHING
    assert (watch.state.symptoms, watch.state.timers) == ({}, {})


def test_a_full_window_keeps_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one window remembers is bounded."""
    monkeypatch.setattr(facts, "MAX_HITS", 3)
    watch = Watch(symptom(detect="count", at_least=9, within_s=60))
    for at in range(100, 105):
        watch.fact(at)
    assert watch.known().hits == [(102, 1), (103, 1), (104, 1)]


def test_sum() -> None:
    """A field is added up within the window; what is no number adds nothing."""
    watch = Watch(symptom(detect="sum", sum_of="lost", at_least=10, within_s=60))
    for at, data in (
        (99, {}),
        (100, {"lost": 4.5}),
        (101, {}),
        (102, {"lost": "9"}),
        (103, {"lost": 5}),
        (104, {"lost": 0}),
    ):
        assert watch.fact(at, **data) == NOTHING
    assert watch.known().hits == [(100, 4.5), (103, 5.0)]
    assert watch.fact(105, lost=0.5) == ON


LASTING = symptom(detect="lasting", for_s=60)


def test_lasting() -> None:
    """It begins when it was not cleared for so long, by its timer; facts in between change nothing."""
    watch = Watch(LASTING)
    assert watch.fact(100) == NOTHING
    assert watch.fact(130) == NOTHING
    assert (watch.known().since, watch.due()) == (100, 160)
    assert watch.fire(159.9) == NOTHING
    assert watch.wait(161) == [(160, f"+{KEY}")]
    assert watch.due() == 3730
    assert watch.fact(200, "x.good") == OFF
    watch.fact(300)
    assert watch.fact(330, "x.good") == NOTHING
    assert (watch.state.symptoms, watch.state.timers) == ({}, {})
    watch.fact(400)
    assert watch.wait(459) == [], "the time runs anew"
    assert watch.fact(460) == ON, "a fact that comes just then need not wait for the timer"


def test_lasting_for_longer_than_it_lives() -> None:
    """On its way it does not expire: nothing has cleared it."""
    watch = Watch(symptom(detect="lasting", for_s=600, ttl_s=60))
    watch.fact(100)
    assert watch.fire(500) == NOTHING
    assert watch.wait(700) == [(700, f"+{KEY}")]


def test_lasting_that_was_old_when_it_was_told() -> None:
    """After an outage the time since it occurred counts."""
    watch = Watch(LASTING)
    assert watch.fact(1000, age_s=60) == ON
    assert watch.known().since == 940


def test_lasting_that_is_not_on() -> None:
    """A state of an older brain that was not on does not begin by its timer; the next fact sets its start."""
    watch = Watch(LASTING)
    watch.fact(100)
    watch.known().on = False
    assert watch.fire(170) == NOTHING
    assert watch.fact(180) == NOTHING
    assert watch.known().since == 180


ABSENCE = symptom(detect="absence", for_s=60, clear=(Match(kind="x.gone"),))


def test_absence() -> None:
    """It begins when what used to be seen is not seen for so long; seen again it ends, and is watched on."""
    watch = Watch(ABSENCE)
    assert watch.fact(100) == NOTHING
    assert watch.fact(130) == NOTHING
    assert watch.wait(189.9) == []
    assert watch.wait(191) == [(190, f"+{KEY}")]
    assert watch.due() == 3730
    assert watch.fact(200) == OFF
    assert watch.told()[-1] == ("symptom.ended", "sick at gpu/n1/0 ended: it was seen again")
    assert watch.active == []
    assert (watch.known().on, watch.due()) == (True, 260)
    assert watch.wait(261) == [(260, f"+{KEY}")]
    assert watch.fact(300, "x.gone") == OFF
    assert watch.state.symptoms == {}


def test_absence_that_is_not_told_to_end() -> None:
    """It ends by its time to live, for a node that is gone must not stay an incident for ever."""
    watch = Watch(ABSENCE)
    watch.fact(100, age_s=20)
    assert watch.due() == 140
    assert watch.wait(3699) == [(140, f"+{KEY}")]
    assert watch.wait(3700) == [(3700, f"-{KEY}")]


FLAPPING = symptom(detect="flapping", at_least=4, within_s=60, ttl_s=600)


def test_flapping() -> None:
    """Changes are counted, in both directions; the same state told again is none. It ends when it has been calm."""
    watch = Watch(FLAPPING)
    assert watch.fact(100, "x.good") == NOTHING
    assert watch.state.symptoms == {}
    assert watch.fact(101) == NOTHING
    assert watch.fact(102) == NOTHING
    assert watch.fact(103, "x.good") == NOTHING
    assert watch.fact(104, "x.good") == NOTHING
    assert watch.known().hits == [(101, 1), (103, 1)]
    assert (watch.known().on, watch.known().last, watch.known().arrived) == (False, 103, 103)
    assert watch.fact(110) == NOTHING
    assert watch.fact(112, "x.good", age_s=1) == ON
    assert watch.active == [KEY]
    assert (watch.known().since, watch.known().last) == (101, 111)
    assert watch.fact(120, "x.good") == NOTHING
    assert watch.fact(121) == ON, "one of the first facts"
    assert watch.known().hits[-1] == (121, 1)
    assert watch.fact(122, "x.good") == NOTHING, "it has begun already"
    assert watch.wait(181) == []
    assert watch.wait(183) == [(182, f"-{KEY}")]


def test_flapping_that_begins_with_a_fact() -> None:
    """Down, up, down: the third change."""
    watch = Watch(symptom(detect="flapping", at_least=3, within_s=60, carry={"why": "why"}))
    watch.fact(100)
    watch.fact(101, "x.good")
    assert watch.fact(102) == ON
    for at in range(103, 106):
        watch.fact(at)
    assert len(watch.known().hits) == 3
    assert watch.fact(200) == ON, "while it is active every fact renews it, though its window is empty"
    watch.fact(201, "x.good")
    assert watch.known().hits == [(201, 1)]
    assert watch.known().since == 100, "when it began stays"
    assert watch.fact(202, why="a new reason") == ON


def test_slow_changes_are_no_flapping() -> None:
    """A window later the older changes are forgotten; on its way it is forgotten when the window is over."""
    watch = Watch(FLAPPING)
    for at in (100, 140, 180, 220, 260):
        assert watch.fact(at, "x.bad" if at % 80 == 20 else "x.good") == NOTHING
    assert watch.due() is not None
    assert watch.wait(320) == []
    assert watch.state.symptoms == {}


def test_flapping_without_a_window() -> None:
    """Then its time to live is the calm that ends it."""
    watch = Watch(symptom(detect="flapping", at_least=1, ttl_s=50, clear=()))
    watch.fact(100)
    assert watch.due() == 150


def test_a_change_that_comes_before_a_late_timer() -> None:
    """The window runs on from that change."""
    watch = Watch(FLAPPING)
    watch.fact(100)
    assert watch.due() == 160
    watch.fact(165, "x.good")
    assert watch.due() == 225


def test_absence_for_longer_than_it_lives() -> None:
    """On its way it does not expire: that nothing is seen is what it waits for."""
    watch = Watch(symptom(detect="absence", for_s=600, ttl_s=60, clear=()))
    watch.fact(100)
    assert watch.fire(500) == NOTHING
    assert watch.wait(700) == [(700, f"+{KEY}")]


def test_timers() -> None:
    """One that is due earlier is left, one that is due later or past is set anew, and none is set for a past time."""
    watch = Watch(symptom(ttl_s=60))
    watch.fact(100)
    ctx = watch.ctx(130)
    spec, state = watch.compiled.symptoms["sick"], watch.known()
    for present, due in ((159.0, 159.0), (160.0, 160.0), (161.0, 160.0), (130.0, 160.0), (130.5, 130.5)):
        watch.state.timers[f"symptom:{KEY}"] = present
        symptoms.arm(ctx, KEY, spec, state)
        assert watch.due() == due
    assert [effect.due for effect in ctx.effects if isinstance(effect, SetTimer)] == [160.0, 160.0]
    late = watch.ctx(500)
    symptoms.arm(late, KEY, spec, state)
    assert watch.due() == 500.001
    symptoms.forget(late, KEY)
    symptoms.arm(late, KEY, spec, state)
    assert watch.due() is None


def test_a_timer_of_nothing() -> None:
    """What was forgotten has no time; what the rules do not define any more ends."""
    watch = Watch(symptom())
    assert watch.fire(100) == NOTHING
    watch.fact(100)
    del watch.compiled.symptoms["sick"]
    assert watch.fire(101) == OFF
    assert watch.told()[-1][1] == "sick at gpu/n1/0 ended: its definition was removed"
    waiting = Watch(symptom(detect="count", at_least=2, within_s=60, on=BAD))
    waiting.fact(100)
    del waiting.compiled.symptoms["sick"]
    assert waiting.fire(200) == NOTHING
    assert KEY in waiting.state.symptoms

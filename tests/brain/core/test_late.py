"""Facts that arrive after what ended them: as if all had come in the order in which they occurred."""

from dataclasses import replace
from random import Random

import pytest

from brain.core.faults import late
from brain.core.pack.spec import Match
from tests.brain.core.watch import Watch, symptom

KEY = "sick@gpu/n1/0"
BY_SENSOR = symptom(
    apart=("sensor",),
    on=(Match(kind="x.bad", where={"hot": True}),),
    clear=(Match(kind="x.bad", where={"hot": False}), Match(kind="x.good")),
)


def test_what_began_before_its_end_is_not_open() -> None:
    """The end of a fault comes before its beginning: nothing is open, and the note says why."""
    watch = Watch(symptom())
    assert watch.fact(1000, "x.good") == []
    assert watch.fact(1001, age_s=300) == []
    assert watch.active == []
    assert watch.told()[-1] == ("symptom.late", "sick: a fact 300 s old says what had ended 299 s later")


@pytest.mark.parametrize("age_s", [0.0, 1.0, 2.5])
def test_what_begins_at_its_end_or_after_it_counts(age_s: float) -> None:
    """A fact of the same moments may be on its way longer than the end: it counts."""
    watch = Watch(symptom())
    watch.fact(1000, "x.good", age_s=1.0)
    assert watch.fact(1001, age_s=age_s) == [f"+{KEY}"]


def test_an_old_end_ends_nothing_and_hides_nothing() -> None:
    """It is older than the fault that is open; what came between the two counts, too."""
    watch = Watch(symptom())
    watch.fact(1000)
    assert watch.fact(1001, "x.good", age_s=600) == []
    assert watch.fact(1002, "x.good") == [f"-{KEY}"]
    assert watch.fact(1003, "x.good", age_s=600) == []
    assert watch.fact(1004, age_s=100) == []
    assert watch.fact(1005) == [f"+{KEY}"]


def test_an_end_is_of_its_symptom_at_its_part() -> None:
    """That one GPU is well says nothing of another, nor of another node."""
    watch = Watch(symptom())
    watch.fact(1000, "x.good")
    assert watch.fact(1001, where="n1 gpu/1", age_s=300) == ["+sick@gpu/n1/1"]
    assert watch.fact(1002, where="n2 gpu/0", age_s=300) == ["+sick@gpu/n2/0"]


def test_facts_that_are_told_apart_end_apart() -> None:
    """One sensor is well, the other one was hot before and still is; what ends all of them ends the older facts of each."""
    watch = Watch(BY_SENSOR)
    watch.fact(1000, sensor="left", hot=False)
    assert watch.fact(1001, sensor="left", hot=True, age_s=300) == []
    assert watch.fact(1002, sensor="right", hot=True, age_s=300) == [f"+{KEY}"]
    assert watch.fact(1003, "x.good") == [f"-{KEY}"]
    assert watch.fact(1004, sensor="right", hot=True, age_s=300) == []


def test_changes_that_flap_have_no_end() -> None:
    """For `flapping` an event that clears is one more change, and every change counts."""
    watch = Watch(symptom(detect="flapping", at_least=4, within_s=600.0))
    watch.fact(1000, "x.good")
    for at in (1001, 1003):
        watch.fact(at, age_s=100.0)
        watch.fact(at + 1, "x.good", age_s=100.0)
    assert watch.active == [KEY]


def test_hits_before_an_end_do_not_count() -> None:
    """A window begins anew with the end, whatever comes late."""
    watch = Watch(symptom(detect="count", at_least=3, within_s=600.0))
    watch.fact(1000, "x.good")
    for at in (1001, 1002, 1003):
        assert watch.fact(at, age_s=100.0) == []
    assert KEY not in watch.state.symptoms


def test_an_agent_that_starts_says_nothing_of_its_boot() -> None:
    """It reads the kernel log of the new boot only then, and what stands there counts."""
    watch = Watch(symptom(clear=(Match(kind="agent.started"),)))
    watch.fact(1000, "agent.started")
    assert watch.fact(1001, age_s=60.0) == [f"+{KEY}"]


def test_ends_are_forgotten() -> None:
    """After an hour, and of one node the oldest where there are many: a flood of a node pushes out no end of another."""
    watch = Watch(symptom())
    watch.fact(1000, "x.good", where="n2 gpu/0")
    for number in range(late.MAX_OF_NODE + 10):
        watch.fact(1001 + number, "x.good", where=f"n1 gpu/{number}")
    assert len(watch.state.over["n1"]) == late.MAX_OF_NODE
    assert watch.fact(1100, where="n1 gpu/0", age_s=300) == ["+sick@gpu/n1/0"]
    assert watch.fact(1101, where="n2 gpu/0", age_s=300) == []
    watch.state.now = 1000 + late.KEPT_S
    late.forget_old(watch.state)
    assert list(watch.state.over) == ["n1"]
    watch.state.now += 100
    late.forget_old(watch.state)
    assert watch.state.over == {}


def test_of_a_whole_fleet_the_ends_that_were_told_last_are_remembered() -> None:
    """Agents that all start anew say of every part that it is well: that is no memory for each of ten thousand nodes."""
    watch = Watch(symptom())
    for number in range(late.MAX_NODES + 10):
        watch.fact(1000, "x.good", where=f"m{number} gpu/0")
    assert len(watch.state.over) == late.MAX_NODES
    assert watch.fact(1001, where="m9 gpu/0", age_s=300) == ["+sick@gpu/m9/0"]
    assert watch.fact(1001, where="m10 gpu/0", age_s=300) == []


@pytest.mark.parametrize("seed", range(200))
def test_the_order_of_arrival_decides_nothing(seed: int) -> None:
    """Facts seconds apart, told in any order: what is open in the end is what is open when they come in their own order."""
    draw = Random(seed)
    spec = BY_SENSOR if seed % 2 else symptom()
    facts = [
        (100.0 * number + 10, draw.choice(("x.bad", "x.good")), draw.choice(("left", "right")), draw.random() < 0.5)
        for number in range(draw.randint(2, 7))
    ]  # fmt: skip

    def told(order: list[int]) -> dict[str, list[str]]:
        watch = Watch(replace(spec, ttl_s=86400.0))
        for place, number in enumerate(order):
            at, kind, sensor, hot = facts[number]
            watch.fact(2000.0 + place, kind, sensor=sensor, hot=hot, age_s=2000.0 + place - at)
        return {key: list(watch.known(key).open_facts) for key in watch.active}

    order = list(range(len(facts)))
    expected = told(order)
    draw.shuffle(order)
    found = told(order)
    assert {key: sorted(tags) for key, tags in found.items()} == {
        key: sorted(tags) for key, tags in expected.items()
    }

"""`detect: spread`: nodes that are verified, healed or moved, and how they count."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from brain.core.faults import remembered, symptoms
from brain.core.faults import spread as counts
from brain.core.pack.compiled import Compiled
from brain.core.pack.spec import Place, Symptom
from tests.brain.core.test_spreads import LEAVES, WIDE, cell, growing, leaf, sick, spread, well, wide
from tests.brain.core.watch import Watch, symptom


def test_a_node_counts_while_a_run_is_verified() -> None:
    """The symptom was set aside; with the run's end it is over, or is there again. Two GPUs of a node are one node."""
    watch = leaf()
    for at, gpu in ((100, 0), (101, 1)):
        sick(watch, at, "n1", gpu)
    sick(watch, 102, "n2")
    for key in ("sick@gpu/n1/0", "sick@gpu/n2/0"):
        ctx = watch.ctx(110)
        changed = list(symptoms.set_aside(ctx, watch.known(key), f"r-{key}", "set aside"))
        assert [(one.name, one.active) for one in changed] == [("sick", False)]
    assert well(watch, 111, "n1", 1) == [], "a GPU that is well is not the one that a run looks after"
    assert sick(watch, 120, "n3") == [f"+{WIDE}"]
    assert symptoms.run_ended(watch.ctx(130), "another") == []
    sick(watch, 131, "n2")
    assert symptoms.run_ended(watch.ctx(132), "r-sick@gpu/n2/0") == []
    assert set(watch.known(WIDE).members) == {"n1", "n2", "n3"}, "n2 shows it again"
    assert symptoms.run_ended(watch.ctx(133), "r-sick@gpu/n1/0") == []
    assert set(watch.known(WIDE).members) == {"n2", "n3"}
    assert watch.state.set_aside == {}
    assert well(watch, 140, "n2") == [f"-{WIDE}"]


ALL = "wide@cell"


def remedied(watch: Watch, at: float, node: str) -> list[str]:
    """It falls sick, and a remedy heals it within a minute."""
    begun = sick(watch, at, node)
    ctx = watch.ctx(at + 60)
    list(symptoms.set_aside(ctx, watch.known(f"sick@gpu/{node}/0"), "r1", "set aside"))
    return begun + wide([f"-{ALL}" for one in symptoms.run_ended(ctx, "r1") if one.name == "wide"])


def test_remedies_do_not_hide_how_many_had_it() -> None:
    """In the cell a node that was healed counts as long as its fact would have lasted: the fourth is one too many."""
    watch = cell()
    for at, node in ((0, "n1"), (1000, "n2"), (2000, "n3")):
        assert remedied(watch, at, node) == []
    assert {key: aside.until for key, aside in watch.state.treated[ALL].items()} == {
        "sick@gpu/n1/0": 3600, "sick@gpu/n2/0": 4600, "sick@gpu/n3/0": 5600,
    }  # fmt: skip
    assert sick(watch, 3599, "n4") == [f"+{ALL}"]
    assert [one for one in watch.wait(7000) if "wide" in one[1]] == [(5600, f"-{ALL}")], "n4 alone is none"
    assert watch.state.treated == {}


@pytest.mark.parametrize(
    "healthy",
    [
        pytest.param(lambda watch: watch.wait(3600), id="its fact would have ended by now"),
        pytest.param(lambda watch: well(watch, 3000, "n1"), id="a fact says that it is well"),
        pytest.param(lambda watch: counts.is_healthy(watch.ctx(3000), "n1"), id="an operator does"),
    ],
)
def test_a_node_that_is_known_to_be_well_counts_no_more(healthy: Callable[[Watch], object]) -> None:
    """By its age, by a fact, by a person."""
    watch = cell()
    for at, node in ((0, "n1"), (1000, "n2"), (2000, "n3")):
        remedied(watch, at, node)
    healthy(watch)
    assert sick(watch, 3601, "n4") == []


def test_a_fact_during_the_verification_says_that_it_is_well() -> None:
    """Then the remedy is not what ended it for the count."""
    watch = cell()
    sick(watch, 100, "n1")
    list(symptoms.set_aside(watch.ctx(110), watch.known("sick@gpu/n1/0"), "r1", "set aside"))
    well(watch, 120, "n1")
    symptoms.run_ended(watch.ctx(130), "r1")
    assert watch.state.treated == {}


def test_what_does_not_say_that_it_is_well() -> None:
    """A fact from before the remedy that came late, one of another GPU, one of another symptom."""
    for told in (
        lambda watch: watch.fact(2500, "x.good", "n1 gpu/0", age_s=2450),
        lambda watch: well(watch, 2500, "n1", 1),
        lambda watch: well(watch, 2500, "n5"),
    ):
        watch = cell()
        for at, node in ((0, "n1"), (1000, "n2"), (2000, "n3")):
            remedied(watch, at, node)
        told(watch)
        assert sick(watch, 3000, "n4") == [f"+{ALL}"]


def test_a_fault_that_came_back_and_was_well_by_itself() -> None:
    """The newest fact counts, not the remedy before it; also when it was never active again."""
    watch = cell()
    for at, node in ((0, "n1"), (1000, "n2"), (2000, "n3")):
        remedied(watch, at, node)
    sick(watch, 2500, "n1")
    well(watch, 2600, "n1")
    assert "sick@gpu/n1/0" not in watch.state.treated[ALL]
    assert sick(watch, 3500, "n4") == [], "n1 began too long ago for the growth"


def test_a_late_fact_during_the_verification_says_nothing() -> None:
    """It is older than the remedy."""
    watch = cell()
    sick(watch, 100, "n1")
    list(symptoms.set_aside(watch.ctx(110), watch.known("sick@gpu/n1/0"), "r1", "set aside"))
    watch.fact(120, "x.good", "n1 gpu/0", age_s=15)
    symptoms.run_ended(watch.ctx(130), "r1")
    assert list(watch.state.treated[ALL]) == ["sick@gpu/n1/0"]


def test_an_operators_word_during_the_verification() -> None:
    """It is well: the remedy hides nothing."""
    watch = cell()
    sick(watch, 100, "n1")
    list(symptoms.set_aside(watch.ctx(110), watch.known("sick@gpu/n1/0"), "r1", "set aside"))
    counts.is_healthy(watch.ctx(120), "n1")
    symptoms.run_ended(watch.ctx(130), "r1")
    assert watch.state.treated == {}


def test_a_spread_that_counts_another_symptom_now() -> None:
    """What was remembered for the symptom that it counted before is forgotten."""
    watch = cell()
    remedied(watch, 0, "n1")
    sick(watch, 10, "n2")
    well(watch, 20, "n2")
    before = dict(watch.compiled.symptoms)
    remembered.redefined(watch.ctx(100), before)
    assert (list(watch.state.treated), list(watch.state.recovered)) == ([ALL], [ALL])
    watch.compiled.symptoms["wide"] = replace(before["wide"], of="hot")
    remembered.redefined(watch.ctx(100), before)
    assert (watch.state.treated, watch.state.recovered) == ({}, {})


def test_a_healed_node_counts_once_and_in_the_cell_only() -> None:
    """One that falls sick again is one node; under a leaf what counts is who shows it, and how it grows."""
    watch = cell()
    for at in (0, 1000, 2000):
        remedied(watch, at, "n1")
    sick(watch, 2100, "n2")
    assert sick(watch, 2200, "n3") == []
    narrow = leaf(at_least=4, within_s=900, enough=4)
    for at, node in ((0, "n1"), (1000, "n2"), (2000, "n3")):
        remedied(narrow, at, node)
    assert narrow.state.treated == {}
    assert sick(narrow, 3000, "n4") == []


def test_when_all_are_well_it_is_over() -> None:
    """However many remedies there were: the next node that falls sick is told with the others."""
    watch = cell()
    for at, node in ((0, "n1"), (100, "n2"), (200, "n3")):
        remedied(watch, at, node)
    assert sick(watch, 3000, "n4") == [f"+{ALL}"]
    assert well(watch, 3100, "n4") == [f"-{ALL}"]
    assert sick(watch, 3200, "n5") == [f"+{ALL}"]


def test_a_node_that_was_counted_before_is_no_growth() -> None:
    """One that flaps, or shows it at another part, keeps no spread alive: else a broken node waits for its remedy for ever."""
    for flaps, gpu in (("n1", 0), ("n4", 1)):
        watch = growing()
        sick(watch, 460, "n4")
        for number in (1, 2, 3):
            well(watch, 500, f"n{number}")
        for at in (520, 600, 680, 755):
            sick(watch, at, flaps, gpu)
            assert well(watch, at + 1, flaps, gpu) == []
        assert [one for one in watch.wait(800) if "wide" in one[1]] == [(760, f"-{WIDE}")]
        assert list(watch.known(WIDE).members) == ["n4"]


def test_a_node_gets_another_place() -> None:
    """It counts where it stands now. Nothing is left of it where it stood."""
    watch = leaf(at_least=3)
    for number in (1, 2, 3):
        sick(watch, 100, f"n{number}")
    moved = {**LEAVES, **dict.fromkeys(("n2", "n3"), Place(leaf="l2"))}
    sick(watch, 101, "m1")
    watch.compiled = Compiled(replace(watch.compiled.pack, places=moved))
    changed = list(symptoms.new_places(watch.ctx(110)))
    assert [(one.scope, one.active) for one in changed] == [("leaf/l2", True), ("leaf/l1", False)]
    assert list(watch.known(WIDE).members) == ["n1"]
    assert set(watch.known("wide@leaf/l2").members) == {"m1", "n2", "n3"}
    assert list(symptoms.new_places(watch.ctx(111))) == []
    for name in ("n1", "n2", "n3", "m1"):
        well(watch, 120, name)
    assert watch.state.symptoms == {}


def reloaded(watch: Watch, at: float, *watched: Symptom, **changes: Any) -> list[str]:
    """Other definitions, or other places, are in force: what changed for whole leaves."""
    pack = watch.compiled.pack
    watch.compiled = Compiled(replace(pack, symptoms=watched or pack.symptoms, **changes))
    return [
        f"{'+' if one.active else '-'}{one.name}@{one.scope}" for one in symptoms.new_places(watch.ctx(at))
    ]


def test_what_was_counted_is_not_counted_again() -> None:
    """A reload that moves nobody changes nothing: neither facts, nor how many there were."""
    watch = leaf()
    for number in (1, 2):
        sick(watch, 100, f"n{number}")
    before = replace(watch.known(WIDE), evidence=[*watch.known(WIDE).evidence])
    assert reloaded(watch, 110) == []
    assert watch.known(WIDE) == before


def test_what_is_on_its_way_is_not_counted() -> None:
    """A symptom that has to last has not begun: no reload makes it one."""
    slow = symptom(detect="lasting", for_s=60)
    watch = Watch(slow, spread(at_least=2), places=LEAVES)
    for number in (1, 2, 3):
        sick(watch, 100, f"n{number}")
    assert reloaded(watch, 110) == []
    assert WIDE not in watch.state.symptoms


def test_what_was_set_aside_where_its_node_stood() -> None:
    """Its node has moved while a run was verified. The end of the run changes nothing where others are counted."""
    watch = leaf()
    sick(watch, 100, "n1")
    sick(watch, 100, "m1")
    list(symptoms.set_aside(watch.ctx(101), watch.known("sick@gpu/n1/0"), "r1", "set aside"))
    assert reloaded(watch, 110, places={**LEAVES, "n1": Place(leaf="l2")}) == []
    assert WIDE not in watch.state.symptoms
    assert symptoms.run_ended(watch.ctx(120), "r1") == []
    assert list(watch.known("wide@leaf/l2").members) == ["m1"]


def test_another_number_is_in_force() -> None:
    """What is many by it begins; a spread that is too few by it ends, or ends when it grows no more."""
    watch = leaf()
    sick(watch, 90, "n1")
    assert reloaded(watch, 91, symptom(), spread(at_least=1)) == [f"+{WIDE}"]
    watch = leaf()
    for number in (1, 2, 3):
        sick(watch, 100, f"n{number}")
    assert reloaded(watch, 110, symptom(), spread(at_least=5)) == []
    assert reloaded(watch, 120, symptom(), spread(at_least=7)) == [f"-{WIDE}"]
    growing = leaf(within_s=200)
    for number in (1, 2, 3):
        sick(growing, 100, f"n{number}")
    assert reloaded(growing, 110, symptom(), spread(at_least=7, within_s=200)) == []
    assert [one for one in growing.wait(400) if "wide" in one[1]] == [(300, f"-{WIDE}")]

"""How a symptom ends, and what its incidents may conclude from it; what operators have dismissed hears of every new fact."""

from collections.abc import Callable

import pytest

from brain.core.faults import symptoms
from brain.core.pack.spec import Paging, Priority
from brain.core.state import Incident, IncidentState
from tests.brain.core.test_spreads import LEAVES, WIDE, leaf, sick, spread, well
from tests.brain.core.watch import Watch, symptom

KEY = "sick@gpu/n1/0"


def opened(name: str, *keys: str) -> Incident:
    """An incident with these symptoms."""
    return Incident(
        id=name, cause="c", state=IncidentState.HEALING, severity=Priority.P1, scope="gpu/n1/0", node="n1", rule="r",
        because="tests", runbook="", pack="p", opened_at=0, hold_off_until=0, page=Paging.OPEN, resolve_delay_s=60,
        symptoms=list(keys),
    )  # fmt: skip


def ends_by_a_fact(watch: Watch) -> None:
    watch.fact(110, "x.good")


def ends_by_its_age(watch: Watch) -> None:
    watch.fire(10_000)


def ends_with_its_definition(watch: Watch) -> None:
    del watch.compiled.symptoms["sick"]
    watch.fire(110)


def ends_by_an_operator(watch: Watch) -> None:
    list(symptoms.end(watch.ctx(110), watch.known(), "ann says that the node is healthy"))


def ends_while_it_is_verified(watch: Watch) -> None:
    list(symptoms.set_aside(watch.ctx(110), watch.known(), "r1", "set aside"))


@pytest.mark.parametrize(
    ("ends", "unproven"),
    [
        (ends_by_a_fact, False),
        (ends_by_an_operator, False),
        (ends_by_its_age, True),
        (ends_with_its_definition, True),
        (ends_while_it_is_verified, True),
    ],
)
def test_what_an_end_proves(ends: Callable[[Watch], None], unproven: bool) -> None:
    """A fact or a person says that it is over; nothing else does, and only its own incidents learn so."""
    watch = Watch(symptom())
    watch.fact(100)
    watch.state.incidents = {one.id: one for one in (opened("mine", KEY), opened("another", "sick@gpu/n1/1"))}
    ends(watch)
    assert watch.active == []
    assert [one.unproven for one in watch.state.incidents.values()] == [unproven, False]
    assert KEY not in watch.state.symptoms


def test_a_fact_that_says_nothing_new_is_news_for_what_was_dismissed() -> None:
    """An operator closed its incident: a newer fact must be able to open another one."""
    watch = Watch(symptom())
    for at in range(100, 108):
        watch.fact(at, evidence="Xid 79")
    assert watch.fact(110, evidence="Xid 79") == []
    watch.state.dismissed["r@gpu/n1/0"] = 105
    assert watch.fact(111, evidence="Xid 79") == [f"+{KEY}"]


def test_a_node_that_joins_is_news_for_what_was_dismissed() -> None:
    """One node more, not one GPU more; and only where the spread has begun."""
    watch = leaf()
    watch.state.dismissed["r@leaf/l1"] = 90
    assert sick(watch, 100, "n1") == []
    assert sick(watch, 101, "n2") == []
    assert sick(watch, 102, "n3") == [f"+{WIDE}"]
    assert sick(watch, 103, "n3", 1) == []
    assert sick(watch, 104, "n4") == [f"+{WIDE}"]
    watch.state.dismissed.clear()
    assert sick(watch, 105, "n5") == []


def test_active_symptoms_stand_in_the_order_in_which_they_began() -> None:
    """Not in that of their first facts: pages list them so, also after a restart."""
    watch = Watch(symptom(detect="count", at_least=2, within_s=600))
    watch.fact(100, where="n1 gpu/0")
    for at in (101, 102):
        watch.fact(at, where="n1 gpu/1")
    watch.fact(103, where="n1 gpu/0")
    assert list(watch.state.symptoms) == ["sick@gpu/n1/1", "sick@gpu/n1/0"]


def test_a_spread_that_few_show_waits_by_its_timer() -> None:
    """A node that joins gives it five minutes more; a second component of a node that was counted out does nothing."""
    watch = Watch(symptom(), spread(at_least=4, within_s=900, enough=4), places=LEAVES)
    for number in range(1, 5):
        sick(watch, 100 * number, f"n{number}")
    for number in range(1, 4):
        well(watch, 410, f"n{number}")
    assert watch.due(WIDE) == 700
    sick(watch, 500, "n5")
    well(watch, 510, "n4")
    assert watch.due(WIDE) == 700
    assert watch.wait(790) == [], "n5 began at 500"
    assert watch.due(WIDE) == 800
    assert well(watch, 795, "n1") == [], "it was counted out before"
    assert watch.wait(801) == [(800, f"-{WIDE}")]

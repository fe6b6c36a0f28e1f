"""How a symptom ends, and what its incidents may conclude from it; what operators have dismissed hears of every new fact."""

from collections.abc import Callable
from typing import Any

import pytest

from brain.core.faults import symptoms
from brain.core.pack.spec import Match, Paging, Priority, Symptom
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


def servers(**changes: Any) -> Symptom:
    """One begins with each server that does not answer."""
    gone, back = (Match(kind="x.server", where={"answers": answers}) for answers in (False, True))
    return symptom(on=(gone,), clear=(back,), apart=("server",), carry={"which": "server"}, **changes)


class Servers(Watch):
    """Each call is about one of them."""

    def gone(self, at: float, server: str) -> list[str]:
        return self.fact(at, "x.server", server=server, answers=False)

    def back(self, at: float, server: str, age_s: float = 0) -> list[str]:
        return self.fact(at, "x.server", server=server, answers=True, age_s=age_s)


def test_what_ends_one_says_nothing_of_another() -> None:
    """Two servers do not answer: the symptom ends with the second that answers again, and carries what is left."""
    watch = Servers(servers())
    assert watch.gone(100, "fs1") == [f"+{KEY}"]
    assert watch.gone(110, "fs2") == [f"+{KEY}"]
    assert watch.known().carried == {"which": "fs1 fs2"}, (
        "what tells them apart is carried of all that are open"
    )
    assert watch.back(120, "fs3") == []  # it was never gone
    assert watch.back(130, "fs2") == [f"+{KEY}"]
    assert watch.known().carried == {"which": "fs1"}
    assert watch.back(140, "fs2") == []
    assert watch.back(150, "fs1") == [f"-{KEY}"]
    assert watch.state.symptoms == {}


def test_an_end_that_comes_late_is_judged_by_its_own_facts() -> None:
    """fs1 answered at 105, and is heard of it at 120: fs2's newer fact does not make that an old one, fs1's own does."""
    watch = Servers(servers())
    watch.gone(100, "fs1")
    watch.gone(110, "fs2")
    assert watch.back(115, "fs1", age_s=20) == []  # at 95: before it was gone
    assert watch.back(120, "fs1", age_s=15) == [f"+{KEY}"]
    assert watch.known().carried == {"which": "fs2"}
    assert watch.back(130, "fs2") == [f"-{KEY}"]


def test_kinds_are_told_apart_too() -> None:
    """Fewer links are one fault and an unhealthy fabric another; a kind that begins nothing ends whatever there is."""
    kinds = ("x.bad", "x.worse")
    on = tuple(Match(kind=kind, where={"ok": False}) for kind in kinds)
    clear = (*(Match(kind=kind, where={"ok": True}) for kind in kinds), Match(kind="x.good"))
    watch = Watch(symptom(on=on, clear=clear, apart=("kind",)))
    watch.fact(100, ok=False)
    watch.fact(101, "x.worse", ok=False)
    assert watch.fact(102, "x.worse", ok=True) == []
    assert watch.active == [KEY]
    watch.fact(103, "x.worse", ok=False)
    assert watch.fact(104, "x.good") == [f"-{KEY}"]


def test_what_lasts_lasts_by_itself() -> None:
    """fs1 is back after 25 s; fs2 has been gone for 60 s when it begins, not when fs1 would have been."""
    watch = Servers(servers(detect="lasting", for_s=60))
    watch.gone(100, "fs1")
    watch.gone(120, "fs2")
    watch.back(125, "fs1")
    assert watch.wait(179) == []
    assert watch.wait(200) == [(180, f"+{KEY}")]


def test_what_nothing_renews_does_not_keep_the_others() -> None:
    """fs1 was taken away and is never told to answer; a time to live later it holds up no end."""
    watch = Servers(servers(ttl_s=600))
    watch.gone(100, "fs1")
    watch.gone(500, "fs2")
    assert watch.known().carried == {"which": "fs1 fs2"}
    watch.gone(750, "fs2")
    assert watch.known().carried == {"which": "fs2"}
    assert watch.back(800, "fs2") == [f"-{KEY}"]


def test_what_nothing_renewed_is_not_well_because_another_is() -> None:
    """fs1 was told to be gone, and of it nothing was heard again: that fs2 answers proves nothing about fs1."""
    watch = Servers(servers(ttl_s=600))
    watch.gone(100, "fs1")
    watch.gone(500, "fs2")
    watch.state.incidents["i"] = opened("i", KEY)
    assert watch.back(800, "fs2") == [f"-{KEY}"]
    assert watch.state.incidents["i"].unproven


def test_each_has_its_own_time_to_live() -> None:
    """fs2 was renewed until it answered again; fs1 was not, and lives no longer for that."""
    watch = Servers(servers(ttl_s=600))
    watch.gone(100, "fs1")
    watch.gone(600, "fs2")
    assert watch.back(650, "fs2") == [f"+{KEY}"]
    assert watch.wait(699) == []
    assert watch.wait(1300) == [(700, f"-{KEY}")]


def test_a_fact_that_came_late_lives_from_when_it_came() -> None:
    """As that of a symptom whose facts are not told apart does."""
    watch = Servers(servers(ttl_s=600))
    watch.fact(500, "x.server", server="fs1", answers=False, age_s=400)
    watch.gone(510, "fs2")
    assert watch.back(800, "fs2") == [f"+{KEY}"]
    assert watch.wait(1500) == [(1100, f"-{KEY}")]

"""What is more urgent than what was acknowledged calls people anew: a new chain, with all its repeats. Law 10."""

from typing import Any

import pytest

from brain.core.pack.spec import EscalationStep, Priority
from tests.brain.core.pager import BEGAN, Pager

STORM: dict[str, Any] = {"group_at_least": 3, "group_within_s": 30}
REPEATS = (300, 600, 1200, 2400, 4800)
LATER = 10_000.0
EVERY = tuple(Priority)


def acknowledged(severity: str = "P2", **settings: Any) -> Pager:
    """An incident that somebody has acknowledged hours ago."""
    it = Pager(page_repeats=EVERY, **settings)
    it.opens("a", severity=severity)
    it.passes(100)
    it.acknowledges("a")
    it.passes(LATER - 100)
    return it


def since(it: Pager, at: float = LATER) -> list[str]:
    """What was told since then."""
    return [line for line in it.told() if float(line.split()[0]) >= at]


@pytest.mark.parametrize("to", ["P0", "P1"])
def test_it_calls_people_with_the_whole_chain_of_repeats(to: str) -> None:
    """At once, then after 5, 10, 20, 40 and 80 minutes, and every 80 minutes from then on."""
    it = acknowledged()
    it.raises("a", to)
    it.passes(3 * 4800)
    alerts = [
        line for line in since(it) if line.split()[1:] in (["open", "oncall", "a"], ["repeat", "oncall", "a"])
    ]
    assert [float(line.split()[0]) - LATER for line in alerts] == [0, *REPEATS, 9600, 14400]
    words = it.words()[it.told().index(alerts[0])]
    assert words == f"raised from P2 to {to}: ann has acknowledged it as P2, nobody as {to}"


def test_it_escalates_from_the_beginning() -> None:
    """The lead has five minutes, not none: nobody had to answer at this urgency before."""
    it = acknowledged()
    it.raises("a", "P1")
    assert it.timers == {"page:a": LATER + 300, "escalate:a": LATER + 300}
    it.passes(1000)
    assert [line for line in since(it) if " open " in line] == [
        f"{LATER:g} open oncall a", f"{LATER + 300:g} open lead a", f"{LATER + 900:g} open manager a",
    ]  # fmt: skip


def test_those_who_were_told_by_a_runbook_learn_of_it() -> None:
    """They are not those on call."""
    it = acknowledged()
    it.pages("a", "update", "to the spares", to="spares")
    it.raises("a", "P1")
    assert since(it)[-2:] == [f"{LATER:g} open oncall a", f"{LATER:g} update spares a"]


def test_whoever_acknowledges_it_now_ends_that() -> None:
    """Until it is raised once more."""
    it = acknowledged()
    it.raises("a", "P1")
    it.passes(60)
    it.acknowledges("a", who="bob")
    assert it.state.incidents["a"].pages.acked_by == "bob"
    it.passes(5000)
    assert not [line for line in since(it) if "repeat" in line]
    it.raises("a", "P0")
    it.passes(301)
    assert [line.split()[1] for line in since(it, LATER + 5060)] == ["open", "repeat"]


def test_an_acknowledged_alert_group_hides_none_that_is_raised() -> None:
    """It leaves the group, which stays acknowledged, and ends with the others."""
    it = Pager(page_repeats=EVERY, **STORM)
    it.opens("x", "y", "a", "b", "c", severity="P2")
    it.passes(30)
    group = it.group
    it.acknowledges(group.id)
    assert group.pages.acked_by
    it.passes(LATER)
    at = it.now
    it.raises("a", "P0")
    it.passes(301)
    assert since(it, at) == [f"{at:g} open oncall a", f"{at + 300:g} repeat oncall a"]
    it.ends("a", "b", "c")
    assert [line.split()[1:] for line in it.told("resolve")] == [
        ["resolve", "oncall", "a"],
        ["resolve", "oncall", group.id],
    ]
    assert not it.state.alert_groups


def test_nobody_is_called_for_what_is_over() -> None:
    """The record says who had it."""
    it = acknowledged()
    it.ends("a")
    it.raises("a", "P0")
    assert since(it) == [f"{LATER:g} resolve oncall a"]
    assert it.state.incidents["a"].pages.acked_by == "ann"


def test_a_chain_of_other_people_begins_at_once() -> None:
    """Those who were paged so far are not those whom P0 calls."""
    chains = {
        Priority.P2: (EscalationStep(to="tickets"),),
        Priority.P0: (EscalationStep(to="oncall"), EscalationStep(to="lead", after_s=60)),
    }
    it = acknowledged(escalation=chains)
    it.raises("a", "P0")
    assert it.state.incidents["a"].pages.first_at == BEGAN + LATER
    assert since(it) == [f"{LATER:g} update tickets a", f"{LATER:g} open oncall a"]
    it.passes(61)
    assert since(it)[-1] == f"{LATER + 60:g} open lead a"

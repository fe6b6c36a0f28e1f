"""Tickets: what needs hands has one, beside the pages that call people; each page knows what became of the one before."""

from typing import Any

import pytest

from brain.core.pack.spec import Priority, Tickets, Window
from brain.core.paging import escalation
from brain.core.state import IncidentState, RunState
from tests.brain.core.pager import BEGAN, Pager
from tests.brain.notify.pages import run


def pager(**settings: Any) -> Pager:
    """The site keeps tickets."""
    return Pager(**({"tickets": Tickets(to="tickets")} | settings))


def with_run(it: Pager, state: RunState, id_: str = "a", **more: Any) -> None:
    """A P1 opens whose runbook is that far, and people are told."""
    it.state.runs[f"{id_}.r1"] = run(state)
    it.opens(id_, runs=[f"{id_}.r1"], **more)


def to_tickets(it: Pager) -> list[str]:
    """What went there."""
    return [one for one in it.told() if " tickets " in one]


@pytest.mark.parametrize(("severity", "tickets"), [("P0", 0), ("P1", 0), ("P2", 1), ("P3", 1)])
def test_what_is_not_urgent_has_a_ticket_at_once(severity: str, tickets: int) -> None:
    """Beside the page; what a runbook is at work on is not for hands yet."""
    it = pager()
    with_run(it, RunState.PERFORMING)
    it.state.incidents.clear()
    it.state.runs["b.r1"] = run(RunState.PERFORMING)
    it.opens("b", severity=severity, runs=["b.r1"])
    assert len(to_tickets(it)) == tickets
    assert it.told()[-1 - tickets] == "0 open oncall b"


@pytest.mark.parametrize("state", list(RunState))
def test_what_has_nothing_left_to_try_needs_hands(state: RunState) -> None:
    """Whatever its severity; not what was only planned, waits for a word, or was stopped by one."""
    it = pager()
    with_run(it, state)
    assert bool(to_tickets(it)) is (state is RunState.EXHAUSTED)
    alone = pager(tickets=Tickets(to="tickets", gave_up=False))
    with_run(alone, state)
    assert to_tickets(alone) == []


def test_what_has_no_runbook_needs_hands() -> None:
    """Nothing but people will see to it."""
    it = pager()
    it.opens("a")
    assert it.told() == ["0 open oncall a", "0 open tickets a"]


def test_giving_up_opens_it_also_where_the_ladder_has_told_those_on_call() -> None:
    """Nobody is paged twice with the same, and the ticket is opened."""
    it = pager()
    with_run(it, RunState.PERFORMING)
    it.state.runs["a.r1"].state = RunState.EXHAUSTED
    it.handles(lambda ctx: escalation.open_page(ctx, it.state.incidents["a"], "no rung is left"))
    assert it.told() == ["0 open oncall a", "0 open tickets a"]
    assert it.words()[-1] == "no rung is left"


def test_a_ticket_hears_what_people_hear_and_no_repeats() -> None:
    """News, the acknowledgement and the end: nobody is called by a ticket."""
    it = pager(page_repeats=tuple(Priority))
    it.opens("a", severity="P2")
    it.passes(1000)
    it.pages("a", "update", "it is worse")
    it.pages("a", "update", "it is worse")
    it.pages("a", "update", "for the scheduler", to="scheduler")
    it.raises("a", "P1")
    it.acknowledges("a")
    it.passes(4000)
    it.ends("a")
    assert to_tickets(it) == [
        "0 open tickets a",
        "1000 update tickets a",
        "1000 update tickets a",
        "1000 ack tickets a",
        "5000 resolve tickets a",
    ]
    assert "300 repeat oncall a" in it.told()


def test_each_incident_of_a_storm_has_its_ticket() -> None:
    """Though people are told of them in one page."""
    it = pager(group_at_least=3)
    names = [f"i{number}" for number in range(12)]
    it.opens(*names, severity="P2")
    it.passes(60)
    assert to_tickets(it) == [f"0 open tickets {name}" for name in names]
    assert len(it.told("open")) == 12 + 3


def test_a_loud_node_fills_no_list_of_tickets() -> None:
    """Its faults are one ticket in half an hour, which is not repeated."""
    it = pager(group_at_least=3)
    it.state.recurred = {f"gpu_lost@gpu/n1/{number}": [it.state.now] for number in range(31)}
    for number in range(30):
        it.opens(f"i{number}", severity="P2", node="n1", scope=f"gpu/n1/{number}")
    it.passes(4000)
    alone = [one for one in to_tickets(it) if " open " in one]
    assert len(alone) < 30
    assert len([one for one in alone if " grp-" in one]) >= 1
    assert [one for one in to_tickets(it) if " repeat " in one] == []


def test_nobody_told_no_ticket() -> None:
    """Also not of what is well again, or over."""
    it = pager()
    one = it.knows("a", severity="P2")
    it.handles(lambda ctx: escalation.open_ticket(ctx, one, "x"))
    assert it.told() == []
    two = it.opens("c", severity="P1", runs=["c.r1"])[0]
    it.state.runs["c.r1"] = run(RunState.EXHAUSTED)
    two.state = IncidentState.RECOVERED
    it.handles(lambda ctx: escalation.open_ticket(ctx, two, "x"))
    two.state = IncidentState.NEEDS_HUMAN
    it.ends("c")
    it.handles(lambda ctx: escalation.open_ticket(ctx, two, "x"))
    assert to_tickets(it) == []


def test_what_lies_within_a_window_has_none_before_it_ends() -> None:
    """People work there: what is still so then has one."""
    window = Window(scope="node/n-a", since=0.0, until=BEGAN + 600, why="new cables")
    it = pager(maintenance=(window,))
    it.opens("a", severity="P2")
    assert it.told() == []
    it.passes(601)
    assert it.told() == ["600 open oncall a", "600 open tickets a"]


def test_the_log_says_which_ticket_it_is() -> None:
    """The next page knows it, whichever brain sends it; the note of the delivery names it for people."""
    it = pager(delivers=False)
    it.opens("a", severity="P2")
    it.answers("a.p1")
    it.answers("a.p2", channel="jira", jira="OPS-7")
    assert it.said("page.delivered")[-1] == ("a", "by jira (OPS-7)")
    it.pages("a", "update", "it is worse")
    assert [dict(page.subject.tickets) for _, page in it.sent] == [
        {},
        {},
        {"jira": "OPS-7"},
        {"jira": "OPS-7"},
    ]
    it.ends("a")
    assert it.state.incidents["a"].pages.tickets == {"jira": "OPS-7"}


def test_a_ticket_goes_on_with_its_alert() -> None:
    """What explains the incident is what it is about now; its key stays."""
    it = pager(delivers=False)
    it.opens("a", severity="P2")
    it.answers("a.p1")
    it.answers("a.p2", channel="jira", jira="OPS-7")
    leaf = it.knows("leaf", severity="P2", node="", scope="leaf/l1")
    it.handles(lambda ctx: escalation.passed_on(ctx, leaf, it.state.incidents["a"]))
    it.pages("leaf", "open", "a leaf is down")
    page = [page for _, page in it.sent if page.to == "tickets"][-1]
    assert (page.subject.id, page.subject.key, page.what) == ("leaf", "a", "update")
    assert dict(page.subject.tickets) == {"jira": "OPS-7"}
    assert len([one for _, one in it.sent if one.to == "tickets" and one.what == "open"]) == 1


def test_a_page_that_may_have_been_delivered_says_so() -> None:
    """After a failure, after silence, and when another brain leads: a channel looks first whether it has it."""
    it = pager(delivers=False)
    it.opens("a", severity="P2")
    it.refuses("a.p2")
    it.passes(5)
    it.handles(escalation.resend_all)
    it.passes(300)
    sent = [(at, page.id, page.again) for at, page in it.sent]
    assert [again for _, id_, again in sent if id_ == "a.p2"] == [False, True, True, True]
    assert [again for _, id_, again in sent if id_ == "a.p1"] == [False, True, True]
    it.answers("a.p2")
    it.pages("a", "update", "it is worse")
    assert it.sent[-1][1].again is False

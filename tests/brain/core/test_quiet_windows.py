"""What lies within a maintenance window calls nobody before the window ends (decision 71). Times: seconds."""

from dataclasses import replace
from typing import Any

import pytest

from brain.core.pack.compiled import Compiled
from brain.core.pack.spec import Pack, Place, Window
from brain.core.paging import escalation
from brain.core.state import Incident, IncidentState
from tests.brain.core.pager import ALONE, BEGAN, Pager

RACK = {f"n{number}": Place(rack="r1", leaf="l1") for number in range(4)} | {
    "n9": Place(rack="r2", leaf="l1")
}


def window(scope: str = "rack/r1", since: float = -60, until: float = 3600) -> Window:
    """People work there."""
    return Window(scope=scope, since=BEGAN + since, until=BEGAN + until, why="new power strips")


def site(*windows: Window) -> Pager:
    """A rack of four nodes; a fifth under the same leaf switch stands in another rack."""
    it = Pager(maintenance=windows)
    plan(it, *windows)
    return it


def plan(it: Pager, *windows: Window) -> None:
    """The site's windows are these from now on."""
    settings = replace(it._compiled.settings, **ALONE, maintenance=windows)
    it._compiled = Compiled(
        Pack(version="p", symptoms=(), rules=(), runbooks=(), settings=settings, places=RACK)
    )


def ill(it: Pager, scope: str = "node/n1", severity: str = "P1", **more: Any) -> Incident:
    """An incident that opens now, and whose rule pages."""
    nodes = more.pop("affected", ["n1"])
    (incident,) = it.opens("a", severity=severity, scope=scope, node="", affected=dict.fromkeys(nodes, True),
                           nodes=len(nodes), **more)  # fmt: skip
    return incident


def test_nobody_is_called_for_what_is_over_by_the_end() -> None:
    """Dark for an hour while people change its power: a note says why nobody hears of it, and that is all."""
    it = site(window())
    ill(it)
    (note,) = [note for note in it.notes if note.kind == "page.waits"]
    assert note.text == (
        "rack/r1 is in maintenance: new power strips; nobody is called before that ends, and then if it is still so: it is lost"
    )
    it.passes(3000)
    it.ends("a")
    it.passes(86_400)
    assert it.sent == []
    assert it.state.timers == {}


def test_what_is_still_so_is_paged_as_new_when_the_window_ends() -> None:
    """With its repeats and its escalation from then on."""
    it = site(window())
    ill(it)
    it.passes(3600 + 301)
    told = [(at, page.what, page.to, page.text) for at, page in it.sent]
    assert told == [
        (3600, "open", "oncall", "no maintenance window holds it any more: it is lost"),
        (3900, "repeat", "oncall", "nobody has acknowledged for 5 minutes"),
        (3900, "open", "lead", "oncall told 5 minutes ago, nobody has acknowledged"),
    ]


def test_the_newest_is_told() -> None:
    """A remedy has failed meanwhile."""
    it = site(window())
    ill(it)
    it.pages("a", "update", "gpuward gave up: the reset failed")
    it.passes(3601)
    assert [page.text for _, page in it.sent] == [
        "no maintenance window holds it any more: gpuward gave up: the reset failed"
    ]


@pytest.mark.parametrize(
    ("scope", "nodes"),
    [
        ("rack/r1", ["n1", "n2", "n3"]),
        ("gpu/n1/0000:3b:00", ["n1"]),
        ("leaf/l1", ["n1", "n2"]),  # its ill nodes are all in the rack
    ],
)
def test_what_lies_within(scope: str, nodes: list[str]) -> None:
    """By its scope, or by each of its nodes."""
    it = site(window())
    ill(it, scope, affected=nodes)
    assert it.sent == []


@pytest.mark.parametrize(
    ("scope", "nodes"),
    [
        ("node/n9", ["n9"]),
        ("leaf/l1", ["n1", "n9"]),
        ("fabric/default", ["n1"]),  # whatever saw it, it is the whole fabric's
        ("cell", ["n1"]),
        ("leaf/l1", []),
    ],
)
def test_what_does_not(scope: str, nodes: list[str]) -> None:
    """Something of it is elsewhere, or it is not known where."""
    it = site(window())
    ill(it, scope, affected=nodes)
    assert [page.what for _, page in it.sent] == ["open"]


def test_p0_waits_for_nothing() -> None:
    """Nor does what becomes P0 while it waits."""
    it = site(window())
    ill(it, severity="P0")
    assert len(it.sent) == 1
    it = site(window())
    ill(it)
    it.raises("a", "P0")
    assert [page.text for _, page in it.sent] == ["no maintenance window holds it any more: it is lost"]


def test_what_concerns_more_than_the_window_is_told_at_once() -> None:
    """The breaker has tripped, for the whole cell, by what was done in a window: that is not what people do there."""
    it = site(window())
    incident = ill(it)
    it.handles(lambda ctx: escalation.urgent(ctx, incident, "the breaker has tripped"))
    assert [(at, page.to, page.text) for at, page in it.sent] == [(0, "oncall", "the breaker has tripped")]
    assert incident.pages.later == {}


def test_what_people_were_told_before_the_window_goes_on() -> None:
    """Its alert is open: its repeats, news and resolution are sent."""
    it = site(window(since=100))
    ill(it)
    it.passes(301)
    it.pages("a", "update", "the reset failed")
    it.ends("a")
    assert [page.what for _, page in it.sent] == [
        "open",
        "repeat",
        "open",
        "update",
        "update",
        "resolve",
        "resolve",
    ]


def test_a_node_outside_ends_the_wait() -> None:
    """The fault grows beyond the window: that is no work of those who are there."""
    it = site(window())
    incident = ill(it, "leaf/l1", affected=["n1", "n2"])
    incident.affected["n9"], incident.nodes = True, 3
    it.handles(lambda ctx: escalation.look_again(ctx, incident))
    assert len(it.sent) == 1


@pytest.mark.parametrize(("until", "at"), [(7200, 7200), (600, 1000), (None, 1000)])
def test_the_site_changes_the_window(until: float | None, at: float) -> None:
    """It is longer, shorter or gone, told after 1,000 s: the page comes at the new end, at once where that is past."""
    it = site(window())
    incident = ill(it)
    it.passes(1000)
    plan(it, *([window(until=until)] if until else []))
    it.handles(lambda ctx: escalation.look_again(ctx, incident))
    it.passes(7201)
    assert it.sent[0][0] == at


def test_two_windows_one_after_the_other() -> None:
    """The next one is open when the first one ends: still nobody is called."""
    it = site(window(), window("node/n1", since=3000, until=5000))
    ill(it)
    it.passes(5001)
    assert [at for at, _ in it.sent] == [5000]


def test_what_is_over_for_now_calls_nobody() -> None:
    """It recovered a moment before the end, and is watched."""
    it = site(window())
    incident = ill(it)
    it.passes(3590)
    incident.state = IncidentState.RECOVERED
    it.passes(20)
    assert (it.sent, incident.pages.later) == ([], {})


def test_who_has_acknowledged_is_not_called() -> None:
    """Somebody looked at it in the console while it waited."""
    it = site(window())
    ill(it)
    it.acknowledges("a")
    it.passes(90_000)
    assert it.sent == []


def test_a_group_that_a_runbook_names_waits_too() -> None:
    """Those who look after the switches have said themselves that they replace it. Each group hears what was for it."""
    it = site(window())
    ill(it)
    it.pages("a", "update", "it is suspected", to="network")
    assert it.sent == []
    it.passes(3600)
    assert [(page.to, page.what, page.text) for _, page in it.sent] == [
        ("oncall", "open", "no maintenance window holds it any more: it is lost"),
        ("network", "open", "no maintenance window holds it any more: it is suspected"),
    ]

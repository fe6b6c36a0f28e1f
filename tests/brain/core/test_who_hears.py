"""Who hears of what: values that are paged once, what concerns more than its incident, what gpuward gives up."""

import copy
from typing import Any

import pytest

from brain.core.pack.spec import Digest, EscalationStep, Priority
from brain.core.paging import escalation, once
from brain.core.state import IncidentState
from tests.brain.core.pager import BEGAN, Pager

VALUE = "new-code@999"
TICKETS: dict[str, Any] = {"digests": {Priority.P2: Digest(to="tickets", hours=(), every_s=0)}}
LEAD_FIRST = {Priority.P1: (EscalationStep(to="lead"), EscalationStep(to="boss", after_s=300))}


def said(it: Pager) -> list[tuple[str, str, str]]:
    """What, to whom, and the text of each page."""
    return [(page.what, page.to, page.text) for _, page in it.sent]


@pytest.mark.parametrize("groups", [("oncall", "scheduler"), ()])
def test_a_group_that_the_site_does_not_have(groups: tuple[str, ...]) -> None:
    """Those on call are told in its place, by the alert that they have: they get its end once. Not known: it is tried."""
    it = Pager(groups=groups)
    it.opens("a")
    it.pages("a", "update", "look at the switch", to="network")
    it.pages("a", "update", "one of its jobs floods it", to="scheduler")
    it.ends("a")
    third = [] if groups else ["0 resolve network a"]
    assert it.told() == [
        "0 open oncall a",
        "0 update oncall a" if groups else "0 open network a",
        "0 open scheduler a",
        "0 resolve oncall a",
        *third,
        "0 resolve scheduler a",
    ]


LATE = BEGAN - 30 * 86_400  # a month ago


@pytest.mark.parametrize(
    ("before", "paged"),
    [
        pytest.param({}, True, id="nobody was paged for the value"),
        pytest.param({"new-code@998": {"n-a": BEGAN}}, True, id="for another value"),
        pytest.param({VALUE: {"n-a": BEGAN - 60}}, False, id="a minute ago, of this node"),
        pytest.param({VALUE: {"n-a": LATE + 1}}, False, id="almost a month ago"),
        pytest.param({VALUE: {"n-a": LATE}}, True, id="a month ago"),
        pytest.param({VALUE: {"n1": BEGAN - 60}}, True, id="of another node, which may have made it up"),
        pytest.param({VALUE: {"n1": BEGAN - 60, "n2": BEGAN - 60}}, False, id="of two others"),
        pytest.param({VALUE: {"n1": LATE, "n2": BEGAN - 60}}, True, id="of two others, of one of them long ago"),
    ],
)  # fmt: skip
def test_a_value_is_paged_once(before: dict[str, dict[str, float]], *, paged: bool) -> None:
    """Law 5: an unknown code is paged for each of the first two nodes that report it, once. The trail says who was left out."""
    it = Pager()
    it.state.paged_once = copy.deepcopy(before)
    (incident,) = it.opens("a", page_once=VALUE)
    assert it.told() == (["0 open oncall a"] if paged else [])
    assert bool(incident.pages.first_at) == paged
    left_out = [(note.incident, note.scope, note.text) for note in it.notes if note.kind == "page.left_out"]
    text = f"{VALUE} was paged for another incident: it is lost"
    assert left_out == ([] if paged else [("a", "node/n-a", text)])
    assert (it.state.paged_once[VALUE].get("n-a") == BEGAN) == paged


def test_the_incident_that_was_paged_for_a_value_is_told_on() -> None:
    """Its own news reach people; the others' do not, until one of them is more urgent."""
    it = Pager()
    it.opens("a", "b", "c", severity="P2", page_once=VALUE, node="n1")
    it.pages("a", "update", "it is worse")
    it.pages("b", "update", "it is worse here")
    assert it.told() == ["0 open oncall a", "0 update oncall a"]
    for urgent in ("b", "c"):
        it.raises(urgent, "P1")
        it.pages(urgent, "open", "it is lost")
    assert it.told()[2:] == ["0 open oncall b", "0 open oncall c"]


def test_of_each_node_a_hundred_values_are_remembered() -> None:
    """The newest ones; and none for longer than a month. A node that names many uses up no other's."""
    it = Pager()
    old = {f"old@{number}": {"n-a": LATE} for number in range(5)}
    mine = {f"code@{number}": {"n-a": BEGAN - 60 + number} for number in range(once.MAX_ONCE)}
    it.state.paged_once = old | {"theirs@1": {"n2": LATE + 1}, "code@0": {"n2": BEGAN}} | mine
    it.state.paged_once["code@1"]["n2"] = BEGAN
    it.opens("a", page_once=VALUE)
    known = it.state.paged_once
    assert [value for value, by in known.items() if "n2" in by] == ["theirs@1", "code@1"]
    assert sum("n-a" in by for by in known.values()) == once.MAX_ONCE
    assert ("code@0" in known, known[VALUE]) == (False, {"n-a": BEGAN})


def test_only_updates_are_told_once() -> None:
    """An alert that is opened, and a repeat, say the same on purpose."""
    it = Pager()
    it.opens("a")
    for what in ("repeat", "repeat", "update", "update"):
        it.pages("a", what, "nobody has acknowledged")
    assert it.told() == ["0 open oncall a", "0 repeat oncall a", "0 repeat oncall a", "0 update oncall a"]


def test_what_was_said_long_ago_may_be_said_again() -> None:
    """The newest twenty news are remembered."""
    it = Pager()
    it.opens("a")
    for number in [*range(escalation.MAX_SAID + 1), 0, escalation.MAX_SAID]:
        it.pages("a", "update", f"news {number}")
    assert [text for _, _, text in said(it)][-2:] == [f"news {escalation.MAX_SAID}", "news 0"]


@pytest.mark.parametrize(
    ("settings", "to"),
    [
        pytest.param({"escalation": LEAD_FIRST}, "lead", id="the first of the chain of P1"),
        pytest.param({"escalation": {}}, "oncall", id="those on call, where the site has no chain"),
    ],
)
@pytest.mark.parametrize("severity", ["P1", "P3"])
def test_what_concerns_more_than_its_incident(severity: str, settings: dict[str, Any], to: str) -> None:
    """The chain of P1 hears it at once, whatever the incident is, and though its value was paged for another one."""
    it = Pager(**settings)
    it.state.paged_once = {VALUE: {"n1": BEGAN - 60, "n2": BEGAN - 60}}
    incident = it.knows("a", severity, page_once=VALUE)
    for _ in range(2):
        it.handles(lambda ctx: escalation.urgent(ctx, incident, "the breaker has tripped"))
    assert said(it) == [("open", to, "the breaker has tripped")]
    it.handles(lambda ctx: escalation.urgent(ctx, incident, "and again"))
    other = it.knows("b", severity, page_once=VALUE)
    it.handles(lambda ctx: escalation.urgent(ctx, other, "here, too"))
    assert said(it)[1:] == [("update", to, "and again"), ("open", to, "here, too")]


@pytest.mark.parametrize(
    ("paged", "then"),
    [
        pytest.param([], [("open", "oncall")], id="nobody was paged: the chain is"),
        pytest.param(["spares"], [("open", "oncall")], id="a group outside the chain was"),
        pytest.param(["oncall"], [("update", "oncall")], id="those on call read it"),
        pytest.param(["lead"], [("update", "lead")], id="or whoever else of the chain was paged"),
        pytest.param(
            ["oncall", "lead", "manager"],
            [("update", "oncall"), ("update", "lead"), ("update", "manager")],
            id="all of them",
        ),
    ],
)  # fmt: skip
def test_when_gpuward_gives_up(paged: list[str], then: list[tuple[str, str]]) -> None:
    """Somebody reads it: people must act now. And once: nothing new is said the second time."""
    it = Pager()
    incident = it.knows("a")
    for to in paged:
        it.pages("a", "open", "it is lost", to=to)
    it.sent.clear()
    it.handles(lambda ctx: escalation.gave_up(ctx, incident, "three tries"))
    assert said(it) == [(*one, "gpuward gave up: three tries") for one in then]


def test_what_is_raised_out_of_a_digest_begins_its_chain() -> None:
    """Nobody was woken so far: the repeats and the lead's deadline count from now."""
    it = Pager(**TICKETS)
    (incident,) = it.opens("a", severity="P2")
    it.passes(1000)
    it.raises("a", "P1")
    assert incident.pages.first_at == BEGAN + 1000
    assert it.told() == ["0 open tickets a", "1000 update tickets a", "1000 open oncall a"]
    assert it.timers == {"page:a": 1300, "escalate:a": 1300}


@pytest.mark.parametrize(
    ("digests", "before", "after"),
    [
        pytest.param((), "P2", "P1", id="it was never in a digest"),
        pytest.param(("P2", "P3"), "P3", "P2", id="it goes from digest to digest"),
    ],
)
def test_what_is_raised_otherwise_goes_on(digests: tuple[str, ...], before: str, after: str) -> None:
    """By the time of its first page."""
    digest = Digest(to="tickets", hours=(), every_s=0)
    it = Pager(digests={Priority(one): digest for one in digests})
    (incident,) = it.opens("a", severity=before)
    it.passes(100)
    it.raises("a", after)
    assert incident.pages.first_at == BEGAN
    assert it.timers["page:a"] == 300


@pytest.mark.parametrize(
    ("severity", "state", "repeats"),
    [
        pytest.param("P1", IncidentState.OPEN, 2, id="it is there"),
        pytest.param("P1", IncidentState.NEEDS_HUMAN, 2, id="it waits for people"),
        pytest.param("P1", IncidentState.RECOVERED, 0, id="it has recovered"),
        pytest.param("P2", IncidentState.OPEN, 0, id="a digest is not repeated"),
    ],
)
def test_which_incidents_are_repeated(severity: str, state: IncidentState, repeats: int) -> None:
    """Nobody is called again for what is over, if it stays so; but the repeats are ready for when it comes back."""
    it = Pager(**TICKETS, page_repeats=(Priority.P1, Priority.P2), escalation={})
    (incident,) = it.opens("a", severity=severity)
    incident.state = state
    it.passes(700)
    assert len(it.told("repeat")) == repeats
    assert it.timers["page:a"] == 1200


@pytest.mark.parametrize(
    ("severity", "repeats"),
    [pytest.param("P1", True, id="repeated"), pytest.param("P3", False, id="of a severity that is not")],
)
def test_which_alert_groups_are_repeated(severity: str, *, repeats: bool) -> None:
    """As its most urgent incident is."""
    it = Pager(group_at_least=1, group_within_s=30, escalation={})
    it.opens("a", "b", severity=severity)
    it.passes(331)
    assert len(it.told("repeat")) == repeats

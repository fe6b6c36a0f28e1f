"""A fault that people know, which a shared cause explains for a while: it is the same incident before and after."""

from dataclasses import replace

import pytest

from brain.core.index import Index
from brain.core.inputs import PackLoaded
from brain.core.pack.spec import Place
from brain.core.state import Incident, IncidentState
from tests.brain.world import Story, pack

LEAF = {f"n{number}": Place(leaf="l1") for number in range(6)}
OTHERS = ("n1", "n2", "n3")
WENT_S = 400.0  # a cable that was bad for so long, when the switch goes


def a_bad_cable_and_its_switch(*, acked: bool, back_at: float = WENT_S + 90) -> Story:
    """The link of n0 goes down and gpuward gives up; then those of three others do, and come back after a minute and a half."""
    story = Story(pack(places=LEAF), heals=False)
    story.event(10, "link.state", "link/eth1", "n0", up=False)
    story.run(WENT_S - 10)
    (cable,) = story.incidents("link-down")
    assert cable.state is IncidentState.NEEDS_HUMAN
    if acked:
        story.say(WENT_S - 5, "ack", id=cable.id)
    for node in OTHERS:
        story.event(WENT_S, "link.state", "link/eth1", node, up=False)
        story.event(back_at, "link.state", "link/eth1", node, up=True)
    return story


def of_n0(story: Story) -> list[Incident]:
    """The incidents of the bad cable."""
    return [one for one in story.incidents("link-down") if one.node == "n0"]


def pages(story: Story, incident: Incident) -> list[tuple[str, str]]:
    """(what, text) of its pages."""
    return [(page.what, page.text) for page in story.time.pages if page.subject.id == incident.id]


def test_the_switch_is_well_as_soon_as_what_it_took_down_is_up() -> None:
    """The cable that was bad a minute before is no part of what spread: it does not keep the switch under suspicion."""
    story = a_bad_cable_and_its_switch(acked=False)
    story.run(WENT_S + 50)
    (switch,) = story.incidents("shared-link-down-leaf")
    assert switch.state is not IncidentState.RECOVERED
    assert of_n0(story)[0].state is IncidentState.EXPLAINED
    story.run(WENT_S + 91)
    assert story.incidents("shared-link-down-leaf")[0].state is IncidentState.RECOVERED


@pytest.mark.parametrize("acked", [True, False])
def test_the_fault_is_the_same_incident_afterwards(acked: bool) -> None:
    """With its history: gpuward does not try again what it gave up, and whoever had acknowledged it has it still."""
    story = a_bad_cable_and_its_switch(acked=acked)
    story.run(WENT_S + 50)
    (before,) = of_n0(story)
    before = replace(before, runs=[*before.runs])
    done = len(story.performed)
    story.run(WENT_S + 600)
    (after,) = of_n0(story)
    assert after.id == before.id
    assert (after.state, after.explained_by, after.closed_at) == (IncidentState.NEEDS_HUMAN, "", 0)
    assert after.runs == before.runs
    assert not [one for one in story.performed[done:] if one.step.node == "n0"]
    assert after.pages.acked_by == ("ann" if acked else "")


def test_who_acknowledged_it_is_not_called_again() -> None:
    """It is told when another cause explains it, and when that is over. Its alert is not resolved in between."""
    story = a_bad_cable_and_its_switch(acked=True)
    story.run(WENT_S - 1)
    sent = len(pages(story, of_n0(story)[0]))
    story.run(WENT_S + 1500)
    (cable,) = of_n0(story)
    (switch,) = story.incidents("shared-link-down-leaf")
    assert pages(story, cable)[sent:] == [
        ("update", f"shared-link-down-leaf at leaf/l1 explains it (incident {switch.id})"),
        (
            "update",
            f"shared-link-down-leaf at leaf/l1 is over, and this is still there (incident {switch.id})",
        ),
    ]


def test_what_nobody_acknowledged_pages_again() -> None:
    """Its alert was resolved while the shared cause stood for it: a new one opens, which says what gpuward had tried."""
    story = a_bad_cable_and_its_switch(acked=False)
    story.run(WENT_S - 1)
    sent = len(pages(story, of_n0(story)[0]))
    story.run(WENT_S + 1000)
    (cable,) = of_n0(story)
    whats = [what for what, _ in pages(story, cable)[sent:]]
    assert whats == ["resolve", "open"]
    assert "gpuward gave up" in pages(story, cable)[sent + 1][1]


@pytest.mark.parametrize("acked", [True, False])
def test_a_fault_that_ends_meanwhile_is_over(acked: bool) -> None:
    """Its alert ends with it, if it had not ended before; nothing of it is remembered."""
    story = a_bad_cable_and_its_switch(acked=acked)
    story.event(WENT_S + 40, "link.state", "link/eth1", "n0", up=True)
    story.run(WENT_S + 50)
    (cable,) = of_n0(story)
    assert (cable.state, cable.pages.resolved) == (IncidentState.EXPLAINED, True)
    assert cable.id not in story.engine.state.incidents
    story.event(WENT_S + 5000, "link.state", "link/eth1", "n0", up=False)
    story.run(WENT_S + 5100)
    assert len(of_n0(story)) == 2, "what comes later is another fault"


def test_what_nobody_had_heard_of_is_not_kept() -> None:
    """A storm's single faults, which the shared cause explains before anybody is told of them."""
    story = a_bad_cable_and_its_switch(acked=False, back_at=WENT_S + 3000)
    story.run(WENT_S + 600)
    kept = [one for one in story.engine.state.incidents.values() if one.state is IncidentState.EXPLAINED]
    assert [one.node for one in kept] == ["n0"]


@pytest.mark.parametrize("acked", [True, False])
@pytest.mark.parametrize("cause", ["link-down", "cable"])
def test_rules_that_change_meanwhile(cause: str, acked: bool) -> None:
    """It is the same incident if its rule is there still; what it was told for is over if the rule names another cause."""
    story = a_bad_cable_and_its_switch(acked=acked)
    story.run(WENT_S + 50)
    before = pack(places=LEAF)
    rules = tuple(replace(one, cause=cause) if one.name == "link-down" else one for one in before.rules)
    story.time.feed(PackLoaded(id="pack-2", pack=replace(before, rules=rules, version="p2")), WENT_S + 60)
    story.run(WENT_S + 600)
    (cable,) = of_n0(story)
    same = cause == "link-down"
    assert (cable.state is IncidentState.NEEDS_HUMAN, cable.pages.resolved) == (same, not same)
    assert [one.node for one in story.incidents("cable")] == ([] if same else ["n0"])
    assert (cable.id in story.engine.state.incidents) == same


def test_the_same_after_a_restart() -> None:
    """What is kept stands in the state: a brain that begins with a snapshot finds it."""
    story = a_bad_cable_and_its_switch(acked=True)
    story.run(WENT_S + 50)
    here = Index(story.engine.state).explained["n0"]
    assert [one.node for one in here.values()] == ["n0"]

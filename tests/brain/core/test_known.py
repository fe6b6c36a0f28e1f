"""A fault that people know, which a shared cause explains for a while: afterwards they know of it still."""

from dataclasses import replace

import pytest

from brain.core.inputs import PackLoaded
from brain.core.pack.spec import Match, Pack, Paging, Place, Priority, Symptom
from brain.core.state import Incident, IncidentState
from tests.brain.world import Story, pack, rule

LEAF = {f"n{number}": Place(leaf="l1") for number in range(6)}
OTHERS = ("n1", "n2", "n3")
WENT_S = 400.0  # a cable that was bad for so long, when the switch goes
AFTER_S = WENT_S + 1500


def a_bad_cable_and_its_switch(*, acked: bool, by: Pack | None = None) -> Story:
    """The link of n0 goes down and gpuward gives up; then those of three others do, and come back after a minute and a half."""
    story = Story(by or pack(places=LEAF), heals=False)
    story.event(10, "link.state", "link/eth1", "n0", up=False)
    story.run(WENT_S - 10)
    (cable,) = story.incidents("link-down")
    assert cable.state is IncidentState.NEEDS_HUMAN
    if acked:
        story.say(WENT_S - 5, "ack", id=cable.id)
    for node in OTHERS:
        story.event(WENT_S, "link.state", "link/eth1", node, up=False)
        story.event(WENT_S + 90, "link.state", "link/eth1", node, up=True)
    return story


def of_n0(story: Story) -> list[Incident]:
    """The incidents of the bad cable."""
    return [one for one in story.incidents("link-down") if one.node == "n0"]


def pages(story: Story, incident: Incident) -> list[str]:
    """What its pages are."""
    return [page.what for page in story.time.pages if page.subject.id == incident.id]


def test_who_had_acknowledged_it_is_told_once_and_not_called_again() -> None:
    """Its alert ended when the switch explained it, as it stood before: a new one opens, and is theirs at once."""
    story = a_bad_cable_and_its_switch(acked=True)
    story.run(AFTER_S)
    before, after = of_n0(story)
    assert before.state is IncidentState.EXPLAINED
    assert (after.state, after.pages.acked_by) == (IncidentState.NEEDS_HUMAN, "ann")
    assert pages(story, after) == ["open", "ack", "update"]
    assert f"acknowledged by ann, as {before.id} of the same fault was" in story.notes("page.acked")


def test_what_nobody_had_acknowledged_is_nobodys() -> None:
    """It pages as any other incident."""
    story = a_bad_cable_and_its_switch(acked=False)
    story.run(AFTER_S)
    after = of_n0(story)[-1]
    assert not after.pages.acked_by
    assert pages(story, after) == ["open", "update"]


def test_a_fault_that_comes_back_is_another_one() -> None:
    """Whoever knew that the cable was bad does not know that it is bad again, though the switch still explains it."""
    story = a_bad_cable_and_its_switch(acked=True)
    story.event(WENT_S + 40, "link.state", "link/eth1", "n0", up=True)
    story.event(WENT_S + 60, "link.state", "link/eth1", "n0", up=False)
    story.run(AFTER_S)
    before, after = of_n0(story)
    assert (before.pages.acked_by, after.pages.acked_by) == ("ann", "")


@pytest.mark.parametrize("to", [Priority.P0, Priority.P3])
def test_what_is_more_urgent_than_before_calls_people(to: Priority) -> None:
    """They have acknowledged something less urgent."""
    story = a_bad_cable_and_its_switch(acked=True)
    story.run(WENT_S + 50)
    before = pack(places=LEAF)
    rules = tuple(replace(one, severity=to) if one.name == "link-down" else one for one in before.rules)
    story.time.feed(PackLoaded(id="pack-2", pack=replace(before, rules=rules, version="p2")), WENT_S + 60)
    story.run(AFTER_S)
    assert of_n0(story)[-1].pages.acked_by == ("" if to is Priority.P0 else "ann")


def test_what_becomes_more_urgent_before_its_first_page_calls_people() -> None:
    """A worse rule of the same cause joins the new incident during its hold-off: what was acknowledged was less urgent."""
    plain = pack(places=LEAF)
    torn = Symptom(name="torn", scope="link", summary="torn", on=(Match(kind="gpu.hot"),), ttl_s=9000)
    worse = rule(
        "link-worse",
        "link",
        {"all": [{"symptom": "link_down"}, {"symptom": "torn"}]},
        severity=Priority.P0,
        cause="link-down",
        page=Paging.OPEN,
    )
    held = [replace(one, hold_off_s=60) if one.name == "link-down" else one for one in plain.rules]
    story = a_bad_cable_and_its_switch(
        acked=True, by=replace(plain, symptoms=(*plain.symptoms, torn), rules=(*held, worse))
    )
    at = WENT_S
    while len(of_n0(story)) < 2:
        at += 5
        story.run(at)
    assert of_n0(story)[-1].pages.acked_by == "ann"
    story.event(at + 5, "gpu.hot", "link/eth1", "n0")
    story.run(at + 1000)
    after = of_n0(story)[-1]
    assert (after.severity, after.pages.acked_by) == (Priority.P0, "")
    assert pages(story, after).count("repeat") > 0, "nobody has answered this one"


def test_a_rule_that_is_removed_takes_along_what_was_known_of_its_faults() -> None:
    """The fault ends while no rule says so; when the rule is there again, the next fault is another one."""
    story = a_bad_cable_and_its_switch(acked=True)
    before = pack(places=LEAF)
    without = tuple(one for one in before.rules if one.name != "link-down")
    story.time.feed(PackLoaded(id="p2", pack=replace(before, rules=without, version="p2")), WENT_S + 35)
    story.event(WENT_S + 40, "link.state", "link/eth1", "n0", up=True)
    story.time.feed(PackLoaded(id="p3", pack=replace(before, version="p3")), WENT_S + 55)
    story.event(WENT_S + 60, "link.state", "link/eth1", "n0", up=False)
    story.run(AFTER_S)
    assert not of_n0(story)[-1].pages.acked_by


def test_it_is_forgotten_with_the_fault() -> None:
    """Nothing is left of it when all is well (law: forget)."""
    story = a_bad_cable_and_its_switch(acked=True)
    story.event(WENT_S + 200, "link.state", "link/eth1", "n0", up=True)
    story.run(WENT_S + 90_000)
    assert story.engine.state.fault_free()


@pytest.mark.parametrize("new_leaf_is_well", [True, False])
def test_what_is_known_of_a_node_moves_with_it_at_once(*, new_leaf_is_well: bool) -> None:
    """The cable's node stands at another leaf: the switch that is down explains it no more, and goes on without it."""
    places = LEAF | {f"m{number}": Place(leaf="l2") for number in range(5)}
    story = Story(pack(places=places), heals=False)
    story.event(10, "link.state", "link/eth1", "n0", up=False)
    story.run(WENT_S - 10)
    story.say(WENT_S - 5, "ack", id=of_n0(story)[0].id)
    down = OTHERS if new_leaf_is_well else (*OTHERS, "m1", "m2", "m3", "m4")
    for node in down:
        story.event(WENT_S, "link.state", "link/eth1", node, up=False)
    story.run(WENT_S + 60)
    moved = pack(places=places | {"n0": Place(leaf="l2")}, version="p2")
    story.time.feed(PackLoaded(id="p2", pack=moved), WENT_S + 100)
    story.run(WENT_S + 300)
    if new_leaf_is_well:
        assert of_n0(story)[-1].state is IncidentState.NEEDS_HUMAN
        assert of_n0(story)[-1].pages.acked_by == "ann"
        assert pages(story, of_n0(story)[-1])[:2] == ["open", "ack"]
    for node in down:
        story.event(WENT_S + 400, "link.state", "link/eth1", node, up=True)
    story.run(AFTER_S)
    assert of_n0(story)[-1].pages.acked_by == "ann"
    assert not any("repeat" in pages(story, one) for one in of_n0(story)[1:])

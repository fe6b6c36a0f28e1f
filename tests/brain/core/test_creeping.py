"""A leaf switch that loses one port after the other is suspected at the third, where no other switch loses any."""

from dataclasses import replace
from itertools import count as counting
from typing import Any

import pytest

from brain.adapters.snapshot import dump, parse
from brain.core.engine import Engine
from brain.core.inputs import NodeState, Pulse
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Place
from tests.brain.world import Story
from tests.brain.world import pack as plain_pack

MINUTE = 60.0


def site(nodes: int, leaf: int = 32, **settings: Any) -> Story:
    """Nodes under leaf switches; no remedy helps."""
    places = {f"n{n}": Place(leaf=f"l{n // leaf}") for n in range(nodes)}
    story = Story(plain_pack(places=places, **settings), heals=False)
    for number in range(nodes):
        story.time.feed(NodeState(id=f"h{number}", node=f"n{number}", alive=True), 1)
    story.run(2)
    return story


def fall(story: Story, nodes: list[int], every_s: float) -> list[str]:
    """These nodes lose a link for good, one after the other. The leaf switches that are suspected in the end."""
    for number, at in zip(nodes, counting(1000, every_s), strict=False):
        story.event(at, "link.state", "link/eth0", f"n{number}", up=False)
    story.run(1000 + every_s * len(nodes) + 300)
    return [one.scope for one in story.incidents() if one.scope.startswith("leaf/")]


@pytest.mark.parametrize(
    ("size", "nodes", "every_s", "leafs"),
    [
        pytest.param(512, [0, 5, 9], 12 * MINUTE, ["leaf/l0"], id="three of one of sixteen switches"),
        pytest.param(512, [0, 5], 12 * MINUTE, [], id="two may be chance"),
        pytest.param(512, [0, 5, 40], 12 * MINUTE, [], id="the third is elsewhere"),
        pytest.param(512, [0, 40, 5, 100, 9, 200], 12 * MINUTE, [], id="as many elsewhere"),
        pytest.param(512, [0, 5, 9], 4 * 60 * MINUTE, [], id="over half a day"),
        pytest.param(64, [0, 5, 9], 12 * MINUTE, [], id="of two switches it is chance"),
        pytest.param(32, [0, 5, 9], 12 * MINUTE, [], id="there is only one"),
    ],
)
def test_when_a_switch_is_suspected(size: int, nodes: list[int], every_s: float, leafs: list[str]) -> None:
    """By how likely it is that chance has chosen its nodes."""
    assert fall(site(size), nodes, every_s) == leafs


def test_it_is_told_why() -> None:
    """How many here, how many elsewhere, within what time, and how likely that is."""
    story = site(512)
    fall(story, [0, 5, 9], 12 * MINUTE)
    (note,) = [note for note in story.time.notes if note.kind == "place.suspected"]
    assert note.text == (
        "3 of 32 nodes of leaf/l0 fell ill within 24 minutes, one after the other, and 0 of 480 others "
        "(Fisher's exact test, over all such places: p = 0.004)"
    )


def test_it_lasts_while_two_show_it() -> None:
    """And is over with the last but one."""
    story = site(512)
    fall(story, [0, 5, 9], 12 * MINUTE)
    end = story.time.now
    story.event(end + 10, "link.state", "link/eth0", "n0", up=True)
    story.run(end + 1000)
    assert [one.state for one in story.incidents() if one.scope == "leaf/l0"] == ["open"]
    story.event(end + 1010, "link.state", "link/eth0", "n5", up=True)
    story.run(end + 3000)
    assert [one.state for one in story.incidents() if one.scope == "leaf/l0"] == ["closed"]


def twins(count: int, **settings: Any) -> Story:
    """Servers of which two share a chassis. That a node is silent accuses its chassis."""
    places = {f"n{n}": Place(chassis=f"c{n // 2}") for n in range(count)}
    given = plain_pack(places=places, **settings)
    symptoms = tuple(
        replace(one, accuses=("chassis",)) if one.name == "silent" else one for one in given.symptoms
    )
    story = Story(replace(given, symptoms=symptoms), heals=False)
    for number in range(count):
        story.time.feed(NodeState(id=f"h{number}", node=f"n{number}", alive=True), 1)
    story.run(2)
    return story


def silent(story: Story, nodes: list[int], every_s: float) -> list[str]:
    """These nodes fall silent for good, one after the other. The chassis that are suspected in the end."""
    for number, at in zip(nodes, counting(1000, every_s), strict=False):
        story.time.feed(NodeState(id=f"s{number}", node=f"n{number}", alive=False), at)
    story.run(1000 + every_s * len(nodes) + 300)
    return [one.scope for one in story.incidents() if one.scope.startswith("chassis/")]


@pytest.mark.parametrize(
    ("count", "nodes", "every_s", "chassis"),
    [
        pytest.param(512, [8, 9], 60 * MINUTE, ["chassis/c4"], id="both of one of 256"),
        pytest.param(512, [8, 20], 60 * MINUTE, [], id="of two"),
        pytest.param(512, [8], 60 * MINUTE, [], id="one alone"),
        pytest.param(512, [8, 9], 7 * 60 * MINUTE, [], id="over a day"),
        pytest.param(512, [8, 40, 60, 80, 9], 10 * MINUTE, [], id="while others are, too"),
        pytest.param(64, [8, 9], 60 * MINUTE, [], id="of 32 chassis it is chance"),
    ],
)
def test_when_a_chassis_of_two_nodes_is_suspected(
    count: int, nodes: list[int], every_s: float, chassis: list[str]
) -> None:
    """Both of its nodes show it, and hardly any other: chance seldom chooses two neighbours."""
    assert silent(twins(count), nodes, every_s) == chassis


def test_what_does_not_accuse_a_chassis_makes_none_of_two_nodes() -> None:
    """A job that runs on just these two nodes breaks both their links, or their services."""
    story = twins(512)
    for number, at in ((8, 1000), (9, 4600)):
        story.event(at, "link.state", "link/eth0", f"n{number}", up=False)
    story.run(9000)
    assert [one.scope for one in story.incidents() if one.scope.startswith("chassis/")] == []


def in_turn(story: Story, nodes: list[int], lasts_s: float) -> list[Any]:
    """These nodes lose a link for so long, one every four minutes. The incidents of leaf switches in the end."""
    for number, at in zip(nodes, counting(1000, 4 * MINUTE), strict=False):
        story.event(at, "link.state", "link/eth0", f"n{number}", up=False)
        story.event(at + lasts_s, "link.state", "link/eth0", f"n{number}", up=True)
        story.run(at + lasts_s + 1)
    story.run(story.time.now + 600)
    return [one for one in story.incidents() if one.scope.startswith("leaf/")]


@pytest.mark.parametrize(
    ("nodes", "lasts_s", "suspected"),
    [
        pytest.param([0, 5, 9, 14, 20, 21], 60, True, id="six in turn, for a minute each"),
        pytest.param([0, 5], 60, False, id="two"),
        pytest.param([0, 40, 5, 100, 9, 200, 70, 300], 60, False, id="as many elsewhere"),
    ],
)
def test_what_comes_and_goes_in_turn_is_the_switch(nodes: list[int], lasts_s: float, suspected: bool) -> None:
    """Though never two of its ports are down: people hear of it, and not of each port."""
    story = site(512)
    incidents = in_turn(story, nodes, lasts_s)
    assert bool(incidents) is suspected
    told = [page for page in story.time.pages if page.subject.scope == "leaf/l0" and "resolve" not in page.id]
    assert bool(told) is suspected


def test_what_people_have_mended_does_not_count() -> None:
    """Two ports were down for a quarter of an hour, and are well when the third one goes."""
    story = site(512)
    for number, at in ((0, 1000), (5, 1900), (9, 2800)):
        story.event(at, "link.state", "link/eth0", f"n{number}", up=False)
        story.event(at + 15 * MINUTE - 1, "link.state", "link/eth0", f"n{number}", up=True)
        story.run(at + 15 * MINUTE - 1)
    story.run(6000)
    assert [one.scope for one in story.incidents() if one.scope.startswith("leaf/")] == []


def test_what_came_and_went_is_forgotten() -> None:
    """By a timer, and over a restart."""
    story = site(512)
    in_turn(story, [0, 40], 60)
    kept = story.engine.state.passed
    assert kept
    assert all(len(nodes) <= 2 for nodes in kept.values())
    story.engine = story.time.engine = Engine(parse(dump(story.engine.state)), actions=ACTIONS)
    assert story.engine.state.passed == kept
    end = story.time.now + 13 * 3600
    story.run(end)
    story.engine.handle(Pulse(id="pulse"), end)
    assert story.engine.state.passed == {}


def test_a_node_that_is_gone_for_good_counts_no_more() -> None:
    """Neither as one that came and went."""
    story = site(512)
    in_turn(story, [0, 40], 60)
    story.time.feed(NodeState(id="gone", node="n0", alive=False, silent_s=15), story.time.now + 10)
    story.say(story.time.now + 700, "forget", node="n0", why="it went back to its vendor")
    story.run(story.time.now + 800)
    assert not any("n0" in nodes for nodes in story.engine.state.passed.values())

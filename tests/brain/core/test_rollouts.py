"""Nodes that fall silent one after the other and come back with another version are rolled out to, and no emergency."""

from typing import Any

import pytest

from brain.adapters.snapshot import dump, parse
from brain.core.engine import Engine
from brain.core.inputs import NodeState, Pulse
from brain.core.pack.actions import ACTIONS
from simulations.scenarios.timeline import USUAL
from tests.brain.world import Story
from tests.shipped import shipped_pack

MINUTE = 60.0
NODES = 64
AWAY_S = 6 * MINUTE


def site() -> Story:
    """Nodes that have told their BIOS."""
    story = Story(shipped_pack(), heals=False)
    for number in range(NODES):
        story.time.feed(NodeState(id=f"h{number}", node=f"n{number}", alive=True), 1)
        tells(story, 2, number, "F17")
    return story.run(10)


def tells(story: Story, at: float, number: int, bios: str, **more: Any) -> None:
    """A node tells its versions."""
    story.event(at, "node.inventory", "node", f"n{number}", **{**USUAL, "digest": bios, "bios": bios, **more})


def falls_silent(story: Story, at: float, number: int) -> None:
    """For good, as far as one knows."""
    story.time.feed(NodeState(id=f"s{number}-{at}", node=f"n{number}", alive=False, silent_s=15), at)


def returns(story: Story, at: float, number: int, bios: str = "F18") -> None:
    """A node is heard again, and tells a version."""
    story.time.feed(NodeState(id=f"r{number}-{at}", node=f"n{number}", alive=True), at)
    tells(story, at + 30, number, bios)


def upgraded(story: Story, numbers: range, start: float = 1000.0) -> float:
    """They get a new BIOS, one a minute. Returns when the last one is back."""
    for number in numbers:
        at = start + number * MINUTE
        falls_silent(story, at, number)
        returns(story, at + AWAY_S, number)
    end = start + (len(numbers) - 1) * MINUTE + AWAY_S + 30
    story.run(end)
    return end


def paged(story: Story, number: int) -> bool:
    """Whether people were called for a node."""
    return any(page.subject.node == f"n{number}" for page in story.time.pages)


@pytest.mark.parametrize("again", [False, True], ids=["", "over a restart"])
def test_the_next_one_calls_nobody(again: bool) -> None:
    """It waits twice as long as the others were away; then it is told."""
    story = site()
    end = upgraded(story, range(3))
    if again:
        story.engine = Engine(parse(dump(story.engine.state)), actions=ACTIONS)
        story.time.engine = story.engine
    falls_silent(story, end, 30)
    story.run(end + 2 * AWAY_S - 30)
    assert not paged(story, 30)
    waits = [text for text in story.notes("incident.waits") if "n30" in text]
    assert waits == [
        "bios F18 is rolled out: 3 nodes came back with it after 6 minutes at most, and n30 may be the next one"
    ]
    story.run(end + 2 * AWAY_S + MINUTE)
    assert paged(story, 30)


@pytest.mark.parametrize(
    ("done", "bios", "together"),
    [
        pytest.param(1, "F17", 1, id="one node alone may have made it up"),
        pytest.param(3, "F18", 1, id="it has the version already"),
        pytest.param(3, "F17", 3, id="more than twice as many fall silent together"),
    ],
)
def test_who_is_none_of_them(done: int, bios: str, together: int) -> None:
    """Such a node is told as any other."""
    story = site()
    end = upgraded(story, range(done))
    for number in range(30, 30 + together):
        tells(story, end + 1, number, bios)
        falls_silent(story, end + 2, number)
    story.run(end + 4 * MINUTE)
    assert any(
        page.subject.cause == "node-unreachable" and page.subject.node in ("n30", "n31", "n32")
        for page in story.time.pages
    )


def test_who_was_installed_anew_says_nothing_of_the_next_one() -> None:
    """Two nodes were away for six hours and are back with another version; the one that hangs then is told at once."""
    story = site()
    for number in range(2):
        falls_silent(story, 1000, number)
        returns(story, 1000 + 6 * 3600, number)
    falls_silent(story, 1000 + 6 * 3600 + 600, 30)
    story.run(1000 + 6 * 3600 + 720)
    assert paged(story, 30)


@pytest.mark.parametrize("every_s", [0, 1, 4], ids="every {} s".format)
def test_where_more_fall_silent_than_it_explains_all_of_them_count(every_s: float) -> None:
    """Also the first ones, which were taken for the next batch."""
    story = site()
    end = upgraded(story, range(3))
    for number in range(30, 42):
        falls_silent(story, end + 10 + every_s * (number - 30), number)
    story.run(end + 60)
    (counted,) = (
        one for key, one in story.engine.state.symptoms.items() if key.endswith("unreachable_cell@cell")
    )
    assert len(counted.members) == 12


def test_a_node_that_is_back_as_it_was_says_nothing() -> None:
    """Nodes that restart and tell the same versions are no roll-out."""
    story = site()
    for number in range(3):
        falls_silent(story, 1000 + number * MINUTE, number)
        returns(story, 1000 + number * MINUTE + AWAY_S, number, "F17")
    story.run(2000)
    assert story.engine.state.rollouts == {}


def test_it_is_over_an_hour_after_the_last_one() -> None:
    """Nothing is left of it, by a timer."""
    story = site()
    end = upgraded(story, range(3))
    assert [*story.engine.state.rollouts] == ["bios F18"]
    story.run(end + 2 * 3600)
    story.engine.handle(Pulse(id="pulse"), end + 2 * 3600)
    assert (story.engine.state.rollouts, story.engine.state.silent) == ({}, {})

"""The tail of a shared cause: a node of it that shows the fault a little later is no news until it lasts."""

from dataclasses import replace
from typing import Any

import pytest

from brain.core.pack.spec import Mode, Paging, Priority
from tests.brain.core.test_returns import NODES, PLACES, links, pages_at
from tests.brain.world import Story, pack

BACK = 1000.0  # when the leaf switch is back
OVER = BACK + 30  # and its incident is over


def site(
    mode: Mode = Mode.OBSERVE, severity: Priority = Priority.P1, *, left: int = 0, **settings: Any
) -> Story:
    """64 nodes, eight under each leaf switch; the first switch is down for a quarter of an hour. `left`: nodes that are not up
    with the others.
    """
    given = pack(mode=mode, places=PLACES, **settings)
    rules = tuple(
        replace(one, severity=severity, page=Paging.OPEN) if one.name == "link-down" else one
        for one in given.rules
    )
    story = Story(replace(given, rules=rules), heals=False)
    for node in NODES:
        story.event(1, "agent.started", "node", node)
    links(story, NODES[:8], 100)
    story.run(BACK - 1)
    links(story, NODES[left:8], BACK, up=True)
    return story


def late(story: Story, node: str, at: float, lasts_s: float) -> list[tuple[str, float]]:
    """A link is down once more. What people are told of it: (kind of page, seconds after the switch's end)."""
    story.run(at - 1)
    links(story, [node], at)
    story.run(at + lasts_s - 1)
    links(story, [node], at + lasts_s, up=True)
    story.run(at + lasts_s + 20_000)
    return [
        (page.what, round(when - OVER))
        for when, page in pages_at(story)
        if page.subject.node == node and page.what != "repeat"
    ]


@pytest.mark.parametrize(
    ("node", "after_s", "lasts_s", "told"),
    [
        pytest.param(0, -20, 60, [], id="before its incident is over"),
        pytest.param(0, 60, 100, [], id="a minute later"),
        pytest.param(0, 60, 900, [("open", 301)], id="and lasts"),
        pytest.param(0, 400, 60, [("open", 401)], id="long after"),
        pytest.param(9, 60, 100, [("open", 61)], id="under another switch"),
    ],
)
def test_a_late_node_of_it_is_told_when_it_lasts(
    node: int, after_s: float, lasts_s: float, told: list[tuple[str, float]]
) -> None:
    """What was over within five minutes of its end belongs to it; another place's node waits for nothing."""
    found = late(site(), NODES[node], OVER + after_s, lasts_s)
    assert [one for one in found if one[0] == "open"] == told


def test_what_it_has_left_behind_is_no_tail() -> None:
    """The port of one node has not come up with the others: it is told and healed as soon as the shared cause is over."""
    story = site(Mode.AUTO, left=1)
    story.run(OVER + 60)
    assert ("link.bounce", NODES[0]) in [(one.step.action, one.step.node) for one in story.performed]


def test_what_it_has_left_behind_names_it() -> None:
    """Whoever is called for the node hears that its switch was down; not for a node that fell ill afterwards, or elsewhere."""
    story = site(left=1)
    story.run(OVER + 60)
    links(story, [NODES[9]], OVER + 61)
    story.run(OVER + 400)
    links(story, [NODES[1]], OVER + 401)
    story.run(OVER + 500)
    leaf = next(one for one in story.incidents() if one.scope == "leaf/l0")
    told = {one.node: one for one in story.incidents() if one.node}
    clause = f"shared-link-down-leaf at leaf/l0 ({leaf.id}) is over, and here it has stayed"
    assert {node for node, one in told.items() if clause in one.because} == {NODES[0]}
    assert {NODES[1], NODES[9]} <= told.keys()
    assert f"leaf/l0 的 shared-link-down-leaf（{leaf.id}）已经结束" in told[NODES[0]].past_zh


def test_it_is_told_why_it_waits_and_nothing_is_done_meanwhile() -> None:
    """With the shared cause's incident, by which people find it."""
    story = site(Mode.AUTO)
    story.run(OVER + 59)
    links(story, NODES[:1], OVER + 60)
    story.run(OVER + 299)
    leaf = next(one for one in story.incidents() if one.scope == "leaf/l0")
    (note,) = [note for note in story.time.notes if note.kind == "incident.waits" and "tail" in note.text]
    assert note.text == (
        f"it may be the tail of shared-link-down-leaf on leaf/l0 ({leaf.id}): "
        "it is told if it lasts for more than 5 minutes after that"
    )
    assert story.performed == []
    story.run(OVER + 900)
    assert story.performed != []


def test_what_is_more_urgent_than_the_shared_cause_does_not_wait() -> None:
    """Nobody was called for anything like it."""
    found = late(site(severity=Priority.P0), NODES[0], OVER + 60, 100)
    assert found[0] == ("open", 61)


def test_a_site_where_what_comes_back_is_always_new_has_no_tails() -> None:
    """It remembers no end."""
    found = late(site(reopens_s=0.0), NODES[0], OVER + 60, 100)
    assert found[0] == ("open", 61)

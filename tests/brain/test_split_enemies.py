"""A fleet-split that an operator has closed hides no other drift."""

import time
from typing import Any

from agent.contract.messages import Severity
from brain.core.faults import asking
from brain.core.state import IncidentState
from tests.brain.straggler_kit import NODES, PACK
from tests.brain.world import Story
from tests.yardstick import slowness

DAY = 86_400.0
USUAL: dict[str, Any] = {
    "digest": "5f0c2a91d3b7", "changed": False, "kernel": "5.15.0-1053", "driver": "550.90.07", "gpus": 8,
    "gpu_models": "8 NVIDIA H100", "nics": 9, "nic_firmware": "9 MT4129 28.39.1002", "cpus": 192, "memory_mb": 2063880,
    "product": "G593-SD0", "bios": "F17",
}  # fmt: skip
CLOSED_AT = 1.3 * DAY


def tells(story: Story, at: float, node: str, **changed: Any) -> None:
    """A node's inventory."""
    story.event(at, "node.inventory", "node", node, severity=Severity.INFO, **(USUAL | changed))


def closed(before: str = "") -> Story:
    """Four of 44 nodes are left with another kernel, and ann closes that: they are meant to differ. `before`: a node whose BIOS
    has differed for three hours by then.
    """
    story = Story(PACK)
    for node in NODES[:40]:
        tells(story, 10, node)
    for node in NODES[40:44]:
        tells(story, 20, node, kernel="6.8")
    if before:
        tells(story, CLOSED_AT - 10_000, before, bios="F99")
    story.run(CLOSED_AT)
    (split,) = story.incidents("fleet-split")
    story.say(CLOSED_AT, "close", id=split.id)
    return story


def opened(story: Story) -> list[tuple[str, str, bool]]:
    """Cause, scope and whether people were paged, of what is open."""
    return [
        (one.cause, one.scope, one.pages.sent > 0)
        for one in story.incidents()
        if one.state is IncidentState.OPEN
    ]


def test_a_lone_drift_elsewhere_is_told() -> None:
    """It was silent for as long as the split lasted, which may be for good."""
    story = closed()
    for day in (2.0, 3.1, 4.0):
        tells(story, day * DAY, NODES[5], bios="F99")
    story.run(5 * DAY)
    assert opened(story) == [("fleet-drift", f"node/{NODES[5]}", True)]
    for node in NODES[:44]:
        tells(story, 6 * DAY, node)
    story.run(8 * DAY)
    assert opened(story) == []


def test_what_began_before_and_was_no_drift_yet() -> None:
    """It had differed for three hours when ann closed the split: she could not see it."""
    story = closed(before=NODES[5])
    story.run(3 * DAY)
    assert opened(story) == [("fleet-drift", f"node/{NODES[5]}", True)]


def test_one_more_of_the_same_opens_the_split() -> None:
    """And not an incident of its own."""
    story = closed()
    tells(story, 2 * DAY, NODES[6], kernel="6.8")
    story.run(4 * DAY)
    assert opened(story) == [("fleet-split", "cell", True)]


def test_what_goes_on_as_it_was_is_silent() -> None:
    """Its nodes tell their inventory again and again."""
    story = closed()
    for day in (2.0, 3.0, 4.0):
        for node in NODES[40:44]:
            tells(story, day * DAY, node, kernel="6.8")
    story.run(5 * DAY)
    assert opened(story) == []


def test_a_node_that_has_both_is_in_what_was_closed() -> None:
    """One of the split's nodes has another BIOS, too: whoever looks at the four sees it."""
    story = closed()
    tells(story, 2 * DAY, NODES[41], kernel="6.8", bios="F99")
    story.run(4 * DAY)
    assert opened(story) == []


def test_thousands_that_are_closed_cost_a_storm_little() -> None:
    """Asked with each node that joins: 5,000 closed incidents of single links took 9 ms, 90 s in a storm of 10,000 nodes."""
    ctx = Story(PACK).engine.look()
    ctx.state.dismissed = {f"link-down@link/n{number}/eth0": 1.0 for number in range(5000)}
    (spread, *_) = ctx.compiled.spreads["link_flapping"]
    took = []
    for _ in range(5):
        began = time.process_time()
        assert not asking.was_closed(ctx, spread)
        took.append(time.process_time() - began)
    assert min(took) / slowness() < 3e-3
    ctx.state.dismissed["shared-link-flapping-rack@rack/r1"] = 1.0
    assert asking.was_closed(ctx, spread)


def test_one_by_one_two_of_another_kind_and_the_third_is_a_split() -> None:
    """Two lone drifts are two; with the third they are one incident."""
    story = closed()
    for number in (5, 6):
        tells(story, 2 * DAY + number, NODES[number], bios="F99")
    tells(story, 2.1 * DAY, NODES[7], bios="F99")
    story.run(3.05 * DAY)
    assert opened(story) == [("fleet-drift", f"node/{NODES[number]}", True) for number in (5, 6)]
    story.run(4 * DAY)
    assert [cause for cause, _, _ in opened(story)] == ["fleet-split"]

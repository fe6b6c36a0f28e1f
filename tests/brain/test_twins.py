"""One fault seen from a rack and from a leaf switch is one incident, as long as the same nodes show it."""

from dataclasses import replace

from brain.core.pack.spec import Mode, ModeSetting, Place, Settings
from tests.brain.world import Story
from tests.shipped import shipped_pack

SHIPPED = shipped_pack()
# One rack of twelve nodes on two leaf switches, in a cell of a hundred.
PLACES = {f"n{n}": Place(leaf=f"l{n // 6}", rack="r0" if n < 12 else f"r{n // 12}") for n in range(100)}


def cell() -> Story:
    """The shipped rules in auto mode."""
    settings = Settings(modes=(ModeSetting(mode=Mode.AUTO),))
    story = Story(replace(SHIPPED, settings=settings, places=PLACES), heals=False)
    for name in PLACES:
        story.event(0.5, "agent.started", "node", node=name)
    return story


def lost(story: Story, at: float, numbers: range) -> None:
    """GPUs fall off the bus, on one node after the other."""
    for place, number in enumerate(numbers):
        story.event(at + place, "gpu.off_bus", "gpu/0000:3b:00", node=f"n{number}")


def test_a_rack_whose_fault_only_one_leaf_shows_is_the_leafs() -> None:
    """Four nodes: one incident, one page."""
    story = cell()
    lost(story, 10, range(4))
    story.run(100)
    shared = [one for one in story.time.incidents.values() if one.cause.startswith("shared-")]
    assert [one.scope for one in shared] == ["leaf/l0"]


def test_a_node_of_the_racks_other_leaf_makes_it_the_racks() -> None:
    """It waits for a cause that is shared, so people must hear of the rack."""
    story = cell()
    lost(story, 10, range(4))
    lost(story, 60, range(6, 8))
    story.run(200)
    shared = [one.scope for one in story.time.incidents.values() if one.cause.startswith("shared-")]
    assert shared == ["leaf/l0", "rack/r0"]
    assert any(page.subject.scope == "rack/r0" for page in story.time.pages)
    touched = {each.step.node for each in story.performed if each.step.disrupts.value != "nothing"}
    assert touched == set()

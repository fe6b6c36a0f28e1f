"""A node that somebody has restarted in order says nothing of its rack's power, whether its return or its start is told first."""

import pytest

from brain.core.inputs import NodeState
from brain.core.pack.spec import Mode, ModeSetting, Place, Settings
from tests.brain.world import Story
from tests.shipped import shipped_pack

NODES = [f"n{number:03}" for number in range(256)]
PLACES = {node: Place(rack=f"r{number // 16}") for number, node in enumerate(NODES)}


@pytest.mark.parametrize("told_first", ["start", "return"])
@pytest.mark.parametrize("in_order", [True, False])
def test_three_nodes_of_a_rack_are_restarted(told_first: str, *, in_order: bool) -> None:
    """Half an hour apart, each away for four minutes. If nobody asked for it, it is the rack's power."""
    settings = Settings(modes=(ModeSetting(mode=Mode.OBSERVE),), ask_jobs=False)
    story = Story(shipped_pack(settings, PLACES), heals=False)
    for node in NODES:
        story.event(1, "agent.started", "node", node)
    for number, node in enumerate(NODES[16:19]):
        at = 600.0 + 1800 * number
        story.time.feed(NodeState(id=f"{node}-silent", node=node, alive=False, silent_s=15.0), at)
        back = at + 240
        starts = back - 1 if told_first == "start" else back + 1
        story.time.feed(NodeState(id=f"{node}-back", node=node, alive=True), back)
        story.event(starts, "agent.started", "node", node, booted=True, in_order=in_order)
    story.run(3 * 3600)
    racks = [one.scope for one in story.incidents() if one.scope == "rack/r1"]
    assert racks == ([] if in_order else ["rack/r1"])
    assert not [key for key in story.engine.state.passed if in_order and "unreachable" in key]

"""One node more, of another leaf switch, when the cause of a whole leaf switch is known already."""

import pytest

from brain.core.pack.spec import Mode
from brain.core.state import IncidentState, RunState
from tests.brain.world import Story
from tests.laws import fleet

PACK = fleet.pack(200, Mode.AUTO, careful=False)
NODES = list(PACK.places)
OVER = (IncidentState.CLOSED, IncidentState.EXPLAINED)


@pytest.mark.parametrize("strays", [1, 2, 3, 4])
@pytest.mark.parametrize("ages", [{}, {1: 9000.0, 4: 3.0}, {0: 9000.0, 3: 9000.0, 4: 3.0, 8: 3.0}], ids=str)
def test_no_node_is_held_for_ever_for_a_place_that_nobody_hears_of(
    strays: int, ages: dict[int, float]
) -> None:
    """NVML is refused on all eight nodes of a leaf switch, then on the next ones of its rack. The gate counts the rack: so an
    incident says so, or that of the leaf stands for the rack, and the stray has none of its own that waits for ever. `ages`:
    seconds for which a node had shown it when it was heard. (Found by a random story: the ninth node was not judged.)
    """
    story = Story(PACK, heals=False)
    for node in NODES:
        story.event(1, "agent.started", "node", node)
    for number, node in enumerate(NODES[: 8 + strays]):
        story.event(
            100 + number / 10, "nvml.refused", "node", node, what="driver", age_s=ages.get(number, 0.0)
        )
    story.run(100 + 6 * 3600)
    said = [one for one in story.incidents() if one.state not in OVER]
    assert not [one.scope for one in said if one.node]
    assert any(
        one.scope == "rack/r0" or "shared-nvml-refused-rack@rack/r0" in one.stands_for for one in said
    ), said
    assert not [run for run in story.time.engine.state.runs.values() if run.state is RunState.HELD]

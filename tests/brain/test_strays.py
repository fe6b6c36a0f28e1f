"""One node more, of another leaf switch, when the cause of a whole leaf switch is known already."""

import pytest

from brain.adapters.snapshot import dump, parse
from brain.core.engine import Engine
from brain.core.inputs import EventSeen
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Mode, Place
from brain.core.state import IncidentState, RunState
from tests.brain.world import Story, pack
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


def test_one_incident_stands_for_a_match() -> None:
    """Nodes of two chassis fall ill one after the other, and each chassis explains the leaf switch above both. Which of them
    stands for it must not depend on when the brain was started.
    """
    places = {f"n{number}": Place(chassis=f"c{number // 2}", leaf="l0", rack="r0") for number in range(6)}
    story = Story(pack(places=places, shared_small_share=0.5), heals=False)
    for node in places:
        story.event(1, "agent.started", "node", node)
    facts = [
        (100.5, "n4", False),
        (140.5, "n5", False),
        (141.0, "n0", False),
        (141.5, "n5", False),
        (141.55, "n5", True),
        (142.05, "n1", False),
    ]
    for at, node, up in facts:
        story.event(at, "link.state", "link/eth1", node, up=up)
    story.run(142.1)
    stands = [
        one for incident in story.incidents() if incident.state not in OVER for one in incident.stands_for
    ]
    assert stands
    assert len(stands) == len(set(stands))
    again = Engine(parse(dump(story.engine.state)), actions=ACTIONS)
    for number in (2, 3):
        given = EventSeen(event=story.event(143 + number, "link.state", "link/eth1", f"n{number}", up=False))
        assert again.handle(given, 143 + number) == story.engine.handle(given, 143 + number)

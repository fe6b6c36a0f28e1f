"""The law "forget", for causes of many nodes: when all is over, the engine keeps nothing of it."""

import pytest

from brain.core.inputs import Pulse
from simulations.scenarios.play import play
from tests.stories.load import files, load

DAY_S = 86_400.0
NAMES = (
    "leaf-at-once",
    "leaf-flaps-three-times",
    "rack-power-staggered",
    "feed-over-four-racks",
    "cooling-loop",
    "file-server-for-every-second-node",
    "gsp-time-out-with-what-follows",
    "link-flaps-all-day",
    "nccl-timeouts-behind-a-leaf",
    "broker-outage-silences-half",
    "driver-release-raises-xid-119",
    "facts-out-of-order",
)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_left_when_all_is_over(name: str) -> None:
    """Eight days after the last fact: no symptom, incident, run, drain or timer of a fault."""
    tale = next(one for path in files() for one in load(path).stories if one.name == name)
    outcome = play(tale)
    engine = outcome.scene.log.engine
    for one in list(engine.state.incidents.values()):
        outcome.scene.command("close", at_s=tale.until, id=one.id, why="it is over")
    for node in outcome.out:
        outcome.scene.command("return", at_s=tale.until + 60, node=node)
    outcome.scene.run(tale.until + 8 * DAY_S)
    engine.handle(Pulse(id="pulse"), engine.state.now + DAY_S)
    assert engine.state.incidents == {}
    assert engine.state.over == {}
    assert engine.state.fault_free()

"""A cable that is bad before its switch goes: two drills, one after the other, with the shipped rules and runbooks."""

import pytest

from tests.simulations.stories import FAULTY, world

CUT_S = 60.0


@pytest.mark.parametrize("between_s", [1500.0, 3000.0])
@pytest.mark.parametrize("acked", [True, False])
def test_the_cable_stays_the_incident_that_people_know(between_s: float, acked: bool) -> None:
    """The switch is not suspected any longer than its ports are down, and gpuward gives up on the cable once."""
    made = world()
    made.inject("ib-cable-cut", FAULTY, at_s=CUT_S)
    made.run(CUT_S + between_s - 10)
    (cable,) = [one for one in made.run(CUT_S + between_s - 10).incidents.values() if one.node == FAULTY]
    assert cable.state.value == "needs_human"
    if acked:
        made.command("ack", at_s=CUT_S + between_s - 5, id=cable.id)
    made.inject("switch-down", at_s=CUT_S + between_s)
    timeline = made.run(CUT_S + between_s + 1200)
    of_cable = [one for one in timeline.incidents.values() if one.scope == cable.scope]
    assert list(timeline.engine.state.drains[FAULTY]) == [cable.id], (
        "it keeps its node out of service, as before"
    )
    assert not [one for one in timeline.incidents.values() if one.cause == "left-drained"]
    assert [(one.id, one.state.value) for one in of_cable] == [(cable.id, "needs_human")]
    assert bool(of_cable[0].pages.acked_by) == acked
    wide = [one for one in timeline.incidents.values() if not one.node]
    assert wide
    assert {one.state.value for one in wide} <= {"closed", "explained"}

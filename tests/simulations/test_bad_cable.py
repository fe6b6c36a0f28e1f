"""A cable that is bad before its switch goes: two drills, one after the other, with the shipped rules and runbooks."""

import pytest

from tests.simulations.stories import FAULTY, world

CUT_S = 60.0


@pytest.mark.parametrize("between_s", [1500.0, 3000.0])
@pytest.mark.parametrize("acked", [True, False])
def test_who_knows_of_the_cable_is_not_called_for_it_again(between_s: float, acked: bool) -> None:
    """The switch, then the fabric, then the switch again explain it. Afterwards it has its drain, and who had acknowledged it."""
    made = world()
    made.inject("ib-cable-cut", FAULTY, at_s=CUT_S)
    (cable,) = [one for one in made.run(CUT_S + between_s - 10).incidents.values() if one.node == FAULTY]
    assert cable.state.value == "needs_human"
    if acked:
        made.command("ack", at_s=CUT_S + between_s - 5, id=cable.id)
    made.inject("switch-down", at_s=CUT_S + between_s)
    timeline = made.run(CUT_S + between_s + 2400)
    of_cable = [one for one in timeline.incidents.values() if one.scope == cable.scope]
    assert [one.state.value for one in of_cable] == ["explained", "needs_human"]
    assert bool(of_cable[1].pages.acked_by) == acked
    whats = [page.what for page in timeline.pages if page.subject.id == of_cable[1].id]
    assert whats == ["open", "ack"] if acked else whats.count("repeat") > 0
    assert list(timeline.engine.state.drains[FAULTY]) == [of_cable[1].id]
    assert not [one for one in timeline.incidents.values() if one.cause == "left-drained"]
    wide = [one for one in timeline.incidents.values() if not one.node]
    assert len(wide) > 1
    assert {one.state.value for one in wide} <= {"closed", "explained"}

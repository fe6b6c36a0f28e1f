"""A cell of one machine that is only watched, as `gpuward up --nodes 0` makes it: nobody is called for what it cannot do."""

from dataclasses import replace

import pytest

from brain.core.pack.spec import Mode, ModeSetting, Settings
from brain.core.state import Incident
from tests.brain.world import Story
from tests.shipped import shipped_pack

DAYS_S = 86_400.0


def watched(*modes: tuple[Mode, str], days: float = 40) -> Story:
    """A healthy machine, with the runbooks that gpuward ships and their schedules, for longer than each of them."""
    settings = Settings(modes=tuple(ModeSetting(mode=mode, nodes=nodes) for mode, nodes in modes))
    story = Story(replace(shipped_pack(settings)))
    story.event(1, "agent.started", "node", "n1", version="1", kernel="6", gpus=0)
    return story.run(days * DAYS_S)


def inspections(story: Story) -> list[Incident]:
    """What the schedule has begun."""
    return [one for one in story.incidents() if one.rule == "request"]


@pytest.mark.parametrize(
    "modes",
    [
        pytest.param([], id="nothing is set"),
        pytest.param([(Mode.AUTO, "")], id="a fabric may be inspected, and has no node that may do it"),
        pytest.param([(Mode.AUTO, "sim*"), (Mode.AUTO, "")], id="simulated nodes may, and there is none"),
    ],
)
def test_a_machine_that_is_only_watched_is_inspected_by_nobody(modes: list[tuple[Mode, str]]) -> None:
    """No page after a quarter of an hour that says only that nothing could be looked at, and none in a month."""
    story = watched(*modes)
    assert inspections(story) == []
    assert story.time.pages == []


def test_where_the_node_may_act_both_are_inspected() -> None:
    """The node within a week, its fabric within a month."""
    story = watched((Mode.AUTO, "*"), days=1)
    assert {one.cause for one in inspections(story)} == {"request-inspect-node", "request-inspect-fabric"}

"""A fault whose remedy disturbs nobody and helps for a while, for ever: what is remembered of it is bounded."""

from collections.abc import Iterable

from brain.core.effects import Effect, Perform
from brain.core.inputs import Input
from brain.core.pack.spec import Mode, ModeSetting, Settings
from tests.brain.world import GPU, Story
from tests.shipped import shipped_pack

TIMES = 80


class Persistence(Story):
    """Something switches persistence mode off every ten minutes, and switching it on helps."""

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if isinstance(effect, Perform) and effect.step.action == "gpu.persistence":
            self.event(now + 1.5, "gpu.setting", GPU, what="persistence", before="0", now="1")
        return super()._answer(effect, now)


def test_the_runs_of_one_incident_are_bounded() -> None:
    """It is tried each time, with an id of its own; the engine remembers the last thirty."""
    story = Persistence(shipped_pack(Settings(modes=(ModeSetting(mode=Mode.AUTO),))))
    for number in range(TIMES):
        story.run(100 + 600 * number)
        story.event(story.time.now, "gpu.setting", GPU, what="persistence", before="1", now="0")
    story.run(story.time.now + 300)
    switched = [action for _, action in story.actions() if action == "gpu.persistence"]
    incident = story.incidents("gpu-persistence-off")[-1]
    known = [run for run in story.engine.state.runs.values() if run.incident == incident.id]
    assert len(switched) == TIMES
    assert (
        len(set(incident.runs)) == len(incident.runs) >= TIMES - 2
    )  # it comes and goes since the second time
    assert len(known) == 30
    assert known[-1].id == incident.runs[-1]

"""A remedy that disturbs nobody and helps for nine minutes, again and again: people hear of it, and it goes on."""

from collections.abc import Iterable

from brain.core.effects import Effect, Perform
from brain.core.inputs import Input
from brain.core.pack.spec import Mode
from tests.brain.world import Story
from tests.laws import fleet

GPU = "gpu/0000:3b:00"
EVERY_S = 600.0  # so often somebody's script switches it off


class Persistence(Story):
    """Persistence mode of a GPU is switched on by the remedy, and by nobody else."""

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if isinstance(effect, Perform) and effect.step.action == "gpu.persistence":
            self.event(now + 0.9, "gpu.setting", GPU, what="persistence", before="0", now="1")
        yield from super()._answer(effect, now)


def switched_off(times: int) -> Persistence:
    """It is switched off so many times."""
    story = Persistence(fleet.pack(16, Mode.AUTO, careful=False))
    for number in range(times):
        at = 100 + number * EVERY_S
        story.run(at)
        story.event(at, "gpu.setting", GPU, what="persistence", before="1", now="0")
    return story.run(100 + times * EVERY_S)


def test_twice_is_healed_in_silence() -> None:
    """Nobody is woken for what heals by itself."""
    story = switched_off(2)
    assert len([one for one in story.actions() if one[1] == "gpu.persistence"]) == 2
    assert not story.time.pages


def test_when_it_does_not_last_people_are_told_once() -> None:
    """It helped twice within one incident, and the fault is back: one page says so. The remedy goes on."""
    story = switched_off(12)
    assert len([one for one in story.actions() if one[1] == "gpu.persistence"]) == 12
    opened = [page for page in story.time.pages if page.what == "open"]
    assert [page.text for page in opened] == [
        "switch on has helped 2 times in 20 minutes, and the fault is back: find out why it does not last"
    ]

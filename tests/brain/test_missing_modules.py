"""A node lacks two kernel modules: one step loads both, and nobody has to."""

from collections.abc import Iterator
from dataclasses import replace

from agent.contract.messages import Severity
from brain.core.effects import Effect, Perform
from brain.core.inputs import Input
from brain.core.pack.spec import Mode, ModeSetting
from brain.core.state import IncidentState
from tests.brain.world import Story
from tests.shipped import shipped_pack


class Node(Story):
    """A node on which module.load works."""

    def _answer(self, effect: Effect, now: float) -> Iterator[tuple[float, Input]]:
        yield from super()._answer(effect, now)
        if isinstance(effect, Perform) and effect.step.action == "module.load":
            for name in str(effect.step.params["module"]).split():
                self.event(now + 0.9, "node.module", module=name, loaded=True, severity=Severity.INFO)


def test_two_missing_modules_are_loaded_by_one_step() -> None:
    """Missing since different moments, before the minute is over that a reload of the driver may take."""
    given = shipped_pack()
    auto = replace(given.settings, modes=(ModeSetting(mode=Mode.AUTO),))
    it = Node(replace(given, settings=auto))
    it.event(10, "node.module", module="nvidia_peermem", loaded=False)
    it.event(40, "node.module", module="gdrdrv", loaded=False)
    it.run(600)
    (incident,) = it.incidents("module-missing")
    assert incident.state is IncidentState.CLOSED
    loads = [perform.step.params for perform in it.performed]
    assert loads == [{"module": "nvidia_peermem gdrdrv"}]
    assert [page.what for page in it.time.pages] == ["open", "resolve"]

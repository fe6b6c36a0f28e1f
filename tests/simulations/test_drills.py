"""Every drill, with the rules and runbooks that gpuward comes with, in simulated time."""

from pathlib import Path

import pytest

from brain.adapters import pack as packs
from brain.core.actions import ACTIONS
from brain.core.engine import Engine
from brain.core.spec import Mode, ModeSetting, Place, Settings
from brain.core.timeline import Timeline
from simulations.clockwork import Clockwork
from simulations.faults import FAULTS

ROOT = Path(__file__).resolve().parents[2]
NODES = {f"sim-{n:02}": Place(leaf=f"leaf-{1 + n % 2}") for n in range(1, 17)}
HOURS_S = 3 * 3600.0

# drill -> (cause of its incident, its end, actions that were done on the node)
STORIES = {
    "gpu-off-bus": ("gpu-lost", "closed", ["evidence.collect", "page"]),
    "ib-phy-errors": ("ib-phy-errors", "closed", ["evidence.collect", "link.bounce"]),
    "sm-failover": ("sm-failover", "closed", []),
    "gpu-idle-service": ("gpu-unowned", "closed", ["service.restart"]),
    "gpu-stuck-job": ("gpu-stuck-job", "closed", ["evidence.collect", "page", "page"]),
    "link-down": ("link-down", "closed", ["link.bounce"]),
    "cable-cut": ("link-down", "person", ["link.bounce", "evidence.collect"]),
    "link-flapping": ("link-flapping", "closed", ["evidence.collect", "page"]),
    "ib-port-down": ("ib-port-down", "closed", ["evidence.collect", "page"]),
    "service-failed": ("service-failed", "closed", ["service.restart"]),
    "node-silent": ("node-silent", "closed", []),
}


def played(fault: str, mode: Mode = Mode.AUTO) -> Timeline:
    """Half a minute of health, the fault on sim-03, then some hours."""
    settings = Settings(modes=(ModeSetting(mode=mode, nodes="sim-*"),))
    pack = packs.load(ROOT / "rules", ROOT / "runbooks", settings, NODES)
    world = Clockwork(Engine(actions=ACTIONS), pack, list(NODES))
    world.inject(fault, "sim-03", at_s=30)
    return world.run(HOURS_S if STORIES[fault][1] == "closed" else 600)


@pytest.mark.parametrize("fault", list(STORIES))
def test_every_drill_tells_its_story(fault: str) -> None:
    """One incident that people hear of, with the right cause and end, and no step but those of its runbook."""
    cause, end, actions = STORIES[fault]
    timeline = played(fault)
    told = [(one.cause, one.state.value) for one in timeline.incidents.values() if one.pages.sent or one.runs]
    assert told == [(cause, end)]
    assert [step.action for run in timeline.runs.values() for step in run.steps] == actions


def test_every_drill_has_a_story() -> None:
    """A new fault needs one; `repair` is none."""
    assert set(STORIES) == {name for name, fault in FAULTS.items() if fault.breaks}


@pytest.mark.parametrize("fault", list(STORIES))
def test_in_observe_mode_nothing_is_done(fault: str) -> None:
    """The machine keeps its fault; what would have been done is noted."""
    timeline = played(fault, Mode.OBSERVE)
    assert not [step for run in timeline.runs.values() for step in run.steps if step.action in ACTIONS]


def test_every_runbook_stands_in_a_drill() -> None:
    """Law of coverage: no remedy is let loose that was never rehearsed with the rules that lead to it."""
    rehearsed = {run.runbook.name for fault in STORIES for run in played(fault).runs.values()}
    pack = packs.load(ROOT / "rules", ROOT / "runbooks")
    assert {runbook.name for runbook in pack.runbooks} <= rehearsed

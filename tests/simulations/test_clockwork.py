"""Simulated time: a whole fault in an instant, and the same story for the same seed."""

import subprocess
import sys

import pytest

from agent.contract.errors import ConfigError
from brain.core.actions import ACTIONS
from brain.core.engine import Engine
from brain.core.inputs import PackLoaded
from brain.core.spec import Mode
from brain.core.timeline import Timeline
from simulations.backtest import drive, made_up_events
from simulations.clockwork import Clockwork, bad_days
from tests.simulations.packs import pack

CHANCES = {"link-down": 3.0, "gpu-off-bus": 2.0, "cable-cut": 1.0, "node-silent": 2.0}
NODES = [f"sim-{n:02}" for n in range(1, 9)]


def clockwork(mode: Mode = Mode.AUTO) -> Clockwork:
    return Clockwork(Engine(actions=ACTIONS), pack(mode), NODES)


def states(timeline: Timeline) -> dict[str, list[str]]:
    """Cause → states of its incidents, in order of opening."""
    found: dict[str, list[str]] = {}
    for incident in timeline.incidents.values():
        found.setdefault(incident.cause, []).append(incident.state.value)
    return found


@pytest.mark.parametrize(("fault", "cause"), [("link-down", "link_down"), ("gpu-off-bus", "gpu_lost")])
def test_a_fault_is_healed_by_what_the_machine_can_be_healed_with(fault: str, cause: str) -> None:
    """From the fault to the closed incident, with one step on the node, and the machine is really well again."""
    world = clockwork()
    world.inject(fault, "sim-03", at_s=10)
    timeline = world.run(200)
    assert states(timeline) == {cause: ["closed"]}
    (incident,) = timeline.incidents.values()
    assert incident.node == "sim-03"
    (run,) = timeline.runs.values()
    assert [(step.outcome, step.verified) for step in run.steps] == [("ok", True)]
    assert world.machines["sim-03"].healthy()


def test_in_observe_mode_the_machine_is_left_alone() -> None:
    """The plan is noted and nothing is done: the link stays down."""
    world = clockwork(Mode.OBSERVE)
    world.inject("link-down", "sim-01", at_s=1)
    timeline = world.run(300)
    assert states(timeline) == {"link_down": ["person"]} or states(timeline) == {"link_down": ["open"]}
    assert not world.machines["sim-01"].healthy()


def test_a_cut_cable_goes_to_a_person() -> None:
    """The bounce does not help, the verification says so, and a page is sent."""
    world = clockwork()
    world.inject("cable-cut", "sim-01", at_s=1)
    timeline = world.run(300)
    assert states(timeline) == {"link_down": ["person"]}
    assert len(timeline.pages) >= 1
    assert not world.machines["sim-01"].healthy()


def test_a_fault_on_a_silent_node_is_told_when_it_is_heard_again() -> None:
    """What the node saw while it was silent arrives late, with its age, and is dealt with."""
    world = clockwork()
    world.inject("node-silent", "sim-01", at_s=1)
    world.inject("link-down", "sim-01", at_s=5)
    assert not world.run(40).incidents
    timeline = world.run(300)
    assert states(timeline) == {"link_down": ["closed"]}
    (incident,) = timeline.incidents.values()
    assert incident.evidence[0].at == pytest.approx(world.start + 5, abs=1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_seed_gives_the_same_notes(seed: int) -> None:
    """Notes with their ids and times, incidents and runs are equal in two runs; another seed differs."""

    def story(seed: int) -> Timeline:
        world = clockwork()
        for at_s, fault, node in bad_days(NODES, seed=seed, days=1, per_node_day=5, weights=CHANCES):
            world.inject(fault, node, at_s=at_s)
        return world.run(86400 + 3600)

    first, second = story(seed), story(seed)
    assert first.notes == second.notes
    assert first.incidents == second.incidents
    assert first.runs == second.runs
    assert len(first.notes) > 50
    assert story(seed + 100).notes != first.notes


def test_looking_in_small_steps_gives_the_same_notes() -> None:
    """run(100) equals a hundred times run of one more second."""
    whole, steps = clockwork(), clockwork()
    for world in (whole, steps):
        world.inject("gpu-off-bus", "sim-02", at_s=3.3)
        world.inject("link-down", "sim-02", at_s=4.4)
    whole.run(100)
    for second in range(1, 101):
        steps.run(second)
    assert whole.timeline.notes == steps.timeline.notes


def test_simulated_time_cannot_reach_a_real_actuator() -> None:
    """By construction: what plays it does not even import the ways out (law 9)."""
    code = "import sys, simulations.clockwork, simulations.backtest; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    ways_out = (
        "nats",
        "aiohttp",
        "dbus_fast",
        "brain.adapters",
        "brain.notify",
        "brain.actions",
        "agent.actions",
        "agent.host",
    )
    assert "brain.core.engine" in modules
    assert [name for name in modules if name.startswith(ways_out)] == []


def test_what_cannot_be_injected_is_said() -> None:
    """Unknown faults and nodes are the caller's error."""
    with pytest.raises(ConfigError, match="there is no fault 'x'"):
        clockwork().inject("x", "sim-01", at_s=0)
    with pytest.raises(ConfigError, match="there is no node 'n9'"):
        clockwork().inject("link-down", "n9", at_s=0)


def test_the_made_up_stream_is_the_same_for_the_same_seed_and_opens_few_incidents() -> None:
    """Mostly noise: a stream of 20,000 events gives a handful of incidents, and twice the same notes."""
    log = made_up_events(NODES, 20_000, seed=7)
    assert log == made_up_events(NODES, 20_000, seed=7)
    assert log != made_up_events(NODES, 20_000, seed=8)
    notes = []
    for _ in range(2):
        engine = Engine(actions=ACTIONS)
        engine.handle(_loaded(), log[0][1])
        timeline = drive(engine, log, settle_s=60)
        assert 0 < len(timeline.incidents) < 60
        notes.append(timeline.notes)
    assert notes[0] == notes[1]


def _loaded() -> PackLoaded:
    return PackLoaded(id="pack", pack=pack(Mode.OBSERVE))

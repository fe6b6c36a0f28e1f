"""Virtual time: a whole incident in an instant, and the same notes for the same seed."""

import subprocess
import sys
from dataclasses import replace

import pytest

from agent.contract.errors import ConfigError
from brain.core.engine import Engine
from brain.core.inputs import PackLoaded
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Mode
from brain.core.rehearsal.timeline import Timeline
from simulations.changes import JobStarts, after
from simulations.virtual_time import Simulator, random_days
from tests.simulations.packs import pack
from tests.simulations.synthetic import play, synthetic_events

WEIGHTS = {"link-down": 3.0, "gpu-off-bus": 2.0, "cable-cut": 1.0, "node-unreachable": 2.0}
NODES = [f"sim-{n:02}" for n in range(1, 9)]


def simulator(mode: Mode = Mode.AUTO) -> Simulator:
    return Simulator(Engine(actions=ACTIONS), pack(mode), NODES)


def states(timeline: Timeline) -> dict[str, list[str]]:
    """Cause → states of its incidents, in order of opening."""
    found: dict[str, list[str]] = {}
    for incident in timeline.incidents.values():
        found.setdefault(incident.cause, []).append(incident.state.value)
    return found


@pytest.mark.parametrize(("drill", "cause"), [("link-down", "link_down"), ("gpu-off-bus", "gpu_lost")])
def test_a_fault_is_healed_by_the_action_that_fixes_it(drill: str, cause: str) -> None:
    """From the drill to the closed incident, with one step; the machine itself is healthy again."""
    world = simulator()
    world.inject(drill, "sim-03", at_s=10)
    timeline = world.run(200)
    assert states(timeline) == {cause: ["closed"]}
    (incident,) = timeline.incidents.values()
    assert incident.node == "sim-03"
    (run,) = timeline.runs.values()
    assert [(step.outcome, step.verified) for step in run.steps] == [("ok", True)]
    assert world.machines["sim-03"].healthy()


def test_the_simulated_scheduler_says_who_is_hit() -> None:
    """The jobs that run on the machine, whose they are and on how many machines; none runs on another one."""
    given = pack()
    asks = replace(given, settings=replace(given.settings, ask_who_is_hit=True))
    world = Simulator(Engine(actions=ACTIONS), asks, NODES)
    for node in ("sim-01", "sim-02"):
        world.machines[node].apply([after(0, JobStarts(job="4711"))], world.start)
        world.machines[node].advance(world.start)
    for node in ("sim-01", "sim-05"):
        world.inject("link-down", node, at_s=1)
    hit = {one.node: one.hit[one.node] for one in world.run(30).incidents.values()}
    (job,) = [one.job for one in hit["sim-01"].jobs]
    assert (job.id, job.user, job.nodes) == ("4711", "ann", 2)
    assert (hit["sim-05"].jobs, hit["sim-05"].at > 0, hit["sim-05"].scheduler) == ([], True, "simulated")


def test_in_observe_mode_the_machine_is_left_alone() -> None:
    """The steps are only planned: the link stays down."""
    world = simulator(Mode.OBSERVE)
    world.inject("link-down", "sim-01", at_s=1)
    timeline = world.run(300)
    assert states(timeline) == {"link_down": ["needs_human"]} or states(timeline) == {"link_down": ["open"]}
    assert not world.machines["sim-01"].healthy()


def test_a_cut_cable_goes_to_a_person() -> None:
    """The bounce does not help, its verification fails, and a page is sent."""
    world = simulator()
    world.inject("cable-cut", "sim-01", at_s=1)
    timeline = world.run(300)
    assert states(timeline) == {"link_down": ["needs_human"]}
    assert len(timeline.pages) >= 1
    assert not world.machines["sim-01"].healthy()


def test_a_fault_on_an_unreachable_node_is_reported_when_it_is_back() -> None:
    """What the node saw meanwhile arrives late, with its age, and is healed."""
    world = simulator()
    world.inject("node-unreachable", "sim-01", at_s=1)
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
        world = simulator()
        for at_s, drill, node in random_days(NODES, seed=seed, days=1, per_node_day=5, weights=WEIGHTS):
            world.inject(drill, node, at_s=at_s)
        return world.run(86400 + 3600)

    first, second = story(seed), story(seed)
    assert first.notes == second.notes
    assert first.incidents == second.incidents
    assert first.runs == second.runs
    assert len(first.notes) > 50
    assert story(seed + 100).notes != first.notes


def test_running_in_small_steps_gives_the_same_notes() -> None:
    """run(100) equals a hundred runs of one more second."""
    once, steps = simulator(), simulator()
    for world in (once, steps):
        world.inject("gpu-off-bus", "sim-02", at_s=3.3)
        world.inject("link-down", "sim-02", at_s=4.4)
    once.run(100)
    for second in range(1, 101):
        steps.run(second)
    assert once.timeline.notes == steps.timeline.notes


def test_virtual_time_cannot_reach_a_real_actuator() -> None:
    """By construction: the simulator does not even import what reaches one (law 9)."""
    code = "import sys, simulations.virtual_time; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    actuators = (
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
    assert [name for name in modules if name.startswith(actuators)] == []


def test_what_cannot_be_injected_is_an_error() -> None:
    """The message names the drill or node that does not exist."""
    with pytest.raises(ConfigError, match="there is no drill 'x'"):
        simulator().inject("x", "sim-01", at_s=0)
    with pytest.raises(ConfigError, match="there is no node 'n9'"):
        simulator().inject("link-down", "n9", at_s=0)


def test_the_synthetic_events_are_the_same_for_the_same_seed_and_open_few_incidents() -> None:
    """Mostly noise: 20,000 events open a few incidents, and give the same notes twice."""
    log = synthetic_events(NODES, 20_000, seed=7)
    assert log == synthetic_events(NODES, 20_000, seed=7)
    assert log != synthetic_events(NODES, 20_000, seed=8)
    notes = []
    for _ in range(2):
        engine = Engine(actions=ACTIONS)
        engine.handle(_loaded(), log[0][1])
        timeline = play(engine, log, tail_s=60)
        assert 0 < len(timeline.incidents) < 60
        notes.append(timeline.notes)
    assert notes[0] == notes[1]


def _loaded() -> PackLoaded:
    return PackLoaded(id="pack", pack=pack(Mode.OBSERVE))

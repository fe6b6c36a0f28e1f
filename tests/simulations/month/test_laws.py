"""The watcher of a month notices what it is there for, and what it finds stops the month with the node's story."""

from dataclasses import replace

import pytest

from agent.contract.actions.spec import Disrupts, Repeat
from brain.core.effects import Perform, Step
from brain.core.pack.spec import Settings
from brain.core.state import Run, RunState
from simulations.month.draw import RackHold
from simulations.month.engine_fleet import EngineFleet, pack_of
from simulations.month.laws import LawBrokenError, Watcher
from simulations.month.world import World
from tests.shipped import shipped_pack
from tests.simulations.month.kit import FAULT_AT_S, ON, case, month


def step(run: str, node: str, action: str = "node.reboot") -> Step:
    return Step(
        id=f"{run}.s1.a1",
        run=run,
        incident=run.partition(".")[0],
        node=node,
        action=action,
        where="node",
        params={},
        timeout_s=60.0,
        disrupts=Disrupts.NODE,
        repeat=Repeat.NEVER,
        why="a test",
    )


def watcher(*, runs: int = 9) -> Watcher:
    given = month()
    pack = replace(pack_of(shipped_pack(), given), settings=Settings(disruptive_runs=runs))
    fleet = EngineFleet(shipped_pack(), given)
    return Watcher(World(fleet, given, "planted"), pack)


def leaves(made: Watcher, one: Step, now: float = 1_700_000_100.0) -> str:
    made.intended(one.id)
    return made.leaves(one, now)


def test_a_step_without_its_intent_is_noticed() -> None:
    """Law 4."""
    assert watcher().leaves(step("a.r1", ON), 1.0).startswith("law 4")


def test_two_runs_on_one_node_are_noticed() -> None:
    """Law 1; the same run goes on as it likes."""
    made = watcher()
    assert leaves(made, step("a.r1", ON)) == ""
    assert leaves(made, replace(step("a.r1", ON), id="a.r1.s2.a1")) == ""
    assert leaves(made, step("b.r1", ON)).startswith("law 1")


def test_more_runs_than_the_budget_are_noticed() -> None:
    """Law 1: in the cell, and under one leaf."""
    assert (
        "at most 1"
        in [
            leaves(made, step(run, node))
            for made in (watcher(runs=1),)
            for run, node in (("a.r1", ON), ("b.r1", "sim-003"))
        ][-1]
    )
    made = watcher()
    leaves(made, step("a.r1", ON))
    assert "under leaf-0" in leaves(made, step("b.r1", "sim-003"))


def test_a_run_that_only_tests_uses_up_a_budget_for_a_quarter_of_an_hour_after_it_disturbed() -> None:
    """Law 1: counted from the end of what it did, a boot of twelve minutes, and not from the beginning of its tests."""
    made = watcher()
    leaves(made, step("a.r1", ON), 1000.0)
    made.ended("a.r1.s1.a1", 1720.0)
    test = replace(step("a.r1", ON, "gpu.diagnose"), id="a.r1.s2.a1", disrupts=Disrupts.NOTHING)
    assert leaves(made, test, 1750.0) == ""
    assert "under leaf-0" in leaves(made, step("b.r1", "sim-003"), 2600.0)
    made.run_shown(run_over("b.r1"))
    assert leaves(made, step("c.r1", "sim-003"), 2620.0) == ""


def run_over(run: str) -> Run:
    """A run that is over."""
    return Run(
        id=run,
        incident=run.partition(".")[0],
        node="sim-003",
        scope="node/sim-003",
        runbook=shipped_pack().runbooks[0],
        params={},
        pack="",
        started_at=0.0,
        state=RunState.SUCCEEDED,
    )


def test_an_act_under_a_hold_is_noticed() -> None:
    """Law 2."""
    given = month(holds=(RackHold(at_s=10, for_s=100, rack="rack-0"),))
    fleet = EngineFleet(shipped_pack(), given)
    fleet.run(20)
    one = step("a.r1", ON)
    fleet.watcher.intended(one.id)
    assert fleet.watcher.leaves(one, fleet.start + 20).startswith("law 2")
    with pytest.raises(LawBrokenError, match=r"(?s)law 2: .* The story of sim-001"):
        fleet.perform(Perform(step=one), fleet.start + 20)


def test_gpuward_waits_while_people_hold_a_rack() -> None:
    """The node's GPU is reset when the hold is over."""
    hold = RackHold(at_s=FAULT_AT_S - 60, for_s=3600, rack="rack-0")
    fleet = EngineFleet(shipped_pack(), month(case(), holds=(hold,)))
    fleet.run(86400)
    (story,) = fleet.world.close().stories.values()
    assert story.healed_s is not None
    assert story.healed_s > 3540
    assert not any(act.hold for act in fleet.world.tally.acts)


def test_a_node_that_is_given_back_broken_is_noticed() -> None:
    """Law 8: whoever does it."""
    fleet = EngineFleet(shipped_pack(), month(case(cured=False)))
    fleet.run(FAULT_AT_S + 300)
    assert fleet.machines[ON].state.drain_reason
    fleet.infrastructure.perform("scheduler.resume", ON, {}, "", fleet.start + FAULT_AT_S + 300)
    fleet.schedule(ON, fleet.start + FAULT_AT_S + 300)
    with pytest.raises(LawBrokenError, match="law 8"):
        fleet.run(FAULT_AT_S + 400)

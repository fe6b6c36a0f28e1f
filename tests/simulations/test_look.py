"""agent.look on simulated machines: what is told again, and in which order."""

import pytest

from agent.contract import kinds
from agent.contract.commands import Outcome
from agent.contract.look import RESTATED
from agent.contract.messages import UnsentEvent
from simulations import changes as ch
from simulations.changes import after
from simulations.drills import DRILLS
from simulations.faults import Fix
from simulations.machines import Machine
from simulations.month.kinds import Onset
from simulations.month.profile import KINDS


def looked(machine: Machine, now: float, component: str = "") -> tuple[list[UnsentEvent], str]:
    """What it tells, and the result's `blind`."""
    machine.advance(now)
    result = machine.perform("agent.look", {"component": component} if component else {}, now)
    assert result.outcome is Outcome.OK
    told = [unsent for _, unsent in machine.advance(now + result.took_s)]
    return [kinds.check(unsent) for unsent in told], result.blind


def broken(drill: str) -> Machine:
    """A machine on which this drill began 10 s ago."""
    machine = Machine("sim-01")
    machine.apply(DRILLS[drill].plan(machine.state), 0.0)
    machine.advance(10.0)
    return machine


def present(told: list[UnsentEvent]) -> set[str]:
    return {unsent.kind for unsent in told if unsent.severity.value != "info"}


def test_a_healthy_machine_tells_that_it_is_well() -> None:
    """Every GPU, port, interface and unit, and nothing that is wrong."""
    told, blind = looked(Machine("sim-01"), 100.0)
    assert present(told) == set()
    assert blind == ""
    assert {unsent.kind for unsent in told} == {
        "gpu.answers",
        "gpu.busy",
        "ib.port_state",
        "link.state",
        "service.state",
    }
    assert sum(unsent.kind == "gpu.answers" for unsent in told) == 8


@pytest.mark.parametrize(
    ("drill", "kinds_present", "blind"),
    [
        ("gpu-off-bus", {"gpu.lost", "gpu.removed"}, ""),
        ("gpu-needs-reset", {"gpu.recovery_action"}, ""),
        ("gpu-missing", {"gpu.count"}, ""),
        ("gpu-stuck-job", {"gpu.idle"}, ""),
        ("nvlink-down", {"gpu.nvlink_state"}, ""),
        ("driver-hung", {"nvml.hung"}, "NVML,udev or NVML"),
        ("gpu-ecc", set(), ""),
        ("job-hung", set(), ""),
    ],
)
def test_the_conditions_of_a_drill_are_told_again(drill: str, kinds_present: set[str], blind: str) -> None:
    """Those that last; an ECC error and a line in a log happened once. A hung NVML blinds."""
    told, said = looked(broken(drill), 20.0)
    assert present(told) == kinds_present
    assert said == blind
    assert {unsent.kind for unsent in told} <= RESTATED


def test_what_was_repaired_is_told_well() -> None:
    """The recovery of a fault may have been lost: it is told again, until the fault is back."""
    machine = broken("gpu-needs-reset")
    component = next(iter(machine.state.faults.values())).component
    machine.perform("gpu.reset", {"gpu": component}, 20.0)
    told, _ = looked(machine, 40.0, component)
    assert [unsent.data["action"] for unsent in told if unsent.kind == "gpu.recovery_action"] == [0]
    assert {unsent.component for unsent in told} == {component}


def test_the_facts_come_before_the_result() -> None:
    """As the spool of a real agent keeps them."""
    machine = broken("gpu-off-bus")
    result = machine.perform("agent.look", {}, 20.0)
    end = ch.CommandEnds(command="c1", outcome=result.outcome.value, why=result.why, took_s=result.took_s)
    machine.apply([after(result.took_s, end)], 20.0)
    *facts, last = [unsent for _, unsent in machine.advance(30.0)]
    assert last.kind == "command.result"
    assert "gpu.lost" in last.data["why"] if isinstance(last.data["why"], str) else False
    assert {"gpu.lost", "gpu.removed", "gpu.answers"} <= {unsent.kind for unsent in facts}


def test_a_driver_that_hangs_again_does_not_answer() -> None:
    """That an earlier hang is over is told only while none is there."""
    machine = Machine("sim-01")
    for name, at in (("first", 0.0), ("second", 500.0)):
        plan = KINDS["driver-hung"].plan(
            Onset(
                name=name, machine=machine.state, fixes=(Fix.RELOAD_DRIVER,), part=0, lasts_s=1.0, found=True
            )
        )
        machine.apply(plan, at)
        machine.advance(at + 60)
        told, _ = looked(machine, at + 100)
        assert "nvml.hung" in present(told)
        assert "nvml.answers" not in {unsent.kind for unsent in told}
        machine.apply([after(0, ch.FixApplied(fix=Fix.RELOAD_DRIVER, component="node"))], at + 200)
        told, _ = looked(machine, at + 300)
        assert "nvml.answers" in {unsent.kind for unsent in told}
        assert present(told) == set()

"""A simulated machine really changes state: an action helps where it would help on a real machine, and nowhere else."""

import itertools

import pytest

from agent.contract import kinds
from agent.contract.commands import Outcome
from agent.contract.errors import Refused
from agent.contract.messages import Scalar, UnsentEvent
from brain.core.pack import vocabulary
from simulations import changes as ch
from simulations.changes import after
from simulations.drills import DRILLS
from simulations.events import event
from simulations.faults import Fault, Fix
from simulations.infrastructure import Infrastructure
from simulations.machines import Machine

GPU = "gpu/0000:1b:00"


def injected(drill: str, *, now: float = 100.0) -> Machine:
    """A new machine on which a drill began."""
    machine = Machine("sim-01")
    machine.apply(DRILLS[drill].plan(machine.state), now)
    return machine


def kinds_of(unsent_events: list[tuple[float, UnsentEvent]]) -> list[str]:
    return [unsent.kind for _, unsent in unsent_events]


def test_a_healthy_machine_is_silent() -> None:
    """Without a fault nothing is ever reported."""
    machine = Machine("sim-01")
    assert machine.advance(1e9) == []
    assert machine.next_at() is None
    assert machine.healthy()


def test_a_gpu_off_the_bus_is_reported_by_four_sources_within_half_a_second() -> None:
    """Kernel log (parsed by the agent's own parser), job log, NVML and udev, in this order, about one GPU."""
    unsent_events = injected("gpu-off-bus").advance(100.5)
    assert kinds_of(unsent_events) == ["gpu.xid", "gpu.off_bus", "job.cuda_error", "gpu.lost", "gpu.removed"]
    assert {unsent.component for _, unsent in unsent_events} == {GPU}
    xid = unsent_events[0][1]
    assert (xid.data["code"], xid.severity.value) == (79, "fatal")
    assert "fallen off the bus" in xid.evidence


def test_a_gpu_off_the_bus_comes_back_only_when_its_power_was_cut() -> None:
    """A reset is refused, a rescan and a reboot do not help; after the boot the agent reports it as lost again."""
    machine = injected("gpu-off-bus")
    machine.advance(1000)
    assert machine.perform("gpu.reset", {"gpu": GPU}, 1000).outcome is Outcome.REFUSED
    machine.perform("pci.rescan", {"gpu": GPU}, 1000)
    assert "gpu.returned" not in kinds_of(machine.advance(1010))
    machine.perform("node.reboot", {}, 1010)
    machine.advance(1011)
    assert machine.state.unreachable(1011)
    assert kinds_of(machine.advance(1020)) == ["agent.started", "gpu.lost"]
    assert (machine.state.boots, machine.state.unreachable(1020)) == (1, False)
    infrastructure = Infrastructure({machine.name: machine})
    infrastructure.perform("bmc.power_cycle", machine.name, {}, "test", 1030)
    assert kinds_of(machine.advance(1040)) == ["agent.started", "gpu.returned"]
    assert machine.healthy()


def test_only_people_bring_a_dead_gpu_back() -> None:
    """Not even a power cycle helps."""
    machine = injected("gpu-dead")
    infrastructure = Infrastructure({machine.name: machine})
    infrastructure.perform("bmc.power_cycle", machine.name, {}, "test", 1030)
    assert "gpu.returned" not in kinds_of(machine.advance(1040))
    machine.apply(DRILLS["repair"].plan(machine.state), 1050)
    assert kinds_of(machine.advance(1050)) == ["gpu.returned"]


def test_a_node_that_is_switched_off_is_unreachable_until_it_is_switched_on() -> None:
    """Switching on a node that is on changes nothing."""
    machine = Machine("sim-01")
    infrastructure = Infrastructure({machine.name: machine})
    assert "on already" in infrastructure.perform("bmc.power_on", "sim-01", {}, "test", 0).result.why
    infrastructure.perform("bmc.power_off", "sim-01", {}, "test", 0)
    machine.advance(1e6)
    assert machine.state.off
    assert machine.state.unreachable(1e6)
    infrastructure.perform("bmc.power_on", "sim-01", {}, "test", 1e6)
    assert kinds_of(machine.advance(1e6 + 60)) == ["agent.started"]


def test_only_our_own_drain_is_resumed() -> None:
    """Law 3; the jobs that are left are named."""
    machine = Machine("sim-01")
    infrastructure = Infrastructure({machine.name: machine})
    machine.state.drain_reason = "bob: new memory"
    infrastructure.perform("scheduler.drain", "sim-01", {}, "test", 0)
    infrastructure.perform("scheduler.resume", "sim-01", {}, "test", 0)
    machine.advance(1)
    assert machine.state.drain_reason == "bob: new memory"
    machine.state.drain_reason = ""
    machine.apply(DRILLS["gpu-stuck-job"].plan(machine.state), 2)
    machine.advance(3)
    left = infrastructure.perform("scheduler.drain", "sim-01", {"then": "undo"}, "test", 3).result
    assert (left.outcome, left.why) == (Outcome.FAILED, "jobs are left: 4711")
    machine.advance(4)
    assert machine.state.drain_reason == ""
    infrastructure.perform("scheduler.drain", "sim-01", {"then": "requeue"}, "test", 4)
    assert kinds_of(machine.advance(5)) == ["gpu.busy"]
    assert machine.state.drain_reason == "gpuward: test"
    infrastructure.perform("scheduler.resume", "sim-01", {}, "test", 5)
    machine.advance(6)
    assert machine.healthy()


@pytest.mark.parametrize(
    ("drill", "action", "params", "recovery"),
    [
        ("link-down", "link.bounce", {"link": "link/eth1"}, "link.state"),
        ("ib-phy-errors", "link.bounce", {"link": "port/mlx5_0.1"}, "ib.port_state"),
        ("service-failed", "service.restart", {"unit": "slurmd.service"}, "service.state"),
        ("gpu-idle-service", "service.restart", {"unit": "nvidia-persistenced.service"}, "gpu.busy"),
        ("gpu-stuck-job", "process.signal", {"job": "4711"}, "gpu.busy"),
        ("gpu-needs-reset", "gpu.reset", {"gpu": GPU}, "gpu.recovery_action"),
        ("gpu-hot", "gpu.power_limit", {"gpu": "gpu/0000:45:00", "percent": 70.0}, "gpu.temperature"),
        ("nvlink-down", "gpu.reset", {"gpu": "node"}, "gpu.nvlink_state"),
        ("driver-hung", "node.reboot", {}, "nvml.answers"),
        ("bond-degraded", "nic.reset", {"nic": "link/eth2"}, "bond.slaves"),
        ("module-missing", "module.load", {"module": "nvidia_peermem"}, "node.module"),
    ],
)
def test_the_right_action_heals(drill: str, action: str, params: dict[str, Scalar], recovery: str) -> None:
    """Before it the machine stays faulty; after it the agent reports the recovery, and the machine is healthy."""
    machine = injected(drill)
    assert machine.advance(103.5), "the symptoms are reported"
    assert not machine.healthy()
    result = machine.perform(action, params, 103.5)
    assert result.outcome is Outcome.OK
    _, last = machine.advance(103.5 + result.took_s + 1)[-1]
    assert (last.kind, last.severity.value) == (recovery, "info")
    machine.advance(1000)
    assert machine.healthy()


def test_a_cut_cable_is_not_healed_by_a_bounce() -> None:
    """The interface is taken down and up, and still has no carrier."""
    machine = injected("cable-cut")
    machine.advance(100)
    machine.perform("link.bounce", {"link": "link/eth1"}, 110)
    states = [unsent.data for _, unsent in machine.advance(200)]
    assert [(data["admin_up"], data["carrier"]) for data in states] == [(False, False), (True, False)]
    assert not machine.healthy()


@pytest.mark.parametrize(
    ("action", "params", "message"),
    [
        ("link.bounce", {"link": "link/eth0"}, "carries the control path"),
        ("link.bounce", {"link": "link/eth9"}, "there is no link/eth9"),
        ("link.bounce", {"link": "port/mlx5_9.1"}, "there is no port/mlx5_9.1"),
        ("service.restart", {"unit": "sshd.service"}, "is not a unit of this node"),
        ("shell.run", {}, "cannot do shell.run"),
        ("gpu.reset", {"gpu": "gpu/0000:ff:00"}, "is not on the bus"),
        ("process.signal", {"job": "4711"}, "has no process on this node"),
    ],
)
def test_what_the_real_agent_would_refuse_is_refused(
    action: str, params: dict[str, Scalar], message: str
) -> None:
    """Nothing changes, and the result names the reason."""
    machine = Machine("sim-01")
    result = machine.perform(action, params, 0.0)
    assert result.outcome is Outcome.REFUSED
    assert message in result.why
    assert machine.next_at() is None


def test_errors_grow_second_by_second_until_the_port_is_reset() -> None:
    """The growth of the counter is reported with value and interval; while the port is down it does not grow."""
    machine = injected("ib-phy-errors", now=0.0)
    values = [unsent.data["value"] for _, unsent in machine.advance(3.0)]
    assert values == [240, 480, 720]
    machine.perform("link.bounce", {"link": "port/mlx5_0.1", "down_s": 3.0}, 3.1)
    assert kinds_of(machine.advance(60)) == ["ib.port_state", "ib.port_state"]


def test_a_failover_is_seen_by_every_port_and_can_be_drilled_again() -> None:
    """Eight ports learn the new LID; the next drill moves it back."""
    machine = Machine("sim-01")
    for lid in (7, 1):
        machine.apply(DRILLS["sm-failover"].plan(machine.state), 0.0)
        unsent_events = machine.advance(1.0)
        assert [unsent.data["sm_lid"] for _, unsent in unsent_events] == [lid] * 8


def test_drills_break_another_part_each_time_until_none_is_left() -> None:
    """Eight GPUs can be lost; the ninth drill is refused with a sentence, not a crash."""
    machine = Machine("sim-01")
    for n in range(8):
        machine.apply(DRILLS["gpu-off-bus"].plan(machine.state), n * 10.0)
        machine.advance(n * 10.0 + 5)
    assert sum(gpu.present for gpu in machine.state.gpus.values()) == 0
    with pytest.raises(Refused, match="sim-01 has no healthy GPU left"):
        DRILLS["gpu-off-bus"].plan(machine.state)


def test_people_can_repair_everything() -> None:
    """After `repair` every machine is healthy; only the parts that were broken report their recovery."""
    for drill, recovery in {
        "cable-cut": ["link.state"],
        "gpu-off-bus": ["gpu.returned"],
        "gpu-stuck-job": ["gpu.busy"],
        "service-failed": ["service.state"],
        "ib-phy-errors": [],
        "node-unreachable": [],
    }.items():
        machine = injected(drill)
        machine.advance(105.0)
        machine.apply(DRILLS["repair"].plan(machine.state), 105.5)
        assert kinds_of(machine.advance(105.5)) == recovery, drill
        assert machine.healthy(), drill
        assert not machine.state.unreachable(105.5)


def test_a_new_cable_is_told_where_a_bounce_did_not_help() -> None:
    """The interface was taken down and up before: nothing but its cable was still wrong."""
    machine = injected("cable-cut")
    machine.advance(105.0)
    (link,) = [name for name, one in machine.state.links.items() if one.cut]
    machine.apply([ch.after(0, ch.AdminDown(link=link)), ch.after(0.5, ch.AdminUp(link=link))], 105.5)
    machine.advance(106.5)
    machine.apply(DRILLS["repair"].plan(machine.state), 107)
    ((_, told),) = machine.advance(107)
    assert (told.kind, told.data["up"]) == ("link.state", True)


def test_a_fault_that_passes_by_itself_leaves_the_others() -> None:
    """The end of a congestion repairs nothing else on the node."""
    machine = injected("ib-congested", now=0.0)
    machine.apply(DRILLS["gpu-hot"].plan(machine.state), 0.0)
    machine.advance(3600)
    assert list(machine.state.faults) == ["heat"]


def test_an_unreachable_node_comes_back() -> None:
    """The drill ends by itself after 45 seconds."""
    machine = injected("node-unreachable", now=0.0)
    machine.advance(0.0)
    assert machine.state.unreachable(10.0)
    assert not machine.state.unreachable(60.0)


@pytest.mark.parametrize("drill", list(DRILLS))
def test_drills_report_declared_events_and_are_deterministic(drill: str) -> None:
    """Every event is of a declared kind with declared fields; two runs report the same events, in order of time."""
    runs = []
    for _ in range(2):
        machine = injected(drill)
        unsent_events = machine.advance(700.0)
        for _, unsent in unsent_events:
            if unsent.kind in vocabulary.KINDS:  # of its BMC
                assert {field.name for field in vocabulary.KINDS[unsent.kind].fields} == set(unsent.data)
            else:
                kinds.check(unsent)
        runs.append(unsent_events)
    assert runs[0] == runs[1]
    times = [at for at, _ in runs[0]]
    assert all(a <= b for a, b in itertools.pairwise(times))
    assert bool(runs[0]) == (drill not in ("node-unreachable", "node-hung", "node-dark", "repair"))


@pytest.mark.parametrize("steps", [1, 7, 500])
def test_the_number_of_steps_does_not_matter(steps: int) -> None:
    """Advancing once or in many steps reports the same events."""
    machine = injected("ib-phy-errors", now=0.0)
    machine.apply([ch.after(2.5, ch.CarrierLost(link="eth1"))], 0.0)
    history = [item for n in range(1, steps + 1) for item in machine.advance(n * 10.0 / steps)]
    once = injected("ib-phy-errors", now=0.0)
    once.apply([ch.after(2.5, ch.CarrierLost(link="eth1"))], 0.0)
    assert history == once.advance(10.0)


def test_every_drill_names_what_ends_it() -> None:
    """`drill --list` has a sentence for each, and says when an approval is needed."""
    for drill in DRILLS.values():
        assert drill.summary.endswith(".")
        assert drill.ends
        assert ("approve" in drill.ends or "approval" in drill.ends) >= drill.approval


def test_a_fault_shows_when_the_agent_has_looked_and_again_after_what_did_not_help() -> None:
    """A sample a second later; and two seconds after a reset that the card has survived as it was."""
    broken = event("nic.driver", "nic/0000:5e:00.0", what="health_compromised", message="miss count")
    fault = Fault(
        name="card",
        component="nic/0000:5e:00.0",
        fixes=(Fix.REBOOT,),
        symptoms=(broken,),
        shows_after_s=1.0,
        shows_again=True,
    )
    machine = Machine("sim-01")
    machine.apply([after(0, ch.FaultBegins(fault=fault))], 100.0)
    assert [(at, one.kind) for at, one in machine.advance(105.0)] == [(101.0, "nic.driver")]
    machine.apply([after(0, ch.FixApplied(fix=Fix.RESET_NIC, component="nic/0000:5e:00.0"))], 200.0)
    assert [(at, one.kind) for at, one in machine.advance(205.0)] == [(202.0, "nic.driver")]
    machine.apply([after(0, ch.FixApplied(fix=Fix.TIME, component="node"))], 300.0)
    assert machine.advance(400.0) == []


@pytest.mark.parametrize("warm", [True, False])
def test_a_boot_brings_only_some_lost_gpus_back(warm: bool) -> None:
    """The others need their power cut."""
    machine = Machine("sim-01")
    bdf = next(iter(machine.state.gpus))
    machine.apply([after(0, ch.GpuLost(bdf=bdf, warm=warm)), after(1, ch.GoesDown(for_s=10))], 0.0)
    machine.advance(5.0)
    assert machine.down(5.0)
    machine.advance(20.0)
    assert not machine.down(20.0)
    assert machine.state.gpus[bdf].present is warm


def test_a_node_that_goes_down_loses_its_jobs_and_one_that_is_unheard_keeps_them() -> None:
    """Only the network of the latter fails."""
    machine = Machine("sim-01")
    machine.apply([after(0, ch.JobStarts(job="1")), after(1, ch.GoesUnreachable(for_s=10))], 0.0)
    machine.advance(2.0)
    assert machine.state.jobs
    assert not machine.down(2.0)
    machine.apply([after(0, ch.GoesDown(for_s=10))], 20.0)
    machine.advance(21.0)
    assert not machine.state.jobs


def test_people_may_repair_a_node_and_leave_it_drained() -> None:
    """Until somebody says that it is given back."""
    machine = Machine("sim-01")
    machine.apply(
        [after(0, ch.DrainSet(reason="gpuward: a test")), after(1, ch.Repaired(stays_drained=True))], 0.0
    )
    machine.advance(2.0)
    assert machine.state.drain_reason
    machine.apply([after(0, ch.Repaired())], 3.0)
    machine.advance(4.0)
    assert not machine.state.drain_reason

"""A simulated machine really changes state: remedies help where physics says so, and nowhere else."""

import itertools

import pytest

from agent.contract import kinds
from agent.contract.commands import Outcome
from agent.contract.errors import Refused
from agent.contract.messages import Draft, Scalar
from brain.core.actions import BRAIN_ACTIONS
from simulations import changes as ch
from simulations.facilities import DEEDS, FABRIC_DEEDS, Facilities
from simulations.faults import FAULTS
from simulations.machines import Machine

GPU = "gpu/0000:1b:00"


def injected(fault: str, *, now: float = 100.0) -> Machine:
    """A fresh machine on which a fault began."""
    machine = Machine("sim-01")
    machine.apply(FAULTS[fault].plan(machine), now)
    return machine


def kinds_of(drafts: list[tuple[float, Draft]]) -> list[str]:
    return [draft.kind for _, draft in drafts]


def test_a_healthy_machine_is_silent() -> None:
    """Without a fault nothing is reported, however long one waits."""
    machine = Machine("sim-01")
    assert machine.advance(1e9) == []
    assert machine.next_at() is None
    assert machine.healthy()


def test_a_gpu_off_the_bus_is_told_by_four_witnesses_within_half_a_second() -> None:
    """Kernel log (parsed by the agent's own parser), job log, NVML and udev, in this order, about one GPU."""
    drafts = injected("gpu-off-bus").advance(100.5)
    assert kinds_of(drafts) == ["gpu.xid", "gpu.off_bus", "job.cuda_error", "gpu.lost", "gpu.removed"]
    assert {draft.component for _, draft in drafts} == {GPU}
    xid = drafts[0][1]
    assert (xid.data["code"], xid.severity.value) == (79, "fatal")
    assert "fallen off the bus" in xid.evidence


def test_a_gpu_off_the_bus_comes_back_only_when_its_power_was_cut() -> None:
    """A reset is refused, a rescan and a reboot do not help; the new agent says that it is lost still."""
    machine = injected("gpu-off-bus")
    machine.advance(1000)
    assert machine.perform("gpu.reset", {"gpu": GPU}, 1000).outcome is Outcome.REFUSED
    machine.perform("pci.rescan", {"gpu": GPU}, 1000)
    assert "gpu.returned" not in kinds_of(machine.advance(1010))
    machine.perform("node.reboot", {}, 1010)
    machine.advance(1011)
    assert machine.silent(1011)
    assert kinds_of(machine.advance(1020)) == ["agent.started", "gpu.lost"]
    assert (machine.boots, machine.silent(1020)) == (1, False)
    around = Facilities({machine.name: machine})
    around.perform("bmc.power_cycle", machine.name, {}, "test", 1030)
    assert kinds_of(machine.advance(1040)) == ["agent.started", "gpu.returned"]
    assert machine.healthy()


def test_a_dead_gpu_is_brought_back_by_people_only() -> None:
    """Not even a power cycle helps."""
    machine = injected("gpu-dead")
    around = Facilities({machine.name: machine})
    around.perform("bmc.power_cycle", machine.name, {}, "test", 1030)
    assert "gpu.returned" not in kinds_of(machine.advance(1040))
    machine.apply(FAULTS["repair"].plan(machine), 1050)
    assert kinds_of(machine.advance(1050)) == ["gpu.returned"]


def test_a_node_that_is_switched_off_is_silent_until_it_is_switched_on() -> None:
    """And its own actions do not reach it; switching on what is on does nothing."""
    machine = Machine("sim-01")
    around = Facilities({machine.name: machine})
    assert "on already" in around.perform("bmc.power_on", "sim-01", {}, "test", 0).performed.why
    around.perform("bmc.power_off", "sim-01", {}, "test", 0)
    machine.advance(1e6)
    assert machine.off
    assert machine.silent(1e6)
    around.perform("bmc.power_on", "sim-01", {}, "test", 1e6)
    assert kinds_of(machine.advance(1e6 + 60)) == ["agent.started"]


def test_only_our_own_drain_is_taken_off() -> None:
    """Law 3; and jobs that are left are told."""
    machine = Machine("sim-01")
    around = Facilities({machine.name: machine})
    machine.drained = "bob: new memory"
    around.perform("scheduler.drain", "sim-01", {}, "test", 0)
    around.perform("scheduler.resume", "sim-01", {}, "test", 0)
    machine.advance(1)
    assert machine.drained == "bob: new memory"
    machine.drained = ""
    machine.apply(FAULTS["gpu-stuck-job"].plan(machine), 2)
    machine.advance(3)
    left = around.perform("scheduler.drain", "sim-01", {"then": "undo"}, "test", 3).performed
    assert (left.outcome, left.why) == (Outcome.FAILED, "jobs are left: 4711")
    machine.advance(4)
    assert machine.drained == ""
    around.perform("scheduler.drain", "sim-01", {"then": "requeue"}, "test", 4)
    assert kinds_of(machine.advance(5)) == ["gpu.busy"]
    assert machine.drained == "gpuward: test"
    around.perform("scheduler.resume", "sim-01", {}, "test", 5)
    machine.advance(6)
    assert machine.healthy()


@pytest.mark.parametrize(
    ("fault", "action", "params", "sign"),
    [
        ("link-down", "link.bounce", {"link": "link/eth1"}, "link.state"),
        ("ib-phy-errors", "link.bounce", {"link": "port/mlx5_0.1"}, "ib.port_state"),
        ("service-failed", "service.restart", {"unit": "nvidia-persistenced.service"}, "service.state"),
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
def test_the_right_remedy_heals(fault: str, action: str, params: dict[str, Scalar], sign: str) -> None:
    """Before it the machine stays sick; after it the agent reports the recovery and all is well."""
    machine = injected(fault)
    assert machine.advance(103.5), "the fault shows"
    assert not machine.healthy()
    result = machine.perform(action, params, 103.5)
    assert result.outcome is Outcome.OK
    recovery = machine.advance(103.5 + result.took_s + 1)
    assert recovery[-1][1].kind == sign
    assert recovery[-1][1].severity.value == "info"
    machine.advance(1000)
    assert machine.healthy()


def test_a_cut_cable_is_not_healed_by_a_bounce() -> None:
    """The link goes down by hand and up again, and has no carrier still."""
    machine = injected("cable-cut")
    machine.advance(100)
    machine.perform("link.bounce", {"link": "link/eth1"}, 110)
    states = [draft.data for _, draft in machine.advance(200)]
    assert [(data["admin_up"], data["carrier"]) for data in states] == [(False, False), (True, False)]
    assert not machine.healthy()


@pytest.mark.parametrize(
    ("action", "params", "says"),
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
    action: str, params: dict[str, Scalar], says: str
) -> None:
    """Nothing changes, and the reason is told."""
    machine = Machine("sim-01")
    result = machine.perform(action, params, 0.0)
    assert result.outcome is Outcome.REFUSED
    assert says in result.why
    assert machine.next_at() is None


def test_errors_grow_second_by_second_until_the_port_is_trained_anew() -> None:
    """The counter's growth is reported with value and interval; while the port is down it does not grow."""
    machine = injected("ib-phy-errors", now=0.0)
    values = [draft.data["value"] for _, draft in machine.advance(3.0)]
    assert values == [240, 480, 720]
    machine.perform("link.bounce", {"link": "port/mlx5_0.1", "down_s": 3.0}, 3.1)
    assert kinds_of(machine.advance(60)) == ["ib.port_state", "ib.port_state"]


def test_a_failover_is_seen_by_every_port_and_can_be_drilled_again() -> None:
    """Eight ports learn the new LID; the next drill moves it back."""
    machine = Machine("sim-01")
    for lid in (7, 1):
        machine.apply(FAULTS["sm-failover"].plan(machine), 0.0)
        drafts = machine.advance(1.0)
        assert [draft.data["sm_lid"] for _, draft in drafts] == [lid] * 8


def test_drills_break_another_part_each_time_until_none_is_left() -> None:
    """Eight GPUs can be lost; the ninth drill is refused with a sentence, not a crash."""
    machine = Machine("sim-01")
    for n in range(8):
        machine.apply(FAULTS["gpu-off-bus"].plan(machine), n * 10.0)
        machine.advance(n * 10.0 + 5)
    assert sum(gpu.present for gpu in machine.gpus.values()) == 0
    with pytest.raises(Refused, match="sim-01 has no healthy GPU left"):
        FAULTS["gpu-off-bus"].plan(machine)


def test_people_can_mend_everything() -> None:
    """`repair` makes each broken machine whole, tells of each part that was not, and of no other."""
    for fault, signs in {
        "cable-cut": ["link.state"],
        "gpu-off-bus": ["gpu.returned"],
        "gpu-stuck-job": ["gpu.busy"],
        "service-failed": ["service.state"],
        "ib-phy-errors": [],
        "node-silent": [],
    }.items():
        machine = injected(fault)
        machine.advance(105.0)
        machine.apply(FAULTS["repair"].plan(machine), 105.5)
        assert kinds_of(machine.advance(105.5)) == signs, fault
        assert machine.healthy(), fault
        assert not machine.silent(105.5)


def test_a_silent_node_is_heard_again() -> None:
    """Silence has an end, and what was seen meanwhile is not lost in the machine."""
    machine = injected("node-silent", now=0.0)
    machine.advance(0.0)
    assert machine.silent(10.0)
    assert not machine.silent(60.0)


@pytest.mark.parametrize("fault", list(FAULTS))
def test_faults_speak_the_contract_and_are_deterministic(fault: str) -> None:
    """Every draft is of a declared kind with declared fields; twice the same, and in order of time."""
    runs = []
    for _ in range(2):
        machine = injected(fault)
        drafts = machine.advance(700.0)
        for _, draft in drafts:
            kinds.check(draft)
        runs.append(drafts)
    assert runs[0] == runs[1]
    times = [at for at, _ in runs[0]]
    assert all(a <= b for a, b in itertools.pairwise(times))
    assert bool(runs[0]) == (fault not in ("node-silent", "node-hung", "node-dark", "repair"))


@pytest.mark.parametrize("steps", [1, 7, 500])
def test_how_often_one_looks_does_not_matter(steps: int) -> None:
    """Advancing in one leap or in many steps gives the same history."""
    machine = injected("ib-phy-errors", now=0.0)
    machine.apply([ch.After(s=2.5, change=ch.CarrierLost(link="eth1"))], 0.0)
    history = [item for n in range(1, steps + 1) for item in machine.advance(n * 10.0 / steps)]
    once = injected("ib-phy-errors", now=0.0)
    once.apply([ch.After(s=2.5, change=ch.CarrierLost(link="eth1"))], 0.0)
    assert history == once.advance(10.0)


def test_every_fault_says_what_ends_it() -> None:
    """`drill --list` has a sentence for each, and a simulated repair is named in it."""
    for fault in FAULTS.values():
        assert fault.summary.endswith(".")
        assert fault.ends
        assert ("approve" in fault.ends or "approval" in fault.ends) >= fault.approval


def test_every_action_of_the_brain_can_be_done_to_simulated_machines() -> None:
    """A new one needs its simulation."""
    assert {*DEEDS, *FABRIC_DEEDS} == set(BRAIN_ACTIONS)

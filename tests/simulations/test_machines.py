"""A simulated machine really changes state: remedies help where physics says so, and nowhere else."""

import itertools

import pytest

from agent.contract import kinds
from agent.contract.commands import Outcome
from agent.contract.errors import Refused
from agent.contract.messages import Draft, Scalar
from simulations import changes as ch
from simulations.faults import FAULTS, REPAIR_S
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


def test_a_lost_gpu_comes_back_only_after_its_evidence_was_collected() -> None:
    """It waits for ever, and a restart of a service does not help; the technician comes once."""
    machine = injected("gpu-off-bus")
    machine.advance(1000)
    machine.perform("service.restart", {"unit": "nvidia-persistenced.service"}, 1000)
    assert "gpu.returned" not in kinds_of(machine.advance(5000))
    assert machine.perform("evidence.collect", {"component": "gpu/0000:29:00"}, 5000).then == ()
    result = machine.perform("evidence.collect", {"component": GPU}, 5000)
    assert result.outcome is Outcome.OK
    ((at, draft),) = machine.advance(6000)
    assert (draft.kind, draft.component) == ("gpu.returned", GPU)
    assert at == pytest.approx(5000 + result.took_s + REPAIR_S)
    assert machine.healthy()
    assert machine.perform("evidence.collect", {"component": GPU}, 6000).then == ()


@pytest.mark.parametrize(
    ("fault", "action", "params", "sign"),
    [
        ("link-down", "link.bounce", {"link": "link/eth1"}, "link.state"),
        ("ib-phy-errors", "link.bounce", {"link": "port/mlx5_0.1"}, "ib.port_state"),
        ("service-failed", "service.restart", {"unit": "nvidia-persistenced.service"}, "service.state"),
        ("gpu-idle-service", "service.restart", {"unit": "nvidia-persistenced.service"}, "gpu.busy"),
        ("gpu-stuck-job", "evidence.collect", {"component": GPU}, "gpu.busy"),
    ],
)
def test_the_right_remedy_heals(fault: str, action: str, params: dict[str, Scalar], sign: str) -> None:
    """Before it the machine stays sick; after it the agent reports the recovery and all is well."""
    machine = injected(fault)
    assert machine.advance(103.5), "the fault shows"
    assert not machine.healthy()
    result = machine.perform(action, params, 103.5)
    assert result.outcome is Outcome.OK
    recovery = machine.advance(103.5 + result.took_s + REPAIR_S + 1)
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
        ("node.reboot", {}, "cannot do node.reboot"),
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
    assert bool(runs[0]) == (fault not in ("node-silent", "repair"))


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
        if fault.recovers_after_s:
            assert f"{fault.recovers_after_s:g} s" in fault.ends

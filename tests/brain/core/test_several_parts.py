"""Several parts of one node with one fault are one incident of the node, and get one remedy."""

from dataclasses import replace

import pytest

from agent.contract.messages import Severity
from brain.adapters.snapshot import dump, parse
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, PackLoaded
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Mode, ModeSetting, Settings
from tests.brain.world import Story
from tests.shipped import shipped_pack

SHIPPED = shipped_pack()
A, B, C = (f"gpu/0000:{bus}:00" for bus in ("3b", "4c", "5d"))


def story(mode: Mode = Mode.AUTO, *, heals: bool = True) -> Story:
    """The shipped rules."""
    settings = Settings(modes=(ModeSetting(mode=mode),))
    return Story(replace(SHIPPED, settings=settings), heals=heals)


@pytest.mark.parametrize(
    ("first", "second", "apart_s", "age_s", "scopes"),
    [
        pytest.param(A, B, 1, 0, ["node/n1"], id="two parts at once"),
        pytest.param(A, A, 1, 0, [f"gpu/n1/{A[4:]}"], id="one part twice"),
        pytest.param(A, B, 599, 0, ["node/n1"], id="within ten minutes"),
        pytest.param(A, B, 601, 0, [f"gpu/n1/{A[4:]}", f"gpu/n1/{B[4:]}"], id="later"),
        pytest.param(A, B, 700, 690, ["node/n1"], id="later, but told late: by then it was old"),
        pytest.param(A, B, 5, 900, [f"gpu/n1/{A[4:]}", f"gpu/n1/{B[4:]}"], id="at once, but one of them is old"),
    ],
)  # fmt: skip
def test_what_counts_as_one_fault(first: str, second: str, apart_s: float, age_s: float, scopes: list[str]) -> None:  # fmt: skip
    """By when the facts occurred, not when they arrive."""
    given = story(Mode.OBSERVE, heals=False)
    given.event(10, "gpu.xid", first, code=79)
    given.event(10 + apart_s, "gpu.xid", second, age_s=age_s, code=79)
    given.run(20 + apart_s)
    assert sorted(one.scope for one in given.incidents("gpu-lost")) == sorted(scopes)


def test_the_incident_of_the_node_lists_its_parts_and_is_not_narrowed_again() -> None:
    """A third one joins it, and one that tells it twice changes nothing."""
    given = story(Mode.OBSERVE, heals=False)
    for number, part in enumerate((A, B, C, B)):
        given.event(10 + number, "gpu.xid", part, code=79)
    given.run(30)
    (incident,) = given.incidents("gpu-lost")
    assert incident.several
    assert incident.scope == "node/n1"
    assert [key.partition("@")[2] for key in incident.symptoms] == [
        f"gpu/n1/{part[4:]}" for part in (A, B, C)
    ]
    assert "several parts of one node" in incident.because
    assert len(given.notes("incident.widened")) == 1
    assert given.notes("incident.narrowed") == []


def test_whoever_was_paged_for_one_part_is_told_of_the_node() -> None:
    """Once, by the alert that they have."""
    given = story(Mode.OBSERVE, heals=False)
    given.event(10, "gpu.xid", A, code=79)
    given.event(100, "gpu.xid", B, code=79)
    given.event(110, "gpu.xid", C, code=79)
    given.run(120)
    pages = [page for page in given.time.pages if "several parts of one node" in page.text]
    assert [(page.what, page.subject.scope) for page in pages] == [("update", "node/n1")]


def test_it_is_over_when_the_last_part_is_well() -> None:
    """One of them says nothing of the others."""
    given = story(Mode.OBSERVE, heals=False)
    given.event(10, "gpu.xid", A, code=79)
    given.event(11, "gpu.xid", B, code=79)
    given.event(100, "gpu.returned", A, by="nvml")
    given.run(200)
    assert [one.state for one in given.incidents("gpu-lost")] == ["needs_human"]
    given.event(210, "gpu.returned", B, by="nvml")
    given.run(400)
    assert [one.state for one in given.incidents("gpu-lost")] == ["closed"]
    assert given.engine.state.fault_free()


def test_a_remedy_of_one_part_alone_stays_one_of_each() -> None:
    """A port's reset is done to that port: two ports are two incidents."""
    given = story(Mode.OBSERVE, heals=False)
    for port in ("port/mlx5_0.1", "port/mlx5_1.1"):
        given.event(10, "ib.port_state", port, state="DOWN", before="ACTIVE", phys_state="Polling")
    given.run(100)
    assert len(given.incidents("ib-port-down")) == 2


def test_a_reset_of_one_gpu_proves_nothing_of_another_one() -> None:
    """The second fails while the first is reset: it gets a reset of its own, and the node returns once."""
    given = story()
    given.event(10, "gpu.xid", A, code=119, severity=Severity.FATAL)
    given.run(14.2)
    begun = [each.step.action for each in given.performed]
    assert "gpu.reset" in begun
    given.event(14.5, "gpu.xid", B, code=119, severity=Severity.FATAL)
    given.run(900)
    resets = [each.step.params["gpu"] for each in given.performed if each.step.action == "gpu.reset"]
    assert resets == [A, B]
    assert [each.step.action for each in given.performed].count("scheduler.resume") == 1


def test_a_restart_in_between_changes_nothing() -> None:
    """The widened incident is in the snapshot: a third part joins it."""
    given = story(Mode.OBSERVE, heals=False)
    given.event(10, "gpu.xid", A, code=79)
    given.event(11, "gpu.xid", B, code=79)
    given.run(20)
    third = given.event(30, "gpu.xid", C, code=79)
    again = Engine(parse(dump(given.engine.state)), actions=ACTIONS)
    again.handle(EventSeen(event=third), 30)
    (incident,) = again.state.incidents.values()
    assert (incident.scope, incident.several, len(incident.matching_rules)) == ("node/n1", True, 3)
    again.close()


def ports_down(given: Story, count: int, *, every_s: float = 0.2) -> None:
    """So many ports of the node lose their link."""
    for number in range(count):
        port = f"port/mlx5_{number}.1"
        given.event(
            10 + number * every_s, "ib.port_state", port, state="DOWN", before="ACTIVE", phys_state="Polling"
        )


def test_three_ports_at_once_are_the_nodes() -> None:
    """One incident of the node with another runbook, whoever was told of a port hears of it, and the fourth port joins."""
    given = story(heals=False)
    ports_down(given, 4)
    given.run(100)
    (incident,) = [one for one in given.incidents("ib-port-down") if one.state != "explained"]
    assert (incident.scope, incident.runbook, incident.several) == ("node/n1", "restore-ib-ports", True)
    assert len(incident.matching_rules) == 4
    assert len([one for one in given.incidents("ib-port-down") if one.state == "explained"]) == 2
    actions = [step.step.action for step in given.performed]
    assert "node.reboot" in actions
    assert "ib.port_reset" not in actions


def test_new_rules_leave_it_its_own_runbook() -> None:
    """They lead to that of several parts as before, and to that of one part for an incident of a port."""
    given = story(Mode.OBSERVE, heals=False)
    ports_down(given, 3)
    given.run(60)
    given.time.feed(PackLoaded(id="pack-2", pack=replace(SHIPPED, version="2")), 61)
    given.run(70)
    (incident,) = [one for one in given.incidents("ib-port-down") if one.state != "explained"]
    assert incident.runbook == "restore-ib-ports"


def test_ports_that_fall_one_by_one_are_cables() -> None:
    """Three within an hour, none within ten minutes of another one."""
    given = story(Mode.OBSERVE, heals=False)
    ports_down(given, 3, every_s=700)
    given.run(3600)
    assert [one.scope for one in given.incidents("ib-port-down")] == [f"port/n1/mlx5_{n}.1" for n in range(3)]


def test_one_more_part_long_after_joins_while_nothing_has_been_done() -> None:
    """Whoever waits with the approval decides for all parts, and hears of the third."""
    given = story(Mode.APPROVE, heals=False)
    given.event(10, "gpu.xid", A, code=79)
    given.event(100, "gpu.xid", B, code=79)
    given.event(3000, "gpu.xid", C, code=79)
    given.event(3001, "gpu.lost", C, by="nvml")
    given.run(3100)
    (incident,) = given.incidents("gpu-lost")
    assert (incident.scope, len(incident.matching_rules)) == ("node/n1", 3)
    late = [page for page in given.time.pages if page.text.endswith(f"is now at gpu/n1/{C[4:]}, too")]
    assert [(page.what, page.subject.scope) for page in late] == [("update", "node/n1")]


def test_one_more_part_of_a_node_in_service_is_a_fault_of_its_own() -> None:
    """Two GPUs were left to people, who have not taken the node out of service: the third is news an hour later."""
    given = story(Mode.OBSERVE, heals=False)
    given.event(10, "gpu.xid", A, code=79)
    given.event(11, "gpu.xid", B, code=79)
    given.event(3600, "gpu.xid", C, code=79)
    given.run(3700)
    assert sorted(one.scope for one in given.incidents("gpu-lost")) == [f"gpu/n1/{C[4:]}", "node/n1"]


def test_a_port_that_goes_while_the_node_is_proved_goes_to_people_with_the_others() -> None:
    """It is no part of the reboot, which it came after; but where that has not helped the others, nobody resets this one."""
    given = story(heals=False)
    ports_down(given, 3)
    given.run(60)
    assert [step.step.action for step in given.performed].count("node.reboot") == 1
    given.event(70, "ib.port_state", "port/mlx5_3.1", state="DOWN", before="ACTIVE", phys_state="Polling")
    given.run(110)
    assert {one.scope for one in given.incidents("ib-port-down") if one.state != "explained"} == {
        "node/n1",
        "port/n1/mlx5_3.1",
    }
    given.run(1200)
    (incident,) = [one for one in given.incidents("ib-port-down") if one.state != "explained"]
    assert (incident.state, incident.scope, len(incident.matching_rules)) == ("needs_human", "node/n1", 4)
    assert "ib.port_reset" not in [step.step.action for step in given.performed]

"""Every kind of fault: what it says is what an agent may say, and gpuward with its shipped rules takes it for what it is."""

from collections import Counter

import pytest

from agent.contract.messages import UnsentEvent
from brain.core.pack.lint_symptoms import KINDS as SAID
from brain.core.state import IncidentState
from simulations.faults import Fault, Fix
from simulations.machines import Machine
from simulations.month.draw import FaultCase, Month, hit, remedies_of
from simulations.month.engine_fleet import EngineFleet
from simulations.month.kinds import Cured, FaultKind, Harm, Onset, Reach
from simulations.month.learn import asked_for
from simulations.month.profile import KINDS
from tests.shipped import shipped_pack
from tests.simulations.month import kit

HOURS = 12
# Of the way back: a boot takes longer than a node may be silent, and people say that a node is well.
BY_THE_WAY = ("node-unreachable",)
RULES = {rule.cause or rule.name for rule in shipped_pack().rules}
by_name = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def month_of(kind: FaultKind, **parts: object) -> Month:
    """One fault of a kind that no remedy ends, in 64 nodes of 8 racks and 4 leaves where it hits many, else in 16."""
    nodes = 64 if kind.reach else 16
    fleet = {"nodes": nodes, "days": 1, "nodes_per_rack": 8, "nodes_per_leaf": 16}
    where = kit.month(nodes=nodes, fleet=fleet).places
    hits = hit(tuple(where), where, kit.ON, kind)
    given = {"cured": False, "nodes": hits, "lasts_s": kind.lasts[0], "hands_s": 20 * 3600.0} | parts
    return kit.month(kit.case(kind.name, **given), nodes=nodes, fleet=fleet)  # type: ignore[arg-type]  # of the case


def played(month: Month) -> EngineFleet:
    fleet = EngineFleet(shipped_pack(), month)
    fleet.run(HOURS * 3600)
    return fleet


def roots(fleet: EngineFleet) -> Counter[str]:
    """Causes of incidents that no other explains and nobody asked for."""
    return Counter(
        one.cause
        for one in fleet.timeline.incidents.values()
        if one.state is not IncidentState.EXPLAINED and not asked_for(one.cause)
    )


@by_name
def test_gpuward_takes_it_for_what_it_is(kind: FaultKind) -> None:
    """The cause that stands with the kind, and nothing beside it but that the node boots; or nothing at all."""
    fleet = played(month_of(kind))
    found = roots(fleet)
    story = fleet.world.tally.stories["f1"]
    assert story.begun
    expected = {kind.seen_as} if kind.seen_as else set()
    assert set(found) - set(BY_THE_WAY) - ALSO.get(kind.name, set()) == expected - set(BY_THE_WAY)
    assert expected <= set(found)
    if kind.cured is not Cured.JOB and kind.name not in ALSO:
        assert story.seen_as == kind.seen_as


# What else comes of them.
ALSO = {
    "link-flaps": {"link-down"},  # the first seconds of it
    "gpu-double-bit": {"gpu-memory-reset"},  # the row still waits when the driver's code is people's
    "service-killed": {"service-failed"},  # it fails again when no memory is short any more
}


def onset(kind: FaultKind, machine: Machine) -> Onset:
    return Onset(
        name="f1", machine=machine.state, fixes=tuple(kind.cures), part=3, lasts_s=min(kind.lasts[0], 7200.0),
        found=True, soothed_by=tuple(kind.soothes), relapse_s=60.0, worsened_by=tuple(kind.worsens),
    )  # fmt: skip


def said(kind: FaultKind) -> list[UnsentEvent]:
    """All that a fault says in three hours, and when it ends."""
    machine = Machine("sim-000")
    machine.state.jobs["4711"] = "ann"
    machine.apply(kind.plan(onset(kind, machine)), 0.0)
    told = [event for _, event in machine.advance(10_800.0)]
    faults: list[Fault] = list(machine.state.faults.values())
    return told + [
        event
        for fault in faults
        for event in (*fault.recovery, *(fault.worse.symptoms if fault.worse else ()))
    ]


@by_name
def test_what_it_says_has_the_fields_of_its_kind(kind: FaultKind) -> None:
    """All that are always there, and no other."""
    for event in said(kind):
        fields = SAID[event.kind].fields
        names = {field.name for field in fields}
        assert set(event.data) <= names, event
        assert {field.name for field in fields if field.always} <= set(event.data), event
        types = {"int": int, "float": float, "bool": bool, "text": str}
        for field in fields:
            if field.name in event.data:
                assert type(event.data[field.name]) is types[field.type], (event.kind, field.name)


def test_there_are_more_than_eighty_and_each_stands_for_itself() -> None:
    """Names and summaries are unique; shares are shares, from the gentlest remedy on; noise says so."""
    assert len(KINDS) >= 80
    assert len({kind.summary for kind in KINDS.values()}) == len(KINDS)
    for kind in KINDS.values():
        shares = list(kind.cures.values())
        assert all(0 < share <= 1 for share in shares), kind.name
        assert shares == sorted(shares), kind.name
        assert not (set(kind.worsens) & {fix for fix, share in kind.cures.items() if share == 1}), kind.name
        if "(noise)" in kind.summary:
            assert kind.benign, kind.name
            assert kind.harm is Harm.NONE, kind.name


def test_every_cause_of_a_kind_is_one_of_a_rule_and_most_rules_are_met() -> None:
    """Causes of kinds are shipped rules', or the engine makes them of those; LEFT_OUT has the rules that no kind meets."""
    causes = {kind.seen_as for kind in KINDS.values() if kind.seen_as}
    assert {cause for cause in causes if not cause.startswith("shared-")} <= RULES
    met = causes | {cause.removeprefix("shared-").rpartition("-")[0] for cause in causes}
    assert RULES - met == LEFT_OUT


LEFT_OUT = {
    # The engine makes them of several faults or nodes, over days.
    *(
        "fault-goes-round",
        "lemon-node",
        "lemon-rack",
        "release-suspected",
        "job-suspected",
        "job-collective-hangs",
    ),
    *("fleet-drift", "fleet-split", "settings-drift", "straggler"),
    # Of gpuward's own agents and wires, which a month does not break.
    *("node-noisy", "node-speaks-for-another", "two-agents", "renamed-machine"),
    # What jobs' logs say of their results: a month's jobs print none.
    *("job-nan", "job-nan-on-several", "job-accuses-node"),
    # Of people, and of what a month's scheduler and UFM do not say.
    *("drained-by-others", "devices-set-aside", "jobs-wait-long", "spares-short", "ib-switch-down"),
    # Of what optical modules say of themselves: a month's ports have errors by their counters.
    *("optics-receive-low", "optics-laser-dying", "optics-hot", "optics-other"),
    # Of the agents' probes, which are off as shipped.
    *("path-loss", "path-slow"),
    # Of a setting whose loss a month does not have.
    "pfc-drift",
    # Of accelerators of other makers: a month's machines have NVIDIA's GPUs.
    *(
        "gpu-reset-failed",
        "gpu-driver-reset",
        "gpu-hung",
        "gpu-link-down",
        "gpu-link-errors",
    ),
    *("gpu-overheated", "gpu-pages-near", "gpu-no-driver", "gpu-tool-hung"),
    *("gpu-fault-separate", "gpu-fault-restart", "gpu-fault-watched", "gpu-fault-unknown"),
    # Of containers: a month's jobs have none.
    *("container-gpu-lost", "container-gpus-fail"),
    # Of traffic, which a month's ports do not count.
    *("port-full", "port-busy", "link-full", "link-busy"),
    # Of storage: a month's file servers answer or do not.
    *("storage-slow", "storage-target-full", "client-evicted"),
    # Of packages, which a month does not install.
    "fabric-manager-mismatch",
    # Of processes, which a month's machines have as jobs only.
    "gpu-holder-stuck",
    # Of what only DCGM finds: a month's nodes have no DCGM that is asked.
    *(
        "gpu-inforom-corrupt",
        "gpu-dcgm-pages",
        "gpu-dcgm-other",
        "gpu-dcgm-unknown",
        "node-dcgm",
        "dcgm-blind",
    ),
    # The same faults as those of kinds, in other words.
    *("gpu-unbound", "gpu-unowned", "gpu-suspected", "gpu-ecc-found-off", "mount-bad"),
    *("ib-errors-after-correction", "ib-port-unconfigured"),
}


def test_one_draw_decides_what_each_remedy_does() -> None:
    """What it ends comes first, then what it ends for a while, and what it makes worse last; never two of them."""
    given = kit.profile()
    for kind in KINDS.values():
        for n in range(40):
            one = remedies_of(given, kind, (n + 0.5) / 40)
            assert not set(one.end) & set(one.soothe)
            assert not set(one.end) & set(one.worsen)
            assert not set(one.soothe) & set(one.worsen)


def hurt(kind: str, fix: Fix, *, soothes: bool) -> FaultCase:
    """A fault that this remedy ends for an hour, or makes worse."""
    return kit.case(
        kind,
        cured=False,
        soothed_by=(fix,) if soothes else (),
        relapse_s=3600.0,
        worsened_by=() if soothes else (fix,),
    )


def test_a_remedy_that_only_seems_to_help_is_followed_by_a_relapse_and_has_not_helped() -> None:
    """The link is back, the node is in service, and the next job dies there: the reset did not help; it is not healed."""
    fleet = EngineFleet(shipped_pack(), kit.month(hurt("nvlink-marginal", Fix.RESET_ALL_GPUS, soothes=True)))
    fleet.run(kit.FAULT_AT_S + 1800)
    story = fleet.world.tally.stories["f1"]
    first = story.healed_s or 0.0
    assert 0 < first < 1800
    fleet.run(kit.FAULT_AT_S + 2 * 3600)
    assert story.healed_s is None or story.healed_s > 3600
    resets = [act.verdict.name for act in fleet.world.tally.acts if act.action == "gpu.reset"]
    assert resets[0] == "WRONG"


def test_a_remedy_that_makes_it_worse_is_seen_for_what_it_is() -> None:
    """The reset of a card loses it: gpuward sees the device go, and goes on with harder remedies."""
    fleet = EngineFleet(shipped_pack(), kit.month(hurt("nic-fragile", Fix.RESET_NIC, soothes=False)))
    fleet.run(kit.FAULT_AT_S + 4 * 3600)
    assert "ib-device-gone" in {one.cause for one in fleet.timeline.incidents.values()}
    assert not fleet.world.tally.returned_broken


def test_a_boot_that_makes_it_worse_leaves_a_node_that_hangs() -> None:
    """A module that is trained anew fails: whoever reboots for corrected errors loses the node; gpuward does not."""
    machine = Machine("sim-000")
    kind = KINDS["memory-weak"]
    machine.apply(kind.plan(onset(kind, machine)), 0.0)
    machine.advance(1.0)
    machine.perform("node.reboot", {}, 2.0)
    machine.advance(600.0)
    assert machine.state.hung
    fleet = played(month_of(kind, worsened_by=tuple(kind.worsens)))
    assert not fleet.machines[kit.ON].state.hung


def test_a_shared_fault_comes_to_its_nodes_one_after_the_other() -> None:
    """A rack's, a leaf's and everybody's; as far apart as its kind says."""
    wide = [kind for kind in KINDS.values() if kind.reach]
    assert {kind.reach for kind in wide} == {Reach.LEAF, Reach.RACK, Reach.CELL}
    month = month_of(KINDS["rack-hot"])
    (case,) = month.cases
    assert len(case.nodes) == 8
    assert len({month.places[node].rack for node in case.nodes}) == 1
    assert len(month_of(KINDS["spine-down"]).cases[0].nodes) == 64

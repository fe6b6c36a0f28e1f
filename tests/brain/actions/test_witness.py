"""What schedulers say, as facts: states that settle, begin, change and end; jobs that wait in vain; the next leader. No I/O."""

from dataclasses import replace
from typing import Any

import pytest

from agent.contract.kinds import Kind
from agent.contract.messages import Severity
from brain.actions import kube_states, slurm_witness
from brain.actions.kube_resources import GpuResources
from brain.actions.marks import REASON, Mark, written
from brain.actions.slurm_cli import sinfo_flags
from brain.actions.slurm_rows import NodeRow
from brain.actions.witness import AGAIN_S, SETTLES_S, WAITS_S, NodeSaid, WaitingJob, Witness, ours
from brain.core.inputs import Reported
from brain.core.pack import scheduler_kinds

KINDS: dict[str, Kind] = {kind.name: kind for kind in scheduler_kinds.KINDS}
NOW_S = 1e9
WELL = NodeSaid(node="n1", gpus=(8, 8))
DOWN = replace(WELL, unusable="DOWN+NOT_RESPONDING", why="Not responding")


def told(reports: list[Reported]) -> list[tuple[str, object]]:
    for one in reports:
        kind = KINDS[one.kind]
        assert set(one.data) == {field.name for field in kind.fields}, one
    return [(one.kind, one.data["active"]) for one in reports]


def test_a_node_is_down_when_it_has_been_so_for_a_while() -> None:
    """By its own watch where the scheduler does not say since when; a blink is nothing; it ends at once."""
    watch = Witness("train")
    assert (
        watch.nodes([DOWN], NOW_S) == watch.nodes([WELL], NOW_S + 20) == watch.nodes([DOWN], NOW_S + 40) == []
    )
    assert told(watch.nodes([DOWN], NOW_S + 40 + SETTLES_S)) == [("scheduler.node", True)]
    assert watch.nodes([DOWN], NOW_S + 100) == []
    assert told(watch.nodes([DOWN], NOW_S + 100 + AGAIN_S)) == [("scheduler.node", True)]
    assert told(watch.nodes([WELL], NOW_S + 5000)) == [("scheduler.node", False)]
    assert told(Witness("k8s").nodes([replace(DOWN, unusable_s=SETTLES_S)], NOW_S)) == [
        ("scheduler.node", True)
    ]


def test_gpus_that_jobs_cannot_have() -> None:
    """Each change of the number is a fact; none of them is the plug-in; a node that says nothing of GPUs proves nothing."""
    watch = Witness("k8s")
    (short,) = watch.nodes([replace(WELL, gpus=(8, 7))], NOW_S)
    assert (short.data["have"], short.data["usable"], short.data["plugin_down"]) == (8, 7, False)
    (none,) = watch.nodes([replace(WELL, gpus=(8, 0))], NOW_S)
    assert none.data["plugin_down"] is True
    assert watch.nodes([replace(WELL, gpus=None)], NOW_S) == []
    assert told(watch.nodes([WELL], NOW_S)) == [("scheduler.gpus", False)]


def test_a_drain_of_others_is_an_information() -> None:
    """With who and why; another reason is news, the same one is not."""
    watch = Witness("train")
    drained = replace(WELL, drained="new cable", drained_by="root")
    (first,) = watch.nodes([drained], NOW_S)
    assert (first.severity, first.data["by"], first.data["text"]) == (Severity.INFO, "root", "new cable")
    assert watch.nodes([drained], NOW_S + 60) == []
    assert told(watch.nodes([replace(drained, drained="new switch")], NOW_S + 60)) == [
        ("scheduler.drained", True)
    ]
    assert told(watch.nodes([WELL], NOW_S + 60)) == [("scheduler.drained", False)]


@pytest.mark.parametrize(
    ("reason", "stuck"),
    [
        ("Resources", False),
        ("(Priority)", False),
        ("QOSMaxJobsPerUserLimit", False),
        ("AssocGrpGRES", False),
        ("ReqNodeNotAvail, UnavailableNodes:gpu7", True),
        ("BadConstraints", True),
        ("launch failed requeued held", True),
        ("PartitionDown", True),
        ("Unschedulable 0/4 nodes are available: 4 node(s) had untolerated taint", True),
        ("Resources 0/4 nodes are available: 4 Insufficient nvidia.com/gpu", False),
    ],
)
def test_what_a_job_waits_for(reason: str, *, stuck: bool) -> None:
    """What passes by itself, or is somebody's will, is nobody's alarm."""
    job = WaitingJob(id="7", user="ann", waits_s=WAITS_S, reason=reason)
    assert bool(Witness("train").queue([job], NOW_S)) == stuck
    assert Witness("train").queue([replace(job, waits_s=WAITS_S - 1)], NOW_S) == []


def test_jobs_that_wait_are_one_fact_of_the_cell() -> None:
    """The longest waiting ones are named; others for the same reason are no news; it ends with the last."""
    watch = Witness("train")
    jobs = [
        WaitingJob(
            id=str(n), user="ann", waits_s=WAITS_S * (n + 1), reason="ReqNodeNotAvail, UnavailableNodes:gpu7"
        )
        for n in range(9)
    ]
    (fact,) = watch.queue(jobs, NOW_S)
    assert (fact.node, fact.data["jobs"], fact.data["reasons"]) == ("", 9, "9 ReqNodeNotAvail")
    assert str(fact.data["text"]).startswith("8 of ann for 9.0 h: ReqNodeNotAvail")
    assert watch.queue(jobs[:5], NOW_S + 60) == []
    other = WaitingJob(id="20", user="bob", waits_s=WAITS_S, reason="BadConstraints")
    assert told(watch.queue([*jobs, other], NOW_S + 60)) == [("scheduler.queue", True)]
    assert told(watch.queue([], NOW_S + 120)) == [("scheduler.queue", False)]


def test_the_next_leader_goes_on_from_the_log() -> None:
    """It tells nothing twice and ends what has ended; of another scheduler's facts it learns nothing."""
    first, second, other = Witness("train"), Witness("train"), Witness("serve")
    drained = replace(WELL, drained="new cable", drained_by="root")
    (report,) = first.nodes([drained], NOW_S)
    (again,) = Witness("train").nodes([drained], NOW_S)
    assert again.id == report.id, "the same fact counts once"
    for one in (second, other):
        one.learn(report, NOW_S)
    assert second.nodes([drained], NOW_S + 60) == []
    assert told(second.nodes([WELL], NOW_S + 60)) == [("scheduler.drained", False)]
    assert other.nodes([WELL], NOW_S + 60) == []


def row(state: str, reason: str = "", by: str = "") -> NodeRow:
    return NodeRow(flags=sinfo_flags(state), reason=reason, by=by)


OURS = written([Mark(incident="inc-7", why="gpu-lost")])


@pytest.mark.parametrize(
    ("found", "unusable", "drained", "gpus"),
    [
        (row("idle"), "", "", (0, 0)),
        (row("mixed"), "", "", (0, 0)),
        (row("down*", "Not responding", "slurm"), "DOWN+NOT_RESPONDING", "", (0, 0)),
        (row("down", "Node unexpectedly rebooted", "slurm"), "DOWN", "", (0, 0)),
        (row("down", "fan swapped", "root"), "", "fan swapped", (0, 0)),
        (row("drained", "new cable", "root"), "", "new cable", (0, 0)),
        (row("draining*", "new cable", "root"), "", "new cable", (0, 0)),
        (row("drained*", OURS, "gpuward"), "", "", (0, 0)),
        (row("drained", OURS.replace("lost", "lust"), "root"), "", OURS.replace("lost", "lust"), (0, 0)),
        (row("drained", "gres/gpu count reported lower than configured (6 < 8)", "slurm"), "", "", (8, 6)),
        (row("inval", "gres/gpu count reported lower than configured (0 < 8)", "slurm"), "INVAL", "", (8, 0)),
        (row("idle*"), "NOT_RESPONDING", "", (0, 0)),
    ],
)
def test_what_slurms_states_mean(found: NodeRow, unusable: str, drained: str, gpus: tuple[int, int]) -> None:
    """Its own states are facts, people's are theirs, and ours are none of both."""
    said = slurm_witness.said("n1", found)
    assert (said.unusable, said.drained, said.gpus) == (unusable, drained, gpus)


@pytest.mark.parametrize(
    ("found", "lost"),
    [
        (row("idle"), ""),
        (row("down", "Node unexpectedly rebooted", "slurm"), ""),
        (row("down*", "Not responding", "slurm"), "NOT_RESPONDING: Not responding"),
        (row("drained*", OURS, "gpuward"), f"NOT_RESPONDING: {OURS}"),
        (row("drained*", "new cable", "root"), ""),
        (row("down*", "fan swapped", "root"), ""),
        (row("powered_down*"), ""),
        (row("maint*"), ""),
        (row("reboot_issued*"), ""),
    ],
)
def test_a_node_that_slurm_does_not_hear(found: NodeRow, lost: str) -> None:
    """Drained by us or not; none that a person has, or that sleeps or restarts because somebody wants it."""
    assert slurm_witness.said("n1", found).lost == lost


def test_a_lost_node_is_told_while_it_is_drained_too() -> None:
    """The two states are facts of their own."""
    watch = Witness("train")
    lost = replace(WELL, lost="NOT_RESPONDING: Not responding")
    assert (
        watch.nodes([lost], NOW_S - 40)
        == watch.nodes([WELL], NOW_S - 35)
        == watch.nodes([lost], NOW_S - SETTLES_S)
        == []
    )
    assert told(watch.nodes([lost], NOW_S)) == [("scheduler.lost", True)]
    assert watch.nodes([lost], NOW_S + 60) == []
    drained = replace(lost, drained="new cable", drained_by="root")
    assert told(watch.nodes([drained], NOW_S + 120)) == [("scheduler.drained", True)]
    assert told(watch.nodes([replace(drained, lost="")], NOW_S + 180)) == [("scheduler.lost", False)]


def test_names_of_nodes() -> None:
    """As the schedulers have them."""
    assert ours("{node}.example.org", "gpu1.example.org") == "gpu1"
    assert ours("{node}.example.org", "gpu1") == ours("n-{node}", "n") == ""


def pod(**more: Any) -> dict[str, Any]:
    wants = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
    return {
        "metadata": {"name": "p", "namespace": "d", "creationTimestamp": "2001-09-09T00:46:40Z"},
        "spec": {"containers": [wants]},
        "status": {
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "none"}
            ]
        },
    } | more


@pytest.mark.parametrize(
    ("spec", "annotations", "lost"),
    [
        ({}, {}, True),
        ({"unschedulable": True}, {REASON: OURS}, True),
        ({"unschedulable": True}, {}, False),
        ({"unschedulable": True}, {REASON: "new cable"}, False),
    ],
)
def test_a_node_that_kubernetes_does_not_hear(
    spec: dict[str, Any], annotations: dict[str, str], *, lost: bool
) -> None:
    """Cordoned by us or not; none that a person has cordoned, who may have their hands in it."""
    silent = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    found = {"metadata": {"annotations": annotations}, "spec": spec, "status": {"conditions": [silent]}}
    assert bool(kube_states.node("n1", found, GpuResources(), NOW_S).lost) is lost


def test_pods_that_count() -> None:
    """Those with GPUs that cannot be placed: no others."""
    found = kube_states.waiting(pod(), GpuResources(), NOW_S)
    assert found is not None
    assert (found.id, found.waits_s) == ("d/p", 3600.0)
    assert kube_states.waiting(pod(spec={"containers": [{}]}), GpuResources(), NOW_S) is None
    assert kube_states.waiting(pod(status={}), GpuResources(), NOW_S) is None

"""What a real Slurm and a real API server say of nodes and of jobs that wait: told when it begins and ends; nothing changes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import ActionError
from brain.actions import kube, kube_conditions, slurm_witness
from brain.actions import slurm as slurm_module
from brain.actions.kube_conditions import NodeConditions
from brain.actions.marks import Mark
from brain.actions.slurm_witness import SlurmStates
from brain.actions.witness import SETTLES_S, SPARES_S
from brain.core.inputs import Reported
from tests.real import kube_plane, slurm_cluster
from tests.real.kube_plane import Plane
from tests.real.kubernetes.fake_nodes import Api
from tests.real.slurm_cluster import NODES, Cluster

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
WHY = Mark(incident="inc-7", why="why")
slurm_there = pytest.mark.skipif(bool(slurm_cluster.missing()), reason=slurm_cluster.missing() or "-")
kube_there = pytest.mark.skipif(bool(kube_plane.missing()), reason=kube_plane.missing() or "-")
RBAC = Path(__file__).resolve().parents[2] / "deploy/kubernetes/rbac/conditions.yaml"


class Heard:
    """What a listener published: (kind, node, active) and the data."""

    def __init__(self, listener: SlurmStates | NodeConditions, got: list[Reported]) -> None:
        self.listener, self._got = listener, got
        self.data: dict[tuple[str, str], dict[str, Any]] = {}

    async def told(self) -> set[tuple[str, str, bool]]:
        """One more look."""
        self._got.clear()
        assert await self.listener.look() == len(self._got)
        self.data = {(one.kind, one.node): dict(one.data) for one in self._got}
        return {(one.kind, one.node, bool(one.data["active"])) for one in self._got}

    async def until(
        self, wanted: tuple[str, str, bool], within_s: float = 60.0
    ) -> set[tuple[str, str, bool]]:
        """Looks again and again until this is told; returns all that was told with it."""
        async with asyncio.timeout(within_s):
            while wanted not in (found := await self.told()):
                await asyncio.sleep(0.2)
        return found


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    """One cluster for all."""
    with slurm_cluster.cluster() as made:
        yield made


@pytest.fixture
def cluster(shared: Cluster) -> Cluster:
    """With no jobs and all nodes in service."""
    shared.clean()
    return shared


def slurm(cluster: Cluster, ahead_s: float = 0.0, **more: object) -> Heard:
    """The listener of a table; `ahead_s`: of its clock."""
    got: list[Reported] = []
    table = {"type": "slurm", "conf": cluster.conf, "states_every_s": 5.0, **more}
    (made,) = slurm_witness.listeners(
        {"train": table},
        put=got.append,
        note=lambda _, __: None,
        leads=lambda: True,
        known=lambda: set(NODES),
    )
    clock = made._clock
    made._clock = lambda: clock() + ahead_s
    return Heard(made, got)


@slurm_there
@pytest.mark.component("slurm")
@pytest.mark.parametrize("rest", [False, True], ids=["tools", "slurmrestd"])
async def test_drains_of_others_are_told_and_ours_are_not(
    cluster: Cluster, tmp_path: Path, *, rest: bool
) -> None:
    """With who and why; a node that a person has set DOWN is theirs, too; all stand as they were."""
    more: dict[str, Any] = cluster_rest(cluster, tmp_path) if rest else {}
    heard = slurm(cluster, **more)
    assert await heard.told() == set()
    cluster.run("scontrol", "update", "NodeName=gpu1", "State=DRAIN", "Reason=new cable | with a bar")
    cluster.run("scontrol", "update", "NodeName=gpu2", "State=DOWN", "Reason=fan swapped")
    ours = slurm_module.build("train", {"type": "slurm", "conf": cluster.conf}, "schedulers.train")
    await ours.drain("gpu3", WHY)
    assert await heard.told() == {("scheduler.drained", "gpu1", True), ("scheduler.drained", "gpu2", True)}
    assert heard.data["scheduler.drained", "gpu1"] == {
        "active": True,
        "scheduler": "train",
        "by": "root",
        "text": "new cable | with a bar",
    }
    assert await heard.told() == set()
    assert "new cable" in cluster.node("gpu1")
    cluster.run("scontrol", "update", "NodeName=gpu1", "State=RESUME")
    assert ("scheduler.drained", "gpu1", False) in await heard.told()
    await heard.listener.close()


def cluster_rest(cluster: Cluster, folder: Path) -> dict[str, Any]:
    """The options by which the same is read from slurmrestd."""
    token = folder / "token"
    said = cluster.run("scontrol", "token", "username=root", "lifespan=3600")
    token.write_text(said.partition("=")[2].strip())
    token.chmod(0o600)
    return {
        "rest_url": f"http://127.0.0.1:{cluster.rest_port}",
        "rest_version": "v0.0.38",
        "rest_user": "root",
        "token_file": str(token),
    }


@slurm_there
@pytest.mark.component("slurm")
@pytest.mark.parametrize("rest", [False, True], ids=["tools", "slurmrestd"])
async def test_idle_nodes_and_spares_are_those_without_jobs(
    cluster: Cluster, tmp_path: Path, *, rest: bool
) -> None:
    """One has a job, one is drained, one is ill by what gpuward knows; when the job has ended, its node is idle again."""
    more: dict[str, Any] = cluster_rest(cluster, tmp_path) if rest else {}
    heard = slurm(cluster, idle_after_s=0.1, spares={"all": {"nodes": "gpu*", "share": 0.5}}, **more)
    job = await asyncio.to_thread(cluster.submit, "gpu1", gpus=8)
    cluster.run("scontrol", "update", "NodeName=gpu2", "State=DRAIN", "Reason=new cable")
    assert isinstance(heard.listener, SlurmStates)
    heard.listener._ill = lambda: {"gpu3"}
    found = await heard.until(("scheduler.idle", "gpu4", True))
    assert {one for one in found if one[0] == "scheduler.idle"} == {
        ("scheduler.idle", "gpu3", True),
        ("scheduler.idle", "gpu4", True),
    }
    clock = heard.listener._clock
    heard.listener._clock = lambda: clock() + SPARES_S
    assert ("scheduler.spares", "", True) in await heard.told()
    assert heard.data["scheduler.spares", ""] == {
        "active": True,
        "scheduler": "train",
        "pool": "all",
        "ready": 1,
        "wanted": 2,
        "of": 4,
        "out": 1,
        "ill": "gpu3",
    }
    cluster.run("scancel", job)
    await heard.until(("scheduler.idle", "gpu1", True))
    await asyncio.to_thread(cluster.submit, "gpu4", gpus=1)
    await heard.until(("scheduler.idle", "gpu4", False))
    await heard.listener.close()


@slurm_there
@pytest.mark.component("slurm")
async def test_jobs_that_wait_in_vain_are_told_with_their_reason(cluster: Cluster) -> None:
    """A job that asks for a drained node, seen more than an hour later; one that waits for room is none of it."""
    cluster.run("scontrol", "update", "NodeName=gpu1", "State=DRAIN", "Reason=new cable")
    vain = await asyncio.to_thread(cluster.submit_only, "-w", "gpu1", "-J", "vain")
    running = [await asyncio.to_thread(cluster.submit, node, gpus=8) for node in NODES[1:]]
    room = await asyncio.to_thread(cluster.submit_only, "--gres=gpu:8", "-x", "gpu1", "-J", "room")
    await asyncio.to_thread(
        cluster.until, lambda: "ReqNodeNotAvail" in cluster.reason(vain), "slurmctld has looked at the job"
    )
    await asyncio.to_thread(cluster.until, lambda: "None" not in cluster.reason(room), "and at the other")
    assert ("scheduler.queue", "", True) not in await slurm(cluster).told(), "they have just begun to wait"
    late = slurm(cluster, ahead_s=2 * 3600.0)
    assert ("scheduler.queue", "", True) in await late.told()
    data = late.data["scheduler.queue", ""]
    assert (data["jobs"], data["reasons"]) == (1, "1 ReqNodeNotAvail")
    assert f"{vain} of root for 2.0 h" in data["text"]
    cluster.run("scancel", vain)
    assert ("scheduler.queue", "", False) in await late.until(("scheduler.queue", "", False))
    assert running


@slurm_there
@pytest.mark.component("slurm")
async def test_a_slurmd_that_dies_is_told_when_slurm_gives_it_up() -> None:
    """Not responding for 30 s: the node is Slurm's to miss, and nothing is drained by it."""
    with slurm_cluster.cluster() as cluster:
        heard = slurm(cluster)
        cluster.kill_node("gpu4")
        found = await heard.until(("scheduler.node", "gpu4", True), 120)
        assert found - {("scheduler.lost", "gpu4", True)} == {("scheduler.node", "gpu4", True)}
        assert "NOT_RESPONDING" in heard.data["scheduler.node", "gpu4"]["state"]
        if ("scheduler.lost", "gpu4", True) not in found:
            await heard.until(("scheduler.lost", "gpu4", True), 120)
        assert str(heard.data["scheduler.lost", "gpu4"]["text"]).startswith("NOT_RESPONDING")
        ours = slurm_module.build("train", {"type": "slurm", "conf": cluster.conf}, "schedulers.train")
        await ours.drain("gpu4", WHY)
        drained = await heard.told()
        assert ("scheduler.node", "gpu4", False) in drained, "it is in our hands now"
        assert ("scheduler.lost", "gpu4", False) not in drained, "and Slurm hears as little of it as before"
        cluster.run("scontrol", "update", "NodeName=gpu4", "State=DOWN", "Reason=I swap its board")
        assert ("scheduler.lost", "gpu4", False) in await heard.told(), "a person has it now"
        cluster.stop_controller()
        with pytest.raises(ActionError):
            await heard.listener.look()


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    """A control plane in which the brain's account has its rights."""
    with kube_plane.plane() as made:
        made.kubectl("apply", "-f", str(RBAC))
        yield made


def witness(plane: Plane, ahead_s: float = 0.0) -> Heard:
    """The listener of a table that wants states and no conditions."""
    got: list[Reported] = []
    table = {"type": "kubernetes", "kubeconfig": plane.kubeconfig, "states": True}
    (made,) = kube_conditions.listeners(
        {"k8s": table},
        put=got.append,
        note=lambda _, __: None,
        leads=lambda: True,
        known=lambda: {"gpu1", "gpu2"},
    )
    clock = made._clock
    made._clock = lambda: clock() + ahead_s
    return Heard(made, got)


def status(plane: Plane, node: str, **fields: Any) -> None:
    """What a kubelet writes into the status of its node."""
    api = Api(plane.folder / "admin.kubeconfig")
    kind = "application/strategic-merge-patch+json"
    assert api.ask("PATCH", f"/api/v1/nodes/{node}/status", {"status": fields}, kind)[0] == 200


@kube_there
@pytest.mark.component("kubernetes")
async def test_gpus_that_cannot_be_allocated_and_a_plug_in_that_is_gone(plane: Plane) -> None:
    """Seven of eight, none, all."""
    heard = witness(plane)
    assert not [one for one in await heard.told() if one[0] == "scheduler.gpus"]
    (plane.folder / "silent" / "gpu1").touch()  # its kubelet would write its own figures over these
    for usable, down in (("7", False), ("0", True)):
        status(plane, "gpu1", capacity={"nvidia.com/gpu": "8"}, allocatable={"nvidia.com/gpu": usable})
        await heard.until(("scheduler.gpus", "gpu1", True))
        data = heard.data["scheduler.gpus", "gpu1"]
        assert (data["have"], data["usable"], data["plugin_down"]) == (8, int(usable), down)
    (plane.folder / "silent" / "gpu1").unlink()
    await heard.until(("scheduler.gpus", "gpu1", False))
    await heard.listener.close()


@kube_there
@pytest.mark.component("kubernetes")
async def test_resources_of_every_maker(plane: Plane) -> None:
    """AMD's, Huawei's and MIG devices beside NVIDIA's GPUs: told by their names, and counted in the pods that have them."""
    heard = witness(plane)
    others = ("amd.com/gpu", "huawei.com/Ascend910", "nvidia.com/mig-1g.10gb")
    for resource, usable, down in ((others[0], "3", False), (others[1], "0", True), (others[2], "0", False)):
        status(plane, "gpu2", capacity={resource: "4"}, allocatable={resource: usable})
        await heard.until(("scheduler.gpus", "gpu2", True))
        data = heard.data["scheduler.gpus", "gpu2"]
        assert (data["have"], data["usable"], data["plugin_down"]) == (12, 8 + int(usable), down)
        assert data["text"] == f"{usable} of 4 {resource}, 8 of 8 nvidia.com/gpu"
        status(plane, "gpu2", capacity={resource: "4"}, allocatable={resource: "4"})
        await heard.until(("scheduler.gpus", "gpu2", False))
        status(plane, "gpu2", capacity={resource: None}, allocatable={resource: None})
    limits = {"nvidia.com/gpu": "1", **dict.fromkeys(others, "2")}
    containers = [{"name": "c", "image": "i", "resources": {"limits": limits}}]
    spec = {"nodeName": "gpu2", "containers": containers}
    plane.apply("v1", "Pod", "mixed", spec)
    table = {"type": "kubernetes", "kubeconfig": str(plane.kubeconfig)}
    for given, count in (
        ({}, 7),
        ({"gpu_resource": "nvidia.com/gpu"}, 1),
        ({"gpu_resource": [others[0]]}, 2),
    ):
        brain = kube.build("k8s", {**table, **given}, "schedulers.k8s")
        assert [job.gpu_count for job in await brain.jobs("gpu2") if job.name == "mixed"] == [count]
        await brain.close()
    plane.kubectl("delete", "pod", "mixed", "--force", "--grace-period=0")
    await heard.listener.close()


@kube_there
@pytest.mark.component("kubernetes")
async def test_a_cordon_of_others_is_told_and_stays(plane: Plane) -> None:
    """`kubectl cordon` is theirs; gone when they take it off."""
    heard = witness(plane)
    plane.kubectl("cordon", "gpu2")
    assert ("scheduler.drained", "gpu2", True) in await heard.told()
    assert plane.node("gpu2")["spec"]["unschedulable"]
    plane.kubectl("uncordon", "gpu2")
    assert ("scheduler.drained", "gpu2", False) in await heard.told()
    await heard.listener.close()


@kube_there
@pytest.mark.component("kubernetes")
async def test_a_kubelet_that_dies_is_told_after_half_a_minute(plane: Plane) -> None:
    """By the time that stands in the condition that the node controller writes; not while somebody has cordoned the node."""
    young, late = witness(plane), witness(plane, ahead_s=SETTLES_S + 1)
    (plane.folder / "silent" / "gpu2").touch()
    found = await late.until(("scheduler.node", "gpu2", True), 120)
    assert late.data["scheduler.node", "gpu2"]["state"] == "NotReady (not heard)"
    assert late.data["scheduler.node", "gpu2"]["text"].startswith("NodeStatusUnknown: ")
    assert ("scheduler.node", "gpu2", True) not in await young.told()
    if ("scheduler.lost", "gpu2", True) not in found:
        await late.until(("scheduler.lost", "gpu2", True), 120)
    plane.kubectl("cordon", "gpu2")
    cordoned = await late.told()
    assert ("scheduler.node", "gpu2", False) in cordoned
    assert ("scheduler.lost", "gpu2", False) in cordoned, "a person has it now"
    (plane.folder / "silent" / "gpu2").unlink()
    plane.kubectl("uncordon", "gpu2")
    await asyncio.to_thread(plane.until, lambda: ready(plane, "gpu2"), "the node is not ready again")
    heard_again = await late.told()
    assert ("scheduler.node", "gpu2", True) not in heard_again
    assert ("scheduler.lost", "gpu2", True) not in heard_again
    for one in (young, late):
        await one.listener.close()


def ready(plane: Plane, node: str) -> bool:
    """Does the API server say so?"""
    found = plane.node(node)["status"]["conditions"]
    return any(one["type"] == "Ready" and one["status"] == "True" for one in found)


@kube_there
@pytest.mark.component("kubernetes")
async def test_pods_that_wait_in_vain(plane: Plane) -> None:
    """A pod with GPUs whose selector fits no node."""
    # This control plane has no kube-scheduler: its word is written as that writes it (PodScheduled: False, Unschedulable).
    api = Api(plane.folder / "admin.kubeconfig")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "vain", "namespace": "default"},
        "spec": {
            "nodeSelector": {"no": "where"},
            "containers": [
                {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}},
            ],
        },
    }
    assert api.ask("POST", "/api/v1/namespaces/default/pods", pod)[0] == 201
    said = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/4 nodes are available: 4 node(s) didn't match Pod's node affinity/selector.",
    }
    body = {"status": {"conditions": [said]}}
    kind = "application/strategic-merge-patch+json"
    assert api.ask("PATCH", "/api/v1/namespaces/default/pods/vain/status", body, kind)[0] == 200
    young, late = witness(plane), witness(plane, ahead_s=2 * 3600.0)
    assert ("scheduler.queue", "", True) not in await young.told()
    assert ("scheduler.queue", "", True) in await late.told()
    assert late.data["scheduler.queue", ""]["reasons"] == "1 Unschedulable"
    said["message"] = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
    assert api.ask("PATCH", "/api/v1/namespaces/default/pods/vain/status", body, kind)[0] == 200
    assert ("scheduler.queue", "", False) in await late.told()
    for one in (young, late):
        await one.listener.close()

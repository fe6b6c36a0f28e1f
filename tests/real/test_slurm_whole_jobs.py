"""Jobs that Slurm requeues only as a whole, or not at all: no job is stopped for a drain that cannot empty its node."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agent.contract.errors import ActionError, Refused
from brain.actions import scheduler as actions
from brain.actions import slurm as module
from brain.actions.base import Order
from brain.actions.slurm import Slurm
from tests.real import slurm_cluster
from tests.real.slurm_cluster import Cluster

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("slurm"),
    pytest.mark.skipif(bool(slurm_cluster.missing()), reason=slurm_cluster.missing() or "-"),
    pytest.mark.timeout(300),
]
REQUEUE = Order(
    id="s1", incident="inc-7", node="gpu1", params={"then": "requeue"}, timeout_s=140.0, why="gpu_off_bus"
)


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    """One cluster for all."""
    with slurm_cluster.cluster() as made:
        yield made


@pytest.fixture
def cluster(shared: Cluster) -> Cluster:
    """The cluster with no jobs and all nodes in service."""
    shared.clean()
    return shared


def built(cluster: Cluster, **more: Any) -> Slurm:
    """As `[schedulers.slurm]` would build it."""
    return module.build("slurm", {"type": "slurm", "conf": cluster.conf, **more}, "schedulers.slurm")


def in_two_parts(cluster: Cluster, *first: str) -> str:
    """Starts a heterogeneous job, its first part on gpu2 and the second one on gpu1; returns its id."""
    one, two = (("-w", node, "--gres=gpu:1") for node in ("gpu2", "gpu1"))
    out, script = f"{cluster.folder}/jobs/%j.out", str(cluster.folder / "job.sh")
    job = cluster.run("sbatch", "--parsable", "-o", out, *first, *one, ":", *two, script, "120").strip()
    cluster.until(lambda: states(cluster, job) == ["RUNNING"] * 2, "its parts do not run")
    return job


def in_an_array(cluster: Cluster, *more: str) -> str:
    """Starts an array of two tasks; returns its id."""
    out, script = f"{cluster.folder}/jobs/%j.out", str(cluster.folder / "job.sh")
    array = cluster.run("sbatch", "--parsable", "-o", out, "-a", "1-2", *more, script, "120").strip()
    cluster.until(lambda: states(cluster, array) == ["RUNNING"] * 2, "its tasks do not run")
    return array


def on_two_nodes(cluster: Cluster) -> tuple[str, str, str]:
    """Starts an array with a task on each of two nodes; returns its id, the node of its last task, and the other one."""
    array = in_an_array(cluster, "--gres=gpu:8", "-N", "1")
    where = dict(
        line.split() for line in cluster.run("squeue", "-h", "-j", array, "-o", "%A %N").splitlines()
    )
    return array, where.pop(array), next(iter(where.values()))


def states(cluster: Cluster, job: str) -> list[str]:
    """Those of a job's parts."""
    return cluster.run("squeue", "-h", "-j", job, "-o", "%T").split()


async def test_a_part_of_a_job_is_requeued_with_all_of_it(cluster: Cluster) -> None:
    """Slurm refuses it for any part but the first one ("not heterogeneous job leader")."""
    slurm = built(cluster)
    job = await asyncio.to_thread(in_two_parts, cluster)
    (part,) = await slurm.jobs("gpu1")
    assert (part.id != job, part.nodes) == (True, 2)

    done = await actions.Drain(lambda _: slurm).run(REQUEUE)

    assert done.data["jobs_left"] == 0
    assert "RUNNING" not in states(cluster, job)


async def test_what_protects_one_part_protects_the_job(cluster: Cluster) -> None:
    """The part on this node is nobody's concern; the one that would end with it, on another node, serves."""
    slurm = built(cluster, protected={"partitions": ["serving"]})
    job = await asyncio.to_thread(in_two_parts, cluster, "-p", "serving")
    with pytest.raises(Refused, match=r"is protected \(partition serving\)"):
        await actions.Drain(lambda _: slurm).run(REQUEUE)
    assert states(cluster, job) == ["RUNNING"] * 2
    assert await slurm.drained("gpu1") == ""


async def test_a_task_of_an_array_is_requeued_without_the_others(cluster: Cluster) -> None:
    """The last task has the array's own id, by which Slurm would requeue those on other nodes too."""
    slurm = built(cluster)
    array, last, other = await asyncio.to_thread(on_two_nodes, cluster)
    await asyncio.to_thread(cluster.run, "scontrol", "update", f"NodeName={other}", "State=DRAIN", "Reason=x")
    (task,) = await slurm.jobs(last)
    assert task.id == array, "else this shows nothing"

    done = await actions.Drain(lambda _: slurm).run(replace(REQUEUE, node=last))

    assert done.data["jobs_left"] == 0
    assert [one.state for one in await slurm.jobs(other)] == ["running"]


async def test_all_tasks_on_a_node_are_requeued(cluster: Cluster) -> None:
    """Each by its own name; by that of the array slurmctld shows the GPUs of all."""
    slurm = built(cluster)
    await asyncio.to_thread(in_an_array, cluster, "-w", "gpu1", "--gres=gpu:1")
    assert {job.gpus for job in await slurm.jobs("gpu1")} == {("0",), ("1",)}
    assert (await actions.Drain(lambda _: slurm).run(REQUEUE)).data["jobs_left"] == 0


async def test_no_job_is_stopped_while_another_one_cannot_be(cluster: Cluster) -> None:
    """It would lose its work, and the node would still not be empty. The drain stands."""
    slurm = built(cluster)
    job = await asyncio.to_thread(cluster.submit, "gpu1")
    fixed = await asyncio.to_thread(cluster.submit, "gpu1", "--no-requeue")
    with pytest.raises(ActionError, match=f"no job was stopped.*: {fixed} was submitted with --no-requeue"):
        await actions.Drain(lambda _: slurm).run(REQUEUE)
    assert [cluster.job(one)[0] for one in (job, fixed)] == ["RUNNING"] * 2
    assert "[inc-7]" in await slurm.drained("gpu1")
    cluster.run("scancel", fixed)
    assert (await actions.Drain(lambda _: slurm).run(REQUEUE)).data["jobs_left"] == 0


async def test_a_job_that_a_person_has_suspended_is_left_alone(cluster: Cluster) -> None:
    """Requeued, Slurm would hold it for good (JobHeldAdmin), and released it would run against that person's will."""
    slurm = built(cluster)
    job = await asyncio.to_thread(cluster.submit, "gpu1")
    other = await asyncio.to_thread(cluster.submit, "gpu1")
    cluster.run("scontrol", "suspend", job)
    with pytest.raises(ActionError, match=rf"no job was stopped.*: {job} was suspended by a person"):
        await actions.Drain(lambda _: slurm).run(REQUEUE)
    (asked,) = [one for one in await slurm.jobs("gpu1") if one.id == job]
    with pytest.raises(Refused, match=r"was suspended by a person.*scontrol resume or scancel"):
        await slurm.requeue(asked)
    assert [cluster.job(one)[0] for one in (job, other)] == ["SUSPENDED", "RUNNING"]
    cluster.run("scontrol", "resume", job)
    assert (await actions.Drain(lambda _: slurm).run(REQUEUE)).data["jobs_left"] == 0
    cluster.until(lambda: cluster.job(job)[0] == "PENDING", "it does not wait")
    assert "Held" not in cluster.reason(job)


GANG = """PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
PartitionName=low Nodes=ALL PriorityTier=1 OverSubscribe=FORCE:1 State=UP
PartitionName=high Nodes=ALL PriorityTier=10 OverSubscribe=FORCE:1 State=UP"""


async def test_a_job_that_slurm_has_suspended_for_another_one_is_requeued() -> None:
    """Preempted by gang scheduling it keeps its priority: nobody's will, and no hold."""
    with slurm_cluster.cluster(GANG) as cluster:
        slurm = built(cluster)
        whole = ("--parsable", "-w", "gpu1", "-n", "8", "-o", f"{cluster.folder}/jobs/%j.out")
        script = (str(cluster.folder / "job.sh"), "120")
        low = cluster.run("sbatch", *whole, "-p", "low", *script).strip()
        cluster.until(lambda: cluster.job(low)[0] == "RUNNING", "it does not run")
        cluster.run("sbatch", *whole, "-p", "high", *script)
        cluster.until(lambda: cluster.job(low)[0] == "SUSPENDED", "it is not suspended")
        assert [one.fixed for one in await slurm.jobs("gpu1")] == ["", ""]
        assert (await actions.Drain(lambda _: slurm).run(REQUEUE)).data["jobs_left"] == 0
        cluster.until(lambda: cluster.job(low)[0] == "PENDING", "it does not wait")
        assert "Held" not in cluster.reason(low)

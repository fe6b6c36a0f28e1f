"""A real Slurm of four nodes: drained, waited for, requeued, rebooted and resumed, and nothing of others undone.

Not shown here, for want of a Slurm of 23.02 or newer: that slurmrestd sets a node's state (tests/brain/actions has the
requests); that a machine really boots (RebootProgram ends its slurmd, and a new one says that the node has booted).
"""

import asyncio
import os
import re
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agent.contract.errors import ActionError, Refused, TimedOut, Transient, Unreachable
from agent.contract.messages import Scalar
from brain.actions import scheduler as actions
from brain.actions import slurm as module
from brain.actions.base import Done, Job, Order
from brain.actions.marks import Mark, ours
from brain.actions.slurm import Slurm
from brain.core.jobs_seen import JobSeen
from brain.leader import jobs
from tests.real import slurm_cluster
from tests.real.slurm_cluster import Cluster

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("slurm"),
    pytest.mark.skipif(bool(slurm_cluster.missing()), reason=slurm_cluster.missing() or "-"),
    pytest.mark.timeout(300),
]
PROTECTED = {"partitions": ["serv*"]}
WHY = Mark(incident="inc-7", why="why")


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


def scheduler(cluster: Cluster, **more: object) -> Slurm:
    """As `[schedulers.slurm]` would build it."""
    table = {"type": "slurm", "conf": cluster.conf, "protected": PROTECTED, **more}
    return module.build("slurm", table, "schedulers.slurm")


def order(node: str, params: Mapping[str, Scalar] | None = None, said: list[str] | None = None) -> Order:
    """What a runbook orders."""
    return Order(
        id="s1",
        incident="inc-7",
        node=node,
        params=params or {},
        timeout_s=300,
        why="gpu_off_bus on gpu/0000:3b:00",
        progress=(said if said is not None else []).append,
    )


def said(cluster: Cluster, node: str) -> list[str]:
    """State and reason, with who gave it and when, as scontrol says it. That a daemon is slow just now is no state."""
    return re.findall(r"State=\S+|Reason=.*", cluster.node(node).replace("+NOT_RESPONDING", ""))


async def run(
    kind: type[actions.Drain] | type[actions.Resume] | type[actions.Requeue] | type[actions.Reboot],
    slurm: Slurm,
    wanted: Order,
) -> Done:
    """Plans, which must change nothing, and performs."""
    action = kind(lambda _: slurm)
    before = await slurm.drained(wanted.node)
    assert await action.plan(wanted)
    assert await slurm.drained(wanted.node) == before
    return await action.run(wanted)


async def test_a_drain_waits_for_the_running_job_and_resume_takes_it_off(cluster: Cluster) -> None:
    """The job ends by itself, nothing new begins, and the reason names us and the incident."""
    slurm, said = scheduler(cluster), list[str]()
    job = await asyncio.to_thread(cluster.submit, "gpu1", seconds=1.5, gpus=2)

    done = await run(actions.Drain, slurm, order("gpu1", {"wait_s": 100.0}, said))

    assert done.data["ours"] is True
    assert done.data["jobs_left"] == 0
    assert cluster.job(job)[0] in ("COMPLETED", "")
    assert "GPU 0,1" in said[0]
    assert "[inc-7]" in await slurm.drained("gpu1")
    assert "State=IDLE+DRAIN" in cluster.node("gpu1")
    assert (await run(actions.Drain, slurm, order("gpu1"))).data["ours"] is True  # twice is once
    assert (await run(actions.Resume, slurm, order("gpu1"))).data == {"resumed": True, "takes_jobs": True}
    assert "DRAIN" not in cluster.node("gpu1")
    assert (await run(actions.Resume, slurm, order("gpu1"))).data["resumed"] is False


async def test_jobs_that_do_not_end_are_told_or_requeued_to_another_node(cluster: Cluster) -> None:
    """`fail` and `go_on` leave the job alone; `requeue` lets it begin again elsewhere."""
    slurm = scheduler(cluster)
    for node in ("gpu2", "gpu3", "gpu4"):
        cluster.run(
            "scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=admin: so that it runs on gpu1"
        )
    job = await asyncio.to_thread(cluster.submit, "gpu1", pin=False)
    with pytest.raises(ActionError, match=f"still run 1 job: {job}"):
        await run(actions.Drain, slurm, order("gpu1"))
    assert ours(await slurm.drained("gpu1"))
    assert (await run(actions.Drain, slurm, order("gpu1", {"then": "go_on"}))).data["jobs_left"] == 1
    assert cluster.job(job) == ("RUNNING", "gpu1")
    cluster.run("scontrol", "update", "NodeName=gpu3", "State=RESUME")

    done = await run(actions.Drain, slurm, order("gpu1", {"then": "requeue"}))

    assert done.data["jobs_left"] == 0
    await asyncio.to_thread(
        cluster.until, lambda: "again: 1" in cluster.output(job), "the job does not run again"
    )
    assert cluster.job(job) == ("RUNNING", "gpu3")
    with pytest.raises(Refused, match="is not on gpu1"):
        await run(actions.Requeue, slurm, order("gpu1", {"job": job}))


async def test_a_drain_that_finds_jobs_is_undone_but_only_ones_own(cluster: Cluster) -> None:
    """An inspection wants an idle node. What another incident, or an administrator, has drained stays drained."""
    slurm, undo = scheduler(cluster), order("gpu1", {"then": "undo"})
    await asyncio.to_thread(cluster.submit, "gpu1")
    for _ in range(2):  # the same order may come again after a crash
        with pytest.raises(Refused, match=r"gpu1 is in use: 1 job.*was taken back"):
            await run(actions.Drain, slurm, undo)
        assert await slurm.drained("gpu1") == ""
    await slurm.drain("gpu1", Mark(incident="inc-8", why="another fault"))
    with pytest.raises(Refused, match=r"the drain that was there stays.*inc-8"):
        await run(actions.Drain, slurm, undo)
    assert "[inc-8]" in await slurm.drained("gpu1")
    await slurm.resume("gpu1", None)
    cluster.run("scontrol", "update", "NodeName=gpu1", "State=DRAIN", "Reason=admin: mine")
    with pytest.raises(Refused, match="admin: mine"):
        await run(actions.Drain, slurm, undo)
    assert await slurm.drained("gpu1") == "admin: mine"


async def test_a_protected_job_is_not_stopped_and_not_rebooted_under(cluster: Cluster) -> None:
    """What would stop it is refused before anything is done; a drain that only waits is not."""
    slurm = scheduler(cluster)
    job = await asyncio.to_thread(cluster.submit, "gpu1", "-p", "serving")
    for kind, params in (
        (actions.Drain, {"then": "requeue"}),
        (actions.Requeue, {"job": job}),
        (actions.Reboot, {}),
    ):
        with pytest.raises(Refused, match=r"protected \(partition serving\)"):
            await kind(lambda _: slurm).plan(order("gpu1", params))
        with pytest.raises(Refused, match=r"protected \(partition serving\)"):
            await kind(lambda _: slurm).run(order("gpu1", params))
        assert await slurm.drained("gpu1") == ""
    with pytest.raises(ActionError, match="still run"):
        await run(actions.Drain, slurm, order("gpu1", {"wait_s": 0.2}))
    assert cluster.job(job) == ("RUNNING", "gpu1")


async def test_what_an_administrator_took_out_is_left_alone(cluster: Cluster) -> None:
    """Drained or set down by somebody else: we do not write over the reason, reboot, or resume."""
    slurm = scheduler(cluster)
    for node, state in (("gpu1", "DRAIN"), ("gpu2", "DOWN")):
        cluster.run(
            "scontrol", "update", f"NodeName={node}", f"State={state}", "Reason=admin: new PSU [RMA 12]"
        )
        before = said(cluster, node)

        assert (await run(actions.Drain, slurm, order(node))).data["ours"] is False
        assert (await run(actions.Resume, slurm, order(node))).data == {"resumed": False, "takes_jobs": False}
        with pytest.raises(Refused, match="new PSU"):
            await actions.Reboot(lambda _: slurm).run(order(node))

        assert said(cluster, node) == before


async def test_a_reason_that_an_administrator_changed_is_his(cluster: Cluster) -> None:
    """Replaced, added to, or made to look like ours: it is not resumed."""
    slurm = scheduler(cluster)
    edits = {"gpu1": "admin: do not touch", "gpu2": "{ours} admin: do not touch", "gpu3": "gpuward: mine now"}
    for node, edit in edits.items():
        await slurm.drain(node, Mark(incident="inc-7", why="xid 79 | on 'gpu'\nState=IDLE"))
        reason = await slurm.drained(node)
        assert reason.startswith("gpuward: xid 79 | on gpu State=IDLE [inc-7] #")
        cluster.run("scontrol", "update", f"NodeName={node}", f"Reason={edit.format(ours=reason)}")

        assert (await run(actions.Resume, slurm, order(node))).data["resumed"] is False

        assert "State=IDLE+DRAIN" in cluster.node(node)


async def test_a_reboot_comes_back_drained_and_returns_when_it_is_resumed(cluster: Cluster) -> None:
    """RebootProgram ran on that node only; until somebody has looked at it, it takes no jobs."""
    slurm = scheduler(cluster)
    done = await run(actions.Reboot, slurm, order("gpu4"))
    assert "stays drained" in done.text
    assert (cluster.folder / "log/reboots").read_text().split() == ["gpu4"]
    assert "State=DOWN+DRAIN " in cluster.node("gpu4")
    assert (await run(actions.Resume, slurm, order("gpu4"))).data["takes_jobs"] is True


async def test_a_reboot_that_is_not_wanted_any_more_is_taken_back(cluster: Cluster) -> None:
    """Cancelled, or drained by an administrator meanwhile, before the node was idle: the job goes on."""
    slurm = scheduler(cluster)
    reboots = cluster.folder / "log/reboots"
    before = reboots.read_text() if reboots.exists() else ""
    job = await asyncio.to_thread(cluster.submit, "gpu3")

    task = asyncio.create_task(slurm.reboot("gpu3", WHY))
    await asyncio.to_thread(cluster.until, lambda: "REBOOT_REQUESTED" in cluster.node("gpu3"), "not asked")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "State=MIXED+DRAIN " in cluster.node("gpu3")
    assert await slurm.resume("gpu3", None)

    task = asyncio.create_task(slurm.reboot("gpu3", WHY))
    await asyncio.to_thread(cluster.until, lambda: "REBOOT_REQUESTED" in cluster.node("gpu3"), "not asked")
    cluster.run("scontrol", "update", "NodeName=gpu3", "State=DRAIN", "Reason=admin: keep it")
    with pytest.raises(ActionError, match="keep it"):
        await task
    assert "State=MIXED+DRAIN" in cluster.node("gpu3")
    assert "REBOOT" not in cluster.node("gpu3")
    assert await slurm.drained("gpu3") == "admin: keep it"
    assert cluster.job(job) == ("RUNNING", "gpu3")
    assert (reboots.read_text() if reboots.exists() else "") == before


async def test_jobs_and_their_gpus_read_the_same_by_tools_and_by_rest(cluster: Cluster) -> None:
    """A job's name cannot make up a second job; slurmrestd of 22.05 reads, and scontrol writes."""
    token = cluster.folder / "token"
    token.write_text(cluster.run("scontrol", "token", "username=root", "lifespan=600").partition("=")[2])
    rest = {
        "rest_url": f"http://127.0.0.1:{cluster.rest_port}",
        "rest_version": "v0.0.38",
        "rest_user": "root",
    }
    by_tools, by_rest = scheduler(cluster), scheduler(cluster, **rest, token_file=token)
    first = await asyncio.to_thread(cluster.submit, "gpu1", "-J", "x\n99 root (null) train RUNNING|y", gpus=2)
    second = await asyncio.to_thread(cluster.submit, "gpu1", gpus=3)
    try:
        found = sorted(await by_tools.jobs("gpu1"), key=lambda job: job.id)
        assert [(job.id, job.user, job.state, job.gpus) for job in found] == [
            (first, "root", "running", ("0", "1")),
            (second, "root", "running", ("2", "3", "4")),
        ]
        assert sorted(await by_rest.jobs("gpu1"), key=lambda job: job.id) == found
        assert await by_rest.jobs("gpu2") == []
        listed = await actions.Jobs(lambda _: by_rest).run(order("gpu1"))
        assert (listed.data["jobs"], listed.data["gpu/3"]) == (2, second)

        await by_rest.drain("gpu1", WHY)
        assert await by_rest.drained("gpu1") == await by_tools.drained("gpu1") != ""
        assert await by_rest.resume("gpu1", None)

        with pytest.raises(Refused):
            await by_rest.drained("gpu9")
        token.write_text("wrong")
        with pytest.raises(Transient, match="500 Unspecified error"):  # 22.05's word for a wrong token
            await by_rest.drained("gpu1")
    finally:
        await by_rest.close()


@pytest.mark.parametrize("indices", ["-", "0-99999999999", "0-0-0", ","])
async def test_a_user_who_names_a_job_like_what_scontrol_says_harms_nobody(
    cluster: Cluster, indices: str
) -> None:
    """The name ended every brain that asked whose jobs a node has, one after the other, or took all of its memory."""
    line = f"x\n     Nodes=gpu1 CPU_IDs=0 Mem=0 GRES=gpu:h200:1(IDX:{indices})"
    job = await asyncio.to_thread(cluster.submit, "gpu1", "-J", line)
    said = await jobs.answer(scheduler(cluster), "gpu1", "j:1", people=True)
    assert (said.known, said.jobs) == (True, (job,))


async def test_who_is_hit_reads_the_same_by_tools_and_by_rest(cluster: Cluster) -> None:
    """Of a job of two nodes: its name, its user, its two nodes, and its GPUs on this one; a hostile name acts on nothing."""
    token = cluster.folder / "token"
    token.write_text(cluster.run("scontrol", "token", "username=root", "lifespan=600").partition("=")[2])
    rest = {
        "rest_url": f"http://127.0.0.1:{cluster.rest_port}",
        "rest_version": "v0.0.38",
        "rest_user": "root",
    }
    by_tools, by_rest = scheduler(cluster), scheduler(cluster, **rest, token_file=token)
    wide = await asyncio.to_thread(
        cluster.submit, "gpu1", "-N2", "-w", "gpu1,gpu2", "-J", "train-llama", gpus=2, pin=False
    )
    name = "<img src=x onerror=alert(1)>\x1b[2J" + "x" * 200
    small = await asyncio.to_thread(cluster.submit, "gpu1", "-J", name, gpus=1)
    try:
        said = await jobs.answer(by_tools, "gpu1", "j:1", people=True)
        assert (said.known, said.people, said.scheduler, said.unlisted) == (True, True, "slurm", 0)
        assert set(said.jobs) == {wide, small}
        first, second = said.seen  # the larger one first
        assert first == JobSeen(id=wide, name="train-llama", user="root", nodes=2, gpus=2)
        assert (second.id, second.nodes, second.gpus) == (small, 1, 1)
        assert second.name.startswith("<img src=x onerror=alert(1)>\\x1b[2J")
        assert len(second.name) == 80
        assert (await jobs.answer(by_rest, "gpu1", "j:1", people=True)).seen == said.seen
        (other,) = (await jobs.answer(by_rest, "gpu2", "j:2", people=True)).seen
        assert (other.id, other.nodes) == (wide, 2)
    finally:
        await by_rest.close()


async def test_only_one_plain_known_node_is_touched(cluster: Cluster) -> None:
    """A name that Slurm would read as many nodes, as an option or as a setting is refused."""
    slurm = scheduler(cluster)
    for node in ("gpu9", "gpu[1-4]", "ALL", "all", "-h", "gpu1,gpu2", "gpu1 State=DOWN", ""):
        with pytest.raises(Refused):
            await slurm.drain(node, WHY)
        with pytest.raises(Refused):
            await slurm.jobs(node)
    assert set(cluster.run("sinfo", "-h", "-o", "%T").split()) <= {"idle", "idle*"}


async def test_a_job_that_has_ended_or_may_not_be_requeued_is_refused(cluster: Cluster) -> None:
    """scontrol would run a job that has ended a second time."""
    slurm = scheduler(cluster)
    fixed = await asyncio.to_thread(cluster.submit, "gpu1", "--no-requeue")
    ended = await asyncio.to_thread(cluster.submit, "gpu2", seconds=0.1)
    await asyncio.to_thread(cluster.until, lambda: cluster.job(ended)[0] == "COMPLETED", "does not end")
    for job, why in ((fixed, "disabled"), (ended, "does not run"), ("999", "no job"), ("-h", "not the id")):
        with pytest.raises(Refused, match=why):
            await slurm.requeue(Job(id=job))
    assert cluster.job(ended)[0] == "COMPLETED"
    assert cluster.job(fixed)[0] == "RUNNING"


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ("/nonexistent/slurm.conf", "/nonexistent/slurm.conf is not there"),
        ("/etc/hostname", "Unable to process configuration file"),
    ],
)
async def test_tools_without_a_configuration_are_refused_at_once(conf: str, says: str) -> None:
    """They would wait for a minute for a file that is not there; and slurmctld has nothing to do with it."""
    slurm = module.build("slurm", {"type": "slurm", "conf": conf}, "schedulers.slurm")
    with pytest.raises(
        Refused, match=rf"{says}.*: put the cluster's slurm.conf on this machine, and name it as `conf`"
    ):
        await asyncio.wait_for(slurm.drained("gpu1"), 20)


async def test_missing_tools_are_refused(shared: Cluster) -> None:
    """The operator must mend the path."""
    with pytest.raises(Refused, match="/nonexistent/scontrol cannot be started"):
        await scheduler(shared, scontrol=Path("/nonexistent/scontrol")).drained("gpu1")


async def test_a_controller_that_hangs_or_is_gone(shared: Cluster) -> None:
    """Frozen: a change may have been made, a reading was not. Killed: nothing was done. Last, for it stays dead."""
    pid = shared.pid("slurmctld")
    os.kill(pid, signal.SIGSTOP)
    hasty = scheduler(shared, timeout_s=2.0)
    with pytest.raises(Unreachable):
        await hasty.drained("gpu1")
    with pytest.raises(TimedOut):
        await hasty._cli.set_state("gpu1", "DRAIN", "x")
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(Unreachable, match="Unable to contact"):
        await scheduler(shared).drain("gpu1", WHY)

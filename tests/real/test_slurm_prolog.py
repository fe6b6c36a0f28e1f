"""Our Prolog and Epilog on a real Slurm, with a real agent on a node whose GPU is lost."""

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.contract.drain_reason import words_of, written
from brain.actions import scheduler as actions
from brain.actions import slurm as module
from brain.actions.base import Order
from brain.actions.slurm import Slurm
from brain.leader import jobs
from tests.agent.check_kit import agent, check, seen, until
from tests.fixtures import nvml_fake
from tests.fixtures.nvml_fake import LOST, FakeNvml
from tests.real import slurm_cluster, slurm_prolog
from tests.real.slurm_cluster import Cluster

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("slurm"),
    pytest.mark.skipif(bool(slurm_cluster.missing()), reason=slurm_cluster.missing() or "-"),
    pytest.mark.timeout(300),
]
WORDS = "GPU 0000:3b:00 is lost (lost)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A cluster whose node gpu1 has an agent and two GPUs."""

    slurm: Cluster
    nvml: FakeNvml
    agent: subprocess.Popen[bytes]
    socket: Path

    def lose(self) -> None:
        """The first GPU of gpu1 is lost, and its agent knows."""
        seen(self.nvml)
        self.nvml.fail(0, LOST)
        until(lambda: check(self.socket).returncode == 1, "the lost GPU is not told")

    def mend(self) -> None:
        """It is back."""
        self.nvml.fail(0, 0)
        until(lambda: check(self.socket).returncode == 0, "its return is not told")

    def reason(self, node: str = "gpu1") -> str:
        """Why Slurm gives it no jobs; empty: it does."""
        found = re.search(r"Reason=(.*) \[\S+\]", self.slurm.node(node))
        return found[1] if found and re.search(r"State=\S*DRAIN", self.slurm.node(node)) else ""

    def queue(self, *more: str, seconds: float = 1) -> str:
        """A job that goes to gpu1 first, as all the others are alike; its id."""
        out = f"{self.slurm.folder}/jobs/%j.out"
        argv = ("sbatch", "--parsable", "--open-mode=append", "-o", out, *more)
        return self.slurm.run(*argv, str(self.slurm.folder / "job.sh"), str(seconds)).strip()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of libnvidia-ml.so.1."""
    return nvml_fake.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def site(tmp_path: Path, library: Path) -> Iterator[Site]:
    """All well."""
    nvml, socket = FakeNvml(tmp_path / "state", library), tmp_path / "check.sock"
    for index in (0, 1):
        nvml.well(index)
    with (
        slurm_cluster.cluster(slurm_prolog.CONF) as slurm,
        agent(tmp_path, nvml, socket=socket) as process,
    ):
        slurm_prolog.install(slurm, {"gpu1": socket, "gpu2": socket})
        yield Site(slurm=slurm, nvml=nvml, agent=process, socket=socket)


def built(slurm: Cluster) -> Slurm:
    """As `[schedulers.slurm]` would build it."""
    return module.build("slurm", {"type": "slurm", "conf": slurm.conf}, "schedulers.slurm")


def order(incident: str, **params: Any) -> Order:
    """What a runbook orders."""
    why = "gpu-lost on gpu/0000:3b:00 (rule gpu-lost)"
    return Order(id="s1", incident=incident, node="gpu1", params=params, timeout_s=120.0, why=why)


async def test_a_job_is_spared_a_lost_gpu_and_the_node_comes_back(site: Site) -> None:
    """The job is requeued to another node and is not held; the node is drained in our words, which the brain takes over with
    its mark; once the GPU is back and the incident lets go, the node takes jobs again.
    """
    await asyncio.to_thread(site.lose)
    job = site.queue()
    site.slurm.until(lambda: "again: 1" in site.slurm.output(job), "the job does not run elsewhere")
    assert "on gpu1" not in site.slurm.output(job)
    assert words_of(site.reason()) == WORDS
    assert f"gpu1, job {job}: the job is requeued" in slurm_prolog.syslog(site.slurm)

    slurm = built(site.slurm)
    assert await slurm.marks("gpu1") == ()
    done = await actions.Drain(lambda _: slurm).run(order("inc-7"))
    assert done.data["ours"] is True
    (mark,) = await slurm.marks("gpu1")
    assert (mark.incident, mark.why) == ("inc-7", f"{order('inc-7').why}; its prolog: {WORDS}")
    assert (await jobs.answer(slurm, "gpu1", "j-1")).ours is True

    await asyncio.to_thread(site.mend)
    back = await actions.Resume(lambda _: slurm).run(order("inc-7"))
    assert back.data == {"resumed": True, "takes_jobs": True}
    pinned = site.queue("-w", "gpu1")
    site.slurm.until(lambda: "on gpu1" in site.slurm.output(pinned), "the node takes no jobs")


async def test_the_last_owner_gives_it_back(site: Site) -> None:
    """Two incidents take it over; and without any, nobody resumes it, and it is named."""
    site.slurm.run("scontrol", "update", "NodeName=gpu1", "State=DRAIN", f"Reason={written(WORDS)}")
    slurm = built(site.slurm)
    resume = actions.Resume(lambda _: slurm)
    for owners in ({}, {"owners": "all"}):
        alone = await resume.run(order("inc-1", **owners))
        assert alone.data == {"resumed": False, "takes_jobs": False}
        assert "gpu1 stays drained by its prolog, for no incident of ours: gpuward-agent: GPU" in alone.text
    assert (await jobs.answer(slurm, "gpu1", "j-1")).ours is True, "nobody is at work there"
    for incident in ("inc-1", "inc-2"):
        await actions.Drain(lambda _: slurm).run(order(incident))
    assert (await resume.run(order("inc-1"))).data["takes_jobs"] is False
    assert (await resume.run(order("inc-2"))).data == {"resumed": True, "takes_jobs": True}


@pytest.mark.parametrize(
    "reason",
    [
        *("Prolog error", "gpuward-agent: hands off, ann", f"{written(WORDS)} ann has it"),
        "ann: was State=IDLE when it hung",
    ],
)
async def test_a_persons_drain_is_never_taken_over(site: Site, reason: str) -> None:
    """Nor what looks alike, nor a prolog's to which somebody has added a word; and a prolog changes none of them."""
    slurm = built(site.slurm)
    job = site.queue("-w", "gpu1", seconds=600)
    site.slurm.until(lambda: "on gpu1" in site.slurm.output(job), "the job does not run")
    site.slurm.run("scontrol", "update", "NodeName=gpu1", "State=DRAIN", f"Reason={reason}")
    await asyncio.to_thread(site.lose)
    site.slurm.run("scancel", job)  # its Epilog asks
    site.slurm.until(lambda: f"job {job}: the job is" in slurm_prolog.syslog(site.slurm), "no Epilog")
    assert site.reason() == reason
    assert (await actions.Drain(lambda _: slurm).run(order("inc-7"))).data["ours"] is False
    assert (await actions.Resume(lambda _: slurm).run(order("inc-7"))).data["takes_jobs"] is False
    assert (await jobs.answer(slurm, "gpu1", "j-1")).ours is False
    assert site.reason() == reason


def test_a_gpu_that_is_lost_during_a_job(site: Site) -> None:
    """The Epilog drains the node when the job has ended, and the next job never sees it."""
    job = site.queue("-w", "gpu1", seconds=600)
    site.slurm.until(lambda: "on gpu1" in site.slurm.output(job), "the job does not run")
    site.lose()
    assert site.reason() == "", "a job runs on: the brain decides"
    site.slurm.run("scancel", job)
    site.slurm.until(lambda: words_of(site.reason()) == WORDS, "the Epilog does not drain")
    site.slurm.until(lambda: site.slurm.job(job)[0] in ("CANCELLED", ""), "the job does not end")


def test_a_health_check_tells_and_does_nothing(site: Site) -> None:
    """What is wrong stands in syslog, as often as Slurm asks; whether the node leaves service is the brain's to decide."""
    site.lose()
    said = f"status 1: {WORDS};"
    site.slurm.until(lambda: slurm_prolog.syslog(site.slurm).count(said) > 1, "it says nothing")
    assert site.reason() == ""


@pytest.mark.parametrize("how", ["stopped", "killed", "no command", "broken command"])
def test_a_sick_agent_stops_no_job(site: Site, how: str) -> None:
    """Whatever it knew, and though a Python that does not start has the exit status of an unfit node."""
    site.lose()
    if how in ("stopped", "killed"):
        os.kill(site.agent.pid, signal.SIGSTOP if how == "stopped" else signal.SIGKILL)
    elif how == "no command":
        (site.slurm.folder / "gpuward-agent").unlink()
    else:
        (site.slurm.folder / "gpuward-agent").write_text("#!/bin/sh\necho Traceback\nexit 1\n")
    job = site.queue("-w", "gpu1")
    site.slurm.until(lambda: "on gpu1" in site.slurm.output(job), "the job does not run")
    assert site.reason() == ""
    told = "the job starts, the check ended with" in slurm_prolog.syslog(site.slurm)
    assert told is ("command" in how)


def test_a_cause_that_nodes_share_takes_one_node(site: Site) -> None:
    """Two of four nodes are unfit, and a tenth of them may go: the second one keeps its jobs, and that is told."""
    site.lose()
    first = site.queue("-w", "gpu1")
    site.slurm.until(lambda: words_of(site.reason()) == WORDS, "the first is not drained")
    second = site.queue("-w", "gpu2")
    site.slurm.until(lambda: "on gpu2" in site.slurm.output(second), "the second takes no jobs")
    assert site.reason("gpu2") == ""
    assert "not drained, since 1 nodes are already" in slurm_prolog.syslog(site.slurm)
    assert "on gpu1" not in site.slurm.output(first)


def test_a_slurm_that_does_not_say_whose_a_drain_is_loses_no_persons_reason(site: Site) -> None:
    """The first question gets no answer, and the next ones do: a reason that is written over is a drain that is taken over, and
    the brain gives such a node back.
    """
    job = site.queue("-w", "gpu1", seconds=600)
    site.slurm.until(lambda: "on gpu1" in site.slurm.output(job), "the job does not run")
    site.slurm.run("scontrol", "update", "NodeName=gpu1", "State=DRAIN", "Reason=ann: new DIMMs")
    failing(site, "scontrol", "show")
    site.lose()
    site.slurm.run("scancel", job)  # its Epilog asks
    site.slurm.until(
        lambda: f"job {job}: not drained, as Slurm" in slurm_prolog.syslog(site.slurm), "no Epilog"
    )
    assert site.reason() == "ann: new DIMMs"


def test_a_slurm_that_does_not_say_how_many_are_drained_loses_no_further_node(site: Site) -> None:
    """One node is drained by a prolog; while nobody can count, a second one keeps its jobs."""
    site.lose()
    first = site.queue("-w", "gpu1")
    site.slurm.until(lambda: words_of(site.reason()) == WORDS, "the first is not drained")
    failing(site, "sinfo", "--noheader")
    second = site.queue("-w", "gpu2")
    site.slurm.until(lambda: "on gpu2" in site.slurm.output(second), "the second takes no jobs")
    assert site.reason("gpu2") == ""
    assert "not drained, as Slurm does not name its nodes" in slurm_prolog.syslog(site.slurm)
    assert "on gpu1" not in site.slurm.output(first)


def failing(site: Site, tool: str, word: str) -> None:
    """In the scripts, and there alone, the tool gets no answer to a call with this word."""
    path = site.slurm.folder / "bin" / tool
    told = "slurm_load_node error: Unable to contact slurm controller (connect failure)"
    path.write_text(
        f'#!/bin/sh\ncase " $* " in *" {word} "*) echo "{told}" >&2; exit 1 ;; esac\nexec /usr/bin/{tool} "$@"\n'
    )
    path.chmod(0o755)

"""Whose a drain is, on a real Slurm, and a slurmctld that restarts, hangs or is away while a node is drained and resumed."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.contract import drain_reason
from agent.contract.errors import Refused
from brain.actions import scheduler as actions
from brain.actions import slurm as module
from brain.actions.base import Order
from brain.actions.slurm import Slurm
from brain.leader import jobs
from tests.real import slurm_cluster
from tests.real.slurm_cluster import Cluster

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("slurm"),
    pytest.mark.skipif(bool(slurm_cluster.missing()), reason=slurm_cluster.missing() or "-"),
    pytest.mark.timeout(300),
]
INCIDENTS = st.sampled_from(["inc-1", "inc-2", "inc-3"])
BY_OTHERS = st.sampled_from(
    ["person drains", "person downs", "person adds a word", "person resumes", "prolog drains"]
)
WORDS = st.one_of(
    st.tuples(st.sampled_from(["drain", "resume"]), INCIDENTS),
    st.tuples(BY_OTHERS, st.just("")),
    st.tuples(st.just("return"), st.just("")),
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


def built(cluster: Cluster, **more: object) -> Slurm:
    """As `[schedulers.slurm]` would build it."""
    return module.build("slurm", {"type": "slurm", "conf": cluster.conf, **more}, "schedulers.slurm")


def order(incident: str, *, node: str = "gpu1", timeout_s: float = 60.0, **params: Any) -> Order:
    """What a runbook orders."""
    why = f"why of {incident}"
    return Order(id="s1", incident=incident, node=node, params=params, timeout_s=timeout_s, why=why)


class Story:
    """A node that incidents, people and its prolog drain, and that is given back; what should stand is kept beside it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._slurm = cluster, built(cluster)
        self.owners: set[str] = set()
        self.persons = ""  # the reason of a person's drain
        self.prologs = ""  # that of its prolog's, until an incident takes it over

    async def tell(self, word: str, incident: str) -> None:
        """One thing happens; then the node is as it should be."""
        if word == "drain":
            done = await actions.Drain(lambda _: self._slurm).run(order(incident))
            if not self.persons:
                self.owners.add(incident)
                self.prologs = ""
            assert done.data["ours"] is (incident in self.owners)
        elif word in ("resume", "return"):
            await self._resumed(incident)
        elif word == "prolog drains":
            if not self.owners and not self.persons:  # else it leaves the node as it is
                self.prologs = drain_reason.written("GPU 0000:3b:00 is lost")
                self._cluster.run(
                    "scontrol", "update", "NodeName=gpu1", "State=DRAIN", f"Reason={self.prologs}"
                )
        else:
            await self._person(word)
        state = self._cluster.node("gpu1")
        out = bool(self.owners or self.persons or self.prologs)
        assert bool(re.search(r"State=\S*(DRAIN|DOWN)", state)) is out
        assert {mark.incident for mark in await self._slurm.marks("gpu1")} == self.owners
        assert self.persons in state
        assert self.prologs in state
        found = await jobs.answer(self._slurm, "gpu1", "j-1")
        whose = (found.known, bool(found.drained), found.ours)
        assert whose == (True, out, bool(self.owners or self.prologs))

    async def _resumed(self, incident: str) -> None:
        before = set(self.owners)
        if incident:
            wanted = order(incident)
            self.owners.discard(incident)
        else:
            wanted = order("request-1", owners="all")
            self.owners.clear()
        done = await actions.Resume(lambda _: self._slurm).run(wanted)
        serves = not self.owners and not self.persons and not self.prologs
        assert done.data == {"resumed": bool(before) and serves, "takes_jobs": serves}

    async def _person(self, word: str) -> None:
        if word == "person resumes":
            self._cluster.run("scontrol", "update", "NodeName=gpu1", "State=RESUME", check=False)
            self.owners, self.persons, self.prologs = set(), "", ""
            return
        if word == "person adds a word":
            standing = await self._slurm.drained("gpu1")
            if not standing:
                return
            reason, state = f"{standing} and I", []
        else:
            reason, state = "admin: new PSU", ["State=DRAIN" if word == "person drains" else "State=DOWN"]
        self._cluster.run("scontrol", "update", "NodeName=gpu1", *state, f"Reason={reason}")
        self.owners, self.persons, self.prologs = set(), reason, ""


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, min_size=3, max_size=10))
def test_a_node_is_given_back_by_its_last_owner_and_never_over_a_person(
    shared: Cluster, words: list[tuple[str, str]]
) -> None:
    """The law of drains, in any order of incidents, people's drains and changed reasons, and nodes resumed by hand."""
    shared.clean()

    async def tell() -> None:
        story = Story(shared)
        for word, incident in words:
            await story.tell(word, incident)

    asyncio.run(tell())


async def test_incidents_that_drain_and_let_go_at_the_same_moment(cluster: Cluster) -> None:
    """Slurm overwrites any reason: no mark of ours is lost by that, and none is left."""
    slurm = built(cluster)
    names = [f"inc-{n}" for n in range(8)]
    drain, resume = actions.Drain(lambda _: slurm), actions.Resume(lambda _: slurm)
    await asyncio.gather(*(drain.run(order(name)) for name in names))
    assert {mark.incident for mark in await slurm.marks("gpu1")} == set(names)
    await asyncio.gather(*(resume.run(order(name)) for name in names))
    assert (await slurm.marks("gpu1"), await slurm.drained("gpu1")) == ((), "")


@pytest.mark.parametrize(
    ("health_checks", "reason", "ours"),
    [
        (["NHC:*"], "NHC: check_hw_physmem: RAM 1 GiB too small", True),
        ([], "NHC: check_hw_physmem: RAM 1 GiB too small", False),
        (["NHC:*"], "ann: see NHC: check_hw_physmem", False),
    ],
)
async def test_a_node_that_a_health_check_has_drained(
    cluster: Cluster, health_checks: list[str], reason: str, ours: bool
) -> None:
    """Where the site says so, it is no person's: drained over and given back. By default, and a person's, it stands."""
    cluster.run("scontrol", "update", "NodeName=gpu1", "State=DRAIN", f"Reason={reason}")
    slurm = built(cluster, health_checks=health_checks)
    done = await actions.Drain(lambda _: slurm).run(order("inc-1"))
    assert done.data["ours"] is ours
    assert (await slurm.drained("gpu1") == reason) is not ours
    back = await actions.Resume(lambda _: slurm).run(order("inc-1"))
    assert back.data == {"resumed": ours, "takes_jobs": ours}


async def test_drain_and_resume_outlast_a_controller_that_is_restarted(cluster: Cluster) -> None:
    """Asked while there is none: done once it is back, and its nodes may not even have registered by then."""
    slurm = built(cluster, timeout_s=5.0)
    for action in (actions.Drain, actions.Resume):
        await asyncio.to_thread(cluster.stop_controller)
        tasks = [
            asyncio.create_task(action(lambda _: slurm).run(order("inc-1", node=node, timeout_s=90)))
            for node in ("gpu1", "gpu2")
        ]
        await asyncio.sleep(1)
        await asyncio.to_thread(cluster.start_controller)
        for done in await asyncio.gather(*tasks):
            assert done.data.get("ours", done.data.get("takes_jobs")) is True
    assert "DRAIN" not in cluster.node("gpu1")


async def test_steps_go_on_while_the_controller_is_restarted_again_and_again(cluster: Cluster) -> None:
    """Whatever scontrol says in between, no step fails, and each mark is there when its drain has been reported."""
    slurm = built(cluster, timeout_s=5.0)
    over = asyncio.Event()

    async def work(node: str) -> int:
        count = 0
        while not over.is_set():
            assert (await actions.Drain(lambda _: slurm).run(order("inc-1", node=node))).data["ours"] is True
            await actions.Resume(lambda _: slurm).run(order("inc-1", node=node))
            count += 1
        return count

    tasks = [asyncio.create_task(work(node)) for node in ("gpu1", "gpu2", "gpu3")]
    for _ in range(3):
        await asyncio.to_thread(cluster.stop_controller)
        await asyncio.to_thread(cluster.start_controller)
        await asyncio.to_thread(
            cluster.until, lambda: "UP" in cluster.run("scontrol", "ping", check=False), "slurmctld is not up"
        )
        await asyncio.sleep(2)
    over.set()
    assert all(count > 1 for count in await asyncio.gather(*tasks))


async def test_lost_answers_are_looked_into(cluster: Cluster) -> None:
    """slurmctld does what it is asked, and its answer never comes: nothing is done twice, and all of it is reported."""
    tool = cluster.folder / "forgetful"
    lost = cluster.folder / "lost"
    tool.write_text(
        f"""#!/bin/sh
/usr/bin/scontrol "$@" || exit
echo "$1" >> {lost}
[ "$1" = show ] || [ "$(grep -c "$1" {lost})" -gt 1 ] || sleep 60
"""
    )
    tool.chmod(0o755)
    slurm = built(cluster, scontrol=tool, timeout_s=1.5)
    job = await asyncio.to_thread(cluster.submit, "gpu1")
    assert (await actions.Drain(lambda _: slurm).run(order("inc-1", node="gpu2"))).data["ours"] is True
    assert lost.read_text().split().count("update") == 1
    assert (await actions.Requeue(lambda _: slurm).run(order("inc-1", job=job))).data["job"] == job
    assert lost.read_text().split().count("requeue") == 1
    lost.unlink()
    resumed = await actions.Resume(lambda _: slurm).run(order("inc-1", node="gpu2"))
    assert resumed.data == {"resumed": True, "takes_jobs": True}
    assert lost.read_text().split().count("update") == 1


async def test_a_controller_away_behind_slurmrestd(cluster: Cluster) -> None:
    """slurmrestd answers 500 for it: asked again until it is there."""
    token = cluster.folder / "token"
    token.write_text(cluster.run("scontrol", "token", "username=root", "lifespan=600").partition("=")[2])
    rest = {
        "rest_url": f"http://127.0.0.1:{cluster.rest_port}",
        "rest_version": "v0.0.38",
        "rest_user": "root",
        "token_file": token,
    }
    slurm = built(cluster, **rest)
    try:
        await asyncio.to_thread(cluster.stop_controller)
        task = asyncio.create_task(actions.Drain(lambda _: slurm).run(order("inc-1", timeout_s=90)))
        await asyncio.sleep(1)
        await asyncio.to_thread(cluster.start_controller)
        assert (await task).data["ours"] is True
    finally:
        await slurm.close()


async def test_a_drain_that_the_account_may_not_make(cluster: Cluster) -> None:
    """An ordinary user may read: the denial names the right that is missing, in Slurm's words."""
    tool = cluster.folder / "scontrol"
    tool.write_text(
        '#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/scontrol "$@"\n'
    )
    tool.chmod(0o755)
    slurm = built(cluster, scontrol=tool)
    with pytest.raises(
        Refused, match=r"no right to update nodes and jobs \(AdminLevel operator\): .*Invalid user id"
    ):
        await slurm._cli.set_state("gpu1", "DRAIN", "x")
    assert await slurm.drained("gpu1") == ""

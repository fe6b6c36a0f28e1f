"""Whose a drain is, on a real Kubernetes control plane: incidents own it together, and people own their cordons."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent import __version__
from agent.contract.errors import ActionError, ConfigError, Refused
from brain.actions import kube as module
from brain.actions import patience
from brain.actions import scheduler as actions
from brain.actions.base import Done, Order
from brain.actions.kube import Kubernetes
from brain.core.jobs_seen import JobSeen
from brain.leader import jobs
from tests.real import kube_plane
from tests.real.kube_plane import KEPT, Plane

pytestmark = [
    pytest.mark.component("kubernetes"),
    pytest.mark.skipif(bool(kube_plane.missing()), reason=kube_plane.missing() or "-"),
    pytest.mark.timeout(300),
]
ROOT = Path(__file__).resolve().parents[2]
INCIDENTS = st.sampled_from(["inc-1", "inc-2", "inc-3"])
BY_PEOPLE = st.sampled_from(["cordon", "apply", "uncordon", "untaint"])
WORDS = st.one_of(
    st.tuples(st.sampled_from(["drain", "resume"]), INCIDENTS),
    st.tuples(BY_PEOPLE, st.just("")),
    st.tuples(st.just("return"), st.just("")),
)


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    """One control plane for all."""
    with kube_plane.plane() as made:
        yield made


def built(plane: Plane, **more: Any) -> Kubernetes:
    """As `[schedulers.k8s]` would build it."""
    table = {"type": "kubernetes", "kubeconfig": plane.kubeconfig, **more}
    return module.build("k8s", table, "schedulers.k8s")


def order(incident: str, **params: Any) -> Order:
    """What a runbook orders."""
    return Order(
        id="s1", incident=incident, node="gpu1", params=params, timeout_s=60, why=f"why of {incident}"
    )


class Story:
    """A node that incidents and people drain and give back; what should stand is kept beside it."""

    def __init__(self, plane: Plane, kube: Kubernetes) -> None:
        self._plane, self._kube = plane, kube
        self.owners: set[str] = set()
        self.cordoned = False

    async def tell(self, word: str, incident: str) -> None:
        """One thing happens; then the node is as it should be."""
        if word == "drain":
            done = await actions.Drain(lambda _: self._kube).run(order(incident))
            if self.owners or not self.cordoned:
                self.owners.add(incident)
            assert done.data["ours"] is (incident in self.owners)
        elif word in ("resume", "return"):
            await self._resumed(incident)
        else:
            await asyncio.to_thread(self._person, word)
        await self._is_as_it_should_be()

    async def _resumed(self, incident: str) -> None:
        before = set(self.owners)
        if incident:
            wanted = order(incident)
            self.owners.discard(incident)
        else:
            wanted = order("request-1", owners="all")
            self.owners.clear()
        done: Done = await actions.Resume(lambda _: self._kube).run(wanted)
        serves = not self.owners and not self.cordoned
        assert done.data == {"resumed": bool(before) and serves, "takes_jobs": serves}

    def _person(self, word: str) -> None:
        if word == "cordon":
            self._plane.kubectl("cordon", "gpu1")
            self.cordoned = True
        elif word == "apply":
            node = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "gpu1"},
                "spec": {"unschedulable": True},
            }
            by = ("--server-side", "--field-manager=gitops", "--force-conflicts")
            self._plane.kubectl("apply", *by, "-f", "-", given=node)
            self.cordoned = True
        elif word == "uncordon":
            self._plane.kubectl("uncordon", "gpu1")
            self.cordoned = False
        else:
            self._plane.kubectl("taint", "node", "gpu1", "gpuward/drained-", check=False)
            self.owners.clear()

    async def _is_as_it_should_be(self) -> None:
        node = await asyncio.to_thread(self._plane.node, "gpu1")
        keys = [taint["key"] for taint in node["spec"].get("taints") or []]
        assert ("gpuward/drained" in keys) is bool(self.owners)
        assert bool(node["spec"].get("unschedulable")) is self.cordoned
        assert {mark.incident for mark in await self._kube.marks("gpu1")} == self.owners
        found = await jobs.answer(self._kube, "gpu1", "j-1")
        whose = (found.known, bool(found.drained), found.ours)
        assert whose == (True, bool(self.owners or self.cordoned), bool(self.owners))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, min_size=3, max_size=10))
def test_a_node_is_given_back_by_its_last_owner_and_never_over_a_person(
    plane: Plane, words: list[tuple[str, str]]
) -> None:
    """The law of drains, in any order of incidents, cordons, server-side applies and marks taken off by hand."""

    async def tell() -> None:
        await asyncio.to_thread(plane.clean)
        kube = built(plane)
        try:
            story = Story(plane, kube)
            for word, incident in words:
                await story.tell(word, incident)
        finally:
            await kube.close()

    asyncio.run(tell())


@pytest.mark.parametrize("word", ["cordon", "apply"])
async def test_a_cordon_over_our_drain_stays(plane: Plane, word: str) -> None:
    """A person who cordons a node that we have drained already keeps it."""
    await asyncio.to_thread(plane.clean)
    kube = built(plane)
    try:
        story = Story(plane, kube)
        for one, incident in (("drain", "inc-1"), (word, ""), ("drain", "inc-2"), ("resume", "inc-1")):
            await story.tell(one, incident)
        await story.tell("resume", "inc-2")
        assert await kube.drained("gpu1") == f"cordoned by {'gitops' if word == 'apply' else 'kubectl'}"
    finally:
        await kube.close()


async def test_incidents_that_drain_and_let_go_at_the_same_moment(plane: Plane) -> None:
    """Each change is decided on what stands: no mark is lost, and none is left."""
    await asyncio.to_thread(plane.clean)
    kube = built(plane)
    names = [f"inc-{n}" for n in range(8)]
    drain, resume = actions.Drain(lambda _: kube), actions.Resume(lambda _: kube)
    try:
        await asyncio.gather(*(drain.run(order(name)) for name in names))
        assert {mark.incident for mark in await kube.marks("gpu1")} == set(names)
        await asyncio.gather(*(resume.run(order(name)) for name in names))
        assert (await kube.marks("gpu1"), await kube.drained("gpu1")) == ((), "")
    finally:
        await kube.close()


async def test_a_cordon_of_an_older_version_goes_with_our_mark(plane: Plane) -> None:
    """It set `unschedulable` under our own name; a cordon that a person has applied too stays."""
    await asyncio.to_thread(plane.clean)
    kube = built(plane)
    try:
        for also, stays in ((False, ""), (True, "cordoned by gitops, gpuward")):
            await actions.Drain(lambda _: kube).run(order("inc-1"))
            old = json.dumps({"spec": {"unschedulable": True}})
            by_us = ("--type=merge", "--field-manager=gpuward", "-p", old)
            await asyncio.to_thread(plane.kubectl, "patch", "node", "gpu1", *by_us)
            if also:
                await asyncio.to_thread(Story(plane, kube)._person, "apply")
            await actions.Resume(lambda _: kube).run(order("inc-1"))
            assert await kube.drained("gpu1") == stays
    finally:
        await kube.close()


async def test_a_drain_that_the_account_may_not_make(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the server's words, with the right that is missing: to read nodes (told at once), or to change them."""
    await asyncio.to_thread(plane.clean)
    monkeypatch.setattr(
        patience, "DENIED_S", 1.0
    )  # it may read: a denial to change is asked again for a while
    for verbs, says in (
        ((), r'no right to get nodes: .*403 .*cannot get resource "nodes"'),
        (("get",), r'no right to patch nodes: .*403 .*cannot patch resource "nodes"'),
    ):
        account = await asyncio.to_thread(_account, plane, f"stranger-{len(verbs)}", verbs)
        kube = built(plane, **account)
        try:
            with pytest.raises(Refused, match=says):
                await actions.Drain(lambda _: kube).run(order("inc-1"))  # noqa: B023
        finally:
            await kube.close()
    assert plane.taints("gpu1") == []


async def test_a_disruption_budget_that_the_server_keeps(plane: Plane) -> None:
    """The step fails in the server's words and no pod ends, as long as the budget stands; without it the pod is evicted."""
    await asyncio.to_thread(plane.clean)
    (pod,) = await asyncio.to_thread(plane.pods, "kept", "gpu3")
    await asyncio.to_thread(plane.budget, "kept", "kept", at_least=1)
    wanted = replace(order("inc-1", then="requeue"), node="gpu3")
    kube = built(plane, evict_wait_s=3)
    try:
        with pytest.raises(ActionError, match=r"was not evicted in 3 s: .*disruption budget"):
            await actions.Drain(lambda _: kube).run(wanted)
        assert plane.running("kept") == [pod]
        plane.kubectl("delete", "poddisruptionbudget", "kept")
        done = await actions.Drain(lambda _: kube).run(wanted)
        assert done.data["jobs_left"] == 0
        assert pod not in plane.running("kept")
        await actions.Resume(lambda _: kube).run(wanted)
    finally:
        await kube.close()


async def test_no_pod_is_evicted_while_another_one_cannot_be(plane: Plane) -> None:
    """As kubectl drain: a pod that nothing would start again stops the drain before the others lose their work in vain."""
    await asyncio.to_thread(plane.clean)
    (pod,) = await asyncio.to_thread(plane.pods, "train", "gpu3")
    bare = {"nodeName": "gpu3", "containers": [{"name": "c", "image": "i"}]}
    await asyncio.to_thread(plane.apply, "v1", "Pod", "bare", bare)
    wanted = replace(order("inc-1", then="requeue"), node="gpu3")
    kube = built(plane)
    try:
        with pytest.raises(ActionError, match=r"no job was stopped.*default/bare has no controller"):
            await actions.Drain(lambda _: kube).run(wanted)
        assert plane.running("train") == [pod]
        assert "inc-1" in await kube.drained("gpu3")
        await actions.Resume(lambda _: kube).run(wanted)
    finally:
        await kube.close()


def _account(plane: Plane, name: str, verbs: tuple[str, ...]) -> dict[str, Any]:
    """An account that may do only this with nodes: the options with which it is used."""
    plane.kubectl("create", "serviceaccount", name)
    for verb in verbs:
        plane.kubectl("create", "clusterrole", name, f"--verb={verb}", "--resource=nodes")
        plane.kubectl(
            "create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount=default:{name}"
        )
    token = plane.folder / f"{name}.token"
    path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
    token.write_text(
        json.loads(plane.kubectl("create", "--raw", path, "-f", "-", given={}))["status"]["token"]
    )
    token.chmod(0o600)
    url = (plane.folder / "url").read_text().strip()
    return {"kubeconfig": None, "url": url, "token_file": token, "ca_file": plane.folder / "ca.crt"}


async def test_the_role_is_what_the_code_uses(plane: Plane) -> None:
    """By the server's own audit log: everything that the role allows, nothing that it denies, under our name."""
    role = next(
        one
        for one in yaml.safe_load_all((ROOT / "deploy/kubernetes/rbac.yaml").read_text())
        if one["kind"] == "ClusterRole"
    )
    allowed = {
        (verb, resource) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]
    }
    await asyncio.to_thread(plane.pods, "train", "gpu2")
    kube = built(plane)
    try:
        await actions.Drain(lambda _: kube).run(
            replace(order("inc-1", wait_s=30, then="requeue"), node="gpu2")
        )
        await actions.Resume(lambda _: kube).run(replace(order("inc-1"), node="gpu2"))
    finally:
        await kube.close()
    said = [json.loads(line) for line in (plane.folder / "audit.log").read_text().splitlines()]
    ours = [one for one in said if one["user"]["username"] == "system:serviceaccount:gpuward:gpuward"]
    used = {
        (
            one["verb"],
            "/".join(filter(None, (one["objectRef"]["resource"], one["objectRef"].get("subresource")))),
        )
        for one in ours
    }
    assert used == allowed
    assert {one["userAgent"] for one in ours} == {f"gpuward/{__version__}"}


def kept(plane: Plane) -> dict[str, str]:
    """What stands on the node for autoscalers, and that we have put it there."""
    found = plane.node("gpu1")["metadata"].get("annotations") or {}
    return {key: text for key, text in found.items() if key in (*KEPT, "gpuward/kept")}


async def test_an_autoscaler_leaves_alone_what_we_have_drained(plane: Plane) -> None:
    """A drained node is empty, and people want to look at it. What was there before, or what somebody has made of it since,
    stays; a second incident changes nothing; the last one takes what is ours away.
    """
    plane.clean()
    ours, theirs = KEPT
    plane.kubectl("annotate", "node", "gpu1", f"{theirs}=true")
    kube = built(plane)
    for incident in ("inc-1", "inc-2"):
        await actions.Drain(lambda _: kube).run(order(incident))
        assert kept(plane) == {ours: "true", theirs: "true", "gpuward/kept": ours}
    await actions.Resume(lambda _: kube).run(order("inc-1"))
    assert ours in kept(plane)
    await actions.Resume(lambda _: kube).run(order("inc-2"))
    assert kept(plane) == {theirs: "true"}

    await actions.Drain(lambda _: kube).run(order("inc-3"))
    plane.kubectl("annotate", "--overwrite", "node", "gpu1", f"{ours}=false")
    await actions.Resume(lambda _: kube).run(order("inc-3"))
    assert kept(plane) == {theirs: "true", ours: "false"}
    await kube.close()
    plane.clean()


async def test_which_annotations_is_the_site_s_choice(plane: Plane) -> None:
    """None, or others; nothing that is no name of one, and nothing of ours."""
    plane.clean()
    kube = built(plane, keep_annotations=[])
    await actions.Drain(lambda _: kube).run(order("inc-1"))
    assert kept(plane) == {}
    await actions.Resume(lambda _: kube).run(order("inc-1"))
    await kube.close()
    for wrong in ("no spaces please", "gpuward/reason", ""):
        with pytest.raises(ConfigError, match="keep_annotations"):
            built(plane, keep_annotations=[wrong])
    plane.clean()


async def test_who_is_hit_on_a_real_control_plane(plane: Plane) -> None:
    """Of a Job of three pods on two nodes: its name, its namespace, and on how many nodes it is. What has ended does not count,
    and of a pod that belongs to no workload its node is all there is.
    """
    plane.clean()

    def pod(name: str, node: str, labels: dict[str, str]) -> None:
        spec = {
            "nodeName": node,
            "containers": [{"name": "c", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "4"}}}],
        }
        meta = {"name": name, "namespace": "default", "labels": labels}
        plane.kubectl(
            *("create", "-f", "-"),
            given={"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec},
        )

    train = {"batch.kubernetes.io/job-name": "train-llama"}
    for name, node, labels in (
        ("train-0", "gpu1", train),
        ("train-1", "gpu2", train),
        ("train-2", "gpu2", train),
        ("train-3", "gpu3", {"batch.kubernetes.io/job-name": "another"}),
        ("alone", "gpu1", {}),
    ):
        await asyncio.to_thread(pod, name, node, labels)
    kube = built(plane)
    try:
        said = await jobs.answer(kube, "gpu1", "j:1", people=True)
        assert (said.known, said.scheduler) == (True, "k8s")
        assert said.seen == (
            JobSeen(id="default/train-0", name="train-llama", user="default", nodes=2, gpus=4),
            JobSeen(id="default/alone", user="default", nodes=1, gpus=4),
        )
        gates = await jobs.answer(kube, "gpu1", "j:2")
        assert [job.nodes for job in gates.seen] == [1, 0], "a gate does not wait for sizes"
    finally:
        await kube.close()
        await asyncio.to_thread(plane.clean)

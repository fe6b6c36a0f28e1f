"""A node that is off, on a real Kubernetes control plane: what ran there is let go when its BMC says so, and not before."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from brain.actions import kube as module
from brain.actions import kube_off
from brain.actions import scheduler as actions
from brain.actions.base import Order
from brain.actions.kube import Kubernetes
from brain.actions.kube_options import CONDITION
from brain.actions.marks import Mark
from tests.real import ipmi_host, kube_plane
from tests.real.bmc_kit import built
from tests.real.kube_plane import Plane
from tests.real.test_ipmi import table

pytestmark = [
    pytest.mark.component("kubernetes ipmi_sim ipmitool"),
    pytest.mark.skipif(bool(kube_plane.missing()), reason=kube_plane.missing() or "-"),
    pytest.mark.skipif(bool(ipmi_host.missing()), reason=ipmi_host.missing() or "-"),
    pytest.mark.timeout(300),
]
OURS, THEIRS = f"{kube_off.KEY}=gpuward", f"{kube_off.KEY}=nodeshutdown"


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    """One control plane for all."""
    with kube_plane.plane() as made:
        yield made


@pytest.fixture
async def kube(plane: Plane) -> Kubernetes:
    """As `[schedulers.k8s]` would build it, with nothing of an earlier test on the nodes."""
    await asyncio.to_thread(plane.clean)
    table = {"type": "kubernetes", "kubeconfig": plane.kubeconfig, "tell": ["events", "conditions"]}
    return module.build("k8s", table, "schedulers.k8s")


def order(node: str, incident: str = "inc-1") -> Order:
    """What a runbook orders."""
    return Order(
        id="s1", incident=incident, node=node, params={"shutdown_s": 0.0}, timeout_s=300, why="it is dead"
    )


def taints(plane: Plane, node: str) -> set[str]:
    """Those about being off."""
    found = plane.node(node)["spec"].get("taints") or []
    return {f"{one['key']}={one.get('value', '')}" for one in found if one["key"] == kube_off.KEY}


def there(plane: Plane, name: str) -> bool:
    """Does the API server have the pod?"""
    return bool(plane.kubectl("get", "pod", name, "-o", "name", "--ignore-not-found"))


def ready(plane: Plane, node: str) -> bool:
    """Does its kubelet speak?"""
    conditions = plane.node(node)["status"]["conditions"]
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def fault(plane: Plane, node: str) -> str:
    """The status of our condition; empty: there is none."""
    conditions = plane.node(node)["status"]["conditions"]
    return next((one["status"] for one in conditions if one["type"] == CONDITION), "")


async def test_what_ran_on_a_dead_node_ends_when_it_is_seen_to_be_off(
    plane: Plane, kube: Kubernetes, tmp_path: Path
) -> None:
    """A pod that was deleted hangs there for ever, since its kubelet is silent. When the incident lets the node go, it is taken
    back."""
    roles = "kubectl apply -f deploy/kubernetes/rbac/tell-events.yaml -f deploy/kubernetes/rbac/tell-conditions.yaml"
    plane.types(roles)
    (pod,) = await asyncio.to_thread(plane.pods, "train", "gpu2")
    silent = plane.folder / "silent/gpu2"
    silent.parent.mkdir(exist_ok=True)
    silent.touch()
    try:
        await asyncio.to_thread(plane.until, lambda: not ready(plane, "gpu2"), "its kubelet is missed")
        plane.kubectl("delete", "pod", pod, "--wait=false")
        with ipmi_host.ipmi_host(tmp_path) as host:
            isolate = built({"racks": table(host, nodes="gpu2")}, kube)["node.isolate"]
            assert (await isolate.plan(order("gpu2")))[
                -1
            ] == "tell the scheduler so, which then ends what ran there"
            assert there(plane, pod), "nobody knows yet that the node is off"
            done = await isolate.run(order("gpu2"))
            assert host.node == 0
        assert done.text.endswith("what ran there may start elsewhere")
        await asyncio.to_thread(plane.until, lambda: not there(plane, pod), "its pod is gone")
        assert taints(plane, "gpu2") == {OURS}
        assert fault(plane, "gpu2") == "True", "it is shown, too"
    finally:
        silent.unlink()
    await asyncio.to_thread(plane.until, lambda: ready(plane, "gpu2"), "its kubelet speaks again")
    assert taints(plane, "gpu2") == {OURS}, "it is not verified yet"
    await actions.Resume(lambda _: kube).run(order("gpu2"))
    assert taints(plane, "gpu2") == set()
    assert fault(plane, "gpu2") == "False"
    await kube.close()


async def test_a_node_that_a_runbook_only_switches_off_is_told_too(
    plane: Plane, kube: Kubernetes, tmp_path: Path
) -> None:
    """`bmc.power_off` says so under a drain of its own incident, also when it finds the node off; not under another's, or
    none. That the node is on again takes nothing back; that the last incident lets it go does.
    """
    (pod,) = await asyncio.to_thread(plane.pods, "switched", "gpu3")
    with ipmi_host.ipmi_host(tmp_path) as host:
        actions_of = built({"racks": table(host, nodes="gpu3")}, kube)
        off = actions_of["bmc.power_off"]
        assert (await off.plan(order("gpu3")))[-1] == "tell the scheduler so, which then ends what ran there"
        done = await off.run(order("gpu3"))
        assert host.node == 0
        assert done.text.endswith("what ran there is kept: it is not drained for this incident")
        await kube.drain("gpu3", Mark(incident="inc-2", why="another one"))
        assert "is kept" in (await off.run(order("gpu3"))).text
        assert taints(plane, "gpu3") == set()
        assert there(plane, pod)
        await kube.drain("gpu3", Mark(incident="inc-1", why="it is dead"))
        done = await off.run(order("gpu3"))
        assert done.text == "gpu3 was off already; what ran there may start elsewhere"
        assert taints(plane, "gpu3") == {OURS}
        await asyncio.to_thread(plane.until, lambda: not there(plane, pod), "its pod is gone")
        await actions_of["bmc.power_on"].run(order("gpu3"))
        assert ready(plane, "gpu3")
        assert taints(plane, "gpu3") == {OURS}, "it is drained still"
        await kube.resume("gpu3", {"inc-1"})
        assert taints(plane, "gpu3") == {OURS}, "another incident wants it"
        await kube.resume("gpu3", {"inc-2"})
    assert taints(plane, "gpu3") == set()
    await kube.close()


async def test_the_last_incident_takes_it_back_and_another_drain_keeps_it(
    plane: Plane, kube: Kubernetes
) -> None:
    """It stands as long as our drain does."""
    for incident in ("inc-1", "inc-2"):
        await kube.drain("gpu1", Mark(incident=incident, why="it is dead"))
    assert await kube.say_off("gpu1", "inc-1")
    await kube.drain("gpu1", Mark(incident="inc-3", why="a third one"))
    await kube.resume("gpu1", {"inc-1", "inc-2"})
    assert taints(plane, "gpu1") == {OURS}
    await kube.resume("gpu1", {"inc-3"})
    assert taints(plane, "gpu1") == set()
    await kube.close()


async def test_what_a_person_has_said_stays_and_over_a_persons_drain_nothing_is_said(
    plane: Plane, kube: Kubernetes
) -> None:
    """Their taint is theirs, and so is a node that they have cordoned before us."""
    plane.kubectl("taint", "node", "gpu1", f"{THEIRS}:NoExecute")
    await kube.drain("gpu1", Mark(incident="inc-1", why="it is dead"))
    assert await kube.say_off("gpu1", "inc-1")
    await kube.resume("gpu1", {"inc-1"})
    assert taints(plane, "gpu1") == {THEIRS}
    plane.kubectl("cordon", "gpu3")
    await kube.drain("gpu3", Mark(incident="inc-1", why="it is dead"))
    assert not await kube.say_off("gpu3", "inc-1")
    assert taints(plane, "gpu3") == set()
    await kube.close()


async def test_a_person_who_takes_our_drain_off_leaves_no_word_of_ours(
    plane: Plane, kube: Kubernetes
) -> None:
    """`kubectl taint node NODE gpuward/drained-`, and the incident lets go later."""
    await kube.drain("gpu1", Mark(incident="inc-1", why="it is dead"))
    assert await kube.say_off("gpu1", "inc-1")
    plane.kubectl("taint", "node", "gpu1", "gpuward/drained-")
    await kube.resume("gpu1", {"inc-1"})
    assert taints(plane, "gpu1") == set()
    assert (
        json.loads(plane.kubectl("get", "node", "gpu1", "-o", "json"))["metadata"]
        .get("annotations", {})
        .get("gpuward/reason")
        is None
    )
    await kube.close()

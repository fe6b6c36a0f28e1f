"""What others set on a node beside what we set there, on a real API server: it stays theirs (law 3)."""

import asyncio

import pytest

from brain.actions.kube import Kubernetes
from brain.actions.marks import Mark
from tests.real import kube_plane
from tests.real.kube_plane import KEPT, Plane

pytestmark = [
    pytest.mark.component("kubernetes"),
    pytest.mark.skipif(bool(kube_plane.missing()), reason=kube_plane.missing() or "-"),
    pytest.mark.timeout(300),
]
ONE, OTHER = (Mark(incident=name, why="gpu-lost") for name in ("inc-1", "inc-2"))


def taints(plane: Plane) -> set[str]:
    """Those of gpu1 as kubectl writes them."""
    found = plane.node("gpu1")["spec"].get("taints") or []
    return {f"{one['key']}={one.get('value', '')}:{one['effect']}" for one in found}


async def test_a_taint_of_our_key_with_another_effect_is_somebody_elses(
    plane: Plane, kube: Kubernetes
) -> None:
    """`kubectl taint node gpu1 gpuward/drained=mine:NoExecute` over our drain: another mark and our return took it off. The node
    stays out of service by it, and it is not taken for ours.
    """
    await kube.drain("gpu1", ONE)
    await asyncio.to_thread(plane.kubectl, "taint", "node", "gpu1", "gpuward/drained=mine:NoExecute")
    await kube.drain("gpu1", OTHER)
    theirs, ours = "gpuward/drained=mine:NoExecute", "gpuward/drained=true:NoSchedule"
    assert taints(plane) == {theirs, ours}
    await kube.resume("gpu1", None)
    assert taints(plane) == {theirs}
    assert (await kube.drained("gpu1"), await kube.marks("gpu1")) == ("tainted", ())
    await kube.drain("gpu1", ONE)
    assert taints(plane) == {theirs}, "a node that somebody else has drained is left as it is"


async def test_an_annotation_that_gitops_sets_too_stays(plane: Plane, kube: Kubernetes) -> None:
    """We set it first; then it was applied with the same value, so that both own it: our return took it off, and the autoscaler
    the node.
    """
    ours, theirs = KEPT
    await kube.drain("gpu1", ONE)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu1", "annotations": {theirs: "true"}}}
    by = ("--server-side", "--field-manager=gitops", "-f", "-")
    await asyncio.to_thread(lambda: plane.kubectl("apply", *by, given=node))
    await kube.resume("gpu1", None)
    there = plane.node("gpu1")["metadata"].get("annotations") or {}
    assert (ours in there, there.get(theirs), "gpuward/kept" in there) == (False, "true", False)

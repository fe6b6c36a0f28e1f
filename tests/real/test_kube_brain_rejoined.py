"""A whole brain has drained a node of a real cluster; the Node object is deleted, and the node joins anew (decision 112)."""

import asyncio
from pathlib import Path

import pytest

from tests.real import kube_plane
from tests.real.brain_kit import lab
from tests.real.kube_plane import Plane

pytestmark = [pytest.mark.component("kubernetes nats-server"), pytest.mark.timeout(300)]


def drained(plane: Plane) -> bool:
    """Is there a Node object with our taint?"""
    path = "jsonpath={.spec.taints[*].key}"
    return "gpuward/drained" in plane.kubectl("get", "node", "gpu1", "-o", path, "--ignore-not-found")


async def test_a_node_that_joins_anew_is_drained_again(tmp_path: Path) -> None:
    """Twice, while it is inspected. Nobody says a word: the leader sees it, the engine decides, and notes tell."""
    if why := kube_plane.missing():
        pytest.skip(why)
    with kube_plane.plane() as plane:
        table = {"type": "kubernetes", "kubeconfig": str(plane.kubeconfig)}
        modes = [{"runbook": "*", "mode": "auto"}]
        async with lab(tmp_path, schedulers={"k8s": table}, modes=modes) as whole:
            node = await whole.node("gpu1")
            await node.beat()
            await node.event("agent.started")
            said = await whole.say("start", runbook="inspect-node", node="gpu1", why="it is slow")
            assert said[0] == 200, said
            await asyncio.to_thread(plane.until, lambda: drained(plane), "it is not drained", 120)
            for _ in range(2):
                before = plane.node("gpu1")["metadata"]["uid"]
                await asyncio.to_thread(plane.kubectl, "delete", "node", "gpu1")
                await asyncio.to_thread(plane.until, lambda: drained(plane), "it is not drained again", 120)
                assert plane.node("gpu1")["metadata"]["uid"] != before
            renewed = await whole.until(
                lambda found: len(found["notes"]) == 2,
                "it is said",
                "/api/v1/notes?kind=drain.renewed",
            )
            assert "gpu1 is another object in k8s than was drained" in renewed["notes"][0]["text"]

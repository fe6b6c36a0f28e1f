"""A brain that starts with an account that lacks a right says so, before any node is drained."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.real import kube_plane
from tests.real.brain_kit import lab

pytestmark = [pytest.mark.component("kubernetes nats-server"), pytest.mark.timeout(300)]


async def test_a_right_that_is_missing_is_named_at_the_start(tmp_path: Path) -> None:
    """On a real control plane: the right to evict, and one that only what is switched on needs (`tell`). A runbook may act there,
    so people are called; no node is touched.
    """
    if why := kube_plane.missing():
        pytest.skip(why)
    with kube_plane.plane() as plane:
        role = json.loads(plane.kubectl("get", "clusterrole", "gpuward", "-o", "json"))
        less = {**role, "rules": [one for one in role["rules"] if "pods/eviction" not in one["resources"]]}
        await asyncio.to_thread(plane.kubectl, "replace", "-f", "-", given=less)
        table = {"type": "kubernetes", "kubeconfig": str(plane.kubeconfig), "tell": ["conditions"]}
        modes = [{"runbook": "drain-node", "mode": "approve"}]
        async with lab(tmp_path, schedulers={"k8s": table}, modes=modes) as found:
            status = await found.until(
                lambda status: [one["cause"] for one in status["troubles"]] == ["scheduler_rights"],
                "the right is named",
            )
            (trouble,) = status["troubles"]
            assert (
                trouble["text"]
                == "scheduler k8s: this brain's account may not create pods/eviction, patch nodes/status, list nodes"
            )
            assert plane.taints("gpu1") == []

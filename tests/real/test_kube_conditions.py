"""Conditions that others set on Node objects, on a real API server: told when they change, and again while they last."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import ActionError, ConfigError
from brain.actions import kube as module
from brain.actions import kube_conditions
from brain.actions.kube_conditions import AGAIN_S, NodeConditions
from brain.core.inputs import Reported
from tests.real import kube_plane
from tests.real.kube_plane import Plane
from tests.real.kubernetes.fake_nodes import Api

pytestmark = [
    pytest.mark.component("kubernetes"),
    pytest.mark.skipif(bool(kube_plane.missing()), reason=kube_plane.missing() or "-"),
    pytest.mark.timeout(300),
]
RBAC = Path(__file__).resolve().parents[2] / "deploy/kubernetes/rbac/conditions.yaml"
WANTED = ["KernelDeadlock", "ReadonlyFilesystem", "FrequentKubeletRestart"]


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    """A control plane in which the brain's account has its five rights."""
    with kube_plane.plane() as made:
        yield made


class Brain:
    """One brain's listener, and what it published and noted."""

    def __init__(self, plane: Plane, **more: Any) -> None:
        self.got: list[Reported] = []
        self.notes: list[str] = []
        self.now = 1e9
        table = {"type": "kubernetes", "kubeconfig": plane.kubeconfig, "conditions": WANTED, **more}
        (self.listener,) = kube_conditions.listeners(
            {"k8s": table},
            put=self.got.append,
            note=lambda kind, text: self.notes.append(f"{kind}: {text}"),
            leads=lambda: True,
            known=lambda: {"gpu1", "gpu2"},
        )
        assert isinstance(self.listener, NodeConditions)
        self.listener._clock = lambda: self.now

    async def told(self) -> list[tuple[str, bool, str]]:
        """What one more look publishes."""
        self.got.clear()
        assert await self.listener.look() == len(self.got)
        return [(one.node, bool(one.data["active"]), str(one.data["conditions"])) for one in self.got]


def detects(plane: Plane, node: str, *, since: int = 1, **states: str) -> None:
    """What node-problem-detector writes: condition -> status."""
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": f"Because{kind}",
            "message": f"{kind} is {status}",
            "lastTransitionTime": f"2026-01-01T00:00:{since:02}Z",
            "lastHeartbeatTime": "2026-01-01T00:00:59Z",
        }
        for kind, status in states.items()
    ]
    api = Api(plane.folder / "admin.kubeconfig")
    body = {"status": {"conditions": conditions}}
    kind = "application/strategic-merge-patch+json"
    assert api.ask("PATCH", f"/api/v1/nodes/{node}/status", body, kind)[0] == 200


async def test_the_account_may_only_when_it_is_given_the_right(plane: Plane) -> None:
    """Without it one note says what is missing, and `gpuward doctor` does; with rbac/conditions.yaml all is well, and no other
    right comes with it.
    """
    brain = Brain(plane, conditions_every_s=1)
    with pytest.raises(ActionError, match="list nodes"):
        await brain.listener.look()
    task = asyncio.create_task(brain.listener.run())
    async with asyncio.timeout(60):
        while not brain.notes:
            await asyncio.sleep(0.05)
    assert brain.notes[0].startswith("kubernetes.unreachable: ")
    table = {"type": "kubernetes", "kubeconfig": plane.kubeconfig, "conditions": WANTED}
    kube = module.build("k8s", table, "schedulers.k8s")
    assert await kube.lacking() == ["list nodes"]
    plane.types("kubectl apply -f deploy/kubernetes/rbac/conditions.yaml")
    async with asyncio.timeout(60):
        while len(brain.notes) < 2:
            await asyncio.sleep(0.05)
    assert brain.notes[1].startswith("kubernetes.reachable: ")
    assert await kube.lacking() == []
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await kube.close()
    await brain.listener.close()
    account = "system:serviceaccount:gpuward:gpuward"
    for request in ("watch nodes", "delete nodes", "list secrets"):
        assert plane.kubectl("auth", "can-i", *request.split(), "--as", account, check=False).strip() == "no"


async def test_what_is_told_of_which_node(plane: Plane) -> None:
    """A condition begins, another one joins it, one ends, all end; nothing of conditions that nobody has asked for, nor of nodes
    that are not ours; the same again only after a while. The next brain goes on from the log.
    """
    plane.kubectl("apply", "-f", str(RBAC))
    for name in ("gpu1", "gpu2", "gpu3"):
        detects(plane, name, KernelDeadlock="False", ReadonlyFilesystem="False", Elsewhere="True")
    brain = Brain(plane)
    assert await brain.told() == []
    detects(plane, "gpu1", since=2, KernelDeadlock="True")
    detects(plane, "gpu3", since=2, KernelDeadlock="True")
    assert await brain.told() == [("gpu1", True, "KernelDeadlock")]
    assert brain.got[0].data["text"] == "KernelDeadlock: BecauseKernelDeadlock: KernelDeadlock is True"
    first = brain.got[0]
    assert await brain.told() == []

    standby = Brain(plane)
    standby.listener.mark_published(first)
    assert await standby.told() == []
    amnesiac = Brain(plane)
    await amnesiac.told()
    assert amnesiac.got == [first], "the same id, which counts once"

    brain.now += AGAIN_S
    assert await brain.told() == [("gpu1", True, "KernelDeadlock")]
    assert brain.got[0].id != first.id
    detects(plane, "gpu1", since=3, ReadonlyFilesystem="True")
    assert await brain.told() == [("gpu1", True, "KernelDeadlock, ReadonlyFilesystem")]
    detects(plane, "gpu1", since=4, KernelDeadlock="Unknown")
    assert await brain.told() == [("gpu1", True, "ReadonlyFilesystem")]
    detects(plane, "gpu1", since=5, ReadonlyFilesystem="False")
    assert await brain.told() == [("gpu1", False, "")]
    assert await brain.told() == []
    assert await standby.told() == [("gpu1", False, "")], "it leads now, and had learned from the log"
    for one in (brain, standby, amnesiac):
        await one.listener.close()


async def test_names_of_nodes(plane: Plane) -> None:
    """Node objects may have longer names, and a table only some of the nodes."""
    plane.kubectl("apply", "-f", str(RBAC))
    detects(plane, "gpu1", since=9, KernelDeadlock="True")
    detects(plane, "gpu2", since=9, KernelDeadlock="True")
    for more, told in (
        ({"nodes": "*2"}, ["gpu2"]),
        ({"node_name": "{node}.example.org"}, []),
        ({}, ["gpu1", "gpu2"]),
    ):
        brain = Brain(plane, **more)
        assert [node for node, _, _ in await brain.told()] == told
        await brain.listener.close()
    with pytest.raises(ConfigError, match="Ready is wrong when it is not True"):
        Brain(plane, conditions=["Ready"])


@pytest.mark.parametrize("other", ["gpu1.aaa.example.org", "gpu1.old.example.org"])
async def test_of_two_node_objects_for_one_machine_one_counts(plane: Plane, other: str) -> None:
    """A machine joined under its long name first, and the old object was left: its conditions began and ended the incident at
    each look. What counts is the object that a drain of the node is about.
    """
    plane.kubectl("apply", "-f", str(RBAC))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": other}}
    plane.kubectl("create", "-f", "-", given=node)
    brain = Brain(plane, nodes="gpu1")
    try:
        detects(plane, "gpu1", since=10, KernelDeadlock="True", ReadonlyFilesystem="False")
        detects(plane, other, since=11, KernelDeadlock="False", ReadonlyFilesystem="True")
        assert await brain.told() == [("gpu1", True, "KernelDeadlock")]
        for _ in range(3):
            assert await brain.told() == []
    finally:
        plane.kubectl("delete", "node", other)
        await brain.listener.close()

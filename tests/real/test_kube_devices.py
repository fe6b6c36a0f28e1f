"""Devices of dynamic resource allocation on a real API server (1.36): drivers' taints, and rules of administrators."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent.contract.errors import ActionError
from brain.actions import kube, kube_devices
from brain.core.inputs import Reported
from tests.real import kube_plane
from tests.real.kube_plane import Plane

pytestmark = [
    pytest.mark.root,
    pytest.mark.timeout(300),
    pytest.mark.component("kubernetes"),
    pytest.mark.skipif(bool(kube_plane.missing()), reason=kube_plane.missing() or "-"),
]
RULES_TOO = "--feature-gates=DRADeviceTaintRules=true --runtime-config=resource.k8s.io/v1beta2=true"
NONE = "--runtime-config=resource.k8s.io/v1=false"
APPLY = "kubectl apply -f deploy/kubernetes/rbac/devices.yaml"
ILL = {"key": "gpu.nvidia.com/unhealthy", "value": "xid79", "effect": "NoExecute"}


class Served:
    """A control plane whose API server is started with other flags."""

    def __init__(self, plane: Plane) -> None:
        self.plane, self._flags = plane, ""

    async def serve(self, flags: str, patched: pytest.MonkeyPatch) -> Plane:
        """With these flags, and without slices and rules."""
        if flags != self._flags:
            patched.setenv("API_FLAGS", flags)
            await asyncio.to_thread(self.plane.stop_api)
            await asyncio.to_thread(self.plane.start_api)
            self._flags = flags
        if flags != NONE:
            self.plane.kubectl("delete", "resourceslices", "--all")
        return self.plane


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """One for all."""
    with kube_plane.plane() as made:
        yield Served(made)


class Watching:
    """The listener of a table that wants devices, and what it tells."""

    def __init__(self, plane: Plane, **more: Any) -> None:
        self.table = {"type": "kubernetes", "kubeconfig": str(plane.kubeconfig), "devices": True, **more}
        self.got: list[Reported] = []
        self.notes: list[str] = []
        (self.listener,) = kube_devices.listeners(
            {"k8s": self.table},
            put=self.got.append,
            note=lambda kind, text: self.notes.append(f"{kind}: {text}"),
            leads=lambda: True,
            known=lambda: {"gpu1", "gpu2"},
        )

    async def told(self) -> dict[str, dict[str, Any]]:
        """What one more look tells: node -> data."""
        self.got.clear()
        assert await self.listener.look() == len(self.got)
        assert {one.kind for one in self.got} <= {"scheduler.devices"}
        return {one.node: dict(one.data) for one in self.got}


def publishes(
    plane: Plane, node: str, *tainted: str, driver: str = "gpu.nvidia.com", generation: int = 1
) -> None:
    """What a driver publishes of a node with two devices."""
    devices = [
        {"name": name, **({"taints": [ILL]} if name in tainted else {})} for name in ("gpu-0", "gpu-1")
    ]
    pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
    name = f"{node}-{driver}"
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": devices}
    plane.apply("resource.k8s.io/v1", "ResourceSlice", name, spec)


async def test_a_right_that_is_missing_is_named(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """One note, and `gpuward doctor`; with rbac/devices.yaml all is well, and no other right comes with it."""
    plane = await served.serve("", monkeypatch)
    watch = Watching(plane, conditions_every_s=1)
    with pytest.raises(ActionError, match="list resourceslices"):
        await watch.listener.look()
    brain = kube.build("k8s", watch.table, "schedulers.k8s")
    assert await brain.lacking() == [
        "list resourceslices.resource.k8s.io",
        "list devicetaintrules.resource.k8s.io",
    ]
    task = asyncio.create_task(watch.listener.run())
    async with asyncio.timeout(60):
        while not watch.notes:
            await asyncio.sleep(0.05)
    assert "list resourceslices" in watch.notes[0]
    assert "deploy/kubernetes/rbac/devices.yaml" in watch.notes[0]
    plane.types(APPLY)
    async with asyncio.timeout(60):
        while len(watch.notes) < 2:
            await asyncio.sleep(0.05)
    assert watch.notes[1:] == ["kubernetes.devices: k8s tells taints of devices again"]
    assert await brain.lacking() == []
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    account = "system:serviceaccount:gpuward:gpuward"
    for request in (
        "watch resourceslices",
        "update resourceslices",
        "list resourceclaims",
        "create devicetaintrules",
    ):
        assert plane.kubectl("auth", "can-i", *request.split(), "--as", account, check=False).strip() == "no"
    await brain.close()
    await watch.listener.close()


async def test_what_a_driver_taints_is_told_and_its_end(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With driver, pool, device, key and effect; of nodes of the cell only; a driver that is gone proves nothing."""
    plane = await served.serve("", monkeypatch)
    plane.types(APPLY)
    watch, next_leader = Watching(plane), Watching(plane)
    for node in ("gpu1", "gpu2", "gpu3"):
        publishes(plane, node)
    assert await watch.told() == {}
    publishes(plane, "gpu1", "gpu-1")
    publishes(plane, "gpu3", "gpu-0")
    told = await watch.told()
    assert list(told) == ["gpu1"]
    next_leader.listener.mark_published(watch.got[0])
    assert told["gpu1"] == {
        "active": True,
        "scheduler": "k8s",
        "devices": 1,
        "driver": "gpu.nvidia.com",
        "pool": "gpu1",
        "device": "gpu-1",
        "key": "gpu.nvidia.com/unhealthy",
        "effect": "NoExecute",
        "by_driver": True,
        "text": "gpu-1 of gpu.nvidia.com, pool gpu1: gpu.nvidia.com/unhealthy=xid79:NoExecute, by its driver",
    }
    assert await watch.told() == {}
    plane.kubectl("delete", "resourceslice", "gpu1-gpu.nvidia.com")
    publishes(plane, "gpu1", driver="dra.net")
    assert await watch.told() == await next_leader.told() == {}, (
        "the driver is gone; the device may be as it was"
    )
    publishes(plane, "gpu1", generation=2)
    for one in (watch, next_leader):
        assert [data["active"] for data in (await one.told()).values()] == [False]
        await one.listener.close()


async def test_a_rule_of_an_administrator(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the server offers DeviceTaintRules; one without a selector fits nothing; it changes no rule."""
    plane = await served.serve(RULES_TOO, monkeypatch)
    plane.types(APPLY)
    watch = Watching(plane)
    publishes(plane, "gpu2")
    assert await watch.told() == {}
    taint = {"key": "example.com/rma", "effect": "NoSchedule"}
    plane.apply("resource.k8s.io/v1beta2", "DeviceTaintRule", "nothing", {"taint": taint})
    assert await watch.told() == {}
    selector = {"driver": "gpu.nvidia.com", "pool": "gpu2", "device": "gpu-0"}
    plane.apply(
        "resource.k8s.io/v1beta2", "DeviceTaintRule", "rma", {"taint": taint, "deviceSelector": selector}
    )
    (data,) = (await watch.told()).values()
    assert (data["device"], data["key"], data["by_driver"]) == ("gpu-0", "example.com/rma", False)
    assert data["text"].endswith("by rule rma")
    plane.kubectl("delete", "devicetaintrule", "rma")
    assert [data["active"] for data in (await watch.told()).values()] == [False]
    await watch.listener.close()


async def test_nothing_is_asked_of_a_server_without_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One note says so, and no list is asked for; when the server is upgraded it is found."""
    plane = await served.serve(NONE, monkeypatch)
    watch = Watching(plane)
    asked = [_asked(plane)]
    for _ in range(3):
        assert await watch.told() == {}
        watch.listener._asked_s = float("-inf")  # as after ten minutes
    assert watch.notes == ["kubernetes.devices: k8s offers no resourceslices: it has no devices to look at"]
    assert [_asked(plane)] == asked
    await served.serve("", monkeypatch)
    plane.types(APPLY)
    publishes(plane, "gpu1", "gpu-0")
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(ActionError):  # the server has just started
                if await watch.told():
                    break
            await asyncio.sleep(0.2)
    assert _asked(plane) > asked[0], "so the audit log does have such requests"
    await watch.listener.close()


def _asked(plane: Plane) -> int:
    """How many lists of devices the brain's account has asked for, by the server's audit log."""
    lines = (plane.folder / "audit.log").read_text().splitlines()
    paths = [str(json.loads(line).get("requestURI")) for line in lines if line.strip()]
    return sum("/resourceslices" in one or "/devicetaintrules" in one for one in paths)

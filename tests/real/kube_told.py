"""What a Kubernetes cluster shows of our drain (`tell`), as tests make and read it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from brain.actions import kube as module
from brain.actions import scheduler as actions
from brain.actions.base import Done, Order
from brain.actions.kube import Kubernetes
from brain.actions.kube_api import MANAGER
from brain.actions.kube_options import CONDITION
from tests.real import kube_plane
from tests.real.kube_plane import Plane

RBAC = Path(__file__).resolve().parents[2] / "deploy/kubernetes/rbac"
ROLES = {"events": RBAC / "tell-events.yaml", "conditions": RBAC / "tell-conditions.yaml"}
BOTH = ("events", "conditions")
SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def cleaned(plane: Plane) -> Plane:
    """Nothing of an earlier test on nodes, and both rights."""
    plane.clean()
    plane.kubectl("delete", "events", "--all", "--namespace", "default")
    for role in ROLES.values():
        plane.kubectl("apply", "-f", str(role))
    for name in kube_plane.NODES:
        forget = {"status": {"conditions": [{"type": CONDITION, "$patch": "delete"}]}}
        plane.kubectl("patch", "node", name, "--subresource=status", "-p", json.dumps(forget))
    return plane


class Site:
    """One brain's scheduler, at a time that we set."""

    def __init__(self, plane: Plane, *tell: str, **more: Any) -> None:
        table = {"type": "kubernetes", "kubeconfig": plane.kubeconfig, "tell": list(tell), **more}
        self.kube: Kubernetes = module.build("k8s", table, "schedulers.k8s")
        self.now = SINCE
        self.kube._teller._clock = lambda: self.now

    def later(self, seconds: float = 60.0) -> str:
        """So much later; the time as the API writes it."""
        self.now += timedelta(seconds=seconds)
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    async def drain(self, incident: str, **params: Any) -> Done:
        """As a runbook orders it."""
        return await actions.Drain(lambda _: self.kube).run(order(incident, **params))

    async def resume(self, incident: str, **params: Any) -> Done:
        """As a runbook orders it."""
        return await actions.Resume(lambda _: self.kube).run(order(incident, **params))


def order(incident: str, **params: Any) -> Order:
    """What a runbook orders."""
    why = f"gpu-off-bus at node/gpu1 (rule of-{incident})"
    return Order(id="s1", incident=incident, node="gpu1", params=params, timeout_s=60, why=why)


def events(plane: Plane) -> dict[str, list[tuple[str, int, str]]]:
    """Those of gpu1 by the uid under which `kubectl describe node` asks: reason -> (type, how often, message) of each."""
    which = "involvedObject.kind=Node,involvedObject.name=gpu1,involvedObject.uid=gpu1,source=gpuward"
    found = json.loads(
        plane.kubectl("get", "events", "-n", "default", "--field-selector", which, "-o", "json")
    )
    told: dict[str, list[tuple[str, int, str]]] = {}
    for one in found["items"]:
        told.setdefault(one["reason"], []).append((one["type"], one["count"], one["message"]))
    return told


def conditions(plane: Plane) -> dict[str, dict[str, str]]:
    """Those of gpu1 by their type."""
    return {one["type"]: one for one in plane.node("gpu1")["status"]["conditions"]}


def ours(plane: Plane) -> dict[str, str]:
    """Our own one; empty: there is none."""
    return conditions(plane).get(CONDITION, {})


def written_by_us(plane: Plane) -> set[str]:
    """The types of gpu1's conditions that gpuward has ever written, by the server's record of each field's managers."""
    found = json.loads(plane.kubectl("get", "node", "gpu1", "--show-managed-fields", "-o", "json"))
    mine = [
        one["fieldsV1"]["f:status"]["f:conditions"]
        for one in found["metadata"]["managedFields"]
        if one["manager"] == MANAGER and "f:conditions" in one["fieldsV1"].get("f:status", {})
    ]
    return {json.loads(key.removeprefix("k:"))["type"] for one in mine for key in one if key.startswith("k:")}

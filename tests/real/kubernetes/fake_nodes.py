#!/usr/bin/env python3
"""Nodes without machines for the control plane of control-plane.sh: kubelets and a scheduler, of the smallest kind.

    fake_nodes.py DIR gpu1 gpu2 [--gpus 8]      until SIGTERM; DIR is that of `control-plane.sh start DIR`

Each node renews its Lease and its Ready condition; pods that are bound to it become Running and Ready, and are gone a
moment after they were deleted or evicted. Pods without a node are bound to a node that takes them (cordons, taints,
tolerations, free GPUs; a DaemonSet's pod to its own). It speaks HTTPS as administrator, with the standard library only.

    touch DIR/silent/gpu1      the kubelet of gpu1 is dead: no Lease, no status, no pod ends; NotReady after 8 s
    rm DIR/silent/gpu1         it lives again
    metadata.annotations["fake-nodes/ends-after-s"]     how long the pod takes to end; 0.3 without it
    metadata.labels["fake-nodes/pending"]               it is not bound

DIR/fake-nodes.pid holds the process, DIR/fake-nodes.ready is there once all nodes are Ready.
"""

import argparse
import base64
import http.client
import json
import os
import signal
import ssl
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TICK_S, LEASE_S, STATUS_S, ENDS_AFTER_S = 0.2, 2.0, 4.0, 0.3
GPU, DELETED, PENDING = "nvidia.com/gpu", "deletionTimestamp", "fake-nodes/pending"
NODES, PODS, LEASES = (
    "/api/v1/nodes",
    "/api/v1/pods",
    "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
)

Json = dict[str, Any]


class Api:
    """One connection, as the kubeconfig's user; opened again when the server was away."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._tls = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        with tempfile.NamedTemporaryFile() as pem:  # the library takes no certificate from memory
            pem.write(
                b"".join(base64.b64decode(user[f"client-{part}-data"]) for part in ("key", "certificate"))
            )
            pem.flush()
            self._tls.load_cert_chain(pem.name)
        self._host = cluster["server"].removeprefix("https://")
        self._to: http.client.HTTPSConnection | None = None

    def ask(
        self, method: str, path: str, body: object = None, kind: str = "application/json"
    ) -> tuple[int, Json]:
        """Status and answer; OSError or HTTPException when there is none."""
        if self._to is None:
            self._to = http.client.HTTPSConnection(self._host, context=self._tls, timeout=10)
        try:
            self._to.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind})
            answer = self._to.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        except BaseException:
            self._to.close()
            self._to = None
            raise

    def patch(self, path: str, body: object) -> tuple[int, Json]:
        """Merge patch."""
        return self.ask("PATCH", path, body, "application/merge-patch+json")


class Kubelet:
    """One node."""

    def __init__(self, api: Api, name: str, gpus: int, silent: Path) -> None:
        self.name, self._api, self._gpus, self._silent = name, api, gpus, silent
        self._lease_due = self._status_due = 0.0

    @property
    def dead(self) -> bool:
        return self._silent.exists()

    def beat(self) -> None:
        """Renews Lease and condition where they are due; registers the node where it is missing."""
        now = time.monotonic()
        if self.dead:
            self._lease_due = self._status_due = 0.0
            return
        if now >= self._status_due:
            # As a kubelet does it: conditions of others stay, and its own keeps its time while its status stays.
            code, there = self._api.ask("GET", f"{NODES}/{self.name}")
            if code == 404:
                body = {"metadata": {"name": self.name, "labels": {"kubernetes.io/hostname": self.name}}}
                self._api.ask("POST", NODES, {**body, "status": self._status({})})
            else:
                kind = "application/strategic-merge-patch+json"
                status = {"status": self._status(there)}
                self._api.ask("PATCH", f"{NODES}/{self.name}/status", status, kind)
            self._status_due = now + STATUS_S
        if now >= self._lease_due:
            spec = {"holderIdentity": self.name, "leaseDurationSeconds": 8, "renewTime": _now(micro=True)}
            if self._api.patch(f"{LEASES}/{self.name}", {"spec": spec})[0] == 404:
                self._api.ask("POST", LEASES, {"metadata": {"name": self.name}, "spec": spec})
            self._lease_due = now + LEASE_S

    def _status(self, node: Json) -> Json:
        has = {GPU: str(self._gpus), "cpu": "64", "memory": "512Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": _now()}
        conditions = node.get("status", {}).get("conditions", [])
        since = [
            one["lastTransitionTime"]
            for one in conditions
            if (one["type"], one["status"]) == ("Ready", "True")
        ]
        ready["lastTransitionTime"] = since[0] if since else _now()
        return {"capacity": has, "allocatable": has, "conditions": [ready]}

    def care(self, pod: Json) -> None:
        """Starts a pod of this node, or lets it end."""
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        if meta.get(DELETED):
            grace_s = meta.get("deletionGracePeriodSeconds", 0)
            began = datetime.fromisoformat(meta[DELETED].replace("Z", "+00:00")).timestamp() - grace_s
            takes_s = float(meta.get("annotations", {}).get("fake-nodes/ends-after-s", ENDS_AFTER_S))
            if time.time() - began >= takes_s:
                self._api.ask(
                    "DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
                )
        elif pod["status"].get("phase") == "Pending":
            running = {
                "ready": True,
                "restartCount": 0,
                "imageID": "",
                "state": {"running": {"startedAt": _now()}},
            }
            names = [(one["name"], one["image"]) for one in pod["spec"]["containers"]]
            status = {
                "phase": "Running",
                "startTime": _now(),
                "podIP": "10.0.0.1",
                "podIPs": [{"ip": "10.0.0.1"}],
            }
            status["containerStatuses"] = [{"name": name, "image": image, **running} for name, image in names]
            status["conditions"] = [
                {"type": kind, "status": "True", "lastTransitionTime": _now()}
                for kind in ("Initialized", "ContainersReady", "Ready", "PodScheduled")
            ]
            self._api.patch(f"{path}/status", {"status": status})


def bind(api: Api, pods: list[Json], nodes: list[Json]) -> None:
    """Binds pods without a node to one that takes them."""
    free = {
        node["metadata"]["name"]: int(node["status"].get("allocatable", {}).get(GPU, 0)) for node in nodes
    }
    for pod in pods:
        if pod["spec"].get("nodeName") in free and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            free[pod["spec"]["nodeName"]] -= _gpus(pod)
    for pod in pods:
        meta = pod["metadata"]
        if pod["spec"].get("nodeName") or meta.get(DELETED) or PENDING in meta.get("labels", {}):
            continue
        for node in sorted(nodes, key=lambda one: -free[one["metadata"]["name"]]):
            name = node["metadata"]["name"]
            if _takes(node, pod) and free[name] >= _gpus(pod):
                path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/binding"
                api.ask(
                    "POST",
                    path,
                    {"metadata": {"name": meta["name"]}, "target": {"kind": "Node", "name": name}},
                )
                free[name] -= _gpus(pod)
                break


def _takes(node: Json, pod: Json) -> bool:
    spec, own = node["spec"], "node.kubernetes.io/unschedulable"
    tolerated = pod["spec"].get("tolerations") or []
    taints = [taint for taint in spec.get("taints") or [] if taint["effect"] != "PreferNoSchedule"]
    if spec.get("unschedulable") and all(taint["key"] != own for taint in taints):
        taints.append({"key": own, "effect": "NoSchedule"})
    if any(not any(_tolerates(one, taint) for one in tolerated) for taint in taints):
        return False
    wanted = (
        pod["spec"]
        .get("affinity", {})
        .get("nodeAffinity", {})
        .get("requiredDuringSchedulingIgnoredDuringExecution")
    )
    terms = [
        field for term in (wanted or {}).get("nodeSelectorTerms", []) for field in term.get("matchFields", [])
    ]
    if terms and not any(node["metadata"]["name"] in field["values"] for field in terms):
        return False
    wants: Json = pod["spec"].get("nodeSelector") or {}
    return bool(wants.items() <= node["metadata"].get("labels", {}).items())


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, taint["effect"]) or toleration.get("key") not in (
        None,
        taint["key"],
    ):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")


def _gpus(pod: Json) -> int:
    return sum(
        int(one.get("resources", {}).get("limits", {}).get(GPU, 0)) for one in pod["spec"]["containers"]
    )


def _now(*, micro: bool = False) -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def _ready(node: Json) -> bool:
    tainted = any(
        taint["key"].startswith("node.kubernetes.io/not-ready") for taint in node["spec"].get("taints") or []
    )
    return not tainted and any(
        one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"]
    )


def main() -> None:
    wants = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wants.add_argument("folder", type=Path, metavar="DIR")
    wants.add_argument("nodes", nargs="+")
    wants.add_argument("--gpus", type=int, default=8)
    want = wants.parse_args()
    (want.folder / "silent").mkdir(exist_ok=True)
    ready = want.folder / "fake-nodes.ready"
    ready.unlink(missing_ok=True)
    pid = want.folder / "fake-nodes.pid"
    pid.write_text(f"{os.getpid()}\n")
    told: list[int] = []

    def end(number: int, _frame: object) -> None:
        told.append(number)  # an exception within a finalizer is lost: the loop looks here too
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    try:
        serve(want, ready, told)
    finally:
        pid.unlink(missing_ok=True)
        ready.unlink(missing_ok=True)


def serve(want: argparse.Namespace, ready: Path, told: list[int]) -> None:
    """Until the process was told to end."""
    api = Api(want.folder / "admin.kubeconfig")
    kubelets = {name: Kubelet(api, name, want.gpus, want.folder / "silent" / name) for name in want.nodes}
    while not told:
        try:
            for kubelet in kubelets.values():
                kubelet.beat()
            pods = api.ask("GET", PODS)[1].get("items") or []
            nodes = [
                one
                for one in api.ask("GET", NODES)[1].get("items") or []
                if one["metadata"]["name"] in kubelets
            ]
            bind(api, pods, nodes)
            for pod in pods:
                node_of = kubelets.get(pod["spec"].get("nodeName", ""))
                if node_of is not None and not node_of.dead:
                    node_of.care(pod)
            if len(nodes) == len(kubelets) and all(map(_ready, nodes)):
                ready.touch()
        except (OSError, http.client.HTTPException, ValueError) as error:
            print(f"asked again: {error!r}", file=sys.stderr, flush=True)
        time.sleep(TICK_S)


if __name__ == "__main__":
    main()

"""Kubernetes as a `Scheduler`: cordon, taint, annotation and label with our mark; eviction within disruption budgets.

    metadata.annotations  gpuward/reason: "gpuward: <why> #<checksum>"
    metadata.labels       gpuward/drained: "true"
    spec.taints           gpuward/drained:NoSchedule
    spec.unschedulable    true, with field manager gpuward

Every change carries the resource version on which it was decided: when someone else changes the node in the meantime,
the server answers 409 and the change is decided again.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from brain.actions.base import Job
from brain.actions.kube_api import CONFLICT, MANAGER, NOT_FOUND, TOO_MANY, KubeApi, Response
from brain.actions.kube_options import KubeOptions, PodRules, read
from brain.actions.marks import marked, ours
from brain.actions.pauses import until

REASON, DRAINED = "gpuward/reason", "gpuward/drained"
CONFLICTS = 5  # how often a change is decided again
PAGE = 500  # pods in one response
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_MIRROR = "kubernetes.io/config.mirror"
_TAINT = {"key": DRAINED, "value": "true", "effect": "NoSchedule"}

Node = Mapping[str, Any]
Pod = Mapping[str, Any]


class Kubernetes:
    """One cluster."""

    def __init__(self, name: str, api: KubeApi, rules: PodRules, *, node_name: str = "{node}") -> None:
        self._name = name
        self._api = api
        self._rules = rules
        self._node_name = node_name

    @property
    def name(self) -> str:
        """As in Scheduler."""
        return self._name

    async def drained(self, node: str) -> str:
        """As in Scheduler."""
        return _drained(await self._node(node))

    async def drain(self, node: str, why: str) -> None:
        """As in Scheduler. A node that someone else has cordoned is left as it is."""

        def change(found: Node) -> Mapping[str, Any] | None:
            if _drained(found):
                return None
            taints = [*_others(found), _TAINT]
            return {
                "metadata": {"annotations": {REASON: marked(why)}, "labels": {DRAINED: "true"}},
                "spec": {"unschedulable": True, "taints": taints},
            }

        if await self._changed(node, change) and not ours(await self.drained(node)):
            raise ActionError(f"{node} was cordoned and does not carry our mark")

    async def resume(self, node: str) -> bool:
        """As in Scheduler. A node that someone else has cordoned in the meantime stays cordoned, without our mark."""

        def change(found: Node) -> Mapping[str, Any] | None:
            if not ours(_reason(found)):
                return None
            spec: dict[str, Any] = {"taints": _others(found)}
            if not _cordoned_by_others(found):
                spec["unschedulable"] = None
            return {"metadata": {"annotations": {REASON: None}, "labels": {DRAINED: None}}, "spec": spec}

        if not await self._changed(node, change):
            return False
        if ours(await self.drained(node)):
            raise ActionError(f"our mark is still on {node}")
        return True

    async def jobs(self, node: str) -> list[Job]:
        """As in Scheduler: pods, except those of DaemonSets, mirrors of static pods, and finished ones."""
        where = [("fieldSelector", f"spec.nodeName={self._of(node)}")]
        pods = [pod for pod in await self._pods(where) if not _stays(pod)]
        kept: set[str] = set()
        if pods and self._rules.protected.selector:
            found = await self._pods([*where, ("labelSelector", self._rules.protected.selector)])
            kept = {_uid(pod) for pod in found}
        return [self._rules.job(pod, by_selector=_uid(pod) in kept) for pod in pods]

    async def requeue(self, job: str) -> None:
        """As in Scheduler: evicts the pod. It is retried while the disruption budget does not allow it (429)."""
        namespace, _, name = job.partition("/")
        if not _NAME.fullmatch(namespace) or not _NAME.fullmatch(name):
            raise Refused(f"{job!r} is not namespace/pod")
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        pod = await self._pod(path)
        if pod is None:
            raise Refused(f"there is no pod {job}")
        if _stays(pod):
            raise Refused(f"pod {job} belongs to its node or has ended: it cannot start again elsewhere")
        if not self._rules.evict_bare_pods and _controller(pod) is None:
            raise Refused(f"pod {job} has no controller: nothing would start it again")
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": _uid(pod)}},
        }
        says = "it was not requested"
        evicted = False
        for pause_s in until(self._rules.evict_wait_s):
            wait_s = 0.0
            if not evicted:
                answer = await self._api.request("POST", f"{path}/eviction", body=body)
                evicted, says, wait_s = answer.status != TOO_MANY, answer.message, answer.retry_after_s
            if evicted and await self._gone(path, _uid(pod)):
                return
            await asyncio.sleep(max(pause_s, min(wait_s, 10.0)))
        if evicted:
            raise ActionError(f"pod {job} was evicted and has not ended in {self._rules.evict_wait_s:g} s")
        raise ActionError(f"pod {job} was not evicted: {says}")

    async def reboot(self, node: str, why: str) -> None:
        """Refused: Kubernetes cannot reboot nodes."""
        raise Refused(f"Kubernetes does not reboot nodes: {node} needs another remedy for: {why}")

    async def close(self) -> None:
        """Closes connections."""
        await self._api.close()

    async def _changed(self, node: str, change: Callable[[Node], Mapping[str, Any] | None]) -> bool:
        """Applies the patch that `change` returns for the node as it is now; False when it returns none."""
        path = f"/api/v1/nodes/{self._of(node)}"
        for _ in range(CONFLICTS):
            found = await self._node(node)
            patch = change(found)
            if patch is None:
                return False
            version = found.get("metadata", {}).get("resourceVersion")
            body = {**patch, "metadata": {**patch["metadata"], "resourceVersion": version}}
            answer = await self._api.request("PATCH", path, query=[("fieldManager", MANAGER)], body=body)
            if answer.status != CONFLICT:
                _ok(answer, node)
                return True
        raise Unreachable(f"{node} changes so often that nothing could be changed: {answer.message}")

    async def _node(self, node: str) -> Node:
        answer = await self._api.request("GET", f"/api/v1/nodes/{self._of(node)}")
        if answer.status == NOT_FOUND:
            raise Refused(f"Kubernetes has no node {self._of(node)}")
        return _ok(answer, node)

    async def _pods(self, query: Sequence[tuple[str, str]]) -> list[Pod]:
        pods: list[Pod] = []
        more = ""
        while True:
            paged = [*query, ("limit", str(PAGE)), *([("continue", more)] if more else [])]
            body = _ok(await self._api.request("GET", "/api/v1/pods", query=paged), "pods")
            pods += body.get("items") or []
            more = str((body.get("metadata") or {}).get("continue") or "")
            if not more:
                return pods

    async def _pod(self, path: str) -> Pod | None:
        answer = await self._api.request("GET", path)
        return None if answer.status == NOT_FOUND else _ok(answer, path)

    async def _gone(self, path: str, uid: str) -> bool:
        try:
            pod = await self._pod(path)
        except (Unreachable, TimedOut):
            return False  # asked again
        return pod is None or _uid(pod) != uid

    def _of(self, node: str) -> str:
        name = self._node_name.replace("{node}", node)
        if _NAME.fullmatch(name) is None:
            raise Refused(f"{name!r} is not the name of a Kubernetes node")
        return name


def _ok(answer: Response, what: str) -> Mapping[str, Any]:
    if answer.status == TOO_MANY:
        raise Unreachable(f"{what}: the server is busy: {answer.message}")
    if not 200 <= answer.status < 300:
        raise Refused(f"{what}: {answer.message}")
    return answer.body


def _meta(thing: Mapping[str, Any]) -> Mapping[str, Any]:
    return thing.get("metadata") or {}


def _uid(pod: Pod) -> str:
    return str(_meta(pod).get("uid") or "")


def _reason(node: Node) -> str:
    return str((_meta(node).get("annotations") or {}).get(REASON) or "")


def _others(node: Node) -> list[Mapping[str, Any]]:
    """Returns the taints that are not ours."""
    return [taint for taint in (node.get("spec") or {}).get("taints") or [] if taint.get("key") != DRAINED]


def _drained(node: Node) -> str:
    """Returns why the node takes no new pods; for our own drain the text of our annotation."""
    spec = node.get("spec") or {}
    tainted = len(_others(node)) != len(spec.get("taints") or [])
    reason = _reason(node)
    if spec.get("unschedulable"):
        other = _cordoned_by_others(node)
        return reason if reason and not other else f"cordoned by {other or 'somebody'}"
    return reason or "tainted" if tainted else ""


def _cordoned_by_others(node: Node) -> str:
    """Returns the field manager that has set `unschedulable`; empty when it is us, or unknown.

    Whoever uncordons a node of ours and cordons it again owns the field from then on.
    """
    if not (node.get("spec") or {}).get("unschedulable"):
        return ""
    managers = [
        str(entry.get("manager") or "somebody")
        for entry in _meta(node).get("managedFields") or []
        if "f:unschedulable" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]
    return "" if MANAGER in managers or not managers else managers[0]


def _controller(pod: Pod) -> Mapping[str, Any] | None:
    owners = _meta(pod).get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def _stays(pod: Pod) -> bool:
    """Does it belong to the node (DaemonSet, static pod), or has it ended?"""
    owner = _controller(pod)
    return (
        (owner is not None and owner.get("kind") == "DaemonSet")
        or _MIRROR in (_meta(pod).get("annotations") or {})
        or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    )


def build(name: str, table: Mapping[str, Any], where: str) -> Kubernetes:
    """Builds the scheduler of a configuration table; ConfigError names the key."""
    want: KubeOptions = read(table, where)
    return Kubernetes(name, KubeApi(want.access(where)), want.rules(), node_name=want.node_name)

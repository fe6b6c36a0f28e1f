"""Kubernetes as a `Scheduler`: taint, annotation and label with our marks; eviction within disruption budgets.

    metadata.annotations  gpuward/reason: "gpuward: <why> [<incident>]; ... #<checksum>"
    metadata.labels       gpuward/drained: "true"
    spec.taints           gpuward/drained:NoSchedule; of a node that is off also that of kube_off.py
    metadata.annotations  those of `keep_annotations`: "true"; gpuward/kept: those of them that were not there before

The taint stops the pods that a cordon would stop. The cordon (`spec.unschedulable`) belongs to people: over one of ours
`kubectl cordon` would write nothing, and nobody could tell that a person wants the node drained too.

Every change carries the resource version on which it was decided: when someone else changes the node in the meantime,
the server answers 409 and the change is decided again.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import reduce
from math import inf
from typing import Any

from agent.contract.errors import ActionError, Refused, Unreachable
from brain.actions import kube_conditions, kube_devices, kube_off, kube_tell, kube_things
from brain.actions.base import Job, NoRecord, StandingDrain, Wanted, always
from brain.actions.kube_api import CONFLICT, MANAGER, NOT_FOUND, TOO_MANY, KubeApi, named, ok
from brain.actions.kube_options import KubeOptions, PodRules, read
from brain.actions.kube_things import DRAINED, Node, Pod
from brain.actions.marks import REASON, Mark, added, owns, without, written
from brain.actions.marks import read as marks_of
from brain.actions.patience import PASSING, settling
from brain.actions.pauses import until
from brain.actions.witness import ours

CONFLICTS = 5  # how often a change is decided again
PAGE = 500  # pods in one response
MAX_SIZED = 8  # workloads of one node of which it is asked on how many nodes they are
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
# What is done here, as RBAC names it: verb, resource, subresource.
RIGHTS = (
    ("get", "nodes", ""),
    ("patch", "nodes", ""),
    ("get", "pods", ""),
    ("list", "pods", ""),
    ("create", "pods", "eviction"),
)


class Kubernetes:
    """One cluster."""

    def __init__(
        self,
        name: str,
        api: KubeApi,
        rules: PodRules,
        *,
        node_name: str = "{node}",
        nodes: str = "*",
        rights: Sequence[tuple[str, str, str]] = RIGHTS,
        tell: Collection[str] = (),
    ) -> None:
        """`nodes`: a pattern of those that it manages. `rights`: those that the account should have there. `tell`: as in the
        options.
        """
        self._name = name
        self._api = api
        self._rules = rules
        self._node_name = node_name
        self._rights = rights
        self._nodes = nodes
        # By node: a drain that is renewed while the node is given back would stay for ever.
        self._one_at_a_time: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._teller = kube_tell.NodeTeller(api, tell, self._named, kube_things.marks, self._is_ours)

    @property
    def name(self) -> str:
        """As in Scheduler."""
        return self._name

    async def drained(self, node: str) -> str:
        """As in Scheduler."""
        return kube_things.drained(await self._node(node))

    async def marks(self, node: str) -> tuple[Mark, ...]:
        """As in Scheduler."""
        return kube_things.marks(await self._node(node))

    async def standing(self, node: str) -> StandingDrain:
        """As in Renewing: of two Node objects of one name the uid tells which."""
        found = await self._node(node)
        return StandingDrain(
            drained=kube_things.drained(found), marks=kube_things.marks(found), record=kube_things.uid(found)
        )

    async def drain(self, node: str, mark: Mark) -> None:
        """As in Scheduler. A node that someone else has cordoned is left as it is."""

        def change(found: Node) -> Mapping[str, Any] | None:
            marks = kube_things.marks(found)
            if owns(marks, mark.incident) or (kube_things.drained(found) and not marks):
                return None
            return self._drained_by(found, added(marks, mark))

        if await self._changed(node, change) and not owns(await self._read_back(node), mark.incident):
            raise ActionError(f"{node} was tainted and does not carry our mark")

    async def renew(self, node: str, marks: Sequence[Mark], record: str, wanted: Wanted = always) -> None:
        """As in Renewing."""

        def change(found: Node) -> Mapping[str, Any] | None:
            there = kube_things.marks(found)
            every = reduce(added, marks, there)
            if kube_things.uid(found) != record or every == there:
                return None
            return self._drained_by(found, every)

        async with self._one_at_a_time[node]:
            await wanted()
            if await self._changed(node, change):
                there = await self._read_back(node)
                if not all(owns(there, mark.incident) for mark in marks):
                    raise ActionError(f"{node} was tainted and does not carry our marks")

    def _drained_by(self, found: Node, marks: Sequence[Mark]) -> Mapping[str, Any]:
        """The patch that drains the node under these marks."""
        kept = kube_things.kept(found, self._rules.keep_annotations)
        return {
            "metadata": {"annotations": {REASON: written(marks), **kept}, "labels": {DRAINED: "true"}},
            "spec": {"taints": [*kube_things.others(found), kube_things.TAINT]},
        }

    async def resume(self, node: str, owners: Collection[str] | None) -> bool:
        """As in Scheduler. A node that someone else has cordoned in the meantime stays cordoned, without our mark."""

        def change(found: Node) -> Mapping[str, Any] | None:
            marks = marks_of(
                kube_things.reason(found)
            )  # also those that are left on a node whose taint a person has removed
            left = without(marks, owners) if kube_things.tainted(found) else ()
            if len(left) == len(marks):
                return None
            if left:
                return {"metadata": {"annotations": {REASON: written(left)}}}
            spec: dict[str, Any] = {"taints": kube_off.without_ours(kube_things.others(found))}
            if kube_things.cordoned_by(found) == [MANAGER]:  # before 0.2 we cordoned too
                spec["unschedulable"] = None
            annotations = {REASON: None, **kube_things.let_go(found)}
            return {"metadata": {"annotations": annotations, "labels": {DRAINED: None}}, "spec": spec}

        async with self._one_at_a_time[node]:
            changed = await self._changed(node, change)
        if not changed:
            return False
        after = await self._read_back(node)
        if len(without(after, owners)) != len(after):
            raise ActionError(f"our mark is still on {node}")
        return True

    async def say_off(self, node: str, incident: str) -> bool:
        """As in Fencing: the taint of kube_off.py, beside ours."""

        def change(found: Node) -> Mapping[str, Any] | None:
            taints = kube_things.taints(found)
            if kube_off.is_said(taints) or not owns(kube_things.marks(found), incident):
                return None
            return {"metadata": {}, "spec": {"taints": [*taints, kube_off.OFF]}}

        await self._changed(node, change)
        with settling():
            return kube_off.is_said(kube_things.taints(await self._node(node)))

    async def tell(self, node: str, incidents: Collection[str], before: Sequence[Mark] = ()) -> None:
        """As in Telling."""
        await self._teller.tell(self._of(node), incidents, before)

    async def tell_anew(self, forgotten: Collection[str] = ()) -> list[str]:
        """As in Telling: the condition of each Node object. On those that no pattern of ours names (any more) it only ends."""
        return await self._teller.tell_anew(lambda name: ours(self._node_name, name) in forgotten)

    def _is_ours(self, found: str) -> bool:
        """Does this table manage the node whose Node object has this name?"""
        node = ours(self._node_name, found)
        return bool(node) and fnmatchcase(node, self._nodes)

    async def jobs(self, node: str) -> list[Job]:
        """As in Scheduler: pods, except those of DaemonSets, mirrors of static pods, and finished ones. NoRecord: there is no
        such node; it may go by another name, and have jobs.
        """
        where = [("fieldSelector", f"spec.nodeName={self._of(node)}")]
        found = await self._pods(where)
        if not found:
            await self._node(node)
        pods = [pod for pod in found if not kube_things.stays(pod)]
        kept: set[str] = set()
        if pods and self._rules.protected.selector:
            chosen = await self._pods([*where, ("labelSelector", self._rules.protected.selector)])
            kept = {kube_things.uid(pod) for pod in chosen}
        return [self._rules.job(pod, by_selector=kube_things.uid(pod) in kept) for pod in pods]

    async def sized(self, jobs: Sequence[Job]) -> list[Job]:
        """As in Sizes: on how many nodes the pods of each workload are. Of many workloads the first MAX_SIZED are asked about."""
        found: dict[tuple[str, str], int] = {}
        for job in jobs:
            namespace = job.id.partition("/")[0]
            key = (namespace, job.workload)
            if job.workload and key not in found and len(found) < MAX_SIZED and _NAME.fullmatch(namespace):
                where = f"/api/v1/namespaces/{namespace}/pods"
                pods = await self._pods([("labelSelector", job.workload)], where)
                nodes = {
                    str((pod.get("spec") or {}).get("nodeName") or "")
                    for pod in pods
                    if not kube_things.stays(pod)
                }
                found[key] = len(nodes - {""})
        return [
            replace(job, nodes=job.nodes or found.get((job.id.partition("/")[0], job.workload), 0))
            for job in jobs
        ]

    async def requeue(self, job: Job, *, within_s: float = inf, wanted: Wanted = always) -> None:
        """As in Scheduler: evicts the pod. It is asked again while the disruption budget does not allow it (429), and
        while the server fails or is away: the pod's uid makes sure that no other pod is evicted.
        """
        namespace, _, name = job.id.partition("/")
        if not _NAME.fullmatch(namespace) or not _NAME.fullmatch(name):
            raise Refused(f"{job.id!r} is not namespace/pod")
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        pod = await self._pod(path)
        if job.run and (pod is None or kube_things.uid(pod) != job.run):
            return
        if pod is None:
            raise Refused(f"there is no pod {job.id}")
        if kube_things.stays(pod):
            raise Refused(f"pod {job.id} belongs to its node or has ended: it cannot start again elsewhere")
        if why := self._rules.fixed(pod):
            raise Refused(f"pod {job.id} {why}")
        await self._evict(job.id, path, kube_things.uid(pod), min(self._rules.evict_wait_s, within_s), wanted)

    async def _evict(self, job: str, path: str, uid: str, within_s: float, wanted: Wanted) -> None:
        namespace, _, name = job.partition("/")
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        says = "it was not requested"
        evicted = False
        for pause_s in until(within_s):
            wait_s = 0.0
            try:
                if not evicted:
                    await wanted()  # a budget may have held it up for minutes
                    answer = await self._api.request("POST", f"{path}/eviction", body=body)
                    evicted, says, wait_s = answer.status != TOO_MANY, answer.message, answer.retry_after_s
                if await self._gone(path, uid):
                    return
            except PASSING as error:
                says = str(error)
            await asyncio.sleep(max(pause_s, min(wait_s, 10.0)))
        within = f"in {within_s:.3g} s"
        if evicted:
            raise ActionError(f"pod {job} was evicted and has not ended {within}")
        raise ActionError(f"pod {job} was not evicted {within}: {says}")

    async def reboot(self, node: str, mark: Mark) -> None:
        """Refused: Kubernetes cannot reboot nodes."""
        raise Refused(f"Kubernetes does not reboot nodes: {node} needs another remedy for: {mark.why}")

    async def lacking(self) -> list[str]:
        """As in Closing: a SelfSubjectAccessReview for each verb that is used, where it is used."""
        return [
            f"{verb} {resource}{'/' if part else ''}{part}"
            for verb, resource, part in self._rights
            if not await self._api.may(verb, resource, part, kube_tell.namespace_of(resource))
        ]

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
                ok(answer, node)
                return True
        raise Unreachable(f"{node} changes so often that nothing could be changed: {answer.message}")

    async def _read_back(self, node: str) -> tuple[Mark, ...]:
        """Returns the marks after a change. TimedOut when they cannot be read: the change was accepted."""
        with settling():
            return await self.marks(node)

    async def _node(self, node: str) -> Node:
        return await self._named(self._of(node))

    async def _named(self, name: str) -> Node:
        """A Node object by its own name."""
        answer = await self._api.request("GET", f"/api/v1/nodes/{name}")
        if answer.status == NOT_FOUND:
            raise NoRecord(f"Kubernetes has no node {name}")
        return named(ok(answer, name), name)

    async def _pods(self, query: Sequence[tuple[str, str]], where: str = "/api/v1/pods") -> list[Pod]:
        return [one async for one in self._api.pages(where, query, most=PAGE)]

    async def _pod(self, path: str) -> Pod | None:
        answer = await self._api.request("GET", path)
        return None if answer.status == NOT_FOUND else named(ok(answer, path), path.rpartition("/")[2])

    async def _gone(self, path: str, uid: str) -> bool:
        pod = await self._pod(path)
        return pod is None or kube_things.uid(pod) != uid

    def _of(self, node: str) -> str:
        name = self._node_name.replace("{node}", node)
        if _NAME.fullmatch(name) is None:
            raise Refused(f"{name!r} is not the name of a Kubernetes node")
        return name


def build(name: str, table: Mapping[str, Any], where: str) -> Kubernetes:
    """Builds the scheduler of a configuration table; ConfigError names the key."""
    want: KubeOptions = read(table, where)
    lists = (kube_conditions.RIGHT,) if want.conditions or want.states else ()
    devices = kube_devices.RIGHTS if want.devices else ()
    rights = tuple(dict.fromkeys((*RIGHTS, *lists, *devices, *kube_tell.rights(want.tell))))
    api = KubeApi(want.access(where))
    return Kubernetes(
        name,
        api,
        want.rules(),
        node_name=want.node_name,
        nodes=want.nodes,
        rights=rights,
        tell=want.tell,
    )

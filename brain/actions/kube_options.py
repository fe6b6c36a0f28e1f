"""The keys of a table with `type = "kubernetes"`, and how it interprets pods."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agent.contract.errors import ConfigError
from brain.actions import kube_things
from brain.actions.base import Job
from brain.actions.kube_api import Access, readable
from brain.actions.kube_resources import COMMON, GpuResources, patterns_of
from brain.actions.marks import MARK
from brain.options import options

# Labels with the name of a workload of several pods, the one around the others first. Sources: Kubernetes, "Well-Known Labels"
# (job-name); JobSet, Kubeflow's training operator, LeaderWorkerSet, Volcano and KubeRay, each in the labels of its API.
WORKLOADS = (
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
    "leaderworkerset.sigs.k8s.io/name",
    "volcano.sh/job-name",
    "ray.io/cluster",
    "batch.kubernetes.io/job-name",
    "job-name",
)
CONDITION = "GpuwardFault"  # the type of our own condition of Node objects (kube_tell.py)
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_ANNOTATION = re.compile(r"[a-z0-9][a-z0-9.-]{0,251}/[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedPods:
    """Pods that are not stopped without an approval."""

    # Label selector, e.g. "app=inference,tier in (gold)"
    selector: str = ""
    # Shell patterns of priority classes
    priority_classes: Sequence[str] = ("system-*",)
    # A misspelt key must not remove the protection
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRules:
    """How pods are interpreted and evicted."""

    protected: ProtectedPods = ProtectedPods()
    evict_bare_pods: bool = False
    delete_emptydir_data: bool = True
    evict_wait_s: float = 110.0
    gpu_resources: GpuResources = field(default_factory=GpuResources)
    gpu_annotation: str = ""
    keep_annotations: Sequence[str] = ()

    def job(self, pod: Mapping[str, Any], *, by_selector: bool) -> Job:
        """Returns the pod as a job, without a user: Kubernetes does not know it. A claim of dynamic resource allocation counts
        as one GPU: how many it has stands in the claim only.
        """
        meta, spec = pod.get("metadata") or {}, pod.get("spec") or {}
        phase = str((pod.get("status") or {}).get("phase") or "")
        named = (
            str((meta.get("annotations") or {}).get(self.gpu_annotation) or "") if self.gpu_annotation else ""
        )
        return Job(
            id=f"{meta.get('namespace')}/{meta.get('name')}",
            state="terminating" if meta.get("deletionTimestamp") else phase.lower(),
            gpus=tuple(filter(None, re.split(r"[,\s]+", named))),
            gpu_count=sum(map(self.gpu_resources.wanted, _running(spec)))
            + len(spec.get("resourceClaims") or []),
            name=str(meta.get("name") or ""),
            run=str(meta.get("uid") or ""),
            **_workload(meta),
            protected=self._protected(str(spec.get("priorityClassName") or ""), by_selector=by_selector),
            fixed=self.fixed(pod),
        )

    def fixed(self, pod: Mapping[str, Any]) -> str:
        """Why the pod may not be evicted: nothing would start it again, or it has data on the node's disk; empty: it may."""
        if not self.evict_bare_pods and kube_things.controller(pod) is None:
            return "has no controller: nothing would start it again"
        volumes = (pod.get("spec") or {}).get("volumes") or []
        on_disk = [
            one for one in volumes if "emptyDir" in one and (one["emptyDir"] or {}).get("medium") != "Memory"
        ]
        if self.delete_emptydir_data or not on_disk:
            return ""
        return f"has data of its own on the node (volume {on_disk[0].get('name')}, an emptyDir)"

    def _protected(self, priority: str, *, by_selector: bool) -> str:
        if by_selector:
            return f"selector {self.protected.selector}"
        for glob in self.protected.priority_classes:
            if priority and fnmatchcase(priority, glob):
                return f"priority class {priority}"
        return ""


def _workload(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What a pod is a part of: `owner`, `workload`, and `nodes` of a pod that stands alone."""
    labels = meta.get("labels") or {}
    for key in WORKLOADS:
        name = str(labels.get(key) or "")
        if _LABEL.fullmatch(name):
            return {"owner": name, "workload": f"{key}={name}"}
    owners = [one for one in meta.get("ownerReferences") or [] if one.get("controller")]
    return {"owner": str(owners[0].get("name") or "")} if owners else {"nodes": 1}


def _running(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Its containers, and its sidecars: init containers that go on running."""
    yield from spec.get("containers") or []
    yield from (one for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always")


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeOptions:
    """The keys of a table with `type = "kubernetes"`. One of kubeconfig, in_cluster and url defines how the API is reached."""

    # Shell pattern: the nodes that it manages, by their name in gpuward
    nodes: str = "*"
    # Name of the Node object; {node} is the node's name in gpuward
    node_name: str = "{node}"
    # A kubeconfig file
    kubeconfig: Path | None = None
    # Context of the kubeconfig; empty: its current one
    context: str = ""
    # true: the service account of the pod in which the brain runs
    in_cluster: bool = False
    # https://host:port of the API server; with ca_file and token_file
    url: str = ""
    # PEM file with the CA of url; none: the system's CAs
    ca_file: Path | None = None
    # File with the bearer token for url; it is read for each request
    token_file: Path | None = None
    # Timeout of one request
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 15.0
    # Timeout of one eviction, including the wait for a disruption budget
    evict_wait_s: Annotated[float, Field(gt=0, le=3600)] = 110.0
    # true: pods without a controller are evicted too, although nothing starts them again
    evict_bare_pods: bool = False
    # false: pods with an emptyDir on disk are not evicted, since what is in it is lost (as kubectl drain without the option)
    delete_emptydir_data: bool = True
    # Extended resources with which pods request GPUs or NPUs: one, several with commas, or a list; shell patterns after the
    # slash. Each MIG device, partition or vNPU counts as one
    gpu_resource: str | Sequence[str] = COMMON
    # Annotation of pods that lists their GPUs, comma separated; empty: unknown
    gpu_annotation: str = ""
    # Annotations that are "true" on a node while it is drained, so that autoscalers do not remove what people want to look at;
    # one that is there already is left as it is
    keep_annotations: Sequence[str] = (
        "cluster-autoscaler.kubernetes.io/scale-down-disabled",
        "karpenter.sh/do-not-disrupt",
    )
    # Conditions of Node objects that others set and that people are told of while they are "True", e.g. KernelDeadlock of
    # node-problem-detector; needs the right to list nodes (deploy/kubernetes/rbac/conditions.yaml)
    conditions: Sequence[str] = ()
    # true: people are told what the cluster says of nodes (NotReady, fewer GPUs allocatable than there are, cordoned by others)
    # and of pods with GPUs that wait for over an hour; needs the right to list nodes, too
    states: bool = False
    # true: people are told which devices of nodes are tainted (dynamic resource allocation), by their driver or an administrator;
    # needs the right to list ResourceSlices and DeviceTaintRules (deploy/kubernetes/rbac/devices.yaml)
    devices: bool = False
    # Interval of looking at conditions, states and devices
    conditions_every_s: Annotated[float, Field(ge=1, le=3600)] = 60.0
    # What `kubectl describe node` shows of a drain: "events", "conditions" (one of our own, GpuwardFault), or both; each needs a
    # right (a file in deploy/kubernetes/rbac). What acts on conditions may then act on ours: docs/kubernetes.md
    tell: Sequence[Literal["events", "conditions"]] = ()
    protected: ProtectedPods = ProtectedPods()
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    def access(self, where: str) -> Access:
        """Returns how the API is reached; ConfigError names the key."""
        ways = [bool(self.kubeconfig), self.in_cluster, bool(self.url)]
        if sum(ways) != 1:
            raise ConfigError(f"{where}: give one of kubeconfig, in_cluster and url")
        if self.kubeconfig:
            readable(self.kubeconfig, f"{where}.kubeconfig")
        if self.url and not self.url.startswith(("https://", "http://")):
            raise ConfigError(f"{where}.url: want https://host:port")
        if self.url.startswith("http://") and self.token_file:
            raise ConfigError(f"{where}.url: a token is only sent over https")
        if not self.url and (self.ca_file or self.token_file):
            raise ConfigError(f"{where}: ca_file and token_file go with url")
        return Access(
            kubeconfig=self.kubeconfig,
            context=self.context,
            in_cluster=self.in_cluster,
            url=self.url.rstrip("/"),
            token_file=self.token_file,
            ca_file=self.ca_file,
            where=where,
            timeout_s=self.timeout_s,
        )

    def gpu_resources(self) -> GpuResources:
        """Returns the resources that `gpu_resource` names. ValueError: one is none."""
        return GpuResources(patterns_of(self.gpu_resource))

    def rules(self) -> PodRules:
        """Returns how pods are interpreted and evicted."""
        return PodRules(
            protected=self.protected,
            evict_bare_pods=self.evict_bare_pods,
            delete_emptydir_data=self.delete_emptydir_data,
            evict_wait_s=self.evict_wait_s,
            gpu_resources=self.gpu_resources(),
            gpu_annotation=self.gpu_annotation,
            keep_annotations=self.keep_annotations,
        )


def read(table: Mapping[str, Any], where: str) -> KubeOptions:
    """Reads the options of a configuration table; ConfigError names the key."""
    want = options(KubeOptions, table, where)
    if "{node}" not in want.node_name:
        raise ConfigError(f"{where}.node_name: must contain {{node}}")
    try:
        patterns_of(want.gpu_resource)
    except ValueError as error:
        raise ConfigError(f"{where}.gpu_resource: {error}") from error
    if "Ready" in want.conditions:
        raise ConfigError(
            f"{where}.conditions: Ready is wrong when it is not True, and then the agent is silent too: leave it out"
        )
    if CONDITION in want.conditions:
        raise ConfigError(
            f"{where}.conditions: {CONDITION} is what gpuward itself says of a node: leave it out"
        )
    for key in want.keep_annotations:
        if not _ANNOTATION.fullmatch(key) or key.startswith(f"{MARK}/"):
            raise ConfigError(
                f"{where}.keep_annotations: {key!r} is not the key of an annotation of others: DOMAIN/NAME"
            )
    return want


def tables_of(tables: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, KubeOptions]]:
    """Each cluster of `[schedulers]`: its name, "schedulers.<name>" for errors, and its options; ConfigError names the key."""
    for name, table in tables.items():
        if table.get("type") == "kubernetes":
            where = f"schedulers.{name}"
            yield name, where, read(table, where)

"""What stands in a table of `type = "kubernetes"`, and how pods are seen by it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agent.contract.errors import ConfigError
from brain.actions.base import Job
from brain.actions.kube_api import Access
from brain.options import options

_COUNT = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedPods:
    """Pods that nobody stops without being asked."""

    selector: str = ""  # label selector, e.g. "app=inference,tier in (gold)"
    priority_classes: Sequence[str] = ("system-*",)  # shell patterns
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}  # a typing error must not unprotect


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRules:
    """What pods mean to us."""

    protected: ProtectedPods = ProtectedPods()
    evict_bare_pods: bool = False
    evict_wait_s: float = 110.0
    gpu_resource: str = "nvidia.com/gpu"
    gpu_annotation: str = ""

    def job(self, pod: Mapping[str, Any], *, by_selector: bool) -> Job:
        """The pod as a job; its `user` is not known to Kubernetes."""
        meta, spec = pod.get("metadata") or {}, pod.get("spec") or {}
        phase = str((pod.get("status") or {}).get("phase") or "")
        named = (
            str((meta.get("annotations") or {}).get(self.gpu_annotation) or "") if self.gpu_annotation else ""
        )
        return Job(
            id=f"{meta.get('namespace')}/{meta.get('name')}",
            state="terminating" if meta.get("deletionTimestamp") else phase.lower(),
            gpus=tuple(filter(None, re.split(r"[,\s]+", named))),
            gpu_count=sum(self._gpus(container) for container in spec.get("containers") or []),
            name=str(meta.get("name") or ""),
            protected=self._protected(str(spec.get("priorityClassName") or ""), by_selector=by_selector),
        )

    def _gpus(self, container: Mapping[str, Any]) -> int:
        wanted = container.get("resources") or {}
        for part in ("limits", "requests"):  # for extended resources both are the same where both are given
            count = str((wanted.get(part) or {}).get(self.gpu_resource) or "")
            if _COUNT.fullmatch(count):
                return int(count)
        return 0

    def _protected(self, priority: str, *, by_selector: bool) -> str:
        if by_selector:
            return f"selector {self.protected.selector}"
        for glob in self.protected.priority_classes:
            if priority and fnmatchcase(priority, glob):
                return f"priority class {priority}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeOptions:
    """What the table holds. One of kubeconfig, in_cluster and url says how the API is reached."""

    nodes: str = "*"  # shell pattern: the nodes that it has, by their name in gpuward
    node_name: str = "{node}"  # name of the Node object, {node} being the node's name in gpuward
    kubeconfig: Path | None = None
    context: str = ""  # of the kubeconfig; empty: its current one
    in_cluster: bool = False  # the service account of the pod in which the brain runs
    url: str = ""  # https://host:port; with ca_file and token_file
    ca_file: Path | None = None  # PEM; none: the system's CAs
    token_file: Path | None = None  # read for each request
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 15.0  # for one request
    evict_wait_s: Annotated[float, Field(gt=0, le=3600)] = (
        110.0  # how long one eviction may take, budgets included
    )
    evict_bare_pods: bool = (
        False  # true: pods without a controller are evicted too; nothing starts them again
    )
    gpu_resource: str = "nvidia.com/gpu"  # extended resource by which pods ask for GPUs
    gpu_annotation: str = ""  # annotation of pods that lists their GPUs, comma separated; empty: not known
    protected: ProtectedPods = ProtectedPods()
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    def access(self, where: str) -> Access:
        """How the API is reached; ConfigError names the key."""
        ways = [bool(self.kubeconfig), self.in_cluster, bool(self.url)]
        if sum(ways) != 1:
            raise ConfigError(f"{where}: give one of kubeconfig, in_cluster and url")
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

    def rules(self) -> PodRules:
        """What pods mean to us."""
        return PodRules(
            protected=self.protected,
            evict_bare_pods=self.evict_bare_pods,
            evict_wait_s=self.evict_wait_s,
            gpu_resource=self.gpu_resource,
            gpu_annotation=self.gpu_annotation,
        )


def read(table: Mapping[str, Any], where: str) -> KubeOptions:
    """The options of a configuration table; ConfigError names the key."""
    want = options(KubeOptions, table, where)
    if "{node}" not in want.node_name:
        raise ConfigError(f"{where}.node_name: must contain {{node}}")
    return want

"""A node that is off, as Kubernetes is told of it, so that what ran there starts elsewhere.

    spec.taints  node.kubernetes.io/out-of-service=gpuward:NoExecute

Kubernetes keeps the pods of a node whose kubelet is silent: they may still write to their volumes. Whoever knows that the node is
off says so by this taint; then its pods are removed and their volumes let go (Kubernetes, "Non-graceful node shutdown"; since
1.28). It looks at the key alone. The value says whose the taint is: one that a person has set stays.
"""

from collections.abc import Mapping, Sequence
from typing import Any

KEY = "node.kubernetes.io/out-of-service"
OFF: Mapping[str, Any] = {"key": KEY, "value": "gpuward", "effect": "NoExecute"}

Taint = Mapping[str, Any]


def is_said(taints: Sequence[Taint]) -> bool:
    """Has anybody said that the node is off?"""
    return any(taint.get("key") == KEY for taint in taints)


def without_ours(taints: Sequence[Taint]) -> list[Taint]:
    """The taints without the one that says so for us."""
    return [taint for taint in taints if (taint.get("key"), taint.get("value")) != (KEY, OFF["value"])]

"""What Kubernetes says of a node and of a pod: our marks and taint, who has cordoned it, what is ours to take back. Pure."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from brain.actions.kube_api import MANAGER
from brain.actions.marks import REASON, Mark
from brain.actions.marks import read as marks_of

DRAINED, KEPT = "gpuward/drained", "gpuward/kept"
# A node has one taint of each key and effect: one of our key with another effect is somebody else's.
TAINT: Mapping[str, Any] = {"key": DRAINED, "value": "true", "effect": "NoSchedule"}
_MIRROR = "kubernetes.io/config.mirror"

Node = Mapping[str, Any]
Pod = Mapping[str, Any]


def meta(thing: Mapping[str, Any]) -> Mapping[str, Any]:
    """Its metadata; empty: it has none."""
    return thing.get("metadata") or {}


def uid(thing: Mapping[str, Any]) -> str:
    """Of two pods, or Node objects, of one name it tells which."""
    return str(meta(thing).get("uid") or "")


def annotations(node: Node) -> Mapping[str, str]:
    """All of them, ours and others."""
    return meta(node).get("annotations") or {}


def reason(node: Node) -> str:
    """The text of our drain; empty: there is none."""
    return str(annotations(node).get(REASON) or "")


def kept(node: Node, wanted: Sequence[str]) -> Mapping[str, str]:
    """What keeps autoscalers away from a drained node, apart from what stands there already, and that it is ours."""
    there = annotations(node)
    new = [key for key in wanted if key not in there]
    return {**dict.fromkeys(new, "true"), KEPT: ",".join([*kept_by_us(node), *new])} if new else {}


def let_go(node: Node) -> Mapping[str, None]:
    """The annotations of `kept` that are to go; one that somebody has set too, or given another value, is theirs."""
    there = annotations(node)
    gone = [
        key
        for key in kept_by_us(node)
        if there.get(key) == "true"
        and not set(_managers(node, "f:metadata", "f:annotations", f"f:{key}")) - {MANAGER}
    ]
    return dict.fromkeys([*gone, KEPT] if KEPT in there else gone)


def kept_by_us(node: Node) -> list[str]:
    """The annotations that we have set for the time of our drain."""
    return [key for key in str(annotations(node).get(KEPT) or "").split(",") if key]


def taints(node: Node) -> list[Mapping[str, Any]]:
    """All of them, ours and others."""
    return (node.get("spec") or {}).get("taints") or []


def others(node: Node) -> list[Mapping[str, Any]]:
    """Returns the taints without that of our drain."""
    return [taint for taint in taints(node) if not _is_ours(taint)]


def tainted(node: Node) -> bool:
    """Is our taint there?"""
    return len(others(node)) != len(taints(node))


def marks(node: Node) -> tuple[Mark, ...]:
    """Returns the marks of our drain; none once someone has removed our taint or changed our annotation."""
    return marks_of(reason(node)) if tainted(node) else ()


def drained(node: Node) -> str:
    """Returns why the node takes no new pods; for our own drain alone the text of our annotation."""
    ours = (reason(node) or "tainted") if tainted(node) else ""
    if not ours and any(taint.get("key") == DRAINED for taint in taints(node)):
        ours = "tainted"
    by = cordoned_by(node)
    if not by or (ours and by == [MANAGER]):
        return ours
    return f"cordoned by {', '.join(by)}" + (f"; {ours}" if ours else "")


def cordoned_by(node: Node) -> list[str]:
    """Returns the field managers that have set `unschedulable`; "somebody" when it is unknown who."""
    if not (node.get("spec") or {}).get("unschedulable"):
        return []
    return _managers(node, "f:spec", "f:unschedulable") or ["somebody"]


def _managers(node: Node, *path: str) -> list[str]:
    """The field managers that have set this field, as the server has it; none: it does not say."""
    return sorted(
        {
            str(entry.get("manager") or "somebody")
            for entry in meta(node).get("managedFields") or []
            if reduce(lambda found, key: (found or {}).get(key), path, entry.get("fieldsV1")) is not None
        }
    )


def _is_ours(taint: Mapping[str, Any]) -> bool:
    return (taint.get("key"), taint.get("effect")) == (DRAINED, TAINT["effect"])


def controller(pod: Pod) -> Mapping[str, Any] | None:
    """What makes the pod anew when it ends; None: nothing does."""
    owners = meta(pod).get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def stays(pod: Pod) -> bool:
    """Does it belong to the node (DaemonSet, static pod), or has it ended?"""
    owner = controller(pod)
    return (
        (owner is not None and owner.get("kind") == "DaemonSet")
        or _MIRROR in (meta(pod).get("annotations") or {})
        or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    )

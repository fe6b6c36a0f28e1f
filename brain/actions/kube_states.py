"""What Node objects and pods that wait say, in the terms of `witness`. Pure.

Sources: Kubernetes, "Node Status" (the condition Ready: False when the kubelet says so, Unknown when it has not been heard for
node-monitor-grace-period), "Device Plugins" (a plug-in that is gone leaves the capacity, and nothing allocatable), "Pod
conditions" (PodScheduled: False, reason Unschedulable).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agent.contract.messages import clip
from brain.actions.kube_resources import GpuResources
from brain.actions.marks import REASON, ours
from brain.actions.witness import NodeSaid, WaitingJob


def node(name: str, found: Mapping[str, Any], gpus: GpuResources, now_s: float) -> NodeSaid:
    """What a Node object says of a node. `gpus`: those of the options."""
    spec, status = found.get("spec") or {}, found.get("status") or {}
    ready: Mapping[str, Any] = next(
        (one for one in status.get("conditions") or [] if one.get("type") == "Ready"), {}
    )
    annotations = (found.get("metadata") or {}).get("annotations") or {}
    cordoned = bool(spec.get("unschedulable"))
    by_us = ours(str(annotations.get(REASON) or ""))
    theirs = cordoned and not by_us
    unready = (
        bool(ready) and ready.get("status") != "True" and not cordoned
    )  # a node in somebody's hands restarts
    why = f"{ready.get('reason') or ''}: {ready.get('message') or ''}".strip(": ")
    there = gpus.allocatable(status)
    return NodeSaid(
        node=name,
        unusable=("NotReady" if ready.get("status") == "False" else "NotReady (not heard)")
        if unready
        else "",
        unusable_s=_age_s(ready.get("lastTransitionTime"), now_s),
        why=why if unready else "",
        lost=f"NotReady (not heard): {why}" if ready.get("status") == "Unknown" and not theirs else "",
        drained="cordoned" if theirs else "",
        gpus=there.total if there is not None else None,
        gpus_text=there.text if there is not None else "",
        plugin_down=there is not None and bool(there.plugins_gone),
    )


def waiting(pod: Mapping[str, Any], gpus: GpuResources, now_s: float) -> WaitingJob | None:
    """A pod with GPUs that the scheduler cannot place; None: another one."""
    spec, meta = pod.get("spec") or {}, pod.get("metadata") or {}
    placed: Mapping[str, Any] = next(
        (
            one
            for one in (pod.get("status") or {}).get("conditions") or []
            if one.get("type") == "PodScheduled"
        ),
        {},
    )
    if placed.get("status") != "False" or meta.get("deletionTimestamp"):
        return None
    wants = any(gpus.wanted(one) for one in spec.get("containers") or [])
    if not wants and not spec.get("resourceClaims"):
        return None
    says = str(placed.get("message") or "")  # "Insufficient" of anything: another pod that ends makes room
    return WaitingJob(
        id=f"{meta.get('namespace')}/{meta.get('name')}",
        user="",
        waits_s=_age_s(meta.get("creationTimestamp"), now_s) or 0.0,
        reason=clip(
            f"{'Resources' if 'Insufficient' in says else placed.get('reason') or 'Unscheduled'} {says}", 200
        ),
    )


def _age_s(stamp: object, now_s: float) -> float | None:
    try:
        then = datetime.fromisoformat(str(stamp or ""))
    except ValueError:
        return None
    return max(0.0, now_s - then.timestamp()) if then.tzinfo is not None else None

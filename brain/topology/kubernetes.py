"""Reads nodes of Kubernetes (`kubectl get nodes -o json`): labels that say where a node is."""

from collections.abc import Mapping
from typing import Any

import orjson

from agent.contract.errors import ConfigError
from brain.core.pack.topology import WIDE
from brain.topology.sightings import Sightings
from brain.topology.site_map import SiteMap

# Label -> kind. The GPU operator's, Topograph's (both its spellings), and those of clouds. Of one kind the first that a node has.
LABELS: Mapping[str, str] = {
    "nvidia.com/gpu.clique": "nvlink",
    "accelerator.topograph.run/domain": "nvlink",
    "network.topology.nvidia.com/accelerator": "nvlink",
    "fabric.topograph.run/tier-0": "leaf",
    "network.topology.nvidia.com/leaf": "leaf",
    "topology.k8s.aws/network-node-layer-3": "leaf",
    "fabric.topograph.run/tier-1": "pod",
    "network.topology.nvidia.com/spine": "pod",
    "topology.k8s.aws/network-node-layer-2": "pod",
    "cloud.google.com/gce-topology-block": "pod",
    "cloud.google.com/gce-topology-subblock": "rack",
    "oci.oraclecloud.com/host.rack_id": "rack",
    "topology.kubernetes.io/zone": "room",
}
_NO_DOMAIN = (
    "00000000-0000-0000-0000-000000000000"  # the cluster's id of a GPU whose NVLinks lead to no other node
)


def mapping(given: tuple[str, ...]) -> dict[str, str]:
    """Returns label -> kind, the site's own first; `given`: `LABEL=KIND`, `LABEL=` for one that says nothing. ConfigError."""
    own: dict[str, str] = {}
    for one in given:
        label, equals, kind = one.rpartition("=")
        if not equals or not label or kind not in (*WIDE, ""):
            raise ConfigError(f"--label {one!r}: want LABEL=KIND, KIND one of {', '.join(WIDE)}, or nothing")
        own[label] = kind
    whole = own | {label: kind for label, kind in LABELS.items() if label not in own}
    return {label: kind for label, kind in whole.items() if kind}


def read(text: str, source: str, labels: Mapping[str, str] = LABELS) -> SiteMap:
    """Returns the places that the labels of the nodes tell of; ConfigError: this is no list of nodes."""
    found = Sightings(source=source)
    for name, own in _nodes(text, source):
        node = found.node(name)
        told: set[str] = set()
        for label, kind in labels.items() if node else ():
            value = own.get(label)
            if isinstance(value, str) and value and kind not in told and not value.startswith(_NO_DOMAIN):
                told.add(kind)
                found.stands(node, kind, value)
    return found.site()


def _nodes(text: str, source: str) -> list[tuple[str, Mapping[str, Any]]]:
    """(name, labels) of each node."""
    try:
        whole = orjson.loads(text)
        items = whole.get("items", [whole])
        nodes = [(one["metadata"]["name"], one["metadata"].get("labels") or {}) for one in items]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{source}: is not what `kubectl get nodes -o json` prints") from error
    if not all(isinstance(name, str) and isinstance(labels, dict) for name, labels in nodes):
        raise ConfigError(f"{source}: is not what `kubectl get nodes -o json` prints")
    return nodes

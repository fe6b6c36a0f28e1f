"""Kinds of facts that the engine states itself. Rules may name them like the agents' kinds."""

from agent.contract.kinds import Field, Kind
from agent.contract.messages import Severity

NODE_SILENT = "node.silent"
NODE_RETURNED = "node.returned"
CONTRACT_BROKEN = "node.contract_broken"

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            name=NODE_SILENT,
            component="node",
            severity=Severity.ERROR,
            source="brain",
            summary="A node's agent has sent no beat for a while.",
            fields=(Field(name="silent_s", type="float", summary="since its last beat", unit="s"),),
            example={"silent_s": 16.0},
        ),
        Kind(
            name=NODE_RETURNED,
            component="node",
            severity=Severity.INFO,
            source="brain",
            summary="A silent node is heard again.",
            example={},
        ),
        Kind(
            name=CONTRACT_BROKEN,
            component="node",
            severity=Severity.WARNING,
            source="brain",
            summary="A node published something that this brain cannot read: version skew or damage.",
            fields=(Field(name="why", type="text", summary="what does not fit"),),
            example={"why": "event has version '2', this brain reads 1: update the older side"},
        ),
    )
}

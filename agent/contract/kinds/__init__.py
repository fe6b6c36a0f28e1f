"""Every kind of event: no other may be emitted, and rules can name no other.

Each area has a module with `KINDS: tuple[Kind, ...]`; a new area needs an import and a line in `KINDS` here.
docs/reference.md is generated from this table.
"""

from agent.contract.errors import ContractError
from agent.contract.kinds import (
    accelerators,
    agent,
    dcgm,
    fabric,
    gpu,
    host,
    kernel_lines,
    network,
    node,
    nvml,
    optics,
    settings,
    storage,
    traffic,
)
from agent.contract.kinds.base import Field as Field
from agent.contract.kinds.base import Kind as Kind
from agent.contract.messages import UnsentEvent

KINDS: dict[str, Kind] = {
    kind.name: kind
    for area in (
        gpu.KINDS,
        nvml.KINDS,
        accelerators.KINDS,
        dcgm.KINDS,
        fabric.KINDS,
        network.KINDS,
        optics.KINDS,
        node.KINDS,
        host.KINDS,
        settings.KINDS,
        storage.KINDS,
        traffic.KINDS,
        kernel_lines.KINDS,
        agent.KINDS,
    )
    for kind in area
}


def check(unsent: UnsentEvent) -> UnsentEvent:
    """`unsent` itself if its kind and fields are declared, else ContractError."""
    kind = KINDS.get(unsent.kind)
    if kind is None:
        raise ContractError(f"kind {unsent.kind!r} is not declared in agent/contract/kinds/")
    fields = {field.name for field in kind.fields}
    for name in unsent.data:
        if name not in fields:
            raise ContractError(f"{unsent.kind} has no field {name!r}")
    for field in kind.fields:
        if field.always and field.name not in unsent.data:
            raise ContractError(f"{unsent.kind} needs the field {field.name!r}")
    return unsent

"""Every kind of event, declared: nothing else may be emitted, and rules may name nothing else.

One module for each area exports `KINDS: tuple[Kind, ...]`; a new area is one import and one line in `KINDS`.
docs/reference.md is generated from this table. A field's `unit` is empty where it has none.
"""

from agent.contract.errors import ContractError
from agent.contract.kinds import fabric, gpu, host, kernel_lines, network, node, nvml, own
from agent.contract.kinds.base import Field as Field
from agent.contract.kinds.base import Kind as Kind
from agent.contract.messages import Draft

KINDS: dict[str, Kind] = {
    kind.name: kind
    for area in (
        gpu.KINDS,
        nvml.KINDS,
        fabric.KINDS,
        network.KINDS,
        node.KINDS,
        host.KINDS,
        kernel_lines.KINDS,
        own.KINDS,
    )
    for kind in area
}


def check(draft: Draft) -> Draft:
    """`draft` if its kind and fields are declared, else ContractError."""
    kind = KINDS.get(draft.kind)
    if kind is None:
        raise ContractError(f"kind {draft.kind!r} is not declared in agent/contract/kinds/")
    fields = {field.name for field in kind.fields}
    for name in draft.data:
        if name not in fields:
            raise ContractError(f"{draft.kind} has no field {name!r}")
    for field in kind.fields:
        if field.always and field.name not in draft.data:
            raise ContractError(f"{draft.kind} needs the field {field.name!r}")
    return draft

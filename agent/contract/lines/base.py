"""The shape of an area of kernel lines: pure, one file, one line in `agent.contract.lines.areas`."""

from collections.abc import Mapping
from typing import ClassVar, Protocol

from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import MAX_EVIDENCE, Draft, Scalar, Severity, clip

LIMIT = 2000  # characters of a record that are looked at; the kernel's own lines have about 1000 at most
Optional = Mapping[str, Scalar | None]


class Area(Protocol):
    """Reads the lines of one subsystem. May remember what a line before has said, nothing else."""

    marks: ClassVar[tuple[str, ...]]  # a line without any of these is none of this area's
    kinds: ClassVar[tuple[str, ...]]  # event kinds that it may give

    def read(self, text: str) -> Draft | None:
        """The fact in one record of at most LIMIT characters; None for an ordinary one. Never raises. Age 0."""
        ...


def draft(kind: str, component: str, severity: Severity, data: Optional, text: str) -> Draft:
    """A Draft of what a line says: fields that are None or an empty text are left out, long texts shortened."""
    said = {
        name: clip(value) if isinstance(value, str) else value
        for name, value in data.items()
        if value is not None and value != ""
    }
    return Draft(
        kind=kind, component=component, severity=severity, data=said, evidence=clip(text, MAX_EVIDENCE)
    )


def component(type_: str, name: str) -> str:
    """`<type>/<name>`, or the node where that is no component's name."""
    try:
        return components.check(f"{type_}/{name}")
    except ContractError:
        return components.NODE


def device(driver: str, address: str) -> str:
    """Component of a PCI device whose kernel driver is known: a GPU, a NIC (with its function) or just a device."""
    try:
        bdf = components.bdf(address)
    except ContractError:
        return components.NODE
    if driver == "nvidia":
        return f"gpu/{bdf}"
    if driver == "mlx5_core":
        return component("nic", address.lower())
    return f"pcie/{bdf}"


def number(digits: str | None) -> int | None:
    """The number, or None where the line does not say it."""
    return int(digits) if digits else None

"""The shape of an area of kernel lines: pure, one file, listed in `agent.contract.lines.areas`."""

from collections.abc import Mapping
from typing import ClassVar, Protocol

from agent.contract import components
from agent.contract.accelerators import DRIVERS
from agent.contract.errors import ContractError
from agent.contract.messages import MAX_EVIDENCE, Scalar, Severity, UnsentEvent, clip

LIMIT = 2000  # characters of a record that are read; the kernel's own lines have at most about 1000
Optional = Mapping[str, Scalar | None]


class Area(Protocol):
    """Reads the lines of one subsystem. It may remember earlier lines, and nothing else."""

    # A line without any of these is none of this area's.
    markers: ClassVar[tuple[str, ...]]
    # Kinds of events that it may return.
    kinds: ClassVar[tuple[str, ...]]
    # Fields that make two lines of one kind about one component different facts, e.g. `what`. Lines that differ only in
    # others (a sector, a time) within seconds are one event.
    distinguishing: ClassVar[tuple[str, ...]]

    def read(self, text: str) -> UnsentEvent | None:
        """The fact in one record of at most LIMIT characters; None for an ordinary one. Never raises. Age 0."""
        ...


def unsent(kind: str, component: str, severity: Severity, data: Optional, text: str) -> UnsentEvent:
    """The event of one line: fields that are None or an empty text are left out, long texts shortened."""
    present = {
        name: clip(value) if isinstance(value, str) else value
        for name, value in data.items()
        if value is not None and value != ""
    }
    return UnsentEvent(
        kind=kind, component=component, severity=severity, data=present, evidence=clip(text, MAX_EVIDENCE)
    )


def component(type_: str, name: str) -> str:
    """`<type>/<name>`, or the node if that is not a valid component."""
    try:
        return components.check(f"{type_}/{name}")
    except ContractError:
        return components.NODE


def device(driver: str, address: str) -> str:
    """Component of a PCI device by its kernel driver: a GPU, a NIC (with the function), or any other device."""
    try:
        bdf = components.bdf(address)
    except ContractError:
        return components.NODE
    if driver in DRIVERS:
        return f"gpu/{bdf}"
    if driver == "mlx5_core":
        return component("nic", address.lower())
    return f"pcie/{bdf}"


def number(digits: str | None) -> int | None:
    """The number, or None if the line does not have it."""
    return int(digits) if digits else None

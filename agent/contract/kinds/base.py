"""The shape of a declaration of an event kind."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.contract.messages import Scalar, Severity

INFO, WARNING, ERROR, FATAL = Severity.INFO, Severity.WARNING, Severity.ERROR, Severity.FATAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of an event's data."""

    name: str
    type: str  # text | int | float | bool
    summary: str
    unit: str = ""
    always: bool = True  # False: left out where the machine does not say it


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of event."""

    name: str
    component: str  # component type(s) that it is about, comma separated
    severity: Severity  # the usual one
    source: str  # where the agent hears it
    summary: str
    fields: tuple[Field, ...] = ()
    example: Mapping[str, Scalar] | None = None


def field(name: str, type_: str, summary: str, unit: str = "", *, always: bool = True) -> Field:
    """A Field, in one short line of a table."""
    return Field(name=name, type=type_, summary=summary, unit=unit, always=always)

"""How a kind of event is declared."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent.contract.messages import Scalar, Severity

_WORDS = re.compile(r" \([^)]*\)")
INFO, WARNING, ERROR, FATAL = Severity.INFO, Severity.WARNING, Severity.ERROR, Severity.FATAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of an event's data."""

    name: str
    # `text`, `int`, `float` or `bool`.
    type: str
    summary: str
    unit: str = ""
    # False: it is left out where the machine does not report it.
    always: bool = True

    @property
    def values(self) -> tuple[str, ...]:
        """All that it may be, where the summary lists them as `a | b (in words) | c`; else, or with `...`, nothing."""
        listed = tuple(_WORDS.sub("", self.summary.rpartition(": ")[2]).split(" | "))
        return listed if self.type == "text" and len(listed) > 1 and "..." not in listed else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of event."""

    name: str
    # Types of the components that it is about, comma separated.
    component: str
    # The usual one.
    severity: Severity
    # Where the agent gets it from.
    source: str
    summary: str
    fields: tuple[Field, ...] = ()
    example: Mapping[str, Scalar] | None = None
    # Why no rule that gpuward comes with is about it; empty: one is.
    no_rule: str = ""


def field(name: str, type_: str, summary: str, unit: str = "", *, always: bool = True) -> Field:
    """A Field, in one short line of a table."""
    return Field(name=name, type=type_, summary=summary, unit=unit, always=always)

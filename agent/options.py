"""Options: what an operator can set, declared in the file of the part that uses it.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class ClockOptions:
        clock_offset_s: float = option(0.5, "a larger offset of the wall clock is reported", unit="s", least=0.001)

A field's name is its key in the agent's TOML file. The parser (agent.config_file), docs/reference.md and
deploy/agent.toml are made from these declarations. Standard library only: the agent's memory is a promise.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Key and value → what is wrong with it, e.g. `must be an absolute path`; empty: nothing.
Check = Callable[[str, Any], str]
Chosen = TypeVar("Chosen", bound="DataclassInstance")

TYPES: Mapping[Any, str] = {
    str: "text",
    Path: "path",
    bool: "true or false",
    int: "whole number",
    float: "number",
    tuple[str, ...]: "list of texts",
    tuple[int, ...]: "list of whole numbers",
    Mapping[str, str]: "table",
    Mapping[str, Mapping[str, Any]]: "tables",
}


def option(
    default: Any,
    doc: str,
    *,
    unit: str = "",
    least: float | None = None,
    example: Any = None,
    check: Check | None = None,
) -> Any:
    """A dataclass field that an operator can set.

    `doc`: its meaning in one sentence. `least`: the smallest number that is allowed. `example`: a value that a site may
    write where the default shows too little. `check`: what the type and `least` cannot say.
    """
    metadata = {"doc": doc, "unit": unit, "least": least, "example": example, "check": check}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option as it was declared."""

    key: str
    # In words, one of TYPES.
    type: str
    default: Any
    doc: str
    unit: str
    least: float | None
    example: Any
    check: Check | None


def declared(part: type["DataclassInstance"]) -> Iterator[Option]:
    """The options of a dataclass, in its order. TypeError names a field whose type no TOML value has."""
    for item in fields(part):
        if "doc" not in item.metadata:
            continue
        if item.type not in TYPES:
            raise TypeError(
                f"{part.__module__}.{part.__name__}.{item.name}: an option is one of"
                f" {', '.join(map(str, TYPES))}, not {item.type}"
            )
        default = item.default if item.default_factory is MISSING else item.default_factory()
        yield Option(key=item.name, type=TYPES[item.type], default=default, **item.metadata)


def chosen(part: type[Chosen], values: Mapping[str, Any]) -> Chosen:
    """The options of one part: those of its keys that `values` sets, and the defaults of all others."""
    return part(**{item.name: values[item.name] for item in fields(part) if item.name in values})


def at_most(most: float) -> Check:
    """For `check`: the number is no larger than this."""
    return lambda key, value: f"{key} must be {most:g} or less, not {value:g}" if value > most else ""


def off_or(least: float, most: float = float("inf")) -> Check:
    """For `check`: the number is 0, or of this range. A pause that somebody gave in another unit would ask without a pause."""

    def check(key: str, value: float) -> str:
        if value == 0 or least <= value <= most:
            return ""
        bounds = f"{least:g} or more" if value < least else f"{most:g} or less"
        return f"{key} must be {bounds}, or 0 for off, not {value:g}"

    return check


def absolute_paths(key: str, values: tuple[str, ...]) -> str:
    """For `check`: each of them is an absolute path."""
    return next((absolute_path(key, value) for value in values if not value.startswith("/")), "")


def absolute_path(key: str, value: str | Path) -> str:
    """For `check`: the option is an absolute path."""
    text = str(value)
    return "" if text.startswith("/") else f"{key} must be an absolute path, not {text!r}"

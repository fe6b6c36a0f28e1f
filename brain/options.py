"""How the tables of plug-ins (channels, BMCs, schedulers, switches) are read: unknown keys are errors, secrets are files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from agent.contract.errors import ConfigError

T = TypeVar("T")
_SAYS = {"missing": "is missing", "unexpected_keyword_argument": "is not an option here"}


def options(shape: type[T], table: Mapping[str, Any], where: str) -> T:
    """`table` as the dataclass `shape`; ConfigError names `<where>.<key>`.

    The key `type` is not an option: it chose the plug-in.
    """
    try:
        return TypeAdapter(shape).validate_python(
            {key: value for key, value in table.items() if key != "type"}
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{where}.{key}: {_SAYS.get(first['type'], first['msg'])}") from error


def secret(path: Path | None, where: str) -> str:
    """What stands in a file of a secret, without white space at its ends; empty for None. ConfigError names the key."""
    if path is None:
        return ""
    try:
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where}: {path} cannot be read: {error}") from error
    if not found:
        raise ConfigError(f"{where}: {path} is empty")
    return found


def kind(table: Any, where: str, known: Mapping[str, Any]) -> str:
    """The `type` of a plug-in's table; ConfigError when there is no such one."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: must be a table with a type and its options")
    name = table.get("type")
    if not isinstance(name, str) or name not in known:
        says = "is missing" if name is None else f"unknown type {name!r}"
        raise ConfigError(f"{where}.type: {says} (have: {', '.join(known)})")
    return name

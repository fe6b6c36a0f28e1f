"""How the tables of plug-ins (channels, BMCs, schedulers, switches) are read: unknown keys are errors, secrets are files."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from agent.contract.errors import ConfigError

T = TypeVar("T")
_SAYS = {"missing": "is missing", "unexpected_keyword_argument": "is not an option here"}


# Where a table says in which folder its file stands; no TOML file can hold this key by accident.
FOLDER = "//folder"


def placed(tables: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, dict[str, Any]]:
    """The tables of a file in `folder`: their relative paths start there."""
    return {name: {**table, FOLDER: str(folder)} for name, table in tables.items()}


def options(shape: type[T], table: Mapping[str, Any], where: str) -> T:
    """`table` as the dataclass `shape`, its paths made absolute; ConfigError names `<where>.<key>`.

    The key `type` is not an option: it chose the plug-in.
    """
    try:
        found = TypeAdapter(shape).validate_python(
            {key: value for key, value in table.items() if key not in ("type", FOLDER)}
        )
        return _absolute(found, Path(table.get(FOLDER, ".")))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{where}.{key}: {_SAYS.get(first['type'], first['msg'])}") from error


def secret(path: Path | None, where: str) -> str:
    """The first line of a file with a secret; empty for None. ConfigError names the key and the file."""
    if path is None:
        return ""
    try:
        found = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"{where}: {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: {path} is not text") from error
    if not found:
        raise ConfigError(f"{where}: {path} is empty")
    return found.splitlines()[0].strip()


def kind(table: Any, where: str, known: Mapping[str, Any]) -> str:
    """The `type` of a plug-in's table; ConfigError when there is no such one."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: must be a table with a type and its options")
    name = table.get("type")
    if not isinstance(name, str) or name not in known:
        says = "is missing" if name is None else f"unknown type {name!r}"
        raise ConfigError(f"{where}.type: {says} (have: {', '.join(known)})")
    return name


def _absolute(found: T, folder: Path) -> T:
    if not is_dataclass(found) or isinstance(found, type):
        return found
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    paths = {name: folder / value for name, value in values.items() if isinstance(value, Path)}
    return replace(found, **paths) if paths else found

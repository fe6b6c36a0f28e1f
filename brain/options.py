"""Reads the tables of plug-ins (channels, BMCs, schedulers, switches): unknown keys are errors."""

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError

from agent.contract.errors import ConfigError
from brain.core.operators import scopes

T = TypeVar("T")


class WrongText(ConfigError):
    """What brain.toml itself says is wrong, whatever the machine has: only another text helps."""


_UNKNOWN = "is not an option here"
_SAYS = {"missing": "is missing", "unexpected_keyword_argument": _UNKNOWN}


# Key under which a table remembers the folder of its file; no TOML file contains it by accident.
FOLDER = "//folder"


def placed(tables: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, dict[str, Any]]:
    """Marks tables as read from a file in `folder`, where their relative paths start."""
    return {name: {**table, FOLDER: str(folder)} for name, table in tables.items()}


def options(shape: type[T], table: Mapping[str, Any], where: str) -> T:
    """Reads a table as the dataclass `shape`, with absolute paths; ConfigError names `<where>.<key>`.

    The key `type` is not an option: it has selected the plug-in.
    """
    try:
        found = TypeAdapter(shape).validate_python(
            {key: value for key, value in table.items() if key not in ("type", FOLDER)}
        )
        return _absolute(found, Path(table.get(FOLDER, ".")))
    except ValidationError as error:
        raise WrongText("\n".join(_lines(shape, error, where))) from error


def _lines(shape: type, error: ValidationError, where: str) -> Iterator[str]:
    """One for each key that is wrong."""
    for one in error.errors(include_url=False):
        parts = [str(part) for part in one["loc"]]
        says = _SAYS.get(one["type"], one["msg"])
        if says == _UNKNOWN:
            says += meant(shape, parts)
        yield f"{where}.{'.'.join(parts)}: {says}"


def plug_in(table: Any, where: str, types: Mapping[str, str]) -> Any:
    """Imports the plug-in that a table selects: `types` maps its `type` to `module:function`.

    Only what a site configures is imported. ConfigError when the type is missing or unknown.
    """
    if not isinstance(table, Mapping):
        raise WrongText(f"{where}: must be a table with a type and its options")
    name = table.get("type")
    if not isinstance(name, str) or name not in types:
        says = "is missing" if name is None else f"unknown type {name!r}"
        raise WrongText(f"{where}.type: {says} (have: {', '.join(types)})")
    module, _, function = types[name].partition(":")
    return getattr(importlib.import_module(module), function)


def _absolute(found: T, folder: Path) -> T:
    if not is_dataclass(found) or isinstance(found, type):
        return found
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    paths = {name: folder / value for name, value in values.items() if isinstance(value, Path)}
    return replace(found, **paths) if paths else found


def meant(table: type, key: list[str]) -> str:
    """The end of an error about a key that there is not: which one may be meant, where its table has fixed keys."""
    for part in key[:-1]:
        kind = _keys(table).get(part)
        inner = [one for one in (kind, *get_args(kind)) if _keys(one)]
        if not inner:
            return ""
        table = inner[0]
    keys = sorted(_keys(table))
    return scopes.have(
        key[-1], keys, shown=len(keys)
    )  # a table has few, and the one that is meant may be the last


def _keys(table: Any) -> dict[str, Any]:
    """The keys of a table with the declared type of each; none: it is no table, or it has keys of any name."""
    if isinstance(table, type) and issubclass(table, BaseModel):
        return {name: field.annotation for name, field in table.model_fields.items()}
    if not (isinstance(table, type) and is_dataclass(table)):
        return {}
    types = get_type_hints(table)
    return {field.name: types[field.name] for field in fields(table)}

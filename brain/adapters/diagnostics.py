"""Validation errors of pydantic as one plain sentence each."""

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_WANTED = {
    "string_type": "text",
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "mapping_type": "a mapping",
    "dict_type": "a mapping",
    "dataclass_type": "a mapping",
    "dataclass_exact_type": "a mapping",
}
Where = tuple[str | int, ...]


def explain(error: ValidationError, kind: type) -> list[tuple[Where, str]]:
    """Returns (path to the value, what is wrong) for each error; `kind` is the dataclass that was validated."""
    found: dict[Where, str] = {}
    for detail in error.errors(include_url=False, include_context=True):
        where, declared = _locate(kind, detail["loc"])
        # pydantic reports a union once for each of its members; one sentence is enough.
        found.setdefault(where, _sentence(detail, declared))
    return list(found.items())


def _sentence(detail: ErrorDetails, declared: Any) -> str:
    what = detail["type"]
    if what in ("unexpected_keyword_argument", "extra_forbidden"):
        known = (
            [field.name for field in dataclasses.fields(declared)]
            if dataclasses.is_dataclass(declared)
            else []
        )
        return f"unknown key (have: {', '.join(known)})"
    if what in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return "is missing"
    given = detail["input"]
    if what in ("enum", "literal_error"):
        return f"must be {detail.get('ctx', {}).get('expected', 'one of its values')}, not {_shown(given)}"
    if _is_union(declared):
        return f"must be text, a number, true or false, not {_shown(given)}"
    if what in _WANTED:
        return f"must be {_WANTED[what]}, not {_shown(given)}"
    return str(detail["msg"])


def _locate(kind: Any, loc: Where) -> tuple[Where, Any]:
    """Returns the path without pydantic's own steps (members of unions), and the declared type at its end.

    For an unknown key that type is the dataclass that lacks the key.
    """
    where: list[str | int] = []
    for step in loc:
        if _is_union(kind):
            break
        inner = _inner(kind, step)
        where.append(step)
        if inner is None:
            break
        kind = inner
    return tuple(where), kind


def _inner(kind: Any, step: str | int) -> Any:
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hint = get_type_hints(kind).get(str(step))
        members = [member for member in get_args(hint) if member is not type(None)]
        return members[0] if _is_union(hint) and len(members) == 1 else hint
    origin, members = get_origin(kind), list(get_args(kind))
    if origin is tuple and members:
        return members[0]
    if isinstance(origin, type) and issubclass(origin, Mapping) and len(members) == 2:
        return members[1]
    return None


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def _shown(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", type(None): "nothing"}
    return names.get(type(value)) or repr(value)[:60]

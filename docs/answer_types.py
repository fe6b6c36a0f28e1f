"""brain/cli/answers.py: the answers of the API as types, for mypy to check what the command line reads of them.

The command line imports no models at run time: they would make each command a second slower.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from brain.console.api.openapi import document

Json = Mapping[str, Any]
_HEAD = '''\
"""The answers of the API, as the command line reads them. Made by `make docs` from the models in brain/console/api: mypy checks
by it every key that the command line reads. What they mean: docs/api.md. One file however long: nobody edits it.
"""

from typing import Any, NotRequired, TypedDict
'''
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict[str, Any]"}


def module() -> str:
    """Returns the module."""
    whole = document()
    schemas = whole["components"]["schemas"]
    wanted: dict[str, None] = {}
    for methods in whole["paths"].values():
        for one in methods.values():
            for answer in one["responses"].values():
                for content in answer.get("content", {}).values():
                    _add(content["schema"], schemas, wanted)
    return _HEAD + "".join("\n\n" + "\n".join(_class(name, schemas[name])) + "\n" for name in wanted)


def _add(schema: Any, schemas: Json, wanted: dict[str, None]) -> None:
    """Adds what a schema refers to, and before each what that refers to."""
    match schema:
        case {"$ref": str(where)}:
            name = where.rpartition("/")[2]
            if name not in wanted and "properties" in schemas[name]:
                _add(schemas[name], schemas, wanted)
                wanted[name] = None
        case dict():
            for one in schema.values():
                _add(one, schemas, wanted)
        case list():
            for one in schema:
                _add(one, schemas, wanted)


def _class(name: str, schema: Json) -> Iterator[str]:
    schemas = document()["components"]["schemas"]
    needed = schema.get("required", ())
    yield f"class {name}Json(TypedDict):"
    for key, one in schema["properties"].items():
        kind = _type(one, schemas)
        yield f"    {key}: {kind if key in needed or 'default' in one else f'NotRequired[{kind}]'}"


def _type(one: Json, schemas: Json) -> str:
    if "$ref" in one:
        name = str(one["$ref"]).rpartition("/")[2]
        return f"{name}Json" if "properties" in schemas[name] else "str"
    if "anyOf" in one:
        return " | ".join(dict.fromkeys(_type(part, schemas) for part in one["anyOf"]))
    if one.get("type") == "array":
        return f"list[{_type(one['items'], schemas)}]"
    if one.get("type") == "null":
        return "None"
    return _PLAIN.get(str(one.get("type")), "Any")

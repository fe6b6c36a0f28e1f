"""The OpenAPI 3.1 document of the API, made from its table."""

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from agent import __version__
from brain.console.api.base import Nothing
from brain.console.api.endpoint import Endpoint
from brain.console.api.problems import PROBLEM, ProblemShape
from brain.console.api.table import TABLE

Json = dict[str, Any]
# What the door, the checks and the reading of the history may say to each request
_ALWAYS = (400, 401, 403, 421, 429, 503)
_WITH_BODY = (408, 413, 415)
_TITLE = "gpuward"
_ABOUT = (
    "The API of one brain. Within /api/v1 paths and keys are only added. Times are ISO 8601, UTC. What acts on a terminal stands "
    "as `\\uXXXX` in JSON. Errors are RFC 9457: `who` must act, and `detail` says what they must do."
)


def document() -> Json:
    """Returns the document, the same for each brain of this version."""
    schemas, definitions = _schemas()
    paths: dict[str, Json] = {}
    for row in TABLE:
        paths.setdefault(_path(row), {})[row.method.lower()] = _operation(row, schemas, definitions)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": _TITLE,
            "version": __version__,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "From an administrator: `gpuward token create NAME`.",
                }
            },
        },
    }


def _path(row: Endpoint[Any, Any]) -> str:
    return re.sub(r"\{(\w+):[^}]*\}", r"{\1}", row.whole_path)


def _models() -> Iterator[tuple[type[BaseModel], JsonSchemaMode]]:
    yield ProblemShape, "serialization"
    for row in TABLE:
        for model in row.answers.values():
            yield model, "serialization"
        for asked in (row.query, row.body):
            if asked is not Nothing:
                yield asked, "validation"


def _schemas() -> tuple[Mapping[type[BaseModel], Json], Json]:
    """Returns each model's schema, and what they refer to. The names there are those of the classes without `Shape`."""
    models = dict.fromkeys(_models())
    found, definitions = models_json_schema(list(models), ref_template="#/components/schemas/{model}")
    named = {name.removesuffix("Shape"): _renamed(one) for name, one in definitions["$defs"].items()}
    return {model: _renamed(found[model, mode]) for model, mode in models}, named


def _renamed(value: Any) -> Any:
    match value:
        case dict():
            return {
                key: _renamed(one)
                for key, one in value.items()
                if (key, type(one)) not in (("title", str), ("default", type(None)))
            }
        case list():
            return [_renamed(one) for one in value]
        case str() if value.startswith("#/components/"):
            return value.removesuffix("Shape")
    return value


def _operation(row: Endpoint[Any, Any], schemas: Mapping[type[BaseModel], Json], definitions: Json) -> Json:
    operation: Json = {
        "operationId": row.name,
        "summary": row.summary,
        "description": f"Role: {row.least.value}.",
        "parameters": [
            *({"name": name, "in": "path", "required": True, "description": text, "schema": {"type": "string"}}
              for name, text in row.parts.items()),
            *_query(row, schemas, definitions),
        ],
        "responses": _responses(row, schemas),
        "security": [{"token": []}] if row.named else [{"token": []}, {}],
    }  # fmt: skip
    if row.body is not Nothing:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schemas[row.body]}},
        }
    return operation


def _query(row: Endpoint[Any, Any], schemas: Mapping[type[BaseModel], Json], definitions: Json) -> list[Json]:
    if row.query is Nothing:
        return []
    schema = definitions[schemas[row.query]["$ref"].rpartition("/")[2]]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": one.get("description", ""),
            "schema": {key: value for key, value in one.items() if key != "description"},
        }
        for name, one in schema["properties"].items()
    ]


def _responses(row: Endpoint[Any, Any], schemas: Mapping[type[BaseModel], Json]) -> Json:
    found: Json = {}
    for status, model in row.answers.items():
        kind = PROBLEM if issubclass(model, ProblemShape) else "application/json"
        found[str(status)] = _response(status, kind, schemas[model])
    if row.media:
        content = found.setdefault("200", {"description": HTTPStatus(200).phrase, "content": {}})["content"]
        content |= {media: {"schema": {}} for media in row.media.split(", ")}
    if row.method == "GET" and "200" in found and "application/json" in found["200"]["content"]:
        found["200"]["headers"] = {"ETag": {"schema": {"type": "string"}}}
        found["304"] = {"description": "Not Modified: the ETag is one of If-None-Match."}
    more = (*((404,) if row.parts else ()), *(_WITH_BODY if row.body is not Nothing else ()))
    for status in sorted({*_ALWAYS, *more, *row.problems}):
        found.setdefault(str(status), _response(status, PROBLEM, schemas[ProblemShape]))
    return found


def _response(status: int, kind: str, schema: Json) -> Json:
    return {"description": HTTPStatus(status).phrase, "content": {kind: {"schema": schema}}}

"""docs/api.md: the reference of the API, from the same document that a brain shows at /api/v1/openapi.json."""

import json
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from brain.console.api.openapi import document

Json = Mapping[str, Any]


def page() -> str:
    """Returns the page, without its first line."""
    whole = document()
    lines = [
        "# API\n",
        f"{whole['info']['description']}\n",
        HEAD,
        "## Requests\n",
        "| request | role | what it is |",
        "|---|---|---|",
    ]
    for path, methods in whole["paths"].items():
        for method, one in methods.items():
            lines.append(
                f"| [`{method.upper()} {path}`](#{_slug(f'{method} {path}')}) | {_role(one)} | {one['summary']} |"
            )
    for path, methods in whole["paths"].items():
        for method, one in methods.items():
            lines += ["", *_request(f"{method.upper()} {path}", one)]
    lines += ["", "## Models\n", "What is optional in an answer may be absent.\n"]
    for name, schema in sorted(whole["components"]["schemas"].items()):
        lines += _model(name, schema)
    return "\n".join(lines)


HEAD = """\
`GET /api/v1/openapi.json` is this page for programs (OpenAPI 3.1); both come from `brain/console/api/table.py`. A token goes
into `Authorization: Bearer ...`, over https; what needs none where reading is open (`console.open_reading`) says so. Roles and
the door: [security.md](security.md). Beside it, without a version: `/metrics`, `/healthz`, `/readyz`, `/login`, `/api/join`, by
which nodes join.

```sh
curl -s --cacert ca.pem -H "Authorization: Bearer $(cat token)" https://brain:8470/api/v1/incidents
```
"""


def _slug(title: str) -> str:
    """The anchor of a heading, as Python-Markdown and GitHub make it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _role(one: Json) -> str:
    least = str(one["description"]).removeprefix("Role: ").rstrip(".")
    return f"{least}, or nobody where reading is open" if {} in one["security"] else least


def _request(title: str, one: Json) -> Iterator[str]:
    yield f"### `{title}`"
    yield ""
    yield f"{one['summary']} Role: {_role(one)}."
    yield ""
    if one["parameters"]:
        yield "| parameter | in | type | meaning |"
        yield "|---|---|---|---|"
        for part in one["parameters"]:
            yield f"| `{part['name']}` | {part['in']} | {_type(part['schema'])} | {_text(part.get('description', ''))} |"
        yield ""
    if "requestBody" in one:
        yield f"Body: {_type(one['requestBody']['content']['application/json']['schema'])}."
        yield ""
    if "304" in one["responses"]:
        yield f"- 304 {one['responses']['304']['description']}"
    for status, answer in one["responses"].items():
        for kind, content in answer.get("content", {}).items():
            if content["schema"] != {"$ref": "#/components/schemas/Problem"}:
                yield f"- {status} {HTTPStatus(int(status)).phrase}: {_type(content['schema']) or f'`{kind}`'}"
    refused = [
        status
        for status, answer in one["responses"].items()
        for content in answer.get("content", {}).values()
        if content["schema"] == {"$ref": "#/components/schemas/Problem"}
    ]
    yield f"- {', '.join(refused)}: [Problem](#problem)"


def _model(name: str, schema: Json) -> Iterator[str]:
    yield f"### {name}"
    yield ""
    if "description" in schema:
        yield f"{_text(schema['description'])}"
        yield ""
    if "enum" in schema:
        yield f"One of {', '.join(f'`{one}`' for one in schema['enum'])}."
        yield ""
    elif "oneOf" in schema:
        yield f"One of {', '.join(_type(one) for one in schema['oneOf'])}."
        yield ""
    elif not schema.get("properties"):
        yield "It has no keys."
        yield ""
    else:
        yield "| key | type | meaning |"
        yield "|---|---|---|"
        needed = schema.get("required", ())
        for key, one in schema["properties"].items():
            optional = "" if key in needed else _default(one)
            old = "Deprecated. " if one.get("deprecated") else ""
            yield f"| `{key}` | {_type(one)}{optional} | {old}{_text(one.get('description', ''))} |"
        yield ""


def _default(one: Json) -> str:
    return f", default `{json.dumps(one['default'])}`" if "default" in one else ", optional"


def _text(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _type(one: Json) -> str:
    """A schema in a few words."""
    if "$ref" in one:
        name = one["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in one:
        return " or ".join(dict.fromkeys(map(_type, one["anyOf"])))
    if "const" in one:
        return f"`{one['const']}`"
    if "enum" in one:
        return " or ".join(f"`{value}`" for value in one["enum"])
    if one.get("type") == "array":
        return f"list of {_type(one['items'])}"
    if one.get("format") == "date-time":
        return "time"
    kind = str(one.get("type", ""))
    return {"string": "text", "integer": "whole number", "object": "object"}.get(kind, kind) + _limits(one)


def _limits(one: Json) -> str:
    words = {
        "minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below",
        "minLength": "at least", "maxLength": "at most",
    }  # fmt: skip
    parts = [
        f"{word} {one[key]:g}{' characters' if 'Length' in key else ''}"
        for key, word in words.items()
        if key in one
    ]
    return f" ({', '.join(parts)})" if parts else ""

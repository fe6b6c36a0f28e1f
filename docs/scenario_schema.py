"""The JSON Schema of files of scenarios, for editors: of the classes that read them, with their comments as descriptions."""

import json
from typing import Any

from pydantic import TypeAdapter

from docs import field_comments
from simulations.scenarios import spec

CLASSES = (spec.StorySite, spec.Shut, spec.StoryLine, spec.Sight, spec.StoryExpect)


def schema() -> dict[str, Any]:
    """`title`, and `stories`: name -> scenario."""
    tale = TypeAdapter(spec.Tale).json_schema()
    definitions = tale.pop("$defs")
    del tale["properties"]["name"]
    tale["required"].remove("name")
    _describe(tale, spec.Tale)
    for one in CLASSES:
        _describe(definitions[one.__name__], one)
    definitions["StoryLine"]["oneOf"] = [{"required": [verb]} for verb in spec.VERBS]
    definitions["Scenario"] = tale
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenarios of gpuward simulate",
        "type": "object",
        "additionalProperties": False,
        "required": ["title", "stories"],
        "properties": {
            "title": {"type": "string", "description": "what these scenarios have in common"},
            "stories": {
                "type": "object",
                "description": "name -> scenario",
                "minProperties": 1,
                "additionalProperties": {"$ref": "#/$defs/Scenario"},
            },
        },
        "$defs": definitions,
    }


def _describe(made: dict[str, Any], kind: type) -> None:
    """Puts the comments of a class to its keys, and takes away the names that pydantic makes of them."""
    comments = field_comments.of(kind)
    made["description"] = (kind.__doc__ or "").split("\n\n")[0]
    made.pop("title", None)
    for name, one in made["properties"].items():
        one.pop("title", None)
        if comments.get(name):
            one["description"] = comments[name]


def text() -> str:
    """The file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"

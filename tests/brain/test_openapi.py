"""The API's description of itself, and the page of the manual that is made from it."""

import re
from pathlib import Path
from typing import Any

from openapi_spec_validator import validate

from brain.console.api.openapi import document
from brain.console.api.table import TABLE
from docs import api_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"


def test_the_document_is_openapi_3_1() -> None:
    """As its validator says; and it has every row, with a role."""
    found: dict[str, Any] = document()
    validate(found)
    operations = [one for methods in found["paths"].values() for one in methods.values()]
    assert {one["operationId"] for one in operations} == {row.name for row in TABLE}
    assert all(one["description"].startswith("Role: ") for one in operations)


def test_every_link_of_the_page_leads_somewhere() -> None:
    """Its anchors are made as Markdown makes them."""
    text = api_page.page()
    heads = {
        re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in re.findall(r"(?m)^#+ (.*)$", text)
    }
    assert set(re.findall(r"\]\(#([^)]*)\)", text)) <= heads


def test_the_page_has_every_key() -> None:
    """Of every model, with its meaning or its name."""
    text = PAGE.read_text()
    for name, schema in document()["components"]["schemas"].items():
        section = text.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
        assert set(schema.get("properties", ())) == set(re.findall(r"(?m)^\| `(\w+)` \|", section)), name

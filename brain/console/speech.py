"""The language of whoever asks: what the API refuses is told in it. Answers themselves are the same for everybody."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from agent.contract.messages import clip
from agent.shared.words import Spoken, answering, spoken, t
from brain.core.said import Sentence

FOLDERS = (Path(__file__).resolve().parent / "said",)  # of the catalogue, a folder for each language in it


@contextmanager
def in_language(accepted: str) -> Iterator[None]:
    """Speaks, within, the language of an Accept-Language: Chinese where that stands first, else English."""
    with answering(_spoken("zh" if accepted.strip().lower().startswith("zh") else "en")):
        yield


def told(text: str) -> str:
    """A sentence of the core in the language that is spoken, as far as it is known what it was made of."""
    return of_parts(text.parts()) if isinstance(text, Sentence) else text


def of_parts(parts: Mapping[str, Any]) -> str:
    """The same of what a note says that it was made of."""
    values = {
        name: of_parts(one) if isinstance(one, Mapping) else one for name, one in parts["values"].items()
    }
    return t(parts["template"], **values)


def refusal(note: Mapping[str, Any]) -> str:
    """Why the engine refused a command, by its note."""
    text, noted = str(note["text"]), note["data"].get("said")
    if not noted:
        return text
    parts = json.loads(noted)
    with answering(_spoken("en")):
        english = of_parts(parts)
    return text.removesuffix(english) + of_parts(parts)


def quoted(text: str) -> str:
    """What somebody typed, as an error names it."""
    return repr(clip(text, 80))


@cache
def _spoken(of: str) -> Spoken:
    return spoken(of, FOLDERS)

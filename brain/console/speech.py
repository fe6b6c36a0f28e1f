"""The language of whoever asks: what the API refuses is told in it, and every sentence of the brain that an answer has."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from agent.contract.messages import clip
from agent.shared.words import Spoken, answering, language, later, spoken, t
from brain import sentences
from brain.core.said import Sentence

NOTED = "operator.note"
_RUNG = re.compile(
    r"((?:back )?\d+\. [^:]*: )?([\w.]+\(.*?\))( \(after [^)]*\))?( — disrupts \w+)((?:; .*)?)", re.DOTALL
)
_SAYS = re.compile(r"(?<=^page\()(.*\btext=)(.*)(?=\)$)", re.DOTALL)
_FORETOLD = re.compile(r"(\[[^\]]*\]|\$(?!node)\w+)")
_PARTS = re.compile(r"(?=; (?:gates: |verified by ))")
_DISRUPTS = {
    "nothing": later("disrupts nothing"),
    "job": later("disrupts a job"),
    "node": later("disrupts the node"),
    "fabric": later("disrupts the fabric"),
}
FOLDERS = (Path(__file__).resolve().parent / "said",)  # of the catalogue, a folder for each language in it


@contextmanager
def in_language(accepted: str) -> Iterator[None]:
    """Speaks, within, the language of an Accept-Language: Chinese where that stands first, else English."""
    with answering(_spoken("zh" if accepted.strip().lower().startswith("zh") else "en")):
        yield


def told(text: str) -> str:
    """A sentence of the brain or of a node, in the language that is spoken; what is none of theirs stands as it is."""
    return of_parts(text.parts()) if isinstance(text, Sentence) else sentences.told(text, language())


def told_note(kind: str, text: str) -> str:
    """The text of a note. What a person has written down for the others stands as they wrote it, whatever it is like."""
    return text if kind == NOTED else told(text)


def told_plan(line: str) -> str:
    """A line of a run's plan: its number, its rung, and what would be done are the same in every language."""
    if language() == "en":
        return line
    found = _RUNG.fullmatch(line)
    if found is None:
        names, left_out, why = line.partition(": left out, ")
        return f"{names}: {told('left out')}，{told(why)}" if left_out else told(line)
    head, done, after, disrupts, rest = found.groups(default="")
    rungs = " 或 ".join(after.removeprefix(" (after ").removesuffix(")").split(" or "))
    after = t(" (after {rungs})", rungs=rungs) if after else ""
    effect = t(_DISRUPTS[disrupts.removeprefix(" — disrupts ")])
    parts = "".join(told(part) for part in _PARTS.split(rest) if part)
    return f"{head}{_SAYS.sub(_page, done)}{after} — {effect}{parts}"


def _page(found: re.Match[str]) -> str:
    """What a page would say: `[what was done]` stands for what is not known yet."""
    return found[1] + told_page(found[2])


def told_page(text: str) -> str:
    """What the page of a runbook says, around `$done` or `[what was done]`, which stand for what is not known yet."""
    parts = [part.strip() for part in _FORETOLD.split(text)]
    if language() == "en" or all(told(part) == part for part in parts):
        return text
    return "".join(f"[{told(part[1:-1])}]" if part.startswith("[") else told(part) for part in parts if part)


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

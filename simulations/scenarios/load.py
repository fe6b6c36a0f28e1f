"""Reads files of scenarios. Whatever is wrong is told with file, line and key; an unknown key is wrong."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agent.contract.errors import ConfigError
from brain.core.pack.lint_symptoms import KINDS
from brain.marked_yaml import Diagnostic, Document, read
from simulations.drills import DRILLS
from simulations.scenarios.names import FABRIC, nodes
from simulations.scenarios.spec import VERBS, Class, StoryLine, Tale

MOST_NODES, MOST_DAYS, MOST_TIMES = 20_000, 366, 1_000_000
_TALE = TypeAdapter(Tale)


class ScenarioError(ConfigError):
    """Files of scenarios are wrong: their author must mend them."""

    def __init__(self, errors: list[Diagnostic]) -> None:
        super().__init__("\n".join(map(str, errors)))


def load(path: Path) -> Class:
    """Reads one file of stories: `title`, and `stories`, name -> story."""
    document = read(path, path.name)
    value = document.value if isinstance(document.value, dict) else {}
    if document.value is not None and set(value) != {"title", "stories"}:
        document.error((), "has the keys title and stories, and no others")
    named = value.get("stories")
    tales = []
    for name, body in named.items() if isinstance(named, dict) else ():
        tale = _tale(document, name, body)
        tales += [tale] if tale is not None else []
    if not document.errors and not tales:
        document.error(("stories",), "there is no story")
    if document.errors:
        raise ScenarioError(document.errors)
    return Class(title=str(value["title"]), stories=tuple(tales))


def _tale(document: Document, name: str, body: Any) -> Tale | None:
    key = ("stories", name)
    if not isinstance(body, dict):
        document.error(key, "must be a mapping")
        return None
    try:
        tale = _TALE.validate_python({**body, "name": name})
    except ValidationError as error:
        for one in error.errors():
            document.error((*key, *one["loc"]), one["msg"])
        return None
    for number, line in enumerate(tale.timeline):
        for part, text in _mistakes(line, tale.site.nodes):
            document.error((*key, "timeline", number, *part), text)
    for place, text in _too_much(tale):
        document.error((*key, *place), text)
    for text in _no_nodes(tale.expect.disturbed.replace(FABRIC, ""), tale.site.nodes):
        document.error((*key, "expect", "disturbed"), text)
    return tale


def _too_much(tale: Tale) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What would be played for days, or fill the memory: (key below the scenario, what is wrong)."""
    if not 1 <= tale.site.nodes <= MOST_NODES:
        yield ("site", "nodes"), f"from 1 to {MOST_NODES} nodes"
    if not 0 < tale.until <= MOST_DAYS * 86_400:
        yield ("until",), f"more than 0 seconds, and at most {MOST_DAYS} days"
    for number, line in enumerate(tale.timeline):
        if not 1 <= line.times <= MOST_TIMES:
            yield ("timeline", number, "times"), f"from 1 to {MOST_TIMES} times"


def _mistakes(line: StoryLine, size: int) -> Iterator[tuple[tuple[str, ...], str]]:
    """What only the words' meaning tells: (key below the line, what is wrong)."""
    verbs = [verb for verb in VERBS if getattr(line, verb)]
    if len(verbs) != 1:
        yield (), f"needs one of {', '.join(VERBS)}; has {', '.join(verbs) or 'none'}"
    yield from ((("on",), text) for text in _no_nodes(line.on, size))
    for name, kind in (("event", line.event), ("well_kind", line.well_kind)):
        if kind and kind not in KINDS:
            yield (name,), f"there is no kind of event {kind!r}"
    if line.event and not line.data:
        yield ("event",), "say its data"
    if line.drill and line.drill not in DRILLS:
        yield ("drill",), f"there is no drill {line.drill!r} (have: {', '.join(DRILLS)})"
    if line.about and not line.says:
        yield ("about",), "is for what an operator says"


def _no_nodes(pattern: str, size: int) -> Iterator[str]:
    known = {f"n{n:03}" for n in range(size)}
    try:
        unknown = [name for name in nodes(pattern) if name not in known]
    except ValueError as error:
        yield str(error)
    else:
        if unknown:
            yield f"the site has no node {unknown[0]}"

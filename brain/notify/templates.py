"""Templates of a site: tables of its configuration in which `$name` stands for a part of the page.

Only texts within the table are replaced, each as a whole value of the JSON that is made of it afterwards: whatever a kernel line
contains stays within its text, and the body stays JSON. The language is that of `string.Template`: `$name`, `${name}`, and `$$`
for a dollar. A text that is `$name` and nothing else keeps the type of the value: `"$nodes"` becomes a number.
"""

from collections.abc import Iterator, Mapping, Sequence
from string import Template
from typing import Any
from urllib.parse import quote

from agent.contract.errors import ConfigError
from brain.core.operators import scopes
from brain.notify.message import Language, PageMessage

# What a template may name, besides the words of the site, and what it is; `docs/reference.md` has this table.
NAMES: Mapping[str, str] = {
    "text": "the page: all of it where a ticket is opened, and the shorter form of a chat in what follows",
    "title": "its title, with the kind of page",
    "subject": "the title without the kind of page",
    "key": "by which the ticket is found again: the same for all pages of an incident, until it is over",
    "page": "the page's id",
    "incident": "id of the incident that it is about",
    "ticket": "the ticket, as its system calls it; empty while it is opened",
    "former": "the closed ticket of an incident that is back, while its new one is opened; empty: there is none",
    "severity": "P0 to P3",
    "cause": "cause of the incident",
    "scope": "such as gpu/n1/0000:3b:00",
    "node": "the node; empty for a wider scope",
    "nodes": "how many nodes show it",
    "state": "state of the incident",
    "since": "when it began: ISO 8601, UTC",
    "why_now": "why the page is sent now",
    "because": "why it is taken for a fault",
    "evidence": "the facts, one a line",
    "tried": "the steps that were done, one a line",
    "proposed": "what would be done, one a line",
    "todo": "what the rule says is to be done",
    "hit": "whose jobs are hit; may be empty",
    "acked_by": "who has acknowledged it; may be empty",
    "url": "the incident in the console; empty without console_url",
}
Words = Mapping[str, Mapping[str, str]]


def values(
    message: PageMessage,
    words: Words,
    language: Language,
    *,
    text: str,
    console_url: str = "",
    ticket: str = "",
    former: str = "",
) -> dict[str, str | int]:
    """Returns what each name stands for in a page. `text`: the page as it is told there.

    `words`: a name of the site → severity → what it is there; a severity without a word is empty.
    """
    parts: dict[str, str | int] = {
        name: getattr(message, name)
        for name in (
            "title", "subject", "severity", "cause", "scope", "node", "nodes", "state", "since", "why_now", "because",
            "hit", "acked_by",
        )
    }  # fmt: skip
    parts |= {name: "\n".join(getattr(message, name)) for name in ("evidence", "tried", "proposed")}
    parts |= {
        "text": text,
        "key": message.ticket_key,
        "page": message.id,
        "incident": message.about,
        "ticket": ticket,
        "former": former,
        "todo": "\n".join(message.known("todo", language)),
        "url": message.in_console(console_url) if console_url else "",
    }
    return parts | {name: chosen.get(message.severity, "") for name, chosen in words.items()}


def filled(template: Any, known: Mapping[str, str | int]) -> Any:
    """Returns the table with its names replaced, ready for JSON."""
    if isinstance(template, str):
        name = _alone(template)
        return known[name] if name else Template(template).substitute(known)
    if isinstance(template, Mapping):
        return {key: filled(value, known) for key, value in template.items()}
    if isinstance(template, Sequence):
        return [filled(value, known) for value in template]
    return template


def in_url(template: str, known: Mapping[str, str | int]) -> str:
    """Returns a path or query with its names replaced: no value begins another part of the URL."""
    return Template(template).substitute({name: quote(str(value), safe="") for name, value in known.items()})


def check(template: Any, where: str, *, words: Words, ticket: bool = True) -> None:
    """ConfigError, at the key, where a template names what there is not, or is not JSON. `ticket`: is it known there?"""
    known = [name for name in (*NAMES, *words) if ticket or name != "ticket"]
    for place, value in _leaves(template, where):
        if isinstance(value, str):
            _check_text(value, place, known)
        elif not isinstance(value, bool | int | float | None):
            raise ConfigError(f"{place}: has no place in JSON: write it as a text")


def check_words(words: Words, where: str) -> None:
    """ConfigError where a word of the site hides a part of the page, cannot be named, or is for no severity."""
    for name, chosen in words.items():
        if name in NAMES:
            raise ConfigError(f"{where}.{name}: this name is a part of the page: take another one")
        if Template(f"${{{name}}}").get_identifiers() != [name]:
            raise ConfigError(f"{where}.{name}: a name has letters, digits and _, and begins with no digit")
        for severity in chosen:
            if severity not in ("P0", "P1", "P2", "P3"):
                raise ConfigError(f"{where}.{name}.{severity}: there are P0, P1, P2 and P3")


def names_in(template: Any) -> set[str]:
    """Returns the names that a template uses."""
    return {
        name
        for _, value in _leaves(template, "")
        if isinstance(value, str)
        for name in Template(value).get_identifiers()
    }


def _check_text(value: str, place: str, known: Sequence[str]) -> None:
    if not Template(value).is_valid():
        raise ConfigError(f"{place}: a $ is followed by a name of a template; a dollar itself is $$")
    for name in Template(value).get_identifiers():
        if name not in known:
            raise ConfigError(f"{place}: there is no ${name}{scopes.have(name, sorted(known))}")


def _alone(text: str) -> str:
    """The name of a text that is nothing else; empty: it is more, or less."""
    names = Template(text).get_identifiers()
    return names[0] if len(names) == 1 and text in (f"${names[0]}", f"${{{names[0]}}}") else ""


def _leaves(template: Any, where: str) -> Iterator[tuple[str, Any]]:
    if isinstance(template, Mapping):
        for key, value in template.items():
            yield from _leaves(value, f"{where}.{key}")
    elif isinstance(template, list | tuple):
        for number, value in enumerate(template):
            yield from _leaves(value, f"{where}.{number}")
    else:
        yield where, template

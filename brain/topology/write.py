"""Writes topology.yaml: a line for each node, or for several in the short form that stand in the same places. Pure."""

import json
import re
from collections.abc import Iterable, Mapping

from brain import hostlist
from brain.core.pack.spec import Place
from brain.core.pack.topology import WIDE
from brain.topology.site_map import known

_PLAIN = re.compile(r"[A-Za-z_][\w.-]*")  # needs no quotes in YAML, also not in `{}`
_KEY = re.compile(r"[A-Za-z_][\w.,\[\]-]*")
_WORDS = ("true", "false", "null")
_MOST = 2_000  # characters of one key


def text_of(places: Mapping[str, Place], head: Iterable[str] = ()) -> str:
    """Returns the text of the file. `head`: lines of a comment."""
    groups: dict[str, list[str]] = {}
    for node, place in sorted(places.items()):
        groups.setdefault(_value(place), []).append(node)
    lines = [f"# {line}" for line in head]
    for value, nodes in groups.items():
        lines += [f"{_quoted(key, _KEY)}: {value}" for key in _keys(nodes)]
    return "".join(f"{line}\n" for line in lines)


def _keys(nodes: list[str]) -> list[str]:
    whole = hostlist.fold(nodes)
    return [whole] if len(whole) <= _MOST else nodes


def _value(place: Place) -> str:
    kinds = known(place)
    parts = []
    for kind in WIDE:
        names = kinds.get(kind, ())
        if kind == "leaf" and place.rails:
            rails = [f"{_quoted(device)}: {_quoted(leaf)}" for device, leaf in place.rails.items()]
            parts.append(f"leaf: {{{', '.join(rails)}}}")
        elif len(names) > 1:
            parts.append(f"{kind}: [{', '.join(map(_quoted, names))}]")
        elif names:
            parts.append(f"{kind}: {_quoted(names[0])}")
    return f"{{{', '.join(parts)}}}"


def _quoted(text: str, plain: re.Pattern[str] = _PLAIN) -> str:
    if plain.fullmatch(text) and text.casefold() not in _WORDS:
        return text
    return json.dumps(text, ensure_ascii=False)

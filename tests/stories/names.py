"""Names of nodes and of their places."""

import re
from collections.abc import Mapping
from dataclasses import fields

from brain.core.pack.spec import Place
from tests.stories.spec import Site

KINDS = ("chassis", "nvlink", "leaf", "rack", "power", "cooling", "storage", "row", "pod", "room")
KNOWN = {one.name for one in fields(Place)}  # kinds that the engine has
_RANGE = re.compile(r"(\w+)\[(\d+)-(\d+)(?:/(\d+))?\]")


def nodes(pattern: str) -> tuple[str, ...]:
    """The nodes of `n003 n[000-031] n[000-031/2]`, in this order."""
    found: list[str] = []
    for part in pattern.split():
        if match := _RANGE.fullmatch(part):
            prefix, first, last, step = match.groups()
            width = len(first)
            found += [f"{prefix}{n:0{width}}" for n in range(int(first), int(last) + 1, int(step or 1))]
        elif re.fullmatch(r"\w+", part):
            found.append(part)
        else:
            raise ValueError(f"no nodes: {part!r}; write n003, n[000-031] or n[000-031/2]")
    return tuple(found)


def places(site: Site) -> Mapping[str, Place]:
    """Node -> its place."""
    names = [f"n{n:03}" for n in range(site.nodes)]
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    for kind in KINDS:
        given = getattr(site, kind)
        if kind not in KNOWN:
            continue
        if isinstance(given, int):
            for n, name in enumerate(names if given else ()):
                found[name][kind] = f"{kind}-{n // given}"
        else:
            for place, pattern in given.items():
                for name in nodes(pattern):
                    found[name][kind] = place
    return {name: Place(**where) for name, where in found.items()}

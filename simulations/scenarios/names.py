"""Names of nodes and of their places."""

import re
from collections.abc import Mapping
from typing import Any

from brain.core.pack.spec import Place
from simulations.scenarios.spec import StorySite

FABRIC = "fabric"  # what a step of the brain disturbs that is about no node
KINDS = ("chassis", "nvlink", "leaf", "rack", "power", "cooling", "storage", "row", "pod", "room")
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


def places(site: StorySite) -> Mapping[str, Place]:
    """Node -> its place."""
    names = [f"n{n:03}" for n in range(site.nodes)]
    within: dict[str, dict[str, list[str]]] = {name: {} for name in names}  # node -> kind -> names of places
    for kind in KINDS:
        given = getattr(site, kind)
        if isinstance(given, int):
            for n, name in enumerate(names if given else ()):
                within[name][kind] = [f"{kind}-{n // given}"]
        else:
            for place, pattern in given.items():
                for name in nodes(pattern):
                    within[name].setdefault(kind, []).append(place)
    return {name: _place(site, where) for name, where in within.items()}


def _place(site: StorySite, where: Mapping[str, list[str]]) -> Place:
    """The first of each kind, and the others; with rails, each port has a leaf switch of its own."""
    first: dict[str, Any] = {kind: named[0] for kind, named in where.items()}
    also = tuple(f"{kind}/{name}" for kind, named in where.items() for name in named[1:])
    rails = {f"mlx5_{rail}": f"{first['leaf']}-rail-{rail}" for rail in range(site.rails)}
    if rails:
        first["leaf"] = rails["mlx5_0"]
    return Place(**first, also=also, rails=rails)

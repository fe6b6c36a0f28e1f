"""The trees that the places of a site make: the network, the building, and what stands by itself. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from brain.core.pack.spec import Place
from brain.core.pack.topology import WIDE
from brain.topology.site_map import UNNAMED, members, unplaced

_NUMBER = re.compile(r"([0-9]{1,18})")
# Each from the widest kind to the narrowest.
TREES: Mapping[str, tuple[str, ...]] = {
    "network": ("fabric", "pod", "leaf"),
    "building": ("room", "row", "rack", "chassis"),
    "NVLink": ("nvlink",),
    "power": ("power",),
    "cooling": ("cooling",),
    "storage": ("storage",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A place, and how deep it stands in its tree."""

    depth: int
    scope: str
    nodes: tuple[str, ...]


def of(places: Mapping[str, Place]) -> dict[str, list[Branch]]:
    """Tree -> its places, the wider ones before those within them; trees of which nothing is known are not there."""
    found = {
        name: list(_branches(places, kinds, tuple(places), 0))
        for name, kinds in TREES.items()
        if any(members(places, kind).keys() - {UNNAMED} for kind in kinds)
    }
    return {name: branches for name, branches in found.items() if branches}


def _branches(
    places: Mapping[str, Place], kinds: tuple[str, ...], nodes: tuple[str, ...], depth: int
) -> Iterator[Branch]:
    """The places of the first kind, each with the narrower ones of its nodes; nodes without one stand a level higher."""
    if not kinds:
        return
    kind, *narrower = kinds
    by_name: dict[str, list[str]] = {}
    for node in nodes:
        for name in places[node].names(kind):
            by_name.setdefault(name, []).append(node)
    for name, own in sorted(by_name.items(), key=lambda one: _by_number(one[0])):
        yield Branch(depth=depth, scope=f"{kind}/{name}", nodes=tuple(own))
        yield from _branches(places, tuple(narrower), tuple(own), depth + 1)
    homeless = tuple(node for node in nodes if not places[node].names(kind))
    yield from _branches(places, tuple(narrower), homeless, depth)


def _by_number(name: str) -> list[tuple[int, int, str]]:
    """Sorts leaf-2 before leaf-10."""
    return [
        (0, int(part), "") if part.isdecimal() and part.isascii() else (1, 0, part)
        for part in _NUMBER.split(name)
        if part
    ]


def data(places: Mapping[str, Place], nodes: Iterable[str]) -> dict[str, object]:
    """What `gpuward topology print --json` prints of it."""
    named = [*nodes]
    return {
        "nodes": len(named),
        "places": [
            {"kind": kind, "name": name, "scope": f"{kind}/{name}", "nodes": own}
            for kind in WIDE
            for name, own in members(places, kind).items()
        ],
        "unknown": unplaced(places, named),
    }

"""Scopes, and which contain which.

A scope is a text: `<component type>/<node>/<name>` (`gpu/n1/0000:3b:00`, `disk/n1/nvme0`), `node/<node>`, `chassis/<name>`,
`leaf/<name>`, or another place of a kind in `WIDE`, `job/<id>` (the nodes where its logs tell something),
`release/<what>/<version>` (the nodes that have it now), or `cell`. A node may stand in several places of one kind (two power
feeds, a leaf switch for each rail); a device on a rail belongs to the leaf switch of that rail only.
"""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from agent.contract.components import whole_disk
from brain.core.pack.spec import Place

SCOPES_KEPT = 16_384  # so many scopes are taken apart once only; the busy ones come again and again
CELL = "cell"
# The kinds of places between node and cell, the narrower ones first.
WIDE = (
    "chassis",
    "nvlink",
    "leaf",
    "rack",
    "power",
    "cooling",
    "storage",
    "row",
    "pod",
    "room",
    "fabric",
)
JOB = "job"  # whose nodes are those where its logs tell something; brain/core/faults/jobs.py
RELEASE = "release"  # what nodes have in common that is no place; brain/core/faults/releases.py
_NAMED = (JOB, RELEASE)  # a scope is the component of its own facts
NODELESS = (JOB, *WIDE, RELEASE, CELL)  # wider than a node
SCOPES = (
    "gpu",
    "nvswitch",
    "nic",
    "port",
    "link",
    "bond",
    "service",
    "disk",
    "mount",
    "pcie",
    "node",
    *NODELESS,
)


def _above(place: Place) -> tuple[str, ...]:
    return (*(f"{kind}/{name}" for kind in WIDE for name in place.names(kind)), CELL)


def _rail(place: Place, component: str) -> str:
    """The leaf switch that a device is connected to, where the topology says so: `mlx5_3` for the card and for its port."""
    kind, _, name = component.partition("/")
    return place.rails.get(name.rpartition(".")[0] if kind == "port" else name, "")


_NOWHERE = Place()
_ABOVE_NOWHERE = _above(_NOWHERE)


@lru_cache(maxsize=SCOPES_KEPT)
def type_of(scope: str) -> str:
    """`gpu` of `gpu/n1/0000:3b:00`."""
    return scope.partition("/")[0]


def _by_kind(scopes: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for scope in scopes:
        kind = type_of(scope)
        found[kind] = (*found.get(kind, ()), scope)
    return found


_OF_KIND_NOWHERE = _by_kind(_ABOVE_NOWHERE[:-1])


@lru_cache(maxsize=SCOPES_KEPT)
def node_of(scope: str) -> str:
    """The node of a scope; empty for one wider than a node."""
    kind, _, rest = scope.partition("/")
    return "" if kind in NODELESS else rest.partition("/")[0]


@lru_cache(maxsize=SCOPES_KEPT)
def component_of(scope: str) -> str:
    """The component as its node names it: `gpu/0000:3b:00` of `gpu/n1/0000:3b:00`, `node` of `node/n1`; else empty."""
    kind, _, rest = scope.partition("/")
    if kind == "node":
        return "node"
    return f"{kind}/{rest.partition('/')[2]}" if node_of(scope) else ""


def _whole_name(kind: str, name: str) -> str:
    """A MIG instance's fault is one of its GPU, a partition's or a namespace's one of its disk."""
    if kind == "gpu":
        return name.partition("/")[0]
    return whole_disk(name) if kind == "disk" else name


def whole_of(scope: str) -> str:
    """What a part belongs to: the card of a port, else the scope itself. Parts of one node overlap within one whole only."""
    return f"nic/{scope[5:].rpartition('.')[0]}" if scope.startswith("port/") else scope


def unknown(places: Mapping[str, Place], node: str) -> list[str]:
    """The kinds of places that are known of other nodes and not of this one: a cause that it shares there is not seen."""
    own = places.get(node, _NOWHERE)
    return [
        kind
        for kind in WIDE
        if not getattr(own, kind) and any(getattr(place, kind) for place in places.values())
    ]


class Topology:
    """The places of the nodes, and which scopes contain which."""

    def __init__(self, places: Mapping[str, Place]) -> None:
        self.places = places
        self._sizes: dict[str, int] = {}
        # Node with a place -> the scopes around it, and those of each kind. Nodes that stand in the same places share them.
        self._above: dict[str, tuple[str, ...]] = {}
        self._of_kind: dict[str, dict[str, tuple[str, ...]]] = {}
        same: dict[tuple[str, ...], tuple[tuple[str, ...], dict[str, tuple[str, ...]]]] = {}
        one: dict[str, str] = {}
        for node, place in places.items():
            above = _above(place)
            if above not in same:
                above = tuple(one.setdefault(scope, scope) for scope in above)
                same[above] = above, _by_kind(above[:-1])
            self._above[node], self._of_kind[node] = same[above]
            for scope in self._above[node][:-1]:
                self._sizes[scope] = self._sizes.get(scope, 0) + 1
        there = [type_of(scope) for scope in self._sizes]
        self._numbers = Counter(there)
        # The kinds of places that tell nodes apart: one fabric that holds them all is the cell.
        self.kinds = tuple(
            kind for kind in WIDE if kind in there and (kind != "fabric" or there.count(kind) > 1)
        )

    def number(self, kind: str) -> int:
        """How many places of a kind are known."""
        return self._numbers[kind]

    def above(self, node: str) -> tuple[str, ...]:
        """The wider scopes that contain a node, narrowest first; the cell last."""
        return self._above.get(node, _ABOVE_NOWHERE)

    def at(self, node: str, component: str, wanted: str) -> str:
        """The scope of type `wanted` that an event of this component belongs to; empty: there is none, or it is not known.

        Of several places of one kind the first: `all_at` has all.
        """
        kind, _, name = component.partition("/")
        if wanted == "node":
            return f"node/{node}"
        if wanted == CELL:
            return CELL
        if wanted in WIDE:
            place = self.places.get(node, _NOWHERE)
            name = _rail(place, component) if wanted == "leaf" and place.rails else ""
            name = name or getattr(place, wanted)
            return f"{wanted}/{name}" if name else ""
        if wanted in _NAMED or kind in _NAMED:
            return component if wanted == kind else ""
        if wanted == kind:
            return f"{kind}/{node}/{_whole_name(kind, name)}"
        if wanted == "nic" and kind == "port":
            return f"nic/{node}/{name.rpartition('.')[0]}"
        return ""

    def all_at(self, node: str, component: str, wanted: str) -> tuple[str, ...]:
        """All scopes of type `wanted` that an event of this component belongs to: both power feeds of a node, the leaf
        switches of all rails; of a device on a rail, that rail's alone.
        """
        if wanted in WIDE:
            place = self.places.get(node, _NOWHERE) if wanted == "leaf" else _NOWHERE
            if not place.rails or not _rail(place, component):
                return self._of_kind.get(node, _OF_KIND_NOWHERE).get(wanted, ())
        scope = self.at(node, component, wanted)
        return (scope,) if scope else ()

    def contains(self, outer: str, inner: str) -> bool:
        """Whether `inner` is the same scope as `outer` or within it."""
        if outer in (inner, CELL, "all"):
            return True
        node = node_of(inner)
        if not node:
            return False
        kind = type_of(outer)
        if kind in WIDE:
            return outer in self.above(node) and not (kind == "leaf" and self._other_rail(outer, inner))
        if kind == "nic" and type_of(inner) == "port":
            return outer == f"nic/{node}/{inner.rpartition('/')[2].rpartition('.')[0]}"
        return outer == f"node/{node}"

    def _other_rail(self, leaf: str, inner: str) -> bool:
        """Whether a component is connected to another leaf switch of its node."""
        place = self.places.get(node_of(inner), _NOWHERE)
        own = _rail(place, component_of(inner)) if place.rails else ""
        return bool(own) and leaf != f"leaf/{own}"

    def serves(self, outer: str, inner: str) -> bool:
        """Whether a fault of `outer` shows at `inner`: it contains it, or is an NVSwitch, which links all GPUs of its node."""
        if type_of(outer) == "nvswitch" and type_of(inner) == "gpu":
            return node_of(outer) == node_of(inner)
        return self.contains(outer, inner)

    def overlap(self, one: str, other: str) -> bool:
        """Whether one of the two contains the other."""
        return self.contains(one, other) or self.contains(other, one)

    def meet(self, one: str, other: str) -> bool:
        """Whether the two overlap, or a node stands in both, as in a rack and a leaf."""
        if self.overlap(one, other):
            return True
        if node_of(one) or node_of(other):
            return False  # what a node stands in is wider than a node
        return any(one in above and other in above for above in map(self.above, self.places))

    def size(self, scope: str, known: int) -> int:
        """How many nodes a scope has. `known`: the number of nodes heard of, for scopes that no node's place names."""
        if type_of(scope) == JOB:
            return 0  # nobody says how many it has
        if scope == CELL or type_of(scope) == "fabric":
            return max(known, self._sizes.get(scope, 0), len(self.places) if scope == CELL else 0)
        return self._sizes.get(scope, 0) or known

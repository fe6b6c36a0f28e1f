"""From facts to columns. Works beside the event loop, in small pieces. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

import orjson

from brain.console import shapes
from brain.console.api.fleet_shapes import FleetCardsShape, FleetIncidentsShape, FleetShape, NodeWord
from brain.console.fleet.facts import INVENTORY, Facts, OpenIncident
from brain.core.operators.scopes import ALL
from brain.core.pack.spec import Place
from brain.core.pack.topology import CELL, node_of, type_of
from brain.core.state import IncidentState, State

WORDS = list(NodeWord)  # the most urgent first
_RANK = {word: rank for rank, word in enumerate(WORDS)}
_PIECE = 500  # nodes between two pauses
_COUNT = re.compile(r"(?:^|, )(\d{1,4}) ")  # `8 NVIDIA H100 80GB HBM3, 1 Tesla T4`
_NOWHERE = Place()
Pause = Callable[[], None]


class _Names:
    """A column of names as numbers."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.column: list[int] = []

    def add(self, name: str) -> None:
        self.column.append(self.known.setdefault(name, len(self.known)) if name else -1)


def columns(facts: Facts, since: float | None, pause: Pause) -> FleetShape:
    """Returns the fleet. `pause` is called between small pieces of work."""
    names = sorted(facts.nodes)
    incidents = sorted(facts.incidents, key=lambda one: (one.severity, one.id))
    by_node, words, silent = _of_nodes(incidents, pause)
    state: list[int] = []
    worst: list[int] = []
    gpus: list[int] = []
    racks, leaves, pods, agents, drivers, jobs = (_Names() for _ in range(6))
    for number, name in enumerate(names):
        if number % _PIECE == 0:
            pause()
        alive = facts.nodes[name]
        if alive is False or name in silent:
            own = min(words.get(name, NodeWord.WELL), NodeWord.UNREACHABLE, key=_RANK.__getitem__)
        else:
            own = words.get(name, NodeWord.UNKNOWN if alive is None else NodeWord.WELL)
        if name in facts.drained:
            own = min(own, NodeWord.DRAINED, key=_RANK.__getitem__)
        state.append(_RANK[own])
        worst.append(by_node.get(name, -1))
        count, driver = _told(facts.told.get(name, ""))
        gpus.append(count)
        drivers.add(driver)
        place = facts.places.get(name, _NOWHERE)
        racks.add(place.rack)
        leaves.add(place.leaf)
        pods.add(place.pod)
        agents.add(facts.agents.get(name, ""))
        jobs.add(facts.jobs.get(name, ""))
    named = {name: number for number, name in enumerate(names)}
    return FleetShape(
        at=None if facts.at is None else shapes.iso(facts.at),
        since=since,
        words=WORDS,
        names=names,
        state=state,
        incident=worst,
        held=_held(facts, names, pause),
        gpus=gpus,
        cards=_cards(incidents, named),
        incidents=FleetIncidentsShape(
            id=[one.id for one in incidents],
            severity=[one.severity for one in incidents],
            state=[one.state for one in incidents],
            cause=[one.cause for one in incidents],
            scope=[one.scope for one in incidents],
        ),
        racks=list(racks.known),
        rack=racks.column,
        leaves=list(leaves.known),
        leaf=leaves.column,
        pods=list(pods.known),
        pod=pods.column,
        agents=list(agents.known),
        agent=agents.column,
        drivers=list(drivers.known),
        driver=drivers.column,
        jobs=list(jobs.known),
        job=jobs.column,
    )


def word(state: str, *, asks: bool) -> NodeWord:
    """Returns the word of an incident's state. `asks`: a run of it waits for an approval."""
    if asks or state == IncidentState.NEEDS_HUMAN:
        return NodeWord.NEEDS_HUMAN
    return NodeWord.HEALING if state == IncidentState.HEALING else NodeWord.SUSPECT


def most_urgent(words: Iterable[NodeWord], otherwise: NodeWord) -> NodeWord:
    """Returns the most urgent of some words; `otherwise`: where there is none."""
    return min(words, key=_RANK.__getitem__, default=otherwise)


def _of_nodes(
    incidents: Sequence[OpenIncident], pause: Pause
) -> tuple[Mapping[str, int], Mapping[str, NodeWord], frozenset[str]]:
    """(node -> its most severe incident, node -> word, nodes of which an incident says that they are not heard)."""
    worst: dict[str, int] = {}
    words: dict[str, NodeWord] = {}
    silent: set[str] = set()
    for number, one in enumerate(incidents):
        pause()
        own = word(one.state, asks=one.asks)
        for node in one.nodes:
            worst.setdefault(node, number)
            words[node] = min(words.get(node, own), own, key=_RANK.__getitem__)
        if one.silence:
            silent.update(one.nodes)
    return worst, words, frozenset(silent)


def _cards(incidents: Sequence[OpenIncident], named: Mapping[str, int]) -> FleetCardsShape:
    found: dict[str, tuple[int, NodeWord]] = {}
    for number, one in enumerate(incidents):
        if type_of(one.scope) == "gpu" and node_of(one.scope) in named:
            own = word(one.state, asks=one.asks)
            first, before = found.get(one.scope, (number, own))
            found[one.scope] = (first, min(before, own, key=_RANK.__getitem__))
    return FleetCardsShape(
        node=[named[node_of(scope)] for scope in found],
        card=[scope.split("/", 2)[2] for scope in found],
        state=[_RANK[own] for _, own in found.values()],
        incident=[number for number, _ in found.values()],
    )


def _held(facts: Facts, names: Sequence[str], pause: Pause) -> list[int]:
    held = frozenset(facts.held)
    if ALL in held or CELL in held:
        return list(range(len(names)))
    nodes = frozenset(map(node_of, held)) - {""}
    wide: dict[str, set[str]] = {}  # kind -> names of the held places; there are few
    for scope in held:
        if not node_of(scope):
            wide.setdefault(type_of(scope), set()).add(scope.partition("/")[2])
    return [
        number
        for number, name in _paused(names, pause)
        if name in nodes or _stands_in(facts.places.get(name, _NOWHERE), wide)
    ]


def _stands_in(place: Place, wide: Mapping[str, set[str]]) -> bool:
    return any(not wanted.isdisjoint(place.names(kind)) for kind, wanted in wide.items())


def _paused(names: Sequence[str], pause: Pause) -> Iterable[tuple[int, str]]:
    for number, name in enumerate(names):
        if number % _PIECE == 0:
            pause()
        yield number, name


def gpus_of(state: State) -> int:
    """How many GPUs the cell's nodes have told of."""
    told = (_told(text)[0] for key, text in state.peers.items() if key.startswith(INVENTORY))
    return sum(max(0, count) for count in told)


@lru_cache(maxsize=1024)
def _told(text: str) -> tuple[int, str]:
    """(number of GPUs or -1, driver) of what a node told of itself; equal nodes tell the same."""
    if not text:
        return -1, ""
    told = orjson.loads(text)
    models = told.get("gpu_models")
    count = -1 if models is None else sum(map(int, _COUNT.findall(models)))
    return count, str(told.get("driver", ""))

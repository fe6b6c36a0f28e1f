"""Where a path of the data network is bad: at one node's interface, at the uplinks of its leaf switch, or only between two. Pure.

Nodes tell which of the peers that they probe lose packets, do not answer or have become slow (probe.loss, probe.slow), and each
knows its own end only. Here both ends are laid beside each other:

    link     (nearly) all of its peers show it                       → this interface, its cable or its switch port
    across   all behind other leaf switches, and none of its own     → the uplinks of its leaf switch
    path     some, and what their own nodes tell does not explain it → one path between the two, told once

A peer that does not answer while its node is unreachable, or has been back for a few minutes only, says nothing of a path.
That many nodes of one leaf switch show it is what the rules for shared causes see, as of any other symptom. Decision 126.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from agent.contract.messages import Event, Scalar, Severity, clip
from brain.core.context import Context
from brain.core.faults import symptoms
from brain.core.pack.vocabulary import FLEET_PATH
from brain.core.state import ProbedPaths, SymptomState

_WHAT = {"probe.loss": "loss", "probe.slow": "slow"}
_CARRIED = ("lost_percent", "median_us", "usual_us", "p99_us")
LINK, ACROSS, PATH, NONE = "link", "across", "path", "none"
_NEARLY_ALL = 0.75  # of the peers
_SEVERAL = 2  # peers, before something is said of the end that they have in common
BACK_S = 300.0  # so long after its return a node may still have to start what answers
HOLDS_S = 1500.0  # told again every ten minutes: after two and a half of them it holds no more
MAX_LINKS = 32  # interfaces of one node; as many as it may tell of


class PathLookup:
    """Lookups in `State.paths`, built from it: never saved."""

    def __init__(self, told: Iterable[tuple[str, ProbedPaths]]) -> None:
        self._of_node: dict[tuple[str, str], dict[str, None]] = {}
        self._naming: dict[tuple[str, str], dict[str, None]] = {}
        for key, paths in told:
            self.add(key, paths)

    def add(self, key: str, paths: ProbedPaths) -> None:
        """What a node tells of one interface."""
        self._of_node.setdefault((paths.what, paths.node), {})[key] = None
        for peer in _ill(paths):
            self._naming.setdefault((paths.what, peer), {})[key] = None

    def take(self, key: str, paths: ProbedPaths) -> None:
        """It tells it no more."""
        _take(self._of_node, (paths.what, paths.node), key)
        for peer in _ill(paths):
            _take(self._naming, (paths.what, peer), key)

    def of_node(self, what: str, node: str) -> list[str]:
        """Keys of what a node tells of its interfaces, in the order of their names."""
        return sorted(self._of_node.get((what, node), ()))

    def naming(self, what: str, node: str) -> list[str]:
        """Keys of what is told of paths to a node, likewise."""
        return sorted(self._naming.get((what, node), ()))


def feed(ctx: Context, event: Event) -> list[SymptomState]:
    """Takes what a node tells of its paths. Returns the symptoms that began, ended or go on."""
    what = _WHAT.get(event.kind)
    if what is None:
        return []
    known = _known(ctx)
    changed = list(_forget_old(ctx, known))
    key, data = f"{what} {event.node} {event.component}", event.data
    before = ctx.state.paths.get(key)
    at = ctx.now - event.age_s
    if (before is not None and at < before.at) or event.age_s > HOLDS_S:
        return changed  # it was overtaken
    if data.get("active") is not True:
        return changed + (_remove(ctx, known, key) if before is not None else [])
    if before is None and len(known.of_node(what, event.node)) >= MAX_LINKS:
        return changed
    told = ProbedPaths(
        what=what, node=event.node, component=event.component, at=at, arrived=ctx.now,
        near=_whole(data.get("near")), far=_whole(data.get("far")), near_ill=str(data.get("near_ill", "")),
        far_ill=str(data.get("far_ill", "")), silent=str(data.get("silent", "")), evidence=event.evidence,
        figures={name: float(value) for name in _CARRIED if isinstance(value := data.get(name), int | float)},
        place=before.place if before is not None else NONE, end=NONE,
    )  # fmt: skip
    if before is not None:
        known.take(key, before)
        del ctx.state.paths[key]  # the newest stands last
    ctx.state.paths[key] = replace(told, end=_end(ctx, told))
    known.add(key, told)
    changed += _tell(ctx, known, key, again=True)
    return changed + _others(ctx, known, told, before)


def forget_node(ctx: Context, node: str) -> list[SymptomState]:
    """It is gone for good. Returns the symptoms of others that began or ended without it."""
    known = _known(ctx)
    keys = [key for what in _WHAT.values() for key in known.of_node(what, node)]
    return [symptom for key in keys for symptom in _remove(ctx, known, key)]


def _remove(ctx: Context, known: PathLookup, key: str) -> list[SymptomState]:
    before = ctx.state.paths.pop(key)
    known.take(key, before)
    changed = list(symptoms.feed(ctx, _event(ctx, before, NONE, ()))) if before.place != NONE else []
    return changed + _others(ctx, known, before, None)


def _others(
    ctx: Context, known: PathLookup, told: ProbedPaths, before: ProbedPaths | None
) -> list[SymptomState]:
    """Judges again what other nodes tell of paths to this one, and what those tell to which its paths lead or led."""
    peers = dict.fromkeys((*_ill(told), *(_ill(before) if before is not None else ())))
    keys = dict.fromkeys(
        (
            *known.naming(told.what, told.node),
            *(key for peer in peers for key in known.of_node(told.what, peer)),
        )
    )
    return [
        symptom
        for key in keys
        if ctx.state.paths[key].node != told.node
        for symptom in _tell(ctx, known, key, again=False)
    ]


def _tell(ctx: Context, known: PathLookup, key: str, *, again: bool) -> list[SymptomState]:
    """Tells where the fault is, when that has changed, or `again`."""
    told = ctx.state.paths[key]
    peers = _ill(told)
    place = told.end
    if place == PATH:
        down = _down(ctx, told)
        peers = tuple(peer for peer in peers if peer not in down and not _explained(ctx, known, told, peer))
        place = PATH if peers else NONE
    said = f"{place} {', '.join(peers)}"
    if told.said == said and not again:
        return []
    ctx.state.paths[key] = replace(told, place=place, said=said)
    if place == NONE and told.place == NONE:
        return []
    return list(symptoms.feed(ctx, _event(ctx, told, place, peers)))


def _end(ctx: Context, told: ProbedPaths) -> str:
    """What a node's own words say of its own end; PATH where they say nothing of it."""
    down = _down(ctx, told)
    near_ill = sum(peer not in down for peer in _names(told.near_ill))
    far_ill = sum(peer not in down for peer in _names(told.far_ill))
    near = max(near_ill, told.near - sum(peer in down for peer in _names(told.near_ill)))
    far = max(far_ill, told.far - sum(peer in down for peer in _names(told.far_ill)))
    if near_ill + far_ill == 0:
        return NONE
    if near and not near_ill and far_ill == far and far >= _SEVERAL:
        return ACROSS
    enough = near_ill + far_ill >= _SEVERAL and near_ill + far_ill >= _NEARLY_ALL * (near + far)
    return LINK if enough else PATH


def _down(ctx: Context, told: ProbedPaths) -> frozenset[str]:
    """Those of its silent peers that are unreachable anyway, or that nobody has heard."""

    def down(peer: str) -> bool:
        node = ctx.state.nodes.get(peer)
        return node is None or not node.alive or (bool(node.back_at) and ctx.now - node.back_at < BACK_S)

    return frozenset(peer for peer in _names(told.silent) if down(peer))


def _explained(ctx: Context, known: PathLookup, told: ProbedPaths, peer: str) -> bool:
    """Whether what the peer's node tells is why, or it tells of the same path, which is told once."""
    across = peer in _names(told.far_ill)
    for key in known.of_node(told.what, peer):
        other = ctx.state.paths[key]
        if other.end == LINK or (other.end == ACROSS and across):
            return True
        if other.end == PATH and peer < told.node and told.node in _ill(other):
            return True
    return False


def _forget_old(ctx: Context, known: PathLookup) -> Iterator[SymptomState]:
    while ctx.state.paths:
        key = next(iter(ctx.state.paths))
        if ctx.state.paths[key].arrived > ctx.now - HOLDS_S:
            return
        yield from _remove(ctx, known, key)


def _known(ctx: Context) -> PathLookup:
    known: PathLookup | None = ctx.index.paths
    if known is None:
        known = ctx.index.paths = PathLookup(ctx.state.paths.items())
    return known


def _event(ctx: Context, told: ProbedPaths, place: str, peers: tuple[str, ...]) -> Event:
    data: dict[str, Scalar] = {
        "what": told.what, "place": place, "peers": clip(", ".join(peers)), "near": told.near, "far": told.far,
        **told.figures,
    }  # fmt: skip
    return Event(
        id=ctx.cause, node=told.node, kind=FLEET_PATH, component=told.component,
        severity=Severity.INFO if place == NONE else Severity.WARNING, at="", age_s=0.0, boot="", count=1, data=data,
        evidence=told.evidence if place != NONE else "its paths are well, or another end explains them",
    )  # fmt: skip


def _ill(told: ProbedPaths) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*_names(told.near_ill), *_names(told.far_ill))))


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(", ")) if text else ()


def _whole(value: Scalar | None) -> int:
    return value if isinstance(value, int) and 0 <= value < 1000 else 0


def _take(kept: dict[tuple[str, str], dict[str, None]], place: tuple[str, str], key: str) -> None:
    here = kept.get(place)
    if here is not None:
        here.pop(key, None)
        if not here:
            del kept[place]

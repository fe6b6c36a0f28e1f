"""Reads topology.yaml.

    gpu-[001-016]: {leaf: leaf-1, rack: r1}      # nodes: one name, or several in Slurm's short form
    gpu-017: {leaf: {mlx5_0: rail-0, mlx5_1: rail-1}, rack: r2, power: [feed-a, feed-b]}
    rack/r1: {row: a, power: [feed-a, feed-b]}   # a place: what all that stands in it stands in, too

What an entry of nodes says of a kind goes before what a place says. A node may stand in several entries, each of which says
something else of it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from agent.contract import subjects
from agent.contract.errors import ConfigError
from brain import hostlist, marked_yaml
from brain.core.pack.spec import Place
from brain.core.pack.topology import WIDE
from brain.marked_yaml import Document
from brain.topology.site_map import Names, SiteMap, inherited, placed, wrong_name

_SHOWN = 20  # errors that a message lists


@dataclass(slots=True, kw_only=True)
class _Entry:
    """What one entry, or all entries of one node, say."""

    kinds: dict[str, Names] = field(default_factory=dict)
    rails: dict[str, str] = field(default_factory=dict)
    # kind -> line that says it
    lines: dict[str, int] = field(default_factory=dict)


def read_places(path: Path) -> dict[str, Place]:
    """Node -> place of a file; ConfigError names file, line and key of what is wrong with it."""
    site = read(path)
    if site.errors:
        more = len(site.errors) - _SHOWN
        shown = [str(error) for error in site.errors[:_SHOWN]]
        raise ConfigError("\n".join([*shown, *([f"{path}: and {more} more errors"] if more > 0 else [])]))
    return site.places


def read(path: Path, shown: str = "") -> SiteMap:
    """Reads a file, with everything that is wrong with it; `shown` is its name in messages."""
    document = marked_yaml.read(path, shown or str(path))
    site = SiteMap(source=document.file, errors=document.errors)
    if document.value is None:
        return site
    if not isinstance(document.value, dict):
        site.error(1, "", "wants `NODE: {leaf: NAME, rack: NAME}`, a line for each node")
        return site
    nodes: dict[str, _Entry] = {}
    around: dict[str, _Entry] = {}
    for key, value in document.value.items():
        entry = _entry(document, site, key, value)
        if "/" in key:
            kind, _, name = key.partition("/")
            if _is_place(site, document, key, kind, name, entry):
                around[key] = entry
            continue
        for node in _nodes(document, site, key):
            site.lines.setdefault(node, document.line((key,)))
            _add(site, node, nodes.setdefault(node, _Entry()), entry)
    _resolve(site, nodes, around)
    return site


def _entry(document: Document, site: SiteMap, key: str, value: Any) -> _Entry:
    entry = _Entry()
    if value is None:
        return entry
    if not isinstance(value, dict):
        site.error(document.line((key,)), key, f"wants {{leaf: NAME, rack: NAME}} (kinds: {', '.join(WIDE)})")
        return entry
    for kind, said in value.items():
        line = document.line((key, kind))
        if kind not in WIDE:
            close = get_close_matches(kind, WIDE, n=1)
            meant = f": did you mean {close[0]}?" if close else f" (have: {', '.join(WIDE)})"
            site.error(line, f"{key}.{kind}", f"unknown key{meant}")
            continue
        if isinstance(said, dict) and kind == "leaf":
            entry.rails = {device: leaf for device, leaf in said.items() if isinstance(leaf, str)}
            said = list(said.values())
        names: list[str] = []
        for name in said if isinstance(said, list) else [said]:
            wrong = wrong_name(name) if isinstance(name, str) else "is no text: write it in quotes"
            if wrong:
                site.error(line, f"{key}.{kind}", wrong)
            elif name not in names:
                names.append(name)
        if names:
            entry.kinds[kind], entry.lines[kind] = tuple(names), line
    return entry


def _is_place(site: SiteMap, document: Document, key: str, kind: str, name: str, entry: _Entry) -> bool:
    """Whether an entry is one of a place that can stand somewhere."""
    line = document.line((key,))
    if kind not in WIDE:
        site.error(line, key, f"there is no kind of place {kind!r} (have: {', '.join(WIDE)})")
        return False
    if wrong := wrong_name(name):
        site.error(line, key, f"the name {wrong}")
        return False
    if entry.rails:
        site.error(entry.lines["leaf"], f"{key}.leaf", "devices belong to nodes, not to places")
        return False
    if kind in entry.kinds:
        site.error(entry.lines[kind], f"{key}.{kind}", f"a {kind} stands in no {kind}")
        return False
    return True


def _nodes(document: Document, site: SiteMap, key: str) -> Iterator[str]:
    """The nodes that a key names."""
    line = document.line((key,))
    try:
        names = hostlist.expand(key) if set("[],") & set(key) else [key]
    except ValueError as error:
        site.error(line, key[:60], str(error))
        return
    for name in names:
        try:
            subjects.token(name, "node")
        except ConfigError as error:
            site.warn(line, key[:60], f"no node can have this name: {error}")
        else:
            yield name


def _add(site: SiteMap, node: str, whole: _Entry, entry: _Entry) -> None:
    for kind, names in entry.kinds.items():
        before = whole.lines.get(kind)
        if before is None:
            whole.kinds[kind], whole.lines[kind] = names, entry.lines[kind]
            continue
        now, was = ", ".join(names), ", ".join(whole.kinds[kind])
        text = (
            f"is {now} here and {was} in line {before}"
            if now != was
            else f"occurs twice, first in line {before}"
        )
        site.error(entry.lines[kind], f"{node}.{kind}", text)
    whole.rails |= entry.rails


def _resolve(site: SiteMap, nodes: Mapping[str, _Entry], around: Mapping[str, _Entry]) -> None:
    """Makes the places of the nodes."""
    widened: dict[str, dict[str, Names]] = {}
    for scope in around:
        _widen(site, scope, around, widened, ())
    site.within |= widened
    shared: dict[tuple[tuple[str, Names], ...], Place] = {}
    for node, entry in nodes.items():
        own = tuple(entry.kinds.items())
        place = shared.get(own) if not entry.rails else None
        if place is None:
            place = placed({**inherited(entry.kinds, widened), **entry.kinds}, entry.rails)
            if not entry.rails:
                shared[own] = place
        site.places[node] = place


def _widen(
    site: SiteMap,
    scope: str,
    around: Mapping[str, _Entry],
    widened: dict[str, dict[str, Names]],
    path: tuple[str, ...],
) -> dict[str, Names]:
    """All that a place stands in: kind -> names."""
    if scope in widened:
        return widened[scope]
    entry = around.get(scope)
    if entry is None:
        return {}
    if scope in path:
        circle = " in ".join([*path[path.index(scope) :], scope])
        site.error(min(entry.lines.values(), default=1), scope, f"stands in itself: {circle}")
        return {}
    whole = dict(entry.kinds)
    for kind, names in entry.kinds.items():
        for name in names:
            further = _widen(site, f"{kind}/{name}", around, widened, (*path, scope))
            for wider, more in further.items():
                if wider not in entry.kinds and wider != scope.partition("/")[0]:
                    whole[wider] = tuple(dict.fromkeys((*whole.get(wider, ()), *more)))
    widened[scope] = whole
    return whole

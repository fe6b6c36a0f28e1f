"""What is known of where the nodes of a site stand, and what is wrong with it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from brain.core.pack.spec import Place
from brain.core.pack.topology import WIDE
from brain.marked_yaml import Diagnostic

UNNAMED = Place().fabric  # the fabric of whoever names none
MAX_NAME = 100  # characters of a name
Names = tuple[str, ...]
Known = Mapping[str, Names]  # kind -> names, the first one first


@dataclass(slots=True, kw_only=True)
class SiteMap:
    """Places of nodes from one source."""

    # Its file, as it is named in messages
    source: str
    # node -> place; nodes with equal places may share one
    places: dict[str, Place] = field(default_factory=dict)
    # place, as in `rack/r1` -> all that it stands in: kind -> names
    within: dict[str, dict[str, Names]] = field(default_factory=dict)
    # node -> line that names it first; empty: the source is no file with lines
    lines: dict[str, int] = field(default_factory=dict)
    # What keeps a brain from using it
    errors: list[Diagnostic] = field(default_factory=list)
    # What may be meant otherwise
    warnings: list[Diagnostic] = field(default_factory=list)

    def error(self, line: int, key: str, text: str) -> None:
        """Adds what keeps a brain from using it."""
        self.errors.append(Diagnostic(file=self.source, line=line, key=key, text=text))

    def warn(self, line: int, key: str, text: str) -> None:
        """Adds what may be meant otherwise."""
        self.warnings.append(Diagnostic(file=self.source, line=line, key=key, text=text))


def known(place: Place) -> dict[str, Names]:
    """What is known of a place: kind -> names. A fabric that nobody named is not."""
    found = {kind: names for kind in WIDE if (names := place.names(kind))}
    if found.get("fabric") == (UNNAMED,):
        del found["fabric"]
    return found


def placed(kinds: Known, rails: Mapping[str, str] | None = None) -> Place:
    """The place of which this is known."""
    on_rails = tuple(dict.fromkeys((rails or {}).values()))
    if set(on_rails) != set(kinds.get("leaf", ())) or len(on_rails) < 2:
        rails, on_rails = {}, ()  # one leaf switch for all devices, or one that is none of a device
    else:
        kinds = {**kinds, "leaf": on_rails}
    also = tuple(
        f"{kind}/{name}"
        for kind in WIDE
        for name in kinds.get(kind, ())[1:]
        if not (kind == "leaf" and name in on_rails)
    )
    firsts = {kind: names[0] for kind, names in kinds.items() if names}
    return replace(Place(), **firsts, also=also, rails=dict(rails or {}))


def inherited(own: Known, within: Mapping[str, Known]) -> dict[str, Names]:
    """Where places stand that are known of a node, by `SiteMap.within`: kind -> names."""
    found: dict[str, Names] = {}
    for kind, names in own.items():
        for name in names:
            for wider, more in within.get(f"{kind}/{name}", {}).items():
                found[wider] = tuple(dict.fromkeys((*found.get(wider, ()), *more)))
    return found


def wrong_name(name: str) -> str:
    """What is wrong with the name of a place; empty: nothing."""
    if not name.strip():
        return "is empty"
    if name != name.strip():
        return "begins or ends with a blank"
    if not name.isprintable():
        return f"has a character that cannot be printed: {name[:40]!r}"
    return f"is longer than {MAX_NAME} characters" if len(name) > MAX_NAME else ""


def members(places: Mapping[str, Place], kind: str) -> dict[str, list[str]]:
    """Name -> its nodes, for all places of one kind, by name."""
    found: dict[str, list[str]] = {}
    for node, place in places.items():
        for name in place.names(kind):
            found.setdefault(name, []).append(node)
    return dict(sorted(found.items()))


def unplaced(places: Mapping[str, Place], nodes: Iterable[str]) -> dict[str, list[str]]:
    """Kind -> the nodes of which it is not known, for kinds that are known of some node."""
    nowhere = Place()
    kinds = {
        id(place): known(place) for place in {id(one): one for one in (nowhere, *places.values())}.values()
    }
    used = {kind for each in kinds.values() for kind in each}
    told = [(node, kinds[id(places.get(node, nowhere))]) for node in nodes]
    missing = {kind: [node for node, each in told if kind not in each] for kind in WIDE if kind in used}
    return {kind: lacking for kind, lacking in missing.items() if lacking}

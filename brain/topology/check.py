"""What is odd in the places of a site: each may be meant so, and often is a slip. Pure."""

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from statistics import median

from agent.contract.counted import counted
from brain import hostlist
from brain.core.pack.spec import Place
from brain.core.pack.topology import WIDE
from brain.topology.site_map import SiteMap, members, unplaced

# A place of the first kind stands in one place of the second.
WITHIN = (
    ("chassis", "rack"),
    ("leaf", "fabric"),
    ("leaf", "pod"),
    ("rack", "row"),
    ("rack", "room"),
    ("row", "room"),
    ("pod", "fabric"),
)
ALONE = tuple(kind for kind in WIDE if kind not in ("chassis", "fabric"))  # one node makes none of these
UNEVEN = 3  # times as many nodes as the median of its kind
LEAST_UNEVEN = 8  # nodes
_SHOWN = 10  # names that one line lists


def add(site: SiteMap, heard: Collection[str] | None = None) -> None:
    """Adds what is odd to the warnings of a site. `heard`: the nodes that there are, where that is known."""
    for nodes, key, text in found(site.places, heard):
        site.warn(min((site.lines.get(node, 0) for node in nodes), default=0), key, text)


def found(places: Mapping[str, Place], heard: Collection[str] | None) -> Iterator[tuple[list[str], str, str]]:
    """(nodes that it is about, kind or place, what is odd about it)."""
    if heard is not None:
        yield from _strangers(places, heard)
    for kind in ALONE:
        by_name = members(places, kind)
        yield from _alone(kind, by_name)
        yield from _uneven(kind, by_name)
        yield from _alike(kind, by_name)
    for inner, outer in WITHIN:
        yield from _torn(places, inner, outer)
    for kind, nodes in unplaced(places, places if heard is None else sorted({*places, *heard})).items():
        whole = len(places) if heard is None else len({*places, *heard})
        yield [], kind, f"not known of {len(nodes)} of {counted(whole, 'node')}: {names(nodes)}"


def names(nodes: Collection[str]) -> str:
    """Nodes in the short form, not too many."""
    folded = hostlist.fold(nodes)
    return folded if len(folded) <= 120 else f"{hostlist.fold(sorted(nodes)[:_SHOWN])} and others"


def _strangers(places: Mapping[str, Place], heard: Collection[str]) -> Iterator[tuple[list[str], str, str]]:
    unknown = sorted(set(places) - set(heard))
    if not unknown:
        return
    close = get_close_matches(unknown[0], sorted(heard), n=1)
    meant = f": is {unknown[0]} meant to be {close[0]}?" if close else ""
    yield unknown[:1], "", f"there is no node {names(unknown)}{meant}"


def _alone(kind: str, by_name: Mapping[str, list[str]]) -> Iterator[tuple[list[str], str, str]]:
    alone = [(name, nodes) for name, nodes in by_name.items() if len(nodes) == 1]
    if len(alone) == len(by_name) > 1:
        yield (
            alone[0][1],
            kind,
            f"each of the {len(alone)} has one node only: they tell nothing of shared causes",
        )
        return
    for name, nodes in alone[:_SHOWN] if len(by_name) > 1 else ():
        yield nodes, f"{kind}/{name}", f"only {nodes[0]} stands there: is the name right?"
    if len(by_name) > 1 and (more := len(alone) - _SHOWN) > 0:
        yield alone[_SHOWN][1], kind, f"and {more} more with one node only"


def _uneven(kind: str, by_name: Mapping[str, list[str]]) -> Iterator[tuple[list[str], str, str]]:
    if len(by_name) < 3:
        return
    usual = median(map(len, by_name.values()))
    for name, nodes in by_name.items():
        if len(nodes) >= max(LEAST_UNEVEN, UNEVEN * usual):
            text = f"{len(nodes)} nodes, and half of the others have at most {usual:g}: are these two of one name?"
            yield nodes, f"{kind}/{name}", text


def _alike(kind: str, by_name: Mapping[str, list[str]]) -> Iterator[tuple[list[str], str, str]]:
    """Names that differ in what people write differently without meaning it."""
    spelled: dict[str, str] = {}
    for name, nodes in by_name.items():
        plain = "".join(letter for letter in name.casefold() if letter.isalnum())
        if plain and plain in spelled:
            yield nodes, f"{kind}/{name}", f"is it another {kind} than {spelled[plain]}?"
        spelled.setdefault(plain, name)


def _torn(places: Mapping[str, Place], inner: str, outer: str) -> Iterator[tuple[list[str], str, str]]:
    """Places whose nodes have no wider place in common."""
    for name, nodes in members(places, inner).items():
        wider: dict[tuple[str, ...], str] = {}
        for node in nodes:
            if around := places[node].names(outer):
                wider.setdefault(around, node)
        if len(wider) > 1 and not frozenset.intersection(*map(frozenset, wider)):
            (one, first), (other, second) = list(wider.items())[:2]
            text = f"is in {outer} {one[0]} by {first} and in {outer} {other[0]} by {second}"
            yield [second], f"{inner}/{name}", text

"""Puts what several sources know of a site into one. Pure.

Of each kind of place the first source that knows it of a node decides. Where a later one says something else, that is a
contradiction, unless it only calls the same nodes by another name.
"""

from collections.abc import Mapping, Sequence

from brain.core.pack.topology import WIDE
from brain.marked_yaml import Diagnostic
from brain.topology.site_map import UNNAMED, Names, SiteMap, inherited, known, placed

_SHOWN = 5  # contradictions of one kind that are told one by one


# a source, and node -> kind -> names of what it says
Told = tuple[SiteMap, Mapping[str, Mapping[str, Names]]]


def merged(sites: Sequence[SiteMap], source: str) -> SiteMap:
    """Returns all that the sites know, the first ones first, with their own errors and warnings and their contradictions."""
    whole = SiteMap(source=source)
    for site in sites:
        whole.errors += site.errors
        whole.warnings += site.warnings
    facts: list[Told] = [
        (site, {node: known(place) for node, place in site.places.items()}) for site in sites
    ]
    decided: dict[str, dict[str, tuple[Names, SiteMap]]] = {}
    for number, (site, told) in enumerate(facts):
        for kind in WIDE:
            same = _other_names(kind, told, decided) if number else {}
            against: list[str] = []
            for node, kinds in told.items():
                own = decided.setdefault(node, {})
                if kind not in kinds:
                    continue
                if kind not in own:
                    own[kind] = (kinds[kind], site)
                elif _differ(own[kind][0], kinds[kind], same):
                    against.append(node)
            _tell(whole, kind, site, told, decided, against)
    for number, site in enumerate(sites):
        if site.within:
            _inherit(whole, number, facts, decided)
    for node in sorted(decided):
        kinds = {kind: decided[node][kind][0] for kind in WIDE if kind in decided[node]}
        told_by = decided[node]["leaf"][1].places.get(node) if "leaf" in decided[node] else None
        rails = told_by.rails if told_by else {}
        whole.places[node] = placed({"fabric": (UNNAMED,)} | kinds, rails)
    return whole


def _inherit(
    whole: SiteMap, number: int, facts: Sequence[Told], decided: dict[str, dict[str, tuple[Names, SiteMap]]]
) -> None:
    """Nodes that a later source puts into a place stand in all that this one says of the place; it goes before the later ones."""
    site = facts[number][0]
    later = {id(one): (one, told) for one, told in facts[number + 1 :]}
    against: dict[tuple[str, int], list[str]] = {}
    for node, own in decided.items():
        for kind, names in inherited({kind: names for kind, (names, _) in own.items()}, site.within).items():
            if kind not in own:
                own[kind] = (names, site)
            elif own[kind][0] != names and id(own[kind][1]) in later:
                against.setdefault((kind, id(own[kind][1])), []).append(node)
                own[kind] = (names, site)
    for (kind, source), nodes in against.items():
        _tell(whole, kind, *later[source], decided, nodes)


def _differ(one: Names, other: Names, same: Mapping[str, str]) -> bool:
    """Whether `other` names a place that `one` does not. Who can name one leaf switch only names one of several."""
    return not {same.get(name, name) for name in other} <= set(one)


def _other_names(
    kind: str,
    told: Mapping[str, Mapping[str, Names]],
    decided: Mapping[str, Mapping[str, tuple[Names, SiteMap]]],
) -> dict[str, str]:
    """Name here -> name of the same nodes before, of the nodes that both know."""
    here: dict[str, list[str]] = {}
    before: dict[str, list[str]] = {}
    for node, kinds in told.items():
        if kind in kinds and kind in decided.get(node, {}):
            for name in kinds[kind]:
                here.setdefault(name, []).append(node)
            for name in decided[node][kind][0]:
                before.setdefault(name, []).append(node)
    # More than one node: a place with one node could be any other.
    by_nodes = {tuple(nodes): name for name, nodes in before.items() if len(nodes) > 1}
    return {
        name: was
        for name, nodes in here.items()
        if name not in before and (was := by_nodes.get(tuple(nodes))) is not None
    }


def _tell(
    whole: SiteMap,
    kind: str,
    site: SiteMap,
    told: Mapping[str, Mapping[str, Names]],
    decided: Mapping[str, Mapping[str, tuple[Names, SiteMap]]],
    against: list[str],
) -> None:
    for node in against[:_SHOWN]:
        names, first = decided[node][kind]
        text = (
            f"{kind} is {', '.join(names)} by {first.source} and {', '.join(told[node][kind])} here: "
            f"{', '.join(names)} is taken"
        )
        whole.warnings.append(_at(site, node, text))
    if (more := len(against) - _SHOWN) > 0:
        whole.warnings.append(_at(site, kind, f"and {more} more nodes of which it says something else"))


def _at(site: SiteMap, key: str, text: str) -> Diagnostic:
    return Diagnostic(file=site.source, line=site.lines.get(key, 0), key=key, text=text)

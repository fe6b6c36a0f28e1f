"""Which place explains best that several nodes show one symptom: the smallest that holds nearly all of them. Pure.

Places are many trees that cross: a leaf switch, a rack, a power feed, a row. A place that is ill as a whole says more than one
of which a part is, and what stayed healthy beside the ill nodes says as much as they do: `Seen.cost` weighs both. Of two places
with nearly the same ill nodes the one of lower cost is the cause; a place whose ill nodes are nearly all in one of those that
stand, and are only a part of what is ill there, is explained by that one (decision 53).
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from agent.contract.counted import counted
from brain.core.pack.topology import type_of
from brain.core.state import PlaceCandidate

STRAYS_SHARE = 0.25  # of the ill nodes of a place, so many may be outside of the one that explains it, if they are scattered
FEW_SHARE = 0.1  # so many may be, however they lie; at least one
MOSTLY = 4  # where at most one node in so many is well, these may not have noticed a fault that mostly comes of such a place
STRAY_COSTS = 2  # an ill node outside a place speaks against it as much as this many healthy ones inside
MAX_APART = 4  # so many places of one kind may have fallen ill one by one, each for a cause of its own
APART_S = 600.0  # when at least so long lies between them
MAX_CANDIDATES = 8  # that an incident lists
HIGH, MEDIUM = 0.75, 0.45  # from when on it is sure


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is seen of one place."""

    # the scope: `rack/r1`
    place: str
    # its nodes that show the symptom -> when it began there, in seconds; in the order in which that was told
    ill: dict[str, float]
    # how many nodes it has, at least as many as are ill
    of: int
    # with how many ill nodes it is a shared cause; asked only where it counts
    needed: Callable[[], float]
    # whether it is one now; one that was reached stays so while it lasts
    reached: bool
    # whether only that its nodes fell ill at once makes it one: they are a small share of it
    at_once: bool = False
    # place of its kind among all, the narrowest first: decides between places that nothing tells apart
    order: int = 0
    # faults of this kind mostly come of such places: a few of its nodes may not have noticed yet
    accused: bool = False
    # whether it is known in which place of this kind a node stands; None: not each node has one
    stands: Callable[[str], bool] | None = None
    # what speaks against it: healthy nodes inside, less the ill ones that it explains; lower is better
    cost: int = field(init=False)
    # sorts by what is the better explanation; always the same for the same places
    rank: tuple[int, int, str] = field(init=False)
    # sorts by what is the smaller place, as steadily
    by_size: tuple[int, int, str] = field(init=False)

    def __post_init__(self) -> None:
        """Counted once: in a storm a place is compared with hundreds of others."""
        well = self.of - len(self.ill)
        if self.accused and MOSTLY * well <= self.of:
            well = max(0, well - few(len(self.ill)))
        cost = well - STRAY_COSTS * len(self.ill)
        object.__setattr__(self, "cost", cost)
        object.__setattr__(self, "rank", (cost, self.order, self.place))
        object.__setattr__(self, "by_size", (self.of, self.order, self.place))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceVerdict:
    """Which place it is, and what else was considered."""

    place: str
    # 0 to 1
    sure: float
    # the chosen one first
    candidates: tuple[PlaceCandidate, ...]


def explaining(asked: str, seen: Mapping[str, Seen]) -> str:
    """The place that explains the one that is asked about; itself, when none does. Both are `reached`."""
    return best(seen[asked], Ranked(one for one in seen.values() if one.reached))


def best(present: Seen, reached: "Ranked") -> str:
    """The place among those reached that explains this one; itself, when none does."""
    present = _same_fault(present, reached)
    while (wider := _wider(present, reached)) is not None:
        present = wider
    return present.place


class Ranked:
    """The places that are reached, the better explanations first, by kind, and by size: in a storm there are hundreds."""

    def __init__(self, found: Iterable[Seen]) -> None:
        # place -> the best one with nearly the same nodes, of those that were asked about since something has changed
        self.known: dict[str, Seen] = {}
        self._most_ill: dict[str, int] = {}  # kind -> most ill nodes of one place, as above
        self._seen = {one.place: one for one in found}
        self._ranks = sorted(one.rank for one in self._seen.values())
        self._sizes = sorted(one.by_size for one in self._seen.values())
        self._of_kind: dict[str, list[tuple[int, int, str]]] = {}  # kind -> ranks of its places
        for rank in self._ranks:
            self._of_kind.setdefault(type_of(rank[2]), []).append(rank)

    def add(self, one: Seen) -> None:
        """A place is reached, or was removed and is seen anew."""
        self._changed()
        self._seen[one.place] = one
        insort(self._ranks, one.rank)
        insort(self._sizes, one.by_size)
        insort(self._of_kind.setdefault(type_of(one.place), []), one.rank)

    def remove(self, one: Seen) -> None:
        """A place is not reached any more, or is about to be seen anew."""
        self._changed()
        del self._seen[one.place]
        here = self._of_kind[type_of(one.place)]
        del self._ranks[bisect_left(self._ranks, one.rank)]
        del self._sizes[bisect_left(self._sizes, one.by_size)]
        del here[bisect_left(here, one.rank)]

    def _changed(self) -> None:
        self.known.clear()
        self._most_ill.clear()

    def better_than(self, one: Seen) -> Iterator[Seen]:
        """The better explanations, the best first."""
        return (self._seen[rank[2]] for rank in islice(self._ranks, bisect_left(self._ranks, one.rank)))

    def larger_than(self, nodes: int) -> Iterator[Seen]:
        """The places with more nodes, the smallest first."""
        first = bisect_left(self._sizes, (nodes + 1,))
        return (self._seen[size[2]] for size in islice(self._sizes, first, None))

    def beside(self, one: Seen) -> Iterator[Seen]:
        """The other places of its kind, the better explanations first."""
        here = self._of_kind.get(type_of(one.place), ())
        return (self._seen[rank[2]] for rank in here if rank[2] != one.place)

    def most_ill(self, one: Seen) -> int:
        """The most ill nodes that one place of its kind has."""
        kind = type_of(one.place)
        if kind not in self._most_ill:
            here = self._of_kind.get(kind, ())
            self._most_ill[kind] = max((len(self._seen[rank[2]].ill) for rank in here), default=0)
        return self._most_ill[kind]


def _same_fault(present: Seen, reached: Ranked) -> Seen:
    """The best of the places that hold nearly the same ill nodes, or all but scattered ones."""
    found = reached.known.get(present.place)
    if found is None:
        found = reached.known[present.place] = _least_cost(present, reached)
    return found


def _least_cost(present: Seen, reached: Ranked) -> Seen:
    while (
        better := next((one for one in reached.better_than(present) if _yields(present, one, reached)), None)
    ) is not None:
        present = better
    return present


def _wider(present: Seen, reached: Ranked) -> Seen | None:
    """The smallest place that holds nearly all ill nodes of this one, and of which they are only a part."""
    count = len(present.ill)
    for one in reached.larger_than(count):
        if (
            len(one.ill) > count
            and one.place != present.place
            and outside(present, one) <= few(count)
            and _same_fault(one, reached) is one
            and not fell_ill_apart(present.ill, one.ill)
        ):
            return one
    return None


def fell_ill_apart(inner: dict[str, float], outer: dict[str, float]) -> bool:
    """Whether the nodes of a place fell ill within ten minutes, and nearly all others of the wider place long before or after
    them: what has been there for days is not the cause of what falls ill at once. Both: node -> when it fell ill, in the order in
    which that was told.
    """
    begun = list(islice(inner.values(), 1)) + list(islice(reversed(inner.values()), 1))
    if not begun or _spans(inner, outer, min(begun), max(begun)):  # in a storm this decides, at once
        return False
    return not _spans(inner, outer, min(inner.values()), max(inner.values()))


def _spans(inner: dict[str, float], outer: dict[str, float], first: float, last: float) -> bool:
    """Whether it took longer than ten minutes, or more than a few others fell ill around that time."""
    if last - first > APART_S:
        return True
    near, most = 0, few(len(inner))
    for node in reversed(outer):
        if first - APART_S <= outer[node] <= last + APART_S and node not in inner:
            near += 1
            if near > most:
                return True
    return False


def few(count: int) -> int:
    """So many of `count` ill nodes may be strays."""
    return max(1, int(FEW_SHARE * count))


def outside(inner: Seen, outer: Seen) -> int:
    """How many ill nodes of one place are not in the other."""
    if inner.ill is outer.ill:
        return 0
    if len(inner.ill) > 4 * len(outer.ill):  # most of them, whichever they are
        return len(inner.ill) - len(outer.ill)
    return len(inner.ill) - sum(map(outer.ill.__contains__, inner.ill))


def _yields(wide: Seen, to: Seen, reached: Ranked) -> bool:
    """Whether the other place holds so many of the ill nodes that the rest are strays, or fell ill at another time elsewhere."""
    count = len(wide.ill)
    if 2 * MAX_APART * len(to.ill) < count:
        return False
    unplaced = _unplaced(wide, to)
    count -= unplaced
    strays, scattered = few(count), STRAYS_SHARE * count
    least = count - len(to.ill)  # so many are outside at least: who they are is asked only where that decides
    if least > scattered and least - (MAX_APART - 1) * reached.most_ill(to) > strays:
        return False
    if least <= strays and outside(wide, to) - unplaced <= strays:
        return True
    ill_there = (one for one in reached.beside(to) if one.place != wide.place and _mostly_in(one, wide))
    others = list(islice(ill_there, MAX_APART))  # with so many it is no matter which, and how many more
    if (
        others
        and len(others) < MAX_APART
        and (wide.at_once or all(_at_another_time(one, to) for one in others))
    ):
        return outside(wide, to) - unplaced - sum(len(one.ill) for one in others) <= strays
    return (
        not others
        and least <= scattered
        and (rest := outside(wide, to) - unplaced) <= scattered
        and rest < wide.needed()
    )


def _unplaced(wide: Seen, to: Seen) -> int:
    """How many of the ill nodes may stand in the other place, for all that is known: no more than those that do."""
    if to.stands is None or len(wide.ill) > 2 * len(to.ill) + few(len(wide.ill)):
        return 0
    unplaced = sum(not to.stands(node) for node in wide.ill)
    return unplaced if unplaced <= len(to.ill) else 0


def _mostly_in(one: Seen, wide: Seen) -> bool:
    count = len(one.ill)
    if count > 2 * len(wide.ill) or wide.ill.keys().isdisjoint(one.ill):
        return not count
    return 2 * sum(map(wide.ill.__contains__, one.ill)) >= count


def _at_another_time(one: Seen, other: Seen) -> bool:
    """Whether all nodes of one fell ill long after those of the other."""
    first, second = sorted((one.ill.values(), other.ill.values()), key=min)
    return min(second) - max(first) > APART_S


def judge(asked: str, seen: Mapping[str, Seen], *, chosen: str = "", unplaced: int = 0) -> PlaceVerdict:
    """Which place explains the ill nodes of the place that is asked about, and why no other.

    `chosen`: the place, if that is decided; else it is judged. `unplaced`: how many of the nodes have no known place.
    """
    best = seen[chosen or explaining(asked, seen)]
    total = seen[asked] if len(seen[asked].ill) > len(best.ill) else best
    held = {one.place: _inside(one, total) for one in seen.values() if one.place != best.place}
    others = [one for one in seen.values() if held.get(one.place)]
    others.sort(key=lambda one: (-held[one.place], one.rank))
    tied = [
        one
        for one in others
        if one.reached
        and one.cost == best.cost
        and one.accused == best.accused
        and one.ill.keys() == best.ill.keys()
    ]
    first = PlaceCandidate(
        place=best.place, ill=len(best.ill), of=best.of, best=True, why=_why(best, total, tied)
    )
    rest = [
        PlaceCandidate(place=one.place, ill=len(one.ill), of=one.of, why=_why_not(one, best))
        for one in others[: MAX_CANDIDATES - 1]
    ]
    sure = how_sure(ill=len(best.ill), of=best.of, total=len(total.ill), tied=bool(tied), unplaced=unplaced)
    return PlaceVerdict(place=best.place, sure=sure, candidates=(first, *rest))


def how_sure(*, ill: int, of: int, total: int, tied: bool, unplaced: int) -> float:
    """From 0 to 1: by how much of the fault is in the place, how much of the place is ill, and how many nodes say so."""
    held = min(1.0, ill / max(1, total))
    whole = min(1.0, ill / max(1, of))
    known = 1 - min(total, unplaced) / max(1, total)
    count = 1 - 0.5 ** max(0, ill - 1)
    return round(held * (0.5 + 0.5 * whole) * (0.5 + 0.5 * known) * count * (0.5 if tied else 1.0), 2)


def word(sure: float) -> str:
    """high, medium or low; empty: it was not judged."""
    if sure <= 0:
        return ""
    return "high" if sure >= HIGH else "medium" if sure >= MEDIUM else "low"


def seen_in(
    ill: Mapping[str, float],
    above: Mapping[str, Iterable[str]],
    sizes: Mapping[str, int],
    needed: Mapping[str, float],
    kinds: Sequence[str],
) -> dict[str, Seen]:
    """What is seen of each place that has an ill node, from plain data.

    `ill`: node -> when it began. `above`: node -> its places. `sizes`: place -> number of nodes. `needed`: kind of place ->
    share of its nodes, 0 to 1, that make it a shared cause, and never fewer than three. `kinds`: the narrowest first.
    """
    members: dict[str, dict[str, float]] = {}
    for node, at in ill.items():
        for place in above.get(node, ()):
            members.setdefault(place, {})[node] = at
    found = {}
    for place, nodes in members.items():
        kind = place.partition("/")[0]
        size = max(sizes.get(place, 0), len(nodes))
        least = max(3.0, needed.get(kind, 1.0) * size)
        order = kinds.index(kind) if kind in kinds else len(kinds)
        found[place] = Seen(
            place=place,
            ill=nodes,
            of=size,
            needed=partial(float, least),
            reached=len(nodes) >= least,
            order=order,
        )
    return found


def _inside(one: Seen, total: Seen) -> int:
    few_, many = sorted((one.ill, total.ill), key=len)
    return sum(map(many.__contains__, few_))


def _share(one: Seen) -> str:
    return (
        f"all of its {counted(one.of, 'node')}"
        if len(one.ill) >= one.of
        else f"{len(one.ill)} of its {counted(one.of, 'node')}"
    )


def _why(chosen: Seen, total: Seen, tied: Collection[Seen]) -> str:
    parts = [f"{_share(chosen)} {'shows' if chosen.of == 1 else 'show'} it"]
    if strays := outside(total, chosen):
        parts.append(f"{counted(strays, 'node')} outside of it {'does' if strays == 1 else 'do'}, too")
    else:
        parts.append("none outside of it does")
    if tied:
        parts.append(
            f"{' and '.join(one.place for one in tied)} has the same nodes: gpuward cannot tell them apart"
        )
    return "; ".join(parts)


def _why_not(one: Seen, chosen: Seen) -> str:
    missing = outside(chosen, one)
    if missing > few(len(chosen.ill)):
        return f"it holds only {len(chosen.ill) - missing} of the {counted(len(chosen.ill), 'node')} of {chosen.place}"
    if chosen.accused and not one.accused and one.ill.keys() == chosen.ill.keys():
        return f"the same nodes as {chosen.place}; such a fault is mostly one of a {type_of(chosen.place)}"
    if one.cost == chosen.cost and one.ill.keys() == chosen.ill.keys():
        return f"the same nodes as {chosen.place}: gpuward cannot tell them apart"
    well = one.of - len(one.ill)
    if not one.reached:
        return f"only {_share(one)} show it, too few for a cause of it all"
    if one.of > chosen.of:
        return f"{counted(well, 'node')} of it {'is' if well == 1 else 'are'} well; nearly all that show it are in {chosen.place}"
    if well:
        return f"{counted(well, 'node')} of it {'is' if well == 1 else 'are'} well, and {chosen.place} explains as much"
    return f"{chosen.place} explains more of the nodes that show it"

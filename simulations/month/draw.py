"""Draws the faults of a month from a profile: which, when, on which nodes, and all chance that will be needed later.

Common random numbers: what a remedy does to a fault, how long people take for it and how long it lasts is drawn here, once
for each fault. Every policy then meets the same faults with the same luck. Pure: the same seed gives the same month.
"""

import random
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import exp, fsum, inf
from statistics import NormalDist

from brain.core.pack.spec import Place
from simulations.faults import Fix
from simulations.month.kinds import ALWAYS, FaultKind, Reach
from simulations.month.profile import KINDS, HazardTail, Lognormal, Profile

NOISE = "noise"  # the cause of what is none


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultCase:
    """One fault, with all that chance has to say about it."""

    # f0001: in the order of their times
    id: str
    at_s: float
    # of the profile; NOISE: it only looks like a fault
    cause: str
    kind: FaultKind
    nodes: tuple[str, ...]
    # what ends it
    fixes: tuple[Fix, ...]
    part: int
    lasts_s: float
    found: bool
    # how long people take: to notice without alerts, to look, and with their hands
    notice_s: float
    look_s: float
    hands_s: float
    # what ends it for `relapse_s` only, and what makes it worse
    soothed_by: tuple[Fix, ...] = ()
    relapse_s: float = 0.0
    worsened_by: tuple[Fix, ...] = ()

    @property
    def noise(self) -> bool:
        """Whether it only looks like a fault."""
        return self.cause == NOISE

    @property
    def remote(self) -> bool:
        """Whether it can be ended without hands: by a remedy, or by itself."""
        return self.kind.benign or bool(self.fixes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RackHold:
    """People work at a rack, and nobody else is to touch its nodes."""

    at_s: float
    for_s: float
    rack: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """What all policies meet."""

    profile: Profile
    seed: int
    days: float
    places: Mapping[str, Place]
    cases: tuple[FaultCase, ...]
    holds: tuple[RackHold, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.places)


def places(profile: Profile, count: int) -> dict[str, Place]:
    """So many nodes under leaf switches and in racks."""
    fleet, width = profile.fleet, max(3, len(str(count - 1)))
    return {
        f"sim-{n:0{width}}": Place(
            leaf=f"leaf-{n // fleet.nodes_per_leaf}", rack=f"rack-{n // fleet.nodes_per_rack}"
        )
        for n in range(count)
    }


def draw(profile: Profile, *, nodes: int = 0, days: float = 0.0, seed: int = 1) -> Month:
    """The month of a seed. `nodes`, `days`: 0 for those of the profile."""
    where = places(profile, nodes or profile.fleet.nodes)
    days = days or profile.fleet.days
    chance = random.Random(f"gpuward {seed}")  # noqa: S311  a simulation, not a secret
    hazards = list(accumulate(_hazards(chance, len(where), profile.tail)))
    parts: list[tuple[str, FaultKind, float]] = []
    whole = fsum(cause.count for cause in profile.causes.values())
    for name, cause in profile.causes.items():
        shares = fsum(cause.kinds.values())
        for named, share in cause.kinds.items():
            rate = profile.faults_per_1000_node_days * cause.count / whole * share / shares
            parts.append((name, KINDS[named], rate))
    parts += [(NOISE, KINDS[named], rate) for named, rate in profile.noise_per_1000_node_days.items()]
    found: list[tuple[float, str, FaultKind, int]] = []
    for name, kind, rate in parts:
        per_s = rate / 1000 / 86400 * len(where)
        at_s = 0.0
        while per_s and (at_s := at_s + chance.expovariate(per_s)) < days * 86400:
            found.append((round(at_s, 3), name, kind, bisect(hazards, chance.random() * hazards[-1])))
    found.sort(key=lambda one: (one[0], one[1], one[2].name))
    names = list(where)
    cases = tuple(
        _case(profile, seed, n, at_s, cause, kind, hit(names, where, names[min(at, len(names) - 1)], kind))
        for n, (at_s, cause, kind, at) in enumerate(found, 1)
    )
    holds = tuple(_holds(profile, seed, where, days))
    return Month(profile=profile, seed=seed, days=days, places=where, cases=cases, holds=holds)


def _holds(profile: Profile, seed: int, where: Mapping[str, Place], days: float) -> Iterator[RackHold]:
    chance = random.Random(f"gpuward {seed} holds")  # noqa: S311  a simulation
    racks = list(dict.fromkeys(place.rack for place in where.values()))
    per_s = profile.holds.per_1000_node_days / 1000 / 86400 * len(where)
    at_s = 0.0
    while per_s and (at_s := at_s + chance.expovariate(per_s)) < days * 86400:
        yield RackHold(
            at_s=round(at_s, 3),
            for_s=profile.holds.hours * 3600,
            rack=racks[int(chance.random() * len(racks))],
        )


def hit(names: Sequence[str], where: Mapping[str, Place], node: str, kind: FaultKind) -> tuple[str, ...]:
    """The nodes that a fault hits which falls on this one."""
    match kind.reach:
        case Reach.LEAF:
            return tuple(name for name in names if where[name].leaf == where[node].leaf)
        case Reach.RACK:
            return tuple(name for name in names if where[name].rack == where[node].rack)
        case Reach.CELL:
            return tuple(names)
        case Reach.NODE:
            return (node,)


def _hazards(chance: random.Random, count: int, tail: HazardTail) -> list[float]:
    """Lognormal, so that the top share of the nodes has that share of the faults: the top q of a lognormal distribution have
    the share Phi(sigma - z(1 - q)) of its sum.
    """
    normal = NormalDist()
    sigma = normal.inv_cdf(1 - tail.share_of_nodes) + normal.inv_cdf(tail.share_of_faults)
    return [chance.lognormvariate(0.0, max(0.0, sigma)) for _ in range(count)]


def _case(
    profile: Profile, seed: int, n: int, at_s: float, cause: str, kind: FaultKind, nodes: tuple[str, ...]
) -> FaultCase:
    chance = random.Random(f"gpuward {seed} fault {n}")  # noqa: S311  its own, so that no fault shifts another's luck
    luck, found = (
        chance.random(),
        chance.random() < 0.7,
    )  # EUD finds 70 % of silent corruption: arXiv 2509.16293
    people = profile.people
    quiet = kind.harm.name in ("NONE", "SLOWS")
    lasts = Lognormal(median=kind.lasts[0], sigma=kind.lasts[1], most=inf)
    draws = [chance.gauss(0.0, 1.0) for _ in range(4)]
    remedies = remedies_of(profile, kind, luck)
    notice_s = _drawn(people.notice_minutes, draws[1], 60.0)
    if quiet:
        notice_s = _drawn(people.notice_quiet_hours, draws[1], 3600.0)
    case = FaultCase(
        id=f"f{n:05}",
        at_s=at_s,
        cause=cause,
        kind=kind,
        nodes=nodes,
        fixes=remedies.end + ALWAYS[kind.cured],
        soothed_by=remedies.soothe,
        worsened_by=remedies.worsen,
        part=chance.randrange(8),
        lasts_s=_drawn(lasts, draws[0], 1.0),
        found=found,
        notice_s=notice_s,
        look_s=_drawn(people.look_minutes, draws[2], 60.0),
        hands_s=_drawn(people.hands_hours, draws[3], 3600.0),
    )
    if not remedies.soothe:
        return case
    relapses = Lognormal(median=kind.relapses[0], sigma=kind.relapses[1], most=inf)
    return replace(case, relapse_s=_drawn(relapses, chance.gauss(0.0, 1.0), 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedies:
    """What each remedy does to one fault."""

    end: tuple[Fix, ...]
    soothe: tuple[Fix, ...]
    worsen: tuple[Fix, ...]


def remedies_of(profile: Profile, kind: FaultKind, luck: float) -> Remedies:
    """What a fault's luck, from 0 to 1, makes of each remedy."""
    cures = profile.cures_of(kind)
    return Remedies(
        end=tuple(fix for fix, share in cures.items() if luck < share),
        soothe=tuple(
            fix
            for fix, share in kind.soothes.items()
            if cures.get(fix, 0.0) <= luck < cures.get(fix, 0.0) + share
        ),
        worsen=tuple(fix for fix, share in kind.worsens.items() if luck >= 1 - share),
    )


def _drawn(what: Lognormal, z: float, unit_s: float) -> float:
    """From a standard normal draw; rounded to milliseconds, so that no library's last bit shows."""
    if what.median == inf:
        return inf
    return round(min(what.median * exp(what.sigma * z), what.most) * unit_s, 3)

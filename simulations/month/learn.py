"""Learns a profile from what a site's gpuward has seen: how often each kind of fault comes, and how unequal nodes are. Pure.

An incident names a cause, not a kind of fault. So each kind is played a few times, alone, on a small simulated fleet with the
same rules: that tells how many incidents of which causes a fault of the kind makes. The rates that explain a site's counts best
are then found by expectation maximization for Poisson counts (Richardson and Lucy), from the default profile's rates on: kinds
that gpuward cannot tell apart keep the ratio that they have there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, inf, lgamma, log
from statistics import NormalDist

from brain.core.pack.spec import Pack
from brain.core.pack.topology import node_of
from brain.core.state import Incident, IncidentState
from simulations.month.draw import FaultCase, Month, hit, places, remedies_of
from simulations.month.engine_fleet import EngineFleet
from simulations.month.kinds import ALWAYS, Cured, FaultKind
from simulations.month.profile import KINDS, JobMix, JobProfile, Profile

FEWEST = 5  # of a kind: fewer say little (95 % of 4: 1.1 to 10.2)
FEWEST_OF_TAIL = 50  # faults of all kinds
_PLAYS, _NODES, _EVERY_S = 12, 48, 4 * 3600.0
_FEW_PLAYS = 3  # of a kind that the default profile has not
_ROUNDS = 400
_AT_LEAST = 0.02  # incidents of a fault; rarer ones are of what else happened
_SIGMAS = [n / 20 for n in range(61)]
_GRID = [-4 + n / 8 for n in range(65)]  # standard normal, for the integral over hazards
_TAIL = 0.05  # of the nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteHistory:
    """What a site's gpuward has seen."""

    # node -> its leaf and its rack
    leaf: Mapping[str, str]
    rack: Mapping[str, str]
    days: float
    # (cause, node, or empty: of a wider place) of each incident that no other explains
    incidents: Sequence[tuple[str, str]]
    # hours of each hold that people put on a place; None: not known
    holds: Sequence[float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntKind:
    """How often faults of a kind come."""

    kind: str
    # in 1000 node-days; and by the default profile
    rate: float
    default: float
    # so many faults explain what was seen
    faults: float
    # empty: it was learnt; else why it is the default's
    why_default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What was learnt of a site, and what was not."""

    seen: SiteHistory
    kinds: tuple[LearntKind, ...]
    # share of the faults that the worst twentieth of the nodes has; None: too few faults
    tail: float | None
    # causes that no kind of fault here leads to, with how many
    strange: Mapping[str, int]


def roots(incidents: Iterable[Incident], quiet: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
    """The incidents of faults that no other explains, and that lasted: (cause, node)."""
    return [
        (one.cause, one.node or node_of(one.scope))
        for one in incidents
        if one.state is not IncidentState.EXPLAINED and one.id not in quiet and not asked_for(one.cause)
    ]


def asked_for(cause: str) -> bool:
    """Whether people have asked for it, and it is no fault."""
    return cause.startswith("request-")


def signatures(pack: Pack, default: Profile) -> dict[str, dict[str, float]]:
    """Kind -> cause -> incidents of one fault, by playing each kind alone."""
    usual = rates(default)
    return {
        kind.name: _signature(kind, pack, default, _PLAYS if kind.name in usual else _FEW_PLAYS)
        for kind in KINDS.values()
    }


def _signature(kind: FaultKind, pack: Pack, default: Profile, plays: int) -> dict[str, float]:
    """Each fault on another node and, where hands are needed, mended before the next one comes."""
    fleet = default.fleet.model_copy(update={"nodes": _NODES, "nodes_per_leaf": 16, "nodes_per_rack": 8})
    profile = default.model_copy(update={"fleet": fleet})
    where = places(profile, _NODES)
    cases = []
    for n in range(plays):
        first = f"sim-{n * 4:03}"
        nodes = hit(tuple(where), where, first, kind)
        remedies = remedies_of(profile, kind, (n + 0.5) / plays)
        cases.append(
            FaultCase(
                id=f"f{n:05}", at_s=600 + n * _EVERY_S, cause="learn", kind=kind, nodes=nodes,
                fixes=remedies.end + ALWAYS[kind.cured], soothed_by=remedies.soothe, relapse_s=kind.relapses[0],
                worsened_by=remedies.worsen,
                part=n % 8, lasts_s=_lasts(kind, n, plays), found=n % 10 < 7, notice_s=600.0, look_s=300.0, hands_s=1800.0,
            )
        )  # fmt: skip
    days = plays * _EVERY_S / 86400
    calm = {
        "people": profile.people.model_copy(update={"shift": (0, 24)}),
        # What waits for an idle moment has one at once.
        "jobs": JobProfile(mix=(JobMix(share=1.0, nodes=8),) if kind.cured is Cured.JOB else ()),
    }
    month = Month(
        profile=profile.model_copy(update=calm), seed=1, days=days, places=where, cases=tuple(cases),
        holds=(),
    )  # fmt: skip
    played = EngineFleet(pack, month)
    played.run(days * 86400)
    counts = Counter(cause for cause, _ in roots(played.timeline.incidents.values(), quiet_of(played)))
    begun = sum(story.begun for story in played.world.tally.stories.values())
    return {cause: n / begun for cause, n in sorted(counts.items()) if begun and n / begun >= _AT_LEAST}


def _lasts(kind: FaultKind, n: int, plays: int) -> float:
    median, sigma = kind.lasts
    if median == inf:
        return inf
    return round(median * exp(sigma * NormalDist().inv_cdf(((n * 7) % plays + 0.5) / plays)), 3)


def quiet_of(fleet: EngineFleet) -> frozenset[str]:
    """Incidents that were over before anybody would have been told."""
    return frozenset(
        note.incident
        for note in fleet.timeline.notes
        if note.kind == "incident.closed" and note.data.get("quiet")
    )


def learn(seen: SiteHistory, shapes: Mapping[str, Mapping[str, float]], default: Profile) -> Learnt:
    """The rates. `shapes`: see `signatures`. What is too rare in this time is the default's."""
    by_default = rates(default)
    node_days = max(len(seen.leaf), 1) * seen.days
    expected = {kind: by_default.get(kind, 0.0) * node_days / 1000 for kind in KINDS}
    counts = Counter(cause for cause, _ in seen.incidents)
    told = {cause for shape in shapes.values() for cause in shape}
    faults = _explained({cause: n for cause, n in counts.items() if cause in told}, shapes, expected)
    kinds = []
    for kind in KINDS:
        rate = faults[kind] / node_days * 1000
        one = LearntKind(
            kind=kind, rate=round(rate, 5), default=by_default.get(kind, 0.0), faults=faults[kind]
        )
        if not shapes.get(kind):
            one = replace(one, rate=one.default, why_default="gpuward does not see it by itself")
        elif faults[kind] < FEWEST and expected[kind] < FEWEST:
            one = replace(
                one,
                rate=one.default,
                why_default=f"too rare in {node_days:,.0f} node-days: {faults[kind]:.1f} seen, {expected[kind]:.1f} expected",
            )
        kinds.append(one)
    per_node = Counter(node for cause, node in seen.incidents if node in seen.leaf and cause in told)
    return Learnt(
        seen=seen,
        kinds=tuple(kinds),
        tail=_tail([per_node[node] for node in seen.leaf]),
        strange={cause: n for cause, n in sorted(counts.items()) if cause not in told},
    )


def rates(profile: Profile) -> dict[str, float]:
    """Kind -> how often it comes in 1000 node-days, by a profile; look-alikes too."""
    found: dict[str, float] = dict(profile.noise_per_1000_node_days)
    whole = fsum(cause.count for cause in profile.causes.values())
    for cause in profile.causes.values():
        shares = fsum(cause.kinds.values())
        for kind, share in cause.kinds.items():
            rate = profile.faults_per_1000_node_days * cause.count / whole * share / shares
            found[kind] = found.get(kind, 0.0) + rate
    return found


def _explained(
    counts: Mapping[str, int], shapes: Mapping[str, Mapping[str, float]], expected: Mapping[str, float]
) -> dict[str, float]:
    """How many faults of each kind explain the counts best."""
    least = max(1e-6, fsum(expected.values()) * 1e-4)
    usual = {cause for kind in expected if expected[kind] > 0 for cause in shapes.get(kind, {})}
    faults = {  # a kind that the default has not explains only what none of the default's does
        kind: max(expected[kind], least)
        if shapes.get(kind) and (expected[kind] > 0 or not usual.issuperset(shapes[kind]))
        else 0.0
        for kind in expected
    }
    causes = sorted({cause for shape in shapes.values() for cause in shape})
    whole = {kind: fsum(shapes.get(kind, {}).values()) for kind in expected}
    for _ in range(_ROUNDS):
        given = {
            cause: fsum(faults[kind] * shapes[kind].get(cause, 0.0) for kind in faults if kind in shapes)
            for cause in causes
        }
        ratio = {cause: counts.get(cause, 0) / given[cause] if given[cause] > 0 else 0.0 for cause in causes}
        for kind in faults:
            if whole[kind] > 0:
                more = fsum(share * ratio[cause] for cause, share in shapes[kind].items())
                faults[kind] *= more / whole[kind]
    return faults


def _tail(counts: Sequence[int]) -> float | None:
    """The share of the worst twentieth: the lognormal hazards under which Poisson counts are likeliest."""
    total = sum(counts)
    if total < FEWEST_OF_TAIL or len(counts) < 20:
        return None
    mean, many = total / len(counts), sorted(Counter(counts).items())
    best = max(_SIGMAS, key=lambda sigma: _likelihood(many, mean, sigma))
    normal = NormalDist()
    return round(normal.cdf(best - normal.inv_cdf(1 - _TAIL)), 3)


def _likelihood(many: Sequence[tuple[int, int]], mean: float, sigma: float) -> float:
    """The logarithm of it. `many`: (count, how many nodes have it)."""
    weights = [exp(-z * z / 2) for z in _GRID]
    whole, found = fsum(weights), 0.0
    for count, nodes in many:
        inner = 0.0
        for z, weight in zip(_GRID, weights, strict=True):
            hazard = mean * exp(sigma * z - sigma * sigma / 2)
            inner += weight / whole * exp(count * log(hazard) - hazard - lgamma(count + 1))
        found += nodes * log(max(inner, 1e-300))
    return found

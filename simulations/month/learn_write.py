"""Writes what was learnt as a profile: YAML with what is not learnt said beside it, and data with stable keys. Pure."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

from simulations.month.learn import FEWEST, FEWEST_OF_TAIL, Learnt, LearntKind
from simulations.month.profile import Profile

_NAMED = 6  # causes that are listed


def yaml_lines(learnt: Learnt, default: Profile, *, source: str, name: str) -> Iterator[str]:
    """The file, line by line. `name`: of the default profile."""
    found = _profile(learnt, default, source)
    fleet = found["fleet"]
    yield f"# Learnt by `gpuward simulate --learn` from {source}: {fleet['nodes']} nodes, {fleet['days']:g} days."
    yield f"# What that was too short or too blind for stands here as in {name}, and is marked."
    yield f"title: {json.dumps(found['title'])}"
    yield f"source: {json.dumps(found['source'])}"
    yield f"fleet: {_flow(fleet)}"
    yield f"faults_per_1000_node_days: {found['faults_per_1000_node_days']:g}"
    yield "causes:"
    by_kind = {one.kind: one for one in learnt.kinds}
    for cause, one in found["causes"].items():
        yield f"  {cause}: {{count: {one['count']:g}, kinds: {{{cause}: 1}}}}{_mark(by_kind[cause], name)}"
    tail = found["tail"]
    too_few = "" if learnt.tail is not None else f"  # as in {name}: fewer than {FEWEST_OF_TAIL} faults"
    yield f"tail: {_flow(tail)}{too_few}"
    if found["noise_per_1000_node_days"]:
        yield "noise_per_1000_node_days:"
        for kind, rate in found["noise_per_1000_node_days"].items():
            yield f"  {kind}: {rate:g}{_mark(by_kind[kind], name)}"
    yield f"holds: {_flow(found['holds'])}" + (f"  # as in {name}" if learnt.seen.holds is None else "")
    for part in ("jobs", "people", "times", "cures"):
        yield f"# as in {name}"
        yield f"{part}: {json.dumps(found[part])}"
    if learnt.strange:
        listed = [f"{cause} ({n})" for cause, n in list(learnt.strange.items())[:_NAMED]]
        more = f" and {len(learnt.strange) - _NAMED} more" if len(learnt.strange) > _NAMED else ""
        yield f"# Left out, since no kind of fault here leads to it: {', '.join(listed)}{more}."


def _mark(one: LearntKind, name: str) -> str:
    return f"  # as in {name}: {one.why_default}" if one.why_default else ""


def _flow(found: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {value:g}" for key, value in found.items()) + "}"


def data(learnt: Learnt, default: Profile, *, source: str) -> dict[str, Any]:
    """For scripts."""
    return {
        "profile": _profile(learnt, default, source),
        "nodes": len(learnt.seen.leaf),
        "days": round(learnt.seen.days, 3),
        "incidents": len(learnt.seen.incidents),
        "kinds": [
            {
                "kind": one.kind,
                "rate": _short(one.rate),
                "default": _short(one.default),
                "faults": round(one.faults, 2),
                "why_default": one.why_default,
            }
            for one in learnt.kinds
        ],
        "fewest": FEWEST,
        "tail": learnt.tail,
        "strange": dict(learnt.strange),
    }


def _profile(learnt: Learnt, default: Profile, source: str) -> dict[str, Any]:
    """Each kind is a cause of its own; what is noise in the default profile is noise here."""
    noise = {one.kind: one for one in learnt.kinds if one.kind in default.noise_per_1000_node_days}
    faults = {one.kind: one for one in learnt.kinds if one.kind not in noise and one.rate > 0}
    node_days = len(learnt.seen.leaf) * learnt.seen.days
    whole = sum(one.rate for one in faults.values())
    tail = default.tail.model_dump()
    if learnt.tail is not None:
        tail = {"share_of_nodes": 0.05, "share_of_faults": learnt.tail}
    fleet = {"nodes": len(learnt.seen.leaf), "days": round(learnt.seen.days, 2)}
    fleet["nodes_per_leaf"] = _per(learnt.seen.leaf, default.fleet.nodes_per_leaf)
    fleet["nodes_per_rack"] = _per(learnt.seen.rack, default.fleet.nodes_per_rack)
    return {
        "title": f"learnt from {source}",
        "source": f"{len(learnt.seen.incidents)} incidents of gpuward",
        "fleet": fleet,
        "faults_per_1000_node_days": _short(whole) or 0.001,
        "causes": {
            kind: {"count": _short(one.rate * node_days / 1000), "kinds": {kind: 1}}
            for kind, one in faults.items()
        },
        "tail": tail,
        "noise_per_1000_node_days": {kind: _short(one.rate) for kind, one in noise.items()},
        "holds": _holds(learnt, default, node_days),
        **{part: default.model_dump(mode="json")[part] for part in ("jobs", "people", "times", "cures")},
    }


def _holds(learnt: Learnt, default: Profile, node_days: float) -> dict[str, float]:
    holds = learnt.seen.holds
    if holds is None:
        return default.holds.model_dump()
    hours = [one for one in holds if one > 0]
    return {
        "per_1000_node_days": _short(len(holds) / node_days * 1000),
        "hours": round(fmean(hours), 2) if hours else default.holds.hours,
    }


def _per(place: Mapping[str, str], default: int) -> int:
    """How many nodes a place has, usually."""
    sizes = Counter(name for name in place.values() if name)
    return Counter(sizes.values()).most_common(1)[0][0] if sizes else default


def _short(value: float) -> float:
    return float(f"{value:.4g}")

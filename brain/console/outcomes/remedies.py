"""From attempts to what helps: figures with Wilson's bounds, and what they propose. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, Literal

from brain.console import shapes
from brain.console.api.outcome_shapes import (
    CameBackShape,
    OfModelShape,
    RemediesShape,
    RemedyProposalShape,
    RemedyShape,
    TakenBackShape,
)
from brain.console.speech import told
from brain.core import wilson
from brain.core.healing.results import RungResult
from brain.core.state import ModeOverride

Attempt = Mapping[str, Any]  # a row of brain/adapters/outcomes.py
Says = Literal["helps", "does_not_help", "unclear", "too_few"]
TRIES, NODES = 5, 3  # less say nothing
HELPS, HELPS_NOT = 0.5, 0.3  # what the lower bound reaches, what the upper one stays below
DAY_S = 86_400.0
_KNOWN = (RungResult.HELPED, RungResult.STILL_THERE, RungResult.FAILED)


def remedies(
    found: Sequence[Attempt],
    taken_back: Iterable[ModeOverride],
    ladders: Mapping[str, Sequence[str]],
    *,
    since: float,
    until: float,
    whole: bool,
) -> RemediesShape:
    """Returns what remedies came to. `ladders`: runbook in force -> its rungs, in order."""
    by: defaultdict[tuple[str, str, str], list[Attempt]] = defaultdict(list)
    for one in found:
        by[one["cause"], one["runbook"], one["rung"]].append(one)
    made = [_remedy(*key, own, until) for key, own in by.items()]
    made.sort(key=lambda one: (one.cause, one.runbook, _place(ladders, one), one.rung))
    return RemediesShape(
        since=shapes.iso(since),
        until=shapes.iso(until),
        reaches=shapes.iso(min((one["at"] for one in found), default=0.0)),
        whole=whole,
        remedies=made,
        taken_back=[
            TakenBackShape(runbook=one.runbook, since=shapes.iso(one.since), why=told(one.why))
            for one in taken_back
            if one.why
        ],
        proposals=[_skip(one) for one in made if one.says == "does_not_help" and _in_force(ladders, one)],
    )


def _place(ladders: Mapping[str, Sequence[str]], one: RemedyShape) -> int:
    ladder = ladders.get(one.runbook, ())
    return ladder.index(one.rung) if one.rung in ladder else len(ladder)


def _in_force(ladders: Mapping[str, Sequence[str]], one: RemedyShape) -> bool:
    return one.rung in ladders.get(one.runbook, ())


def _remedy(cause: str, runbook: str, rung: str, own: Sequence[Attempt], until: float) -> RemedyShape:
    results = Counter(one["result"] for one in own)
    known = [one for one in own if one["result"] in _KNOWN]
    nodes = len({one["node"] for one in known})
    helped = [one for one in known if one["result"] == RungResult.HELPED]
    lower, upper = wilson.bounds(len(helped), len(known))
    actions = {one["action"] for one in own}
    models: defaultdict[str, list[Attempt]] = defaultdict(list)
    for one in known:
        models[one["model"]].append(one)
    return RemedyShape(
        cause=cause,
        runbook=runbook,
        rung=rung,
        action=next(iter(actions)) if len(actions) == 1 else "",
        tried=len(known),
        helped=len(helped),
        lower=round(lower, 4),
        upper=round(upper, 4),
        still_there=results[RungResult.STILL_THERE],
        failed=results[RungResult.FAILED],
        unknown=results[RungResult.UNKNOWN],
        not_tried=results[RungResult.NOT_TRIED],
        nodes=nodes,
        took_s=round(median(one["settled_at"] - one["at"] for one in helped), 3) if helped else None,
        day=_came_back(helped, DAY_S, until),
        week=_came_back(helped, 7 * DAY_S, until),
        says=says(len(helped), len(known), nodes),
        models=sorted(
            (_of_model(model, of) for model, of in models.items()), key=lambda one: (-one.tried, one.model)
        ),
    )


def says(helped: int, tried: int, nodes: int) -> Says:
    """Returns what the figures say of a remedy."""
    lower, upper = wilson.bounds(helped, tried)
    if tried < TRIES or nodes < NODES:
        return "too_few"
    if lower >= HELPS:
        return "helps"
    return "does_not_help" if upper < HELPS_NOT else "unclear"


def _of_model(model: str, own: Sequence[Attempt]) -> OfModelShape:
    helped = sum(one["result"] == RungResult.HELPED for one in own)
    lower, upper = wilson.bounds(helped, len(own))
    return OfModelShape(
        model=model, tried=len(own), helped=helped, lower=round(lower, 4), upper=round(upper, 4)
    )


def _came_back(helped: Iterable[Attempt], within_s: float, until: float) -> CameBackShape:
    """Those that did not come back count only when the time is over."""
    back = over = 0
    for one in helped:
        came = one["back_at"] is not None and one["back_at"] <= one["settled_at"] + within_s
        back += came
        over += came or until >= one["settled_at"] + within_s
    return CameBackShape(healed=over, back=back, upper=round(wilson.bounds(back, over)[1], 4))


def _skip(one: RemedyShape) -> RemedyProposalShape:
    text = (
        f"leave {one.rung} of {one.runbook} out against {one.cause}: it helped {one.helped} of {one.tried} times on {one.nodes} "
        f"nodes, so hardly in more than {one.upper:.0%} of all cases (the ladder in runbooks/{one.runbook}.yaml)"
    )
    return RemedyProposalShape(runbook=one.runbook, cause=one.cause, rung=one.rung, text=text)

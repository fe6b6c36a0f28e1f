"""From reckoned incidents to the report, and to its table. Pure."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from brain.console import shapes, spreadsheet
from brain.console.api.base import TwoLanguagesShape
from brain.console.api.report_shapes import (
    CauseFiguresShape,
    JobFiguresShape,
    NodeFiguresShape,
    ReportFiguresShape,
    ReportShape,
    SpreadShape,
    TenantFiguresShape,
)
from brain.console.reports.reckon import Reckoned, Span, hours
from brain.console_config import PEOPLE_BEGIN_S

_LISTED = 50
_COLUMNS = (
    "id", "cause", "severity", "scope", "node", "state", "opened_at", "closed_at", "runbook", "detect_s", "decide_s", "heal_s",
    "without_people", "node_hours", "jobs", "tenants", "node_hours_saved",
)  # fmt: skip
Pause = Callable[[], None]
_NOT_KNOWN = (
    TwoLanguagesShape(
        en="Which jobs were hit where no scheduler has the node, or none has answered: it counts for no job and no tenant.",
        zh="没有调度器管理该节点，或调度器没有答复时，影响了哪些作业：这类故障不计入任何作业和租户。",
    ),
    TwoLanguagesShape(
        en="What people drained by themselves: only what gpuward keeps out of service is counted.",
        zh="人员自行排空的节点：只统计由 gpuward 停用的节点。",
    ),
)


def report(
    found: Sequence[Reckoned],
    *,
    since: float,
    until: float,
    reaches: float | None,
    whole: bool,
    people_begin_s: float = PEOPLE_BEGIN_S,
) -> ReportShape:
    """Returns the report of a time."""
    causes: defaultdict[str, list[Reckoned]] = defaultdict(list)
    nodes: defaultdict[str, list[Reckoned]] = defaultdict(list)
    for one in found:
        causes[one.cause].append(one)
        if one.node:
            nodes[one.node].append(one)
    by_node = {node: hours(_spans(own)) for node, own in nodes.items()}
    named = [
        CauseFiguresShape(cause=cause, **_figures(own, sum(hours(one.out) for one in own)).model_dump())
        for cause, own in causes.items()
    ]
    worst = [
        NodeFiguresShape(node=node, incidents=sum(one.opened_within for one in own), node_hours=by_node[node])
        for node, own in nodes.items()
    ]
    return ReportShape(
        since=shapes.iso(since),
        until=shapes.iso(until),
        reaches=None if reaches is None else shapes.iso(reaches),
        whole=whole,
        total=_figures(found, sum(by_node.values())),
        causes=sorted(named, key=lambda one: (-one.incidents, one.cause)),
        people_begin_s=people_begin_s,
        nodes=sorted(worst, key=lambda one: (-one.incidents, -one.node_hours, one.node))[:_LISTED],
        jobs=_jobs(found),
        tenants=_by_tenant(found),
        not_known=[one.en for one in _NOT_KNOWN],
        not_known_texts=list(_NOT_KNOWN),
    )


def _jobs(found: Iterable[Reckoned]) -> list[JobFiguresShape]:
    hit: defaultdict[str, list[Reckoned]] = defaultdict(list)
    whose: dict[str, str] = {}
    for one in found:
        if one.opened_within:
            for job, tenant in one.jobs.items():
                hit[job].append(one)
                whose[job] = tenant or whose.get(job, "")
    return [JobFiguresShape(job=job, tenant=whose[job], **_cost(own)) for job, own in _most(hit)]


def _by_tenant(found: Iterable[Reckoned]) -> list[TenantFiguresShape]:
    hit: defaultdict[str, list[Reckoned]] = defaultdict(list)
    jobs: defaultdict[str, set[str]] = defaultdict(set)
    for one in found:
        if one.opened_within:
            for tenant in dict.fromkeys(one.jobs.values()):
                hit[tenant].append(one)
            for job, tenant in one.jobs.items():
                jobs[tenant].add(job)
    return [
        TenantFiguresShape(tenant=tenant, jobs=len(jobs[tenant]), **_cost(own)) for tenant, own in _most(hit)
    ]


def _most(hit: Mapping[str, Sequence[Reckoned]]) -> list[tuple[str, Sequence[Reckoned]]]:
    """Those with the most incidents, first."""
    return sorted(hit.items(), key=lambda one: (-len(one[1]), one[0]))[:_LISTED]


def _cost(own: Sequence[Reckoned]) -> dict[str, Any]:
    """What the incidents of a job or tenant took, and what they cost: a node's hours once, whoever else was on it."""
    by_node: defaultdict[str, list[Span]] = defaultdict(list)
    for one in own:
        by_node[one.node].extend(one.out)
    return {
        "incidents": len(own),
        "detect": spread([one.detect_s for one in own]),
        "decide": spread([one.decide_s for one in own]),
        "heal": spread([one.heal_s for one in own]),
        "node_hours": round(sum(map(hours, by_node.values())), 4),
        "node_hours_saved": _saved(own),
    }


def _saved(own: Iterable[Reckoned]) -> float:
    return round(sum(one.saved_s for one in own) / 3600, 4)


def _tenants(one: Reckoned) -> list[str]:
    return sorted({tenant for tenant in one.jobs.values() if tenant})


def _figures(found: Iterable[Reckoned], node_hours: float) -> ReportFiguresShape:
    own = [one for one in found if one.opened_within]
    over = [one for one in own if one.over]
    return ReportFiguresShape(
        incidents=len(own),
        open=len(own) - len(over),
        healed=sum(one.heal_s is not None for one in own),
        without_people=round(sum(one.without_people for one in over) / len(over), 4) if over else None,
        detect=spread([one.detect_s for one in own]),
        decide=spread([one.decide_s for one in own]),
        heal=spread([one.heal_s for one in own]),
        node_hours=round(node_hours, 4),
        node_hours_saved=_saved(own),
    )


def _spans(found: Iterable[Reckoned]) -> list[Span]:
    return [span for one in found for span in one.out]


def spread(values: Iterable[float | None]) -> SpreadShape:
    """Returns median and p90 (the smallest value that nine in ten do not exceed) of those that are known."""
    known = sorted(one for one in values if one is not None)
    if not known:
        return SpreadShape(count=0, median_s=None, p90_s=None)
    p90 = known[math.ceil(0.9 * len(known)) - 1]
    return SpreadShape(count=len(known), median_s=round(median(known), 3), p90_s=round(p90, 3))


def table(found: Iterable[Reckoned], pause: Pause) -> bytes:
    """Returns a line for each incident that opened within the time (RFC 4180). Nothing in it is a formula to a spreadsheet."""

    def rows() -> Iterator[list[str]]:
        for one in found:
            pause()
            if one.opened_within:
                yield [_cell(value) for value in _row(one)]

    return spreadsheet.table(_COLUMNS, rows())


def _row(one: Reckoned) -> tuple[object, ...]:
    return (
        one.id, one.cause, one.severity, one.scope, one.node, one.state, shapes.iso(one.opened_at), shapes.iso(one.closed_at),
        one.runbook, one.detect_s, one.decide_s, one.heal_s, one.without_people, hours(one.out), " ".join(one.jobs),
        " ".join(_tenants(one)), one.saved_s / 3600,
    )  # fmt: skip


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}" if value.is_integer() else f"{value:.3f}"
    return spreadsheet.cell(str(value))

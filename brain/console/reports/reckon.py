"""Reckons with the history: each incident's times, and what it kept out of service. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.contract.commands import Outcome
from brain.console_config import PEOPLE_BEGIN_S
from brain.core.pack.actions import ACTIONS
from brain.core.state import IncidentState, RunState

Json = Mapping[str, Any]
Span = tuple[float, float]  # from, to, in seconds since 1970


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoned:
    """One incident. Times in seconds; None: there is none."""

    id: str
    cause: str
    severity: str
    scope: str
    node: str
    state: str
    opened_at: float
    closed_at: float
    opened_within: bool
    runbook: str
    detect_s: float | None
    decide_s: float | None
    heal_s: float | None
    over: bool
    without_people: bool
    # on its nodes, as runs and its schedulers' answers to people have named them, and whose they are; "": not known
    jobs: Mapping[str, str]
    # while it kept its node out of service, within the time of the report
    out: Sequence[Span]
    # by how much sooner its remedy began than people would have begun, where nobody had to; an estimate
    saved_s: float = 0.0


def incident(
    raw: Json, runs: Sequence[Json], since: float, until: float, people_begin_s: float = PEOPLE_BEGIN_S
) -> Reckoned:
    """Reckons one. `people_begin_s`: how long after the first sign of a fault people would have begun with its remedy."""
    opened = raw["opened_at"]
    first = min((fact["at"] for fact in raw["evidence"]), default=None)
    steps = [step for run in runs for step in run["steps"]]
    healed = [run for run in runs if run["state"] == RunState.SUCCEEDED]
    over = raw["state"] == IncidentState.CLOSED
    alone = over and not any(map(_needed_people, runs)) and _left_alone(raw, runs)
    began = healed[-1]["steps"][0]["at"] if healed and healed[-1]["steps"] else None
    return Reckoned(
        id=raw["id"],
        cause=raw["cause"],
        severity=raw["severity"],
        scope=raw["scope"],
        node=raw["node"],
        state=raw["state"],
        opened_at=opened,
        closed_at=raw["closed_at"],
        opened_within=since <= opened < until,
        runbook=healed[-1]["runbook"]["name"] if healed else raw["runbook"],
        detect_s=None if first is None else max(0.0, opened - first),
        decide_s=max(0.0, steps[0]["at"] - opened) if steps else None,
        heal_s=max(0.0, healed[-1]["ended_at"] - opened) if healed else None,
        over=over,
        without_people=alone,
        jobs=_jobs(raw, runs),
        saved_s=_saved(opened if first is None else first, began, people_begin_s) if alone else 0.0,
        out=[part for span in _out(raw, steps, until) if (part := _within(span, since, until))],
    )


def _saved(first: float, began: float | None, people_begin_s: float) -> float:
    """One node's time between the first step of a remedy and when people would have begun with it. The remedy itself takes its
    time whoever does it, and an incident of many nodes counts as one: more would be guessed.
    """
    return 0.0 if began is None else max(0.0, people_begin_s - max(0.0, began - min(first, began)))


def _jobs(raw: Json, runs: Sequence[Json]) -> dict[str, str]:
    found = {job: "" for run in runs for job in run["jobs"]}
    for told in (raw.get("hit") or {}).values():
        for one in told.get("jobs", ()):
            found[one["job"]["id"]] = one["job"].get("user", "")
    return found


def _needed_people(run: Json) -> bool:
    """Somebody approved it or asked for it, or it did not heal."""
    asked = run["requested_by"] not in ("", "schedule")
    return bool(run["approved"]) or asked or run["state"] != RunState.SUCCEEDED


def _left_alone(raw: Json, runs: Sequence[Json]) -> bool:
    """Nobody has said anything about it; where nothing was run, nobody was paged."""
    pages = raw["pages"]
    return not raw["vouched_by"] and not pages["acked_by"] and (bool(runs) or not pages["sent"])


def _out(raw: Json, steps: Iterable[Json], until: float) -> Iterator[Span]:
    """From each drain that was made to the end of it: a drain has an owner that is open (law 14)."""
    began: float | None = None
    for step in steps:
        spec = ACTIONS.get(step["action"])
        if spec is None or step["outcome"] != Outcome.OK:
            continue
        if spec.drains and began is None:
            began = step["at"]
        elif spec.returns and began is not None:
            yield began, step["at"]
            began = None
    if began is not None:
        yield began, raw["closed_at"] or until


def _within(span: Span, since: float, until: float) -> Span | None:
    began, ended = max(span[0], since), min(span[1], until)
    return (began, ended) if began < ended else None


def hours(spans: Iterable[Span]) -> float:
    """Returns the hours of some spans, what several cover once."""
    total = 0.0
    covered = float("-inf")
    for began, ended in sorted(spans):
        total += max(0.0, ended - max(began, covered))
        covered = max(covered, ended)
    return round(total / 3600, 4)

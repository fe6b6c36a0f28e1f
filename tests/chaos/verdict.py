"""What must hold after any trouble: pure functions of what was seen from outside. Each returns what is wrong, in sentences."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.chaos.outside import Received

TOLD_WITHIN_S = 15.0
SEEN_LATE_S = 5.0  # how far our own looks may be off on a loaded machine
DECIDED = ("closed", "explained", "needs_human")
TICKET = ("open", "")  # state and runbook: no remedy is known, and it is with people from the beginning
APPROVE = "gpuward approve"  # in why a run is held: it goes on when a person has said so


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """A drill that was begun; `at` in seconds after the cell's start. `passes`: it ends by itself, so that nobody may have
    seen it where nobody led meanwhile.
    """

    drill: str
    node: str
    at: float
    passes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Whether a brain said that it leads; `at` on our monotonic clock."""

    at: float
    brain: str
    leads: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A time in which no brain led."""

    began: float
    ended: float

    @property
    def lasted_s(self) -> float:
        """How long."""
        return self.ended - self.began


def steps_twice(record: Iterable[str]) -> list[str]:
    """Attempts that were really begun more than once, by whomever. A line is `<who> <attempt> <action>`."""
    by: dict[str, list[str]] = {}
    for line in record:
        who, attempt, action = line.split()
        by.setdefault(f"{action} {attempt}", []).append(who)
    return [f"{what} was performed by {' and '.join(who)}" for what, who in by.items() if len(who) > 1]


def undecided(
    injected: Iterable[Injected],
    incidents: Sequence[Mapping[str, Any]],
    runs: Callable[[str], Sequence[Mapping[str, Any]]] = lambda _: (),
) -> list[str]:
    """Drills without an incident that has come to its end or to a person. `incidents`: as /api/v1/incidents has them; `runs`:
    of an incident, as /api/v1/explain has them.

    The silence of a node that we switched off waits for the incident that did it, which a person has.
    """
    found = []
    for one in injected:
        mine = [incident for incident in incidents if incident["node"] == one.node]
        mine = mine or [
            incident for incident in incidents if not incident["node"]
        ]  # a cause that nodes share
        if not mine and not one.passes:
            found.append(f"{one.drill} on {one.node}, begun after {one.at:.1f} s: no incident")
        found += [
            f"{one.drill} on {one.node}: {incident['id']} ({incident['cause']}) is {incident['state']}"
            for incident in mine
            if incident["state"] not in DECIDED
            and (incident["state"], incident.get("runbook")) != TICKET
            and "switched" not in incident.get("waits", "")
            and not any(_asks(run) for run in runs(incident["id"])[-1:])
        ]
    return sorted(set(found))


def _asks(run: Mapping[str, Any]) -> bool:
    """Whether it waits for a person."""
    return run["state"] == "approval" or (run["state"] == "held" and APPROVE in run["why"])


def pages_lost(told: Iterable[Mapping[str, Any]], received: Sequence[Received]) -> list[str]:
    """Pages that the log says were sent, and that nobody received: neither by themselves, nor listed in the page of their
    alert group, nor replaced by a later page of the same incident. `told`: those of incidents, as /api/v1/explain has them.
    """
    alone = {page.page for page in received}
    newest: dict[str, int] = {}  # incident -> the highest number of a page of it that came
    for id_ in alone:
        incident, _, number = id_.rpartition(".p")
        if number.isdigit():  # pages about the brains themselves have other ids
            newest[incident] = max(newest.get(incident, 0), int(number))
    found = []
    for page in told:
        incident, _, number = page["id"].rpartition(".p")
        group = re.search(r"in one page with others \((\S+)\)", page["delivered"])
        listed = group and any(
            one.dedup_key == group[1] and (incident in one.listed or "more: gpuward incidents" in one.listed)
            for one in received
        )
        if not (page["id"] in alone or listed or newest.get(incident, 0) > int(number)):
            found.append(
                f"the page {page['id']} was not received ({page['delivered'] or 'not delivered'}): {page['text']}"
            )
    return found


def pages_doubled(received: Iterable[Received]) -> list[str]:
    """Alerts that were opened twice: two pages, not one page that came twice, which a receiver folds by its id."""
    opened: dict[tuple[str, str], set[str]] = {}  # (alert, channel group) -> pages
    found = []
    for page in received:
        alert = (page.dedup_key, page.group)
        if page.what == "resolve":
            opened.pop(alert, None)
        elif page.what == "open":
            before = opened.setdefault(alert, set())
            if before and page.page not in before:
                found.append(f"{page.dedup_key} was opened by the pages {before} and {page.page}")
            before.add(page.page)
    return found


def repeated(received: Iterable[Received]) -> int:
    """How many pages came again with the same id: their sender died before it could write down that they had left."""
    return sum(count - 1 for count in Counter(page.page for page in received if page.page).values())


def windows(looks: Iterable[Look], brains: Sequence[str]) -> list[Window]:
    """The times in which no brain led, oldest first; from the first moment at which one did."""
    leads: dict[str, bool] = dict.fromkeys(brains, False)
    found: list[Window] = []
    led, began = False, 0.0
    for look in looks:
        before = any(leads.values())
        leads[look.brain] = look.leads
        now = any(leads.values())
        if led and before and not now:
            began = look.at
        elif led and now and not before:
            found.append(Window(began=began, ended=look.at))
        led = led or now
    return found


def in_the_dark(
    nobody: Iterable[Window], received: Sequence[Received], calls: Sequence[float], causes: Sequence[str]
) -> list[str]:
    """Times without a leader in which nobody was told for longer than TOLD_WITHIN_S: no page about it, and the dead man's
    switch outside was still called. `calls`: when it was; `causes`: of pages about the brains themselves.
    """
    found = []
    for window in nobody:
        if window.lasted_s < TOLD_WITHIN_S + SEEN_LATE_S:
            continue
        until = window.began + TOLD_WITHIN_S + SEEN_LATE_S
        told = [
            page
            for page in received
            if page.cause in causes and window.began - SEEN_LATE_S <= page.at <= until
        ]
        # A switch that is called each second and expects it within ten.
        silent = not any(window.began + SEEN_LATE_S < call < until for call in calls)
        if not told and not silent:
            found.append(
                f"nobody led for {window.lasted_s:.0f} s, and nobody was told within {TOLD_WITHIN_S:.0f} s"
            )
    return found


def differ(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> list[str]:
    """Incidents about which two brains on one log do not agree."""
    ours = {one["id"]: (one["cause"], one["state"], one["scope"]) for one in first}
    theirs = {one["id"]: (one["cause"], one["state"], one["scope"]) for one in second}
    return [
        f"{id_}: one brain says {ours.get(id_)}, the other {theirs.get(id_)}"
        for id_ in sorted(ours.keys() | theirs.keys())
        if ours.get(id_) != theirs.get(id_)
    ]

"""Gathers what a report tells: from the history, in its thread, and for a hand-over from what the engine knows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from brain.console import shapes
from brain.console.access.people import Person
from brain.console.api.energy_shapes import EnergyShape
from brain.console.api.incident_shapes import NoteShape
from brain.console.api.needs_shapes import HealedShape, NeedShape
from brain.console.api.report_shapes import MOST, ReportShape
from brain.console.api.status_shapes import HoldShape
from brain.console.brain_view import History
from brain.console.needs.routes import healed_since, told_items
from brain.console.needs.routes import now as needs_now
from brain.console.needs.verbs import Allowed
from brain.console.reports import reckon, show
from brain.console.reports.reckon import Reckoned
from brain.console_config import PEOPLE_BEGIN_S
from brain.core.state import IncidentState, State

LISTED = 100  # of each list of a hand-over
_NOBODY = Person(name="", grants=())
Pause = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingNow:
    """What a shift hands over of what stands now."""

    needs: Sequence[NeedShape]
    holds: Sequence[HoldShape]


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """What a shift hands over; of each list the first ones."""

    needs: Sequence[NeedShape]
    needs_count: int
    holds: Sequence[HoldShape]
    healed: Sequence[HealedShape]
    healed_more: bool
    said: Sequence[NoteShape]
    said_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldReport:
    """A report with what stands beside it: the time before, or, of a shift, the hand-over."""

    # in seconds since 1970
    since: float
    until: float
    report: ReportShape
    before: ReportShape | None
    hand_over: HandOver | None
    # a line for each incident (RFC 4180)
    table: bytes
    # what the GPUs have used; None: nobody was asked
    energy: EnergyShape | None = None


async def standing_now(state: State) -> StandingNow:
    """What a shift hands over of what stands now; nobody may say anything about it there."""
    people, _ = await needs_now(Allowed(person=_NOBODY, state=state, chosen=()))
    return StandingNow(needs=people, holds=shapes.holds(state))


def reckoned(
    history: History, since: float, until: float, pause: Pause, people_begin_s: float = PEOPLE_BEGIN_S
) -> tuple[list[Reckoned], bool]:
    """Returns (the incidents of a time, are they all?). `people_begin_s`: see reckon.incident."""
    raw = history.incidents_between(since, until, MOST + 1)
    found = []
    for one in raw[:MOST]:
        pause()
        if one["state"] != IncidentState.EXPLAINED:
            found.append(reckon.incident(one, history.runs_of(one["id"]), since, until, people_begin_s))
    return found, len(raw) <= MOST


def told(
    history: History,
    since: float,
    until: float,
    pause: Pause,
    standing: StandingNow | None,
    energy: EnergyShape | None = None,
    people_begin_s: float = PEOPLE_BEGIN_S,
) -> ToldReport:
    """Returns the report of a time. `standing`: it is the hand-over of a shift; None: it stands beside the time before, where the
    history has all of that: of less nobody can say whether things have become better.
    """
    found, whole = reckoned(history, since, until, pause, people_begin_s)
    reaches = history.oldest()
    before = None
    earlier = 2 * since - until
    if standing is None and reaches is not None and reaches <= earlier:
        early, all_of_it = reckoned(history, earlier, since, pause, people_begin_s)
        before = show.report(
            early,
            since=earlier,
            until=since,
            reaches=reaches,
            whole=all_of_it,
            people_begin_s=people_begin_s,
        )
    return ToldReport(
        since=since,
        until=until,
        report=show.report(
            found, since=since, until=until, reaches=reaches, whole=whole, people_begin_s=people_begin_s
        ),
        before=before,
        hand_over=_hand_over(history, since, until, standing) if standing else None,
        table=show.table(found, pause),
        energy=energy,
    )


def _hand_over(history: History, since: float, until: float, standing: StandingNow) -> HandOver:
    healed = healed_since(history, since, LISTED + 1)
    said = history.notes_page(
        kind="operator.*",
        incident="",
        run="",
        scope="",
        who="",
        since=since,
        until=until,
        before="",
        limit=LISTED + 1,
    )
    return HandOver(
        needs=told_items(standing.needs[:LISTED]),
        needs_count=len(standing.needs),
        holds=standing.holds,
        healed=healed[:LISTED],
        healed_more=len(healed) > LISTED,
        said=[shapes.note(one) for one in (said or ())[:LISTED]],
        said_more=len(said or ()) > LISTED,
    )

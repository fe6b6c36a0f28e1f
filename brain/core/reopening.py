"""A fault that comes back soon after its incident was over opens that incident again: one id, one alert, one trail. Pure.

What is needed for that is kept for as long as it is remembered that the fault came (recurrence.py), in a few lines and without
what the incident rested on. What an operator has closed, and what another incident explains, is not opened again. Decision 85.
"""

from brain.core import ids, recurrence
from brain.core.context import Context
from brain.core.healing import run_states
from brain.core.paging import tickets
from brain.core.state import Episode, Incident, LatelyClosed, PageState

MAX_EPISODES = 20  # that are kept of one incident
MAX_SAID = 20  # texts of its former times


def known(ctx: Context, cause: str, scope: str) -> LatelyClosed | None:
    """The incident that is opened again by a fault that begins; None: it is a new one."""
    found = ctx.state.lately_closed.get(ids.key(cause, scope))
    if found is None or ctx.now > found.closed_at + ctx.compiled.settings.reopens_s:
        return None
    undelivered = ctx.state.incidents.get(found.id)
    at_work = (
        [ctx.state.runs[one] for one in undelivered.runs if one in ctx.state.runs] if undelivered else []
    )
    # what comes of a step that is not over would be taken for that of the new time
    return found if all(run.state in run_states.OVER for run in at_work) else None


def begin(ctx: Context, incident: Incident, former: LatelyClosed) -> None:
    """A new incident is the former one again: it takes over what is kept of that, and its alert, unless that was passed on."""
    undelivered = ctx.state.incidents.pop(
        former.id, None
    )  # it stands behind the others now, as after a restart
    pages = undelivered.pages if undelivered is not None else former.pages
    for run in undelivered.runs if undelivered is not None else ():
        ctx.state.runs.pop(run, None)
    incident.times, incident.episodes, incident.runs_before = former.times + 1, former.episodes, former.runs
    if pages.passed_to:  # another incident has its alert by now
        pages = PageState(key=ids.hashed(ids.INCIDENT, ctx.cause, incident.id, "alert"))
    incident.pages = pages
    _untold(ctx, pages)
    if pages.key:
        ctx.state.alerts[pages.key] = incident.id
    del ctx.state.lately_closed[ids.key(incident.cause, incident.scope)]


def over(ctx: Context, incident: Incident, *, in_hold_off: bool) -> None:
    """The incident is over. `in_hold_off`: before anybody was to hear of it, so that this time was none."""
    key = ids.key(incident.cause, incident.scope)
    reopens_s = ctx.compiled.settings.reopens_s
    if not reopens_s or (in_hold_off and (incident.times < 2 or not incident.episodes)):
        return
    times, episodes, closed_at = incident.times, incident.episodes, ctx.now
    if incident.pages.first_at:
        incident.pages.severity_before = incident.severity
    if not in_hold_off:
        here = Episode(
            opened_at=incident.opened_at, closed_at=ctx.now, why=incident.closed_why, nodes=incident.nodes
        )
        episodes = [*episodes, here][-MAX_EPISODES:]
    else:
        times, closed_at = times - 1, episodes[-1].closed_at
    recurrence.is_over(ctx, incident, closed_at + reopens_s)
    ctx.state.lately_closed[key] = LatelyClosed(
        id=incident.id,
        closed_at=closed_at,
        times=times,
        episodes=list(episodes),
        runs=incident.runs_before + len(incident.runs),
        rule=incident.rule,
        clear_since=incident.clear_since,
    )


def forgotten(ctx: Context, incident: Incident) -> None:
    """Its pages are delivered, and the incident is forgotten: of its alert is kept what it needs if it is opened again."""
    former = ctx.state.lately_closed.get(ids.key(incident.cause, incident.scope))
    if former is not None and former.id == incident.id:
        former.pages = incident.pages


def _untold(ctx: Context, pages: PageState) -> None:
    """Nobody has heard of it this time. What an alert group told of it is over, and so are its tickets."""
    kept, groups = tickets.group(ctx), ctx.state.alert_groups
    collected = [to for to, one in pages.grouped.items() if one in groups and not groups[one].pages.first_at]
    called = [to for to in pages.notified if to != kept and to not in collected]
    pages.before = list(dict.fromkeys([*pages.before, *called]))
    pages.said_before, pages.said = [*pages.said_before, *pages.said][-MAX_SAID:], []
    pages.tickets_before, pages.tickets, pages.time = pages.tickets_before | pages.tickets, {}, pages.time + 1
    pages.notified, pages.grouped, pages.later = [], {}, {}
    pages.first_at, pages.resolved, pages.acked_by, pages.was = 0.0, False, "", None
    pages.severities, pages.unsaid, pages.wait_left_s = [], {}, 0.0

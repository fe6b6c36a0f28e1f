"""A fault that comes back soon after its incident was over opens that incident again: one id, one alert, one trail. Pure.

What is needed for that is kept for as long as it is remembered that the fault came (recurrence.py), in a few lines and without
what the incident rested on. What an operator has closed, and what another incident explains, is not opened again. Decision 85.
"""

from brain.core import ids
from brain.core.context import Context
from brain.core.healing import run_states
from brain.core.paging import tickets
from brain.core.state import Episode, Incident, LatelyClosed, PageState

MAX_EPISODES = 20  # that are kept of one incident


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
    undelivered = ctx.state.incidents.get(former.id)
    pages = undelivered.pages if undelivered is not None else former.pages
    for run in undelivered.runs if undelivered is not None else ():
        ctx.state.runs.pop(run, None)
    incident.times, incident.episodes, incident.runs_before = former.times + 1, former.episodes, former.runs
    if pages.passed_to:  # another incident has its alert by now
        pages = PageState(key=ids.hashed(ids.INCIDENT, ctx.cause, incident.id, "alert"))
    incident.pages = pages
    _unresolved(ctx, pages)
    if pages.key:
        ctx.state.alerts[pages.key] = incident.id
    del ctx.state.lately_closed[ids.key(incident.cause, incident.scope)]


def over(ctx: Context, incident: Incident, *, in_hold_off: bool) -> None:
    """The incident is over. `in_hold_off`: before anybody was to hear of it, so that this time was none."""
    key = ids.key(incident.cause, incident.scope)
    if key not in ctx.state.recurred or not ctx.compiled.settings.reopens_s:
        return
    if in_hold_off and (incident.times < 2 or not incident.episodes):
        return
    times, episodes, closed_at = incident.times, incident.episodes, ctx.now
    if not in_hold_off:
        here = Episode(
            opened_at=incident.opened_at, closed_at=ctx.now, why=incident.closed_why, nodes=incident.nodes
        )
        episodes = [*episodes, here][-MAX_EPISODES:]
    else:
        times, closed_at = times - 1, episodes[-1].closed_at
    ctx.state.lately_closed[key] = LatelyClosed(
        id=incident.id,
        closed_at=closed_at,
        times=times,
        episodes=list(episodes),
        runs=incident.runs_before + len(incident.runs),
    )


def forgotten(ctx: Context, incident: Incident) -> None:
    """Its pages are delivered, and the incident is forgotten: of its alert is kept what it needs if it is opened again."""
    former = ctx.state.lately_closed.get(ids.key(incident.cause, incident.scope))
    if former is not None and former.id == incident.id:
        former.pages = incident.pages


def _unresolved(ctx: Context, pages: PageState) -> None:
    """Nobody has heard of it this time. An alert group that told of it is over, and so is its ticket."""
    kept = tickets.group(ctx)
    pages.notified = [group for group in pages.notified if group not in pages.grouped and group != kept]
    pages.grouped, pages.tickets, pages.later = {}, {}, {}
    pages.first_at, pages.resolved, pages.acked_by, pages.was = 0.0, False, "", None
    pages.severities = []

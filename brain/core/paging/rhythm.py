"""When a page that nobody has acknowledged is repeated: one rhythm for each cause that people were told. Pure.

An alert outlives its place (decision 69). People who are told that it is a leaf switch were called just now, and hear of that as
of any new fault: after 5, 10, 20, 40, 80 minutes. Where it goes to and fro between places that they know it keeps its rhythm, so
that they are neither called anew each time nor forgotten. No repeat follows sooner on news than on a first page. Decision 93.
"""

from brain.core.context import Context
from brain.core.paging import alerts
from brain.core.state import AlertGroup, Incident


def is_told(ctx: Context, incident: Incident) -> None:
    """People have just heard, as news, of which place their alert is. All further repeats move with the next one."""
    pages, name = incident.pages, f"page:{alerts.key(incident)}"
    soonest = ctx.now + ctx.compiled.settings.page_repeat_s[0]
    due = ctx.state.timers.get(name, soonest)
    if not any((face.cause, face.scope) == (incident.cause, incident.scope) for face in pages.faces):
        pages.repeats_since = ctx.now
    elif due < soonest:
        pages.repeats_since = _since(incident) + soonest - due
    else:
        return
    ctx.set_timer(name, soonest)


def next_at(ctx: Context, about: Incident | AlertGroup) -> float:
    """When the repeat after one that is sent now is due."""
    since, waits = _since(about), ctx.compiled.settings.page_repeat_s
    return next((since + wait for wait in waits if wait > ctx.now - since + 1), ctx.now + waits[-1])


def _since(about: Incident | AlertGroup) -> float:
    return max(about.pages.first_at, about.pages.repeats_since)

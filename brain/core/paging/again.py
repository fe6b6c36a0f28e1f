"""What people hear of a fault that comes back and whose incident is opened again: that it is back, once; that it comes and goes,
once a day; and always that it lasts this time. Pure.

Whoever was called for it the first time knows of it. A leaf switch that dies six times a day for two minutes is one piece of
news; when it stays down it is one as urgent as the first time, with repeats and escalation. Decision 85.
"""

from agent.contract.counted import span
from brain.core import ids
from brain.core.context import Context
from brain.core.paging import alerts
from brain.core.state import Incident, IncidentState

_BACK = "it is back"
CALLED_S = 900.0  # whoever was called so short a time ago knows of it
DAILY_S = 86_400.0  # how often people hear that it comes and goes


def is_back(incident: Incident) -> bool:
    """Whether people were called for it when it was open before, and have not heard yet that it is open again."""
    return incident.times > 1 and bool(incident.pages.notified) and not incident.pages.first_at


def is_news(ctx: Context, incident: Incident) -> bool:
    """Whether they hear at once that it is back: the first time, unless they were called just now, and once a day. What may wait
    for working hours waits until it lasts.
    """
    if incident.severity not in ctx.compiled.settings.page_repeats:
        return False
    told_ago_s = ctx.now - incident.pages.came_told_at
    return told_ago_s >= (CALLED_S if incident.times == 2 else DAILY_S)


def wait(ctx: Context, incident: Incident) -> None:
    """They hear of it when it has lasted for a while."""
    if f"page:{alerts.key(incident)}" in ctx.state.timers:
        return
    ctx.set_timer(f"page:{alerts.key(incident)}", ctx.now + _patience_s(ctx))
    text = f"people know that it comes and goes: they hear of it if it lasts for {span(_patience_s(ctx))}"
    ctx.note("page.waits", text, incident=incident.id, scope=incident.scope)


def lasts(incident: Incident) -> bool:
    """Whether it is there still, when its time to be told has come."""
    return incident.state is not IncidentState.RECOVERED


def words(ctx: Context, incident: Incident, text: str) -> str:
    """The text with how often it came, once."""
    if text.startswith(_BACK):
        return text
    came = ctx.state.recurred.get(ids.key(incident.cause, incident.scope), [ctx.now])
    return f"{_BACK}, the {_nth(max(2, len(came)))} time in {span(ctx.now - came[0])}: {text}"


def _patience_s(ctx: Context) -> float:
    return ctx.compiled.settings.page_repeat_s[0]


def _nth(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0, "th")
    return f"{number}{ending}"

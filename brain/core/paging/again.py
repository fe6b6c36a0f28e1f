"""What people hear of a fault that comes back and whose incident is opened again: that it is back, once; that it comes and goes,
once a day; and always that it lasts this time. Pure.

Whoever was called for it the first time knows of it. A leaf switch that dies six times a day for two minutes is one piece of
news; when it stays down it is one as urgent as the first time, with repeats and escalation. Decision 85.
"""

import re

from agent.contract.counted import span
from brain.core import ids
from brain.core.context import Context
from brain.core.paging import alerts, chains
from brain.core.state import Incident

_BACK = "it is back"
_EVIDENCE = re.compile(r"(gpuward evidence \S+?)\.r[0-9]+\.s[0-9]+\.a[0-9]+")
CALLED_S = 900.0  # whoever was called so short a time ago knows of it
DAILY_S = 86_400.0  # how often people hear that it comes and goes


def is_back(ctx: Context, incident: Incident) -> bool:
    """Whether those on call were called for it when it was open before, and have not heard yet that it is open again."""
    return chains.heard_before(ctx, incident) and not chains.has_heard(ctx, incident)


def is_news(ctx: Context, incident: Incident) -> bool:
    """Whether they hear at once that it is back: the first time, unless they were called just now, and once a day; and what is
    more urgent than before. What may wait for working hours waits until it lasts.
    """
    pages = incident.pages
    if incident.severity not in ctx.compiled.settings.page_repeats:
        return False
    if pages.severity_before is not None and incident.severity < pages.severity_before:
        return True
    return ctx.now - pages.came_told_at >= (CALLED_S if incident.times == 2 else DAILY_S)


def wait(ctx: Context, incident: Incident) -> None:
    """They hear of it when it has lasted for a while, in one piece or in several."""
    if _timer(incident) in ctx.state.timers:
        return
    first, left_s = not incident.pages.wait_left_s, incident.pages.wait_left_s or _patience_s(ctx)
    ctx.set_timer(_timer(incident), ctx.now + left_s)
    if not first:
        return
    text = f"people know that it comes and goes: they hear of it if it lasts for {span(_patience_s(ctx))}"
    ctx.note("page.waits", text, incident=incident.id, scope=incident.scope)


def is_gone(ctx: Context, incident: Incident) -> None:
    """Its symptoms are gone: until they are back, their wait stands still."""
    due = ctx.state.timers.get(_timer(incident))
    if due is not None and is_back(ctx, incident):
        incident.pages.wait_left_s = max(1.0, due - ctx.now)
        ctx.cancel_timer(_timer(incident))


def is_there_again(ctx: Context, incident: Incident) -> None:
    """Its symptoms are back before it was over. Who waited waits on; who was told, and has not acknowledged, was called for what
    has been gone since: if it lasts now, they hear of it as soon as of a new one.
    """
    pages, name = incident.pages, _timer(incident)
    if pages.acked_by:
        return
    if is_back(ctx, incident) and pages.wait_left_s:
        wait(ctx, incident)
    elif ctx.now - incident.clear_since >= CALLED_S and ctx.state.timers.get(
        name, 0.0
    ) > ctx.now + _patience_s(ctx):
        ctx.set_timer(name, ctx.now + _patience_s(ctx))


def gist(text: str) -> str:
    """What a page says, whichever attempt's evidence it names: each attempt keeps its own, which is no news by itself."""
    return _EVIDENCE.sub(r"\1", text)


def words(ctx: Context, incident: Incident, text: str) -> str:
    """The text with how often it came, once."""
    if text.startswith(_BACK):
        return text
    came = ctx.state.recurred.get(ids.key(incident.cause, incident.scope), [ctx.now])
    if len(came) == 1 and incident.episodes:  # it stayed for longer than that is remembered
        came = [incident.episodes[-1].opened_at, *came]
    return f"{_BACK}, the {_nth(max(2, len(came)))} time in {span(ctx.now - came[0])}: {text}"


def _timer(incident: Incident) -> str:
    return f"page:{alerts.key(incident)}"


def _patience_s(ctx: Context) -> float:
    return ctx.compiled.settings.page_repeat_s[0]


def _nth(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0, "th")
    return f"{number}{ending}"

"""Faults that come and go are one incident with a rate, which stays open longer than their pauses."""

from agent.contract.counted import span
from brain.core import hit, ids, share
from brain.core.context import Context
from brain.core.pack.spec import Paging
from brain.core.state import Incident, RunState, State

RECURRED_S = 86400.0  # how long it is remembered that a fault came up
MAX_RECURRED = 30
RECURS = 2  # a fault that came so often within that time comes and goes: it is one incident
MAX_RESOLVE_DELAY_S = 2 * 3600.0


def came(ctx: Context, incident: Incident) -> None:
    """Remembers that the incident's fault came up, or came back: then others may be hit by it."""
    hit.came_back(ctx, incident)
    key = ids.key(incident.cause, incident.scope)
    times = [at for at in ctx.state.recurred.get(key, ()) if at > ctx.now - RECURRED_S]
    _remember(ctx, incident, [*times, ctx.now][-MAX_RECURRED:], ctx.now + RECURRED_S)
    if times:
        pause_s = (ctx.now - times[0]) / len(times)
        text = f"it came {len(times) + 1} times in {span(ctx.now - times[0])}, every {span(pause_s)}"
        ctx.note("incident.recurs", text, incident=incident.id, scope=incident.scope)


def is_over(ctx: Context, incident: Incident, until: float) -> None:
    """Remembers until then that the fault came, however long it stayed: it may come back."""
    key = ids.key(incident.cause, incident.scope)
    if ctx.state.timers.get(f"recurred:{key}", 0.0) < until:
        _remember(ctx, incident, ctx.state.recurred.get(key) or [incident.opened_at], until)


def _remember(ctx: Context, incident: Incident, times: list[float], until: float) -> None:
    key = ids.key(incident.cause, incident.scope)
    ctx.state.recurred.pop(key, None)  # the newest stand last, also after a restart
    ctx.state.recurred[key] = times
    ctx.index.add_recurred(key)
    here = ctx.index.recurred[incident.node]
    if incident.node and len(here) > share.MAX_RECURRED:
        oldest = next(iter(here))
        forget(ctx, oldest)
        ctx.cancel_timer(f"recurred:{oldest}")
    ctx.set_timer(f"recurred:{key}", until)


def does_not_last(ctx: Context, incident: Incident) -> str:
    """What people are told of a remedy that has helped as often as it may be tried, and whose fault is back; empty: nothing.

    A remedy that disturbs somebody is not tried that often: its limit tells them. One that disturbs nobody goes on.
    """
    if incident.page is not Paging.FAILURE:
        return ""
    helped = [
        (run, step)
        for run in (ctx.state.runs.get(one) for one in incident.runs)
        if run is not None and run.state is RunState.SUCCEEDED
        for step in [one for one in run.steps if one.verified][-1:]
    ]
    if not helped or len(helped) < helped[-1][0].runbook.tries:
        return ""
    lasted, rung = span(ctx.now - helped[0][0].started_at), helped[-1][1].rung
    return f"{rung} has helped {len(helped)} times in {lasted}, and the fault is back: find out why it does not last"


def never_left(ctx: Context, incident: Incident) -> bool:
    """Whether the fault of an incident that opens is there since it came last: another incident explained it meanwhile."""
    times = ctx.state.recurred.get(ids.key(incident.cause, incident.scope), [])
    known = (ctx.state.symptoms.get(one) for one in incident.symptoms)
    began = [one.since for one in known if one is not None and one.active]
    return bool(times and began) and max(began) <= times[-1]


def forget(ctx: Context, key: str) -> None:
    """The timer of `came` fired: nothing came since."""
    ctx.state.recurred.pop(key, None)
    ctx.state.lately_closed.pop(key, None)
    ctx.index.remove_recurred(key)


def resolve_delay_s(state: State, incident: Incident) -> float:
    """How long the incident stays open after its last symptom: longer than the pauses of a fault that comes and goes."""
    times = state.recurred.get(ids.key(incident.cause, incident.scope), [])
    if len(times) < RECURS:
        return incident.resolve_delay_s
    pause_s = (times[-1] - times[0]) / (len(times) - 1)
    return max(incident.resolve_delay_s, min(2 * pause_s, MAX_RESOLVE_DELAY_S))

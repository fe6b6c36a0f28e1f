"""People who have drained a node work on it: that it is silent while they restart it is no news to them. Pure.

The scheduler is asked when the hold-off of such an incident ends and nothing wider explains it, so that no storm asks it about
thousands of nodes. A drain of ours, of a health check or of the scheduler itself is nobody's work. It is not for ever: what lasts
for the rule's `drained_s` is told all the same, for a node may be forgotten: one silence, or all of one drain together.
"""

from brain.core.context import Context
from brain.core.effects import AskJobs
from brain.core.faults import rolled_out, rollouts
from brain.core.pack.spec import Rule
from brain.core.state import Incident, IncidentState

ANSWERS_S = 20.0  # so long the scheduler may take; then it is told as of any other node
ASKED_S = 5.0  # so long it is seen whether others are away with it, and share a cause
AGAIN_S = 300.0  # how often it is asked again whether the drain stands
_ASKED = "the scheduler is asked whether somebody has drained it"
_AT_WORK = "may be at work on it"
KEPT_S = 86_400.0  # a silence counts until there was none for so long
MAX_NODES = 4096  # whose silences are remembered


def why_not_yet(ctx: Context, rule: Rule | None, incident: Incident) -> tuple[str, float]:
    """Why an incident whose hold-off is over is not told yet, and in how many seconds that is asked again; empty: it is told."""
    if (rollout := rollouts.why_silent(ctx, incident.scope, incident.symptoms)) is not None:
        return rollout.text, min(AGAIN_S, rollout.until - ctx.now)
    if incident.waits.endswith(rollouts.NEXT):  # it was taken for that, and is not any more
        incident.waits = "it has been away for too long to be part of a roll-out"
        ctx.changed.extend(rolled_out.no_more(ctx))
        return incident.waits, ASKED_S
    settings = ctx.compiled.settings
    if rule is None or not incident.node or not settings.ask_jobs or not rule.drained_s:
        return "", 0.0
    due = incident.opened_at + rule.drained_s - _silent_before_s(ctx, incident.node)
    if ctx.now >= due:
        ctx.state.shifts.pop(incident.node, None)  # people know of it from now on
        return "", 0.0
    answer = ctx.state.jobs.get(incident.node)
    if answer is None:
        if not incident.drain_asked_at:
            incident.drain_asked_at = ctx.now
            ctx.effects.append(AskJobs(node=incident.node))
        left_s = incident.drain_asked_at + ANSWERS_S - ctx.now
        why = (
            incident.waits if incident.waits.endswith(_AT_WORK) else _ASKED
        )  # said once, not each time it is asked
        return (why, left_s) if left_s > 0 else ("", 0.0)
    incident.drain_asked_at = 0.0
    if not answer.known or not answer.drained or answer.ours is not False:
        if answer.known:
            ctx.state.shifts.pop(incident.node, None)
        return "", 0.0
    return f"somebody has drained {incident.node} ({answer.drained}) and {_AT_WORK}", min(
        AGAIN_S, due - ctx.now
    )


def ended(ctx: Context, incident: Incident, *, told: bool) -> None:
    """An incident is over that was not told, since people may have been at work: it counts for the next silence of this drain."""
    if told or not incident.waits.endswith(_AT_WORK):
        return
    shifts, node = ctx.state.shifts, incident.node
    silent_s = _silent_before_s(ctx, node) + ctx.now - incident.opened_at
    shifts.pop(node, None)
    shifts[node] = (silent_s, ctx.now)  # the newest stand last
    while len(shifts) > MAX_NODES or shifts[next(iter(shifts))][1] < ctx.now - KEPT_S:
        del shifts[next(iter(shifts))]


def _silent_before_s(ctx: Context, node: str) -> float:
    silent_s, until = ctx.state.shifts.get(node, (0.0, 0.0))
    return silent_s if until >= ctx.now - KEPT_S else 0.0


def answered(ctx: Context, node: str) -> None:
    """The scheduler has said who has drained a node: what waits for that is judged now."""
    for incident in ctx.index.open_at.get(node, {}).values():
        if incident.state is IncidentState.SETTLING and incident.drain_asked_at:
            ctx.set_timer(f"incident:{incident.id}", ctx.now)

"""The tail of a shared cause: one of its nodes shows it a little later than the others, or once more. Pure.

A leaf switch is back, and the port of one of its nodes trains again two minutes later; a file server answers, and a program hangs
on it for a while yet. People know of that cause, so such a node is no news until it lasts beyond the tail. It is what the cause
would have explained while it was there; nothing is done about it meanwhile. What the cause has left behind is no tail: a node
that never was well is told and healed as soon as the cause is over, and people hear which one that was. Decision 93.
"""

from collections.abc import Iterator
from itertools import islice

from agent.contract.counted import span
from brain.core import ids
from brain.core.context import Context
from brain.core.faults import reach
from brain.core.pack.spec import Rule, Text
from brain.core.pack.topology import node_of
from brain.core.state import Incident, LatelyClosed

# so long after the end of a shared cause, s: as long as it takes until people hear of what comes back
TAIL_S = 300.0
MOST = 64  # incidents that were over last which are asked


def behind(ctx: Context, incident: Incident) -> str:
    """Of which shared cause the incident of one node may be the tail, so that it waits, as a clause; empty: of none, or it has
    lasted.
    """
    began = _began(ctx, incident)
    for cause, scope, rule, closed in _just_over(ctx, incident):
        if rule.severity <= incident.severity and closed.clear_since <= began:
            return (
                f"it may be the tail of {cause.replace('_', ' ')} on {scope} ({closed.id}): it is told if it lasts for more than "
                f"{span(TAIL_S)} after that"
            )
    return ""


def left_by(ctx: Context, incident: Incident) -> Text | None:
    """Which shared cause was there when the fault of one node began, and is over, while this is not, as a clause."""
    began = _began(ctx, incident)
    for cause, scope, _, closed in _just_over(ctx, incident):
        if began < closed.clear_since:
            return Text(
                en=f"{cause} at {scope} ({closed.id}) is over, and here it has stayed",
                zh=f"{scope} 的 {cause}（{closed.id}）已经结束，而此处的故障仍在",
            )
    return None


def _began(ctx: Context, incident: Incident) -> float:
    known = (ctx.state.symptoms.get(one) for one in incident.symptoms)
    return min((one.since for one in known if one is not None and one.active), default=0.0)


def _just_over(ctx: Context, incident: Incident) -> Iterator[tuple[str, str, Rule, LatelyClosed]]:
    """The shared causes that would explain the incident and that ended within TAIL_S, newest first: (cause, scope, rule, what is
    kept).
    """
    for key, closed in islice(reversed(ctx.state.lately_closed.items()), MOST):
        cause, scope = ids.split(key)
        rule = ctx.compiled.rules.get(closed.rule)
        if (
            rule is not None
            and incident.node
            and not node_of(scope)
            and ctx.now < closed.closed_at + TAIL_S
            and reach.covers(ctx, rule, scope, incident.cause, incident.scope)
        ):
            yield cause, scope, rule, closed

"""The tail of a shared cause: one of its nodes shows it a little later than the others, or once more. Pure.

A leaf switch is back, and the port of one of its nodes trains again two minutes later; a file server answers, and a program hangs
on it for a while yet. People know of that cause, so such a node is no news until it lasts beyond the tail. It is what the cause
would have explained while it was there; nothing is done about it meanwhile. What the cause has left behind is no tail: a node
that never was well is told and healed as soon as the cause is over. Decision 93.
"""

from itertools import islice

from agent.contract.counted import span
from brain.core import ids
from brain.core.context import Context
from brain.core.faults import reach
from brain.core.pack.topology import node_of
from brain.core.state import Incident

# so long after the end of a shared cause, s: as long as it takes until people hear of what comes back
TAIL_S = 300.0
MOST = 64  # incidents that were over last which are asked


def behind(ctx: Context, incident: Incident) -> str:
    """Of which shared cause the incident of one node may be the tail, so that it waits, as a clause; empty: of none, or it has
    lasted.
    """
    known = (ctx.state.symptoms.get(one) for one in incident.symptoms)
    began = min((one.since for one in known if one is not None and one.active), default=0.0)
    for key, closed in islice(reversed(ctx.state.lately_closed.items()), MOST):
        cause, scope = ids.split(key)
        rule = ctx.compiled.rules.get(closed.rule)
        if (
            rule is not None
            and not node_of(scope)
            and rule.severity <= incident.severity
            and closed.clear_since <= began
            and ctx.now < closed.closed_at + TAIL_S
            and reach.covers(ctx, rule, scope, incident.cause, incident.scope)
        ):
            return (
                f"it may be the tail of {cause.replace('_', ' ')} on {scope} ({closed.id}): it is told if it lasts for more than "
                f"{span(TAIL_S)} after that"
            )
    return ""

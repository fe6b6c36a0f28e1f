"""What people and the scheduler know of a fault that another incident explains for a while. Pure.

A cable that is known to be bad is explained by its switch when that goes. When the switch is well and the cable is not, its
fault is an incident again: whoever had acknowledged the former one has acknowledged this one, and it has the drain of its
node. The explaining incident remembers both by match, as long as the match goes on; so they are forgotten with the incident.
"""

from brain.core import hit, ids
from brain.core.context import Context
from brain.core.healing import drains
from brain.core.pack.topology import node_of
from brain.core.paging import escalation
from brain.core.state import Incident, IncidentState, Known

_OVER = (IncidentState.CLOSED, IncidentState.EXPLAINED)


def keep(ctx: Context, by: Incident, former: Incident) -> None:
    """`by` is about to explain `former`, and to take over its drains and who is hit by it."""
    hit.inherit(by, former)
    drained = former.node in drains.owned(ctx, former)
    if former.pages.acked_by or drained:
        known = Known(
            incident=former.id, acked_by=former.pages.acked_by, severity=former.severity, drained=drained
        )
        by.known |= dict.fromkeys(former.matching_rules, known)


def match_ended(ctx: Context, match: str) -> None:
    """The fault is over while it is explained: if it comes back, nobody knows of that."""
    rule = ctx.compiled.rules.get(ids.name_of(match))
    if rule is not None:
        for incident in ctx.index.inhibitors.get(rule.cause or rule.name, {}).values():
            incident.known.pop(match, None)


def rules_removed(ctx: Context) -> None:
    """No rule will say when these faults are over, so that nobody knows of those that such a rule tells of one day."""
    for incident in ctx.state.incidents.values():
        for match in [one for one in incident.known if ids.name_of(one) not in ctx.compiled.rules]:
            del incident.known[match]


def hand_on(
    ctx: Context, former: Incident, match: str, heir: Incident | None, *, moved: bool = False
) -> None:
    """`former` does not explain the match any more. `heir`: its incident, or what explains it now; None: nothing is open.

    `moved`: its node stands elsewhere now, and `former` goes on without it.
    """
    known = former.known.pop(match)
    if heir is None:
        return
    if known.drained and (moved or former.state in _OVER):
        drains.hand_over(ctx, node_of(ids.split(match)[1]), former.id, heir.id)
    if match not in heir.matching_rules:
        heir.known[match] = known
    elif (
        known.acked_by and heir.severity >= known.severity
    ):  # not if it is more urgent than what was acknowledged
        how = f", as {known.incident} of the same fault was"
        escalation.acknowledge(ctx, heir, known.acked_by, how)

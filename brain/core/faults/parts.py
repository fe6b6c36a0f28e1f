"""The ports of a card: what they show is their card's fault while that explains them, and shows whether a remedy helped. Pure.

A card that was reset and whose port has no link still does not work: what the incident of a card explains at a part of the card
belongs to it, as one more of its matches. So its remedy is verified by both, and its facts are facts of the card. A part that was
ill long before the card has a fault of its own, and says nothing of it.
"""

from brain.core import ids
from brain.core.context import Context
from brain.core.faults import reach, situations
from brain.core.pack.spec import Rule
from brain.core.pack.topology import whole_of
from brain.core.state import Incident


def belongs(ctx: Context, incident: Incident, rule: Rule, scope: str) -> bool:
    """Whether a match is at a part of what the incident is about, and began with it."""
    return is_part(incident, scope) and reach.began_with(incident, situations.began_at(ctx, rule, scope))


def is_part(incident: Incident, scope: str) -> bool:
    """Whether it is a part of what the incident is about, and no whole node's."""
    return bool(incident.node) and scope != incident.scope and whole_of(scope) == incident.scope


def of_former(ctx: Context, incident: Incident, former: Incident) -> list[tuple[Rule, str]]:
    """(rule, scope) of the matches of an incident which this one explains from now on, where they belong to this one: those at a
    part of it, and all of a part's incident where the fault is the node's.
    """
    known = (
        (ctx.compiled.rules.get(ids.name_of(match)), ids.split(match)[1]) for match in former.matching_rules
    )
    matches = [(rule, scope) for rule, scope in known if rule is not None]
    if incident.several and (former.node, former.cause) == (incident.node, incident.cause):
        return matches
    return [(rule, scope) for rule, scope in matches if belongs(ctx, incident, rule, scope)]

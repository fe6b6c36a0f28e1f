"""How far an incident explains others: within its scope, and for some causes on its whole node, or shared by many nodes of the
same place, while they began with it. Pure.

A fault of one part shows at others of its node: the peers of a lost GPU lose their NVLinks, its job hangs, its programs and
services fail. Facts of one chain come in any order, by several sources; so what counts is when they occurred (arrival
minus age), with some slack, and the rules say which of two causes the other.
"""

from collections.abc import Callable

from brain.core.context import Context
from brain.core.faults import jobs, releases, wider
from brain.core.pack.spec import Rule
from brain.core.pack.topology import JOB, node_of, type_of
from brain.core.state import Incident

BEFORE_S = (
    600.0  # an effect may be seen so long before its cause: a part errs for some minutes before it fails
)
AFTER_S = 2400.0  # or after it: a job notices when its collective times out, after half an hour


def begun(incident: Incident) -> float:
    """When the first fact of the incident occurred, in seconds since 1970."""
    return min((fact.at for fact in incident.evidence), default=incident.opened_at)


def explains(ctx: Context, incident: Incident, cause: str, scope: str, began: Callable[[], float]) -> bool:
    """Whether the incident explains a cause at a scope, where it `began` then. Not whether it is still open."""
    if cause in incident.inhibits and (
        wider.reaches(ctx, incident, scope) or wider.holds_nearly_all(ctx, incident, cause, scope)
    ):
        return not wider.is_apart(ctx, incident, scope, began)
    if cause not in incident.inhibits_on_node:
        return False
    # of a place: what many of its nodes share (`inhibits_together`)
    there = _on_its_node(ctx, incident, scope) if incident.node else scope == incident.scope
    return there and began_with(incident, began())


def began_with(incident: Incident, at: float) -> bool:
    """Whether what began then may be of the same chain as the incident."""
    return -BEFORE_S <= at - begun(incident) <= AFTER_S


def _on_its_node(ctx: Context, incident: Incident, scope: str) -> bool:
    if type_of(scope) == JOB:
        return jobs.ran_at(ctx, scope, incident)
    return node_of(scope) == incident.node


def may_explain(ctx: Context, incident: Incident, cause: str, scope: str) -> bool:
    """Whether it is within reach, whenever it began."""
    return explains(ctx, incident, cause, scope, lambda: begun(incident))


def covers(ctx: Context, rule: Rule, around: str, cause: str, scope: str) -> bool:
    """Whether a match of the rule at `around` would explain a cause at a scope, whenever they began."""
    if cause in rule.inhibits and releases.serves(ctx, around, scope):
        return True
    if cause not in rule.inhibits_on_node:
        return False
    return node_of(around) == node_of(scope) if node_of(around) else around == scope

"""How far an incident explains others: within its scope, and for some causes on its whole node, or shared by many nodes of the
same place, while they began with it. Pure.

A fault of one part shows at others of its node: the peers of a lost GPU lose their NVLinks, its job hangs, its programs and
services fail. Facts of one chain come in any order, by several sources; so what counts is when they occurred (arrival
minus age), with some slack, and the rules say which of two causes the other.
"""

from collections.abc import Callable

from brain.core import ids
from brain.core.context import Context
from brain.core.faults import by_itself, jobs, releases, wider
from brain.core.pack.spec import Rule
from brain.core.pack.topology import JOB, node_of, type_of
from brain.core.state import Incident

BEFORE_S = (
    600.0  # an effect may be seen so long before its cause: a part errs for some minutes before it fails
)
AFTER_S = 2400.0  # or after it: a job notices when its collective times out, after half an hour
_COUNTED = ("count", "sum")  # ways of detection by facts that come as long as it lasts


def begun(incident: Incident) -> float:
    """When the first fact of the incident occurred, in seconds since 1970."""
    return min((fact.at for fact in incident.evidence), default=incident.opened_at)


def explains(ctx: Context, incident: Incident, cause: str, scope: str, began: Callable[[], float]) -> bool:
    """Whether the incident explains a cause at a scope, where it `began` then. Not whether it is still open."""
    if cause in incident.inhibits and (
        wider.reaches(ctx, incident, scope) or wider.holds_nearly_all(ctx, incident, cause, scope)
    ):
        return not by_itself.is_apart(ctx, incident, scope, began)
    if cause not in incident.inhibits_on_node:
        return False
    # of a place: what many of its nodes share (`inhibits_together`)
    there = _on_its_node(ctx, incident, cause, scope) if incident.node else scope == incident.scope
    return there and (began_with(incident, at := began()) or _went_on(ctx, incident, at))


def began_with(incident: Incident, at: float) -> bool:
    """Whether what began then may be of the same chain as the incident."""
    return -BEFORE_S <= at - begun(incident) <= AFTER_S


def _went_on(ctx: Context, incident: Incident, at: float) -> bool:
    """Whether errors that began long before were still counted then, as those of a bad cable for which a job hangs at last."""
    for key in incident.symptoms:
        spec, state = ctx.compiled.symptoms.get(ids.name_of(key)), ctx.state.symptoms.get(key)
        if spec is None or state is None or spec.detect not in _COUNTED:
            continue
        if state.active and state.since <= at and -BEFORE_S <= at - state.last <= AFTER_S:
            return True
    return False


def _on_its_node(ctx: Context, incident: Incident, cause: str, scope: str) -> bool:
    """On its node, or told elsewhere by the log of a job that runs on it: the ranks on all nodes of a job wait for one."""
    if type_of(scope) == JOB:
        return jobs.ran_at(ctx, scope, incident)
    if node_of(scope) == incident.node:
        return True
    return any(jobs.ran_at(ctx, job, incident) for job in jobs.telling(ctx, cause, scope))


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

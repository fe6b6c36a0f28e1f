"""Incidents that another one explains, and that people were told of: kept while their fault lasts, to be the same one afterwards.

A shared cause explains a fault that was there before it, too. When it is over and the fault is not, people find the
incident again that they know, with its history and its acknowledgement: nothing is tried again that was given up.
What ended before anybody heard of it is not kept, so a storm's single faults cost nothing.
"""

from brain.core import ids
from brain.core.context import Context
from brain.core.pack.topology import node_of
from brain.core.paging import escalation
from brain.core.state import Incident, IncidentState


def keep(ctx: Context, incident: Incident, before: IncidentState, why: str) -> None:
    """Another incident explains it now. It is kept if people were told of it."""
    if incident.pages.first_at and any(
        rule in ctx.compiled.rules for rule in incident.matching_rules.values()
    ):
        incident.explained_from = before
        ctx.index.add_explained(incident)
        escalation.rest(ctx, incident, why)
    else:
        escalation.resolve(ctx, incident, why)


def of(ctx: Context, cause: str, scope: str) -> Incident | None:
    """The incident of this fault that is kept."""
    for incident in ctx.index.explained.get(node_of(scope), {}).values():
        if incident.cause == cause and ctx.compiled.topology.overlap(incident.scope, scope):
            return incident
    return None


def judge_by_new_rules(ctx: Context) -> list[Incident]:
    """Other rules are in force: what no rule of its cause stands for any more is over. Returns what is kept no longer."""
    over = []
    for incident in [one for here in ctx.index.explained.values() for one in here.values()]:
        for match, rule in list(incident.matching_rules.items()):
            if rule not in ctx.compiled.rules or ctx.compiled.cause(rule) != incident.cause:
                del incident.matching_rules[match]
        if not incident.matching_rules:
            let_go(ctx, incident, "its rule names another cause now, or was removed")
            over.append(incident)
    return over


def match_ended(ctx: Context, match: str) -> Incident | None:
    """A rule does not match any more. Returns the incident that was kept for it, if its fault is over: it is kept no longer."""
    for incident in ctx.index.explained.get(node_of(ids.split(match)[1]), {}).values():
        if match in incident.matching_rules:
            del incident.matching_rules[match]
            if not incident.matching_rules:
                let_go(ctx, incident, "its symptoms are gone")
                return incident
            return None
    return None


def let_go(ctx: Context, incident: Incident, why: str) -> None:
    """It is not kept any more: its fault is over, or it stands alone again."""
    ctx.index.remove_explained(incident)
    incident.explained_from = None
    escalation.resolve(ctx, incident, why)
    ctx.show(incident)


def stand_alone(ctx: Context, incident: Incident) -> str:
    """Nothing explains it any more. It is open again, and the caller says in which state. Returns what is to be told."""
    by = ctx.state.incidents.get(incident.explained_by)
    what = f"{by.cause} at {by.scope}" if by is not None else "what explained it"
    why = f"{what} is over, and this is still there (incident {incident.explained_by})"
    ctx.index.remove_explained(incident)
    incident.explained_by, incident.closed_at, incident.closed_why = "", 0.0, ""
    ctx.index.add_incident(incident)
    return why

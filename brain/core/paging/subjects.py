"""What a page is about: a copy of an incident or an alert group that does not change any more."""

from collections.abc import Mapping

from agent.contract.counted import counted
from brain.core import hit_words, ids
from brain.core.context import Context
from brain.core.effects import PageSubject
from brain.core.pack.conditions import symptoms_in
from brain.core.state import AlertGroup, Incident, IncidentState


def common_to(ctx: Context, incident: Incident) -> tuple[str, ...]:
    """The places in which all nodes stand that show a wide fault, as under the one leaf of a small cell that is down."""
    rule, topology = ctx.compiled.rules.get(incident.rule), ctx.compiled.topology
    keys = (
        [ids.key(name, incident.scope) for name in symptoms_in(rule.when)]
        if rule and not incident.node
        else []
    )
    found = (ctx.state.symptoms.get(key) for key in keys)
    above = [topology.above(node) for one in found if one is not None and one.active for node in one.members]
    if len(above) < 2:
        return ()
    known = len(ctx.state.nodes)
    whole = topology.size(incident.scope, known)
    return tuple(
        place
        for place in above[0]
        if topology.size(place, known) < whole and all(place in others for others in above)
    )


def of_incident(incident: Incident, stops: tuple[str, ...] = (), common: tuple[str, ...] = ()) -> PageSubject:
    """An incident as it is now."""
    return PageSubject(
        id=incident.id,
        key=incident.pages.key,
        severity=incident.severity,
        cause=incident.cause,
        state=incident.state,
        scope=incident.scope,
        node=incident.node,
        nodes=incident.nodes,
        because=incident.because,
        because_zh=incident.because_zh,
        since=began_at(incident),
        rule=incident.rule,
        runbook=incident.runbook,
        runs=tuple(incident.runs),
        evidence=tuple(incident.evidence),
        acked_by=incident.pages.acked_by,
        severities_before=tuple(incident.pages.severities),
        before=tuple(incident.pages.faces),
        stops=stops,
        common=common,
        hit=hit_words.short(incident.hit),
        gone=bool(incident.symptoms) and not incident.matching_rules and not incident.unproven,
        tickets=dict(incident.pages.tickets),
        tickets_before=dict(incident.pages.tickets_before),
        time=incident.pages.time,
    )


def of_alert_group(group: AlertGroup, incidents: Mapping[str, Incident]) -> PageSubject:
    """An alert group as it is now: as urgent as the most urgent incident that it ever listed. `incidents`: all that are known."""
    lines = tuple(group.listed.values())
    nodes = list(group.affected)
    node = nodes[0] if len(nodes) == 1 and all(line.node for line in lines) else ""
    return PageSubject(
        id=group.id,
        severity=group.severity,
        cause="many_incidents",
        state=_state(group),
        scope=f"node/{node}" if node else "cell",
        node=node,
        nodes=max(1, len(nodes)),
        because=f"{counted(len(lines), 'incident')} that nobody is woken for: they are told in one page"
        if group.digest
        else f"{len(lines)} incidents began within moments: they are told in one page",
        because_zh=f"{len(lines)} 个不为之叫醒任何人的故障：合为一页告知"
        if group.digest
        else f"{len(lines)} 个故障在片刻之内开始：合为一页告知",
        since=min((line.since for line in lines), default=group.opened_at),
        acked_by=group.pages.acked_by,
        severities_before=tuple(group.pages.severities),
        hit=hit_words.of_several(one.hit for id_ in group.listed if (one := incidents.get(id_)) is not None),
        listed=lines,
        tickets=dict(group.pages.tickets),
    )


def _state(group: AlertGroup) -> IncidentState:
    if not group.pages.resolved:
        return IncidentState.OPEN
    explained = all(line.explained for line in group.listed.values())
    return IncidentState.EXPLAINED if explained else IncidentState.CLOSED


def began_at(incident: Incident) -> float:
    """When the oldest fact of an incident occurred; without facts, when it opened."""
    return min([fact.at for fact in incident.evidence] + [incident.opened_at])

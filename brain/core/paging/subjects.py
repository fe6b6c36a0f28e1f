"""What a page is about: a copy of an incident or an alert group that does not change any more."""

from agent.contract.counted import counted
from brain.core.effects import PageSubject
from brain.core.state import AlertGroup, Incident, IncidentState


def of_incident(incident: Incident) -> PageSubject:
    """An incident as it is now."""
    return PageSubject(
        id=incident.id,
        severity=incident.severity,
        cause=incident.cause,
        state=incident.state,
        scope=incident.scope,
        node=incident.node,
        nodes=incident.nodes,
        because=incident.because,
        since=began_at(incident),
        rule=incident.rule,
        runbook=incident.runbook,
        runs=tuple(incident.runs),
        evidence=tuple(incident.evidence),
        acked_by=incident.pages.acked_by,
        severities_before=tuple(incident.pages.severities),
    )


def of_alert_group(group: AlertGroup) -> PageSubject:
    """An alert group as it is now: as urgent as the most urgent incident that it ever listed."""
    lines = tuple(group.listed.values())
    nodes = list(group.affected)
    node = nodes[0] if len(nodes) == 1 and all(line.node for line in lines) else ""
    return PageSubject(
        id=group.id,
        severity=group.severity,
        cause="many_incidents",
        state=IncidentState.CLOSED if group.pages.resolved else IncidentState.OPEN,
        scope=f"node/{node}" if node else "cell",
        node=node,
        nodes=max(1, len(nodes)),
        because=f"{counted(len(lines), 'incident')} that nobody is woken for: they are told in one page"
        if group.digest
        else f"{len(lines)} incidents began within moments: they are told in one page",
        since=min((line.since for line in lines), default=group.opened_at),
        acked_by=group.pages.acked_by,
        severities_before=tuple(group.pages.severities),
        listed=lines,
    )


def began_at(incident: Incident) -> float:
    """When the oldest fact of an incident occurred; without facts, when it opened."""
    return min([fact.at for fact in incident.evidence] + [incident.opened_at])

"""Incidents: one for each fault. TRANSITIONS is the only table of their state changes."""

from enum import StrEnum

from brain.core import ids
from brain.core.context import Context
from brain.core.faults import situations
from brain.core.healing import runs
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.spec import Paging, Rule
from brain.core.pack.topology import node_of, type_of
from brain.core.paging import escalation
from brain.core.state import Incident, IncidentState, RunState, SymptomState

MAX_LISTED = 40  # symptoms, and facts, that an incident lists; further symptoms are only counted


class IncidentTrigger(StrEnum):
    """What can happen to an incident."""

    HOLD_OFF_ENDED = "hold-off ended"  # and nothing wider explained it
    RUN_STARTED = "run started"
    RUN_SUCCEEDED = "run succeeded"  # verified
    RUN_FAILED = "run failed"  # or was cancelled, or only planned
    CLEARED = "cleared"  # no rule matches any more
    RECURRED = "recurred"  # a rule matches again
    STAYED_CLEAR = "stayed clear"  # for the resolve delay
    ABSORBED = "absorbed"  # another incident explains it
    CLOSED_BY_OPERATOR = "closed by an operator"


S, T = IncidentState, IncidentTrigger
TRANSITIONS: dict[tuple[IncidentState, IncidentTrigger], IncidentState] = {
    (S.SETTLING, T.HOLD_OFF_ENDED): S.OPEN,
    (S.SETTLING, T.CLEARED): S.CLOSED,  # no page was sent, nothing was done
    (S.OPEN, T.RUN_STARTED): S.HEALING,
    (S.OPEN, T.CLEARED): S.RECOVERED,
    (S.HEALING, T.RUN_SUCCEEDED): S.RECOVERED,
    (S.HEALING, T.RUN_FAILED): S.NEEDS_HUMAN,
    (S.NEEDS_HUMAN, T.RUN_STARTED): S.HEALING,
    (S.NEEDS_HUMAN, T.CLEARED): S.RECOVERED,
    (S.RECOVERED, T.RECURRED): S.OPEN,
    (S.RECOVERED, T.STAYED_CLEAR): S.CLOSED,
    **{
        (state, T.ABSORBED): S.EXPLAINED
        for state in (S.SETTLING, S.OPEN, S.HEALING, S.NEEDS_HUMAN, S.RECOVERED)
    },
    **{
        (state, T.CLOSED_BY_OPERATOR): S.CLOSED
        for state in (S.SETTLING, S.OPEN, S.HEALING, S.NEEDS_HUMAN, S.RECOVERED)
    },
}
OVER = (S.CLOSED, S.EXPLAINED)


def transition(ctx: Context, incident: Incident, trigger: IncidentTrigger, why: str) -> bool:
    """Changes the incident's state by TRANSITIONS. False, and no change, where the table has no entry."""
    after = TRANSITIONS.get((incident.state, trigger))
    if after is None:
        return False
    in_hold_off = incident.state is S.SETTLING and after in OVER  # over before a page was sent
    incident.state = after
    ctx.show(incident)
    ctx.note(
        f"incident.{after.value}",
        why,
        incident=incident.id,
        scope=incident.scope,
        data={"cause": incident.cause, "quiet": in_hold_off},
    )
    if after in OVER:
        _end(ctx, incident, why)
    return True


def _end(ctx: Context, incident: Incident, why: str) -> None:
    """What follows when an incident is over: its runs are cancelled, its pages resolved, its inhibition ends."""
    incident.closed_at = ctx.now
    incident.closed_why = why
    for run_id in incident.runs:
        if (run := ctx.state.runs.get(run_id)) is not None:
            runs.cancel(ctx, run, why)
    ctx.index.remove_incident(incident)
    ctx.released.append(incident)
    ctx.cancel_timer(f"incident:{incident.id}")
    escalation.resolve(ctx, incident, why)
    forget_if_done(ctx, incident)


def forget_if_done(ctx: Context, incident: Incident) -> None:
    """Forgets an incident that is over, with its runs, once its pages are delivered and its last step has ended.

    The read model keeps it.
    """
    stopping = any(
        ctx.state.runs[run].state is RunState.CANCELLING for run in incident.runs if run in ctx.state.runs
    )
    if incident.state in OVER and not incident.pages.waiting and not stopping:
        ctx.state.incidents.pop(incident.id, None)
        escalation.forget(ctx, incident)
        for run in incident.runs:
            ctx.state.runs.pop(run, None)
            ctx.index.claims.pop(run, None)
            ctx.cancel_timer(f"run:{run}")


def match_began(ctx: Context, rule: Rule, scope: str) -> Incident | None:
    """A rule began to match at a scope. Returns the incident that it joins or opens; None: another one explains it."""
    cause = rule.cause or rule.name
    incident = _same_fault(ctx, cause, scope)
    if incident is not None:
        _join(ctx, incident, rule, scope)
        return incident
    explained_by = _explained_by(ctx, cause, scope)
    if explained_by is not None:
        explained_by.explains += 1
        explained_by.nodes = max(explained_by.nodes, explained_by.explains)
        ctx.show(explained_by)
        if explained_by.explains <= MAX_LISTED:
            ctx.note(
                "incident.explains",
                f"{cause} at {scope} is explained by {explained_by.cause} at {explained_by.scope}",
                incident=explained_by.id,
                scope=scope,
            )
        return None
    return _open(ctx, rule, cause, scope)


def match_ended(ctx: Context, rule: str, scope: str) -> Incident | None:
    """A rule no longer matches at a scope. Returns its incident if no other rule matches for it; else None."""
    match = ids.key(rule, scope)
    incident = ctx.state.incidents.get(ctx.index.by_match.pop(match, ""))
    if incident is None:
        return None
    incident.matching_rules.pop(match, None)
    ctx.show(incident)
    return incident if not incident.matching_rules else None


def _same_fault(ctx: Context, cause: str, scope: str) -> Incident | None:
    """The incident of this cause whose scope overlaps."""
    nodes: dict[str, dict[str, Incident]] = ctx.index.by_cause.get(cause, {})
    here: list[Incident] = list(nodes.get(node_of(scope), {}).values())
    wider: list[Incident] = list(nodes.get("", {}).values()) if node_of(scope) else []
    for incident in here + wider:
        if ctx.compiled.topology.overlap(incident.scope, scope):
            return incident
    return None


def _explained_by(ctx: Context, cause: str, scope: str) -> Incident | None:
    """The incident that inhibits this cause at a scope around this one."""
    for incident in ctx.index.inhibitors.get(cause, {}).values():
        if incident.cause != cause and ctx.compiled.topology.contains(incident.scope, scope):
            return incident
    return None


def _open(ctx: Context, rule: Rule, cause: str, scope: str) -> Incident:
    incident = Incident(
        id=ids.hashed(ids.INCIDENT, ctx.cause, cause, scope),
        cause=cause,
        state=S.SETTLING,
        severity=rule.severity,
        scope=scope,
        node=node_of(scope),
        rule=rule.name,
        because=rule.because,
        runbook=rule.runbook,
        pack=ctx.compiled.pack.version,
        opened_at=ctx.now,
        hold_off_until=ctx.now + rule.hold_off_s,
        resolve_delay_s=rule.resolve_delay_s,
        page=rule.page,
        params=dict(rule.params),
        matching_rules={ids.key(rule.name, scope): rule.name},
    )
    ctx.state.incidents[incident.id] = incident
    ctx.index.add_incident(incident, rule.inhibits)
    _gather(ctx, incident, rule, scope)
    incident.stale = all(
        ctx.now - fact.at > ctx.compiled.settings.stale_s for fact in incident.evidence
    ) and bool(incident.evidence)
    ctx.note(
        "incident.opened",
        f"{cause} at {scope}: {rule.because}",
        incident=incident.id,
        scope=scope,
        data={
            "cause": cause,
            "rule": rule.name,
            "pack": incident.pack,
            "severity": incident.severity,
            "symptoms": list(incident.symptoms),
        },
    )
    ctx.show(incident)
    _absorb(ctx, incident, rule)
    return incident


def _join(ctx: Context, incident: Incident, rule: Rule, scope: str) -> None:
    """Adds a match to an open incident, which may narrow its scope, raise its severity, or give it a runbook."""
    match = ids.key(rule.name, scope)
    incident.matching_rules[match] = rule.name
    ctx.index.by_match[match] = incident.id
    if type_of(incident.scope) == "node" and node_of(scope) == incident.node and scope != incident.scope:
        ctx.note(
            "incident.narrowed",
            f"{incident.cause} is now known to be at {scope}",
            incident=incident.id,
            scope=scope,
        )
        incident.scope = scope
    if rule.severity < incident.severity:
        ctx.note(
            "incident.raised",
            f"from {incident.severity} to {rule.severity} by rule {rule.name}: {rule.because}",
            incident=incident.id,
            scope=scope,
        )
        before, incident.severity = incident.severity, rule.severity
        escalation.raised(ctx, incident, before)
    if rule.page is Paging.OPEN:
        incident.page = Paging.OPEN
    if rule.runbook and not incident.runbook:
        incident.runbook, incident.params = rule.runbook, dict(rule.params)
    _gather(ctx, incident, rule, scope)
    ctx.show(incident)


def _gather(ctx: Context, incident: Incident, rule: Rule, scope: str) -> None:
    """Takes over the active symptoms that the rule names, and their facts."""
    named = set(symptoms_in(rule.when))
    for symptom in situations.active_at(ctx, scope):
        if symptom.name in named:
            renewed(ctx, incident, symptom)


def renewed(ctx: Context, incident: Incident, symptom: SymptomState) -> None:
    """Takes over a symptom that began or has new facts. A fresh fact ends the incident's being stale."""
    key = ids.key(symptom.name, symptom.scope)
    if key not in incident.symptoms:
        incident.symptom_count += 1
        if len(incident.symptoms) < MAX_LISTED:
            incident.symptoms.append(key)
    known = [fact.id for fact in incident.evidence]
    for fact in symptom.evidence:
        if fact.id not in known and len(incident.evidence) < MAX_LISTED:
            incident.evidence.append(fact)
    incident.nodes = max(incident.nodes, len(symptom.members))
    if incident.stale and ctx.now - symptom.last <= ctx.compiled.settings.stale_s:
        incident.stale = False
        ctx.note(
            "incident.fresh",
            f"a fresh fact confirms it ({symptom.name})",
            incident=incident.id,
            scope=symptom.scope,
        )
    ctx.show(incident)


def _absorb(ctx: Context, inhibitor: Incident, rule: Rule) -> None:
    """Ends the incidents within the inhibitor's scope that it explains."""
    why = f"{inhibitor.cause} at {inhibitor.scope} explains it (incident {inhibitor.id})"
    for cause in rule.inhibits:
        for incidents in list(ctx.index.by_cause.get(cause, {}).values()):
            for other in list(incidents.values()):
                if other.id != inhibitor.id and ctx.compiled.topology.contains(inhibitor.scope, other.scope):
                    other.explained_by = inhibitor.id
                    inhibitor.explains += 1
                    inhibitor.nodes = max(inhibitor.nodes, inhibitor.explains)
                    transition(ctx, other, T.ABSORBED, why)

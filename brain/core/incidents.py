"""Incidents: one for each fault. This file holds their only transition table (TRANSITIONS)."""

import base64
import hashlib
from enum import StrEnum

from brain.core import judge, paging, runs
from brain.core.conditions import symptoms_in
from brain.core.spec import Paging, Rule
from brain.core.state import Incident, IncidentState, RunState, SymptomState
from brain.core.topology import node_of, type_of
from brain.core.turn import Turn

MAX_LISTED = 40  # symptoms and facts that an incident names; more are counted


class Happening(StrEnum):
    """What can happen to an incident."""

    SETTLED = "settled"  # nothing explained it in time
    RUN_BEGAN = "run began"
    RUN_WORKED = "run worked"  # verified
    RUN_ENDED = "run ended"  # without success: gave up, denied, or only planned
    GONE = "gone"  # no rule matches any more
    BACK = "back"  # a rule matches again
    QUIET = "quiet"  # gone for long enough
    ABSORBED = "absorbed"  # another incident explains it
    CLOSED = "closed by a person"


S, H = IncidentState, Happening
TRANSITIONS: dict[tuple[IncidentState, Happening], IncidentState] = {
    (S.SETTLING, H.SETTLED): S.OPEN,
    (S.SETTLING, H.GONE): S.CLOSED,  # nobody was told, nothing was done
    (S.OPEN, H.RUN_BEGAN): S.HEALING,
    (S.OPEN, H.GONE): S.MENDED,
    (S.HEALING, H.RUN_WORKED): S.MENDED,
    (S.HEALING, H.RUN_ENDED): S.PERSON,
    (S.PERSON, H.RUN_BEGAN): S.HEALING,
    (S.PERSON, H.GONE): S.MENDED,
    (S.MENDED, H.BACK): S.OPEN,
    (S.MENDED, H.QUIET): S.CLOSED,
    **{(state, H.ABSORBED): S.EXPLAINED for state in (S.SETTLING, S.OPEN, S.HEALING, S.PERSON, S.MENDED)},
    **{(state, H.CLOSED): S.CLOSED for state in (S.SETTLING, S.OPEN, S.HEALING, S.PERSON, S.MENDED)},
}
OVER = (S.CLOSED, S.EXPLAINED)


def happen(turn: Turn, incident: Incident, what: Happening, why: str) -> bool:
    """Moves an incident along the table; False (and nothing) where the table has no such arrow."""
    after = TRANSITIONS.get((incident.state, what))
    if after is None:
        return False
    quiet = incident.state is S.SETTLING and after in OVER
    incident.state = after
    turn.show(incident)
    turn.note(
        f"incident.{after.value}",
        why,
        incident=incident.id,
        scope=incident.scope,
        data={"cause": incident.cause, "quiet": quiet},
    )
    if after in OVER:
        incident.closed_at = turn.now
        incident.closed_why = why
        for run_id in incident.runs:
            if (run := turn.state.runs.get(run_id)) is not None:
                runs.cancel(turn, run, why)
        turn.index.gone(incident)
        turn.lifted.append(incident)
        turn.cancel_timer(f"incident:{incident.id}")
        paging.resolve(turn, incident, why)
        forget_if_done(turn, incident)
    return True


def forget_if_done(turn: Turn, incident: Incident) -> None:
    """A closed incident is forgotten with its runs, once its last page is delivered. The read model keeps it."""
    stopping = any(
        turn.state.runs[run].state is RunState.CANCELLING for run in incident.runs if run in turn.state.runs
    )
    if incident.state in OVER and not incident.pages.waiting and not stopping:
        turn.state.incidents.pop(incident.id, None)
        paging.forget(turn, incident)
        for run in incident.runs:
            turn.state.runs.pop(run, None)
            turn.index.claims.pop(run, None)
            turn.cancel_timer(f"run:{run}")


def match_began(turn: Turn, rule: Rule, scope: str) -> Incident | None:
    """A rule became true of a scope: it joins an incident of the same cause, or is explained, or opens one."""
    cause = rule.cause or rule.name
    support = f"{rule.name}@{scope}"
    incident = _same_fault(turn, cause, scope)
    if incident is not None:
        _join(turn, incident, rule, scope, support)
        return incident
    explained_by = _explained_by(turn, cause, scope)
    if explained_by is not None:
        explained_by.explains += 1
        explained_by.nodes = max(explained_by.nodes, explained_by.explains)
        turn.show(explained_by)
        if explained_by.explains <= MAX_LISTED:
            turn.note(
                "incident.explains",
                f"{cause} at {scope} is explained by {explained_by.cause} at {explained_by.scope}",
                incident=explained_by.id,
                scope=scope,
            )
        return None
    return _open(turn, rule, cause, scope, support)


def match_ended(turn: Turn, rule: str, scope: str) -> Incident | None:
    """A rule is no longer true of a scope. Returns the incident that lost its last support."""
    support = f"{rule}@{scope}"
    incident = turn.state.incidents.get(turn.index.by_support.pop(support, ""))
    if incident is None:
        return None
    incident.support.pop(support, None)
    turn.show(incident)
    return incident if not incident.support else None


def _same_fault(turn: Turn, cause: str, scope: str) -> Incident | None:
    nodes: dict[str, dict[str, Incident]] = turn.index.by_cause.get(cause, {})
    here: list[Incident] = list(nodes.get(node_of(scope), {}).values())
    wider: list[Incident] = list(nodes.get("", {}).values()) if node_of(scope) else []
    for incident in here + wider:
        if turn.book.topology.overlap(incident.scope, scope):
            return incident
    return None


def _explained_by(turn: Turn, cause: str, scope: str) -> Incident | None:
    for incident in turn.index.inhibitors.get(cause, {}).values():
        if incident.cause != cause and turn.book.topology.contains(incident.scope, scope):
            return incident
    return None


def _open(turn: Turn, rule: Rule, cause: str, scope: str, support: str) -> Incident:
    digest = hashlib.blake2b(f"{turn.cause}|{cause}|{scope}".encode(), digest_size=5).digest()
    incident = Incident(
        id=f"inc-{base64.b32encode(digest).decode().lower()}",
        cause=cause,
        state=S.SETTLING,
        severity=rule.severity.value,
        scope=scope,
        node=node_of(scope),
        rule=rule.name,
        because=rule.because,
        runbook=rule.runbook,
        pack=turn.book.pack.version,
        opened_at=turn.now,
        settle_until=turn.now + rule.settle_s,
        quiet_s=rule.quiet_s,
        page=rule.page.value,
        params=dict(rule.params),
        support={support: rule.name},
    )
    turn.state.incidents[incident.id] = incident
    turn.index.opened(incident, rule.inhibits)
    _gather(turn, incident, rule, scope)
    incident.stale = all(
        turn.now - fact.at > turn.book.settings.stale_s for fact in incident.evidence
    ) and bool(incident.evidence)
    turn.note(
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
    turn.show(incident)
    _absorb(turn, incident, rule)
    return incident


def _join(turn: Turn, incident: Incident, rule: Rule, scope: str, support: str) -> None:
    incident.support[support] = rule.name
    turn.index.by_support[support] = incident.id
    if type_of(incident.scope) == "node" and node_of(scope) == incident.node and scope != incident.scope:
        turn.note(
            "incident.narrowed",
            f"{incident.cause} is now known to be at {scope}",
            incident=incident.id,
            scope=scope,
        )
        incident.scope = scope
    if rule.severity.value < incident.severity:
        turn.note(
            "incident.raised",
            f"from {incident.severity} to {rule.severity.value} by rule {rule.name}: {rule.because}",
            incident=incident.id,
            scope=scope,
        )
        before, incident.severity = incident.severity, rule.severity.value
        paging.raised(turn, incident, before)
    if rule.page is Paging.OPEN:
        incident.page = Paging.OPEN.value
    if rule.runbook and not incident.runbook:
        incident.runbook, incident.params = rule.runbook, dict(rule.params)
    _gather(turn, incident, rule, scope)
    turn.show(incident)


def _gather(turn: Turn, incident: Incident, rule: Rule, scope: str) -> None:
    """Takes over the symptoms that the rule names and the facts behind them."""
    named = set(symptoms_in(rule.when))
    for symptom in judge.active_at(turn, scope):
        if symptom.name in named:
            renewed(turn, incident, symptom)


def renewed(turn: Turn, incident: Incident, symptom: SymptomState) -> None:
    """A symptom of the incident began or has new facts."""
    key = f"{symptom.name}@{symptom.scope}"
    if key not in incident.symptoms:
        incident.symptom_count += 1
        if len(incident.symptoms) < MAX_LISTED:
            incident.symptoms.append(key)
    known = [fact.id for fact in incident.evidence]
    for fact in symptom.evidence:
        if fact.id not in known and len(incident.evidence) < MAX_LISTED:
            incident.evidence.append(fact)
    incident.nodes = max(incident.nodes, len(symptom.members))
    if incident.stale and turn.now - symptom.last <= turn.book.settings.stale_s:
        incident.stale = False
        turn.note(
            "incident.fresh",
            f"a fresh fact confirms it ({symptom.name})",
            incident=incident.id,
            scope=symptom.scope,
        )
    turn.show(incident)


def _absorb(turn: Turn, inhibitor: Incident, rule: Rule) -> None:
    """Ends the incidents within its scope that it explains."""
    for cause in rule.inhibits:
        for incidents in list(turn.index.by_cause.get(cause, {}).values()):
            for other in list(incidents.values()):
                if other.id != inhibitor.id and turn.book.topology.contains(inhibitor.scope, other.scope):
                    other.explained_by = inhibitor.id
                    inhibitor.explains += 1
                    inhibitor.nodes = max(inhibitor.nodes, inhibitor.explains)
                    happen(
                        turn,
                        other,
                        H.ABSORBED,
                        f"{inhibitor.cause} at {inhibitor.scope} explains it (incident {inhibitor.id})",
                    )

"""Incidents: one for each fault. TRANSITIONS is the only table of their state changes."""

from collections.abc import Iterable
from enum import StrEnum

from brain.core import affected, explaining, ids, known, listed, past, recurrence, reopening, several
from brain.core.context import Context
from brain.core.faults import at_once, closed_places, parts, releases, situations, sprees, wider
from brain.core.healing import at_work, drains, runs
from brain.core.healing.told import remedied_alike
from brain.core.pack.spec import Paging, Priority, Rule, Scalar
from brain.core.pack.topology import JOB, node_of, type_of
from brain.core.paging import escalation
from brain.core.state import Incident, IncidentState, RunState, SymptomState

RETURN_RUNBOOK = "return-node"  # gives a node back that gpuward has drained


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
    CAME_BACK = "came back"  # soon after it was over


S, T = IncidentState, IncidentTrigger
_LASTING = (S.SETTLING, S.OPEN, S.HEALING, S.NEEDS_HUMAN, S.RECOVERED)
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
    (S.CLOSED, T.CAME_BACK): S.SETTLING,
    (S.EXPLAINED, T.CAME_BACK): S.SETTLING,  # explained within its hold-off, of one that was closed before
    **dict.fromkeys(((state, T.ABSORBED) for state in _LASTING), S.EXPLAINED),
    **dict.fromkeys(((state, T.CLOSED_BY_OPERATOR) for state in _LASTING), S.CLOSED),
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
    data: dict[str, str | bool] = {"cause": incident.cause, "quiet": in_hold_off and incident.times < 2}
    ctx.note(f"incident.{after}", why, incident=incident.id, scope=incident.scope, data=data)
    if after in OVER:
        at_work.ended(ctx, incident, told=not in_hold_off)
        _end(ctx, incident, why, by_operator=trigger is T.CLOSED_BY_OPERATOR)
        if trigger is T.STAYED_CLEAR or (in_hold_off and trigger is not T.CLOSED_BY_OPERATOR):
            reopening.over(ctx, incident, in_hold_off=in_hold_off)
        forget_if_done(ctx, incident)
    return True


def _end(ctx: Context, incident: Incident, why: str, *, by_operator: bool) -> None:
    """What follows when an incident is over: its runs are cancelled, its pages resolved, its inhibition ends.

    What it keeps out of service gets another owner. What an operator closes stays dismissed until a newer fact comes.
    """
    incident.closed_at = ctx.now
    incident.closed_why = why
    if by_operator:  # what stands in place of a rule's match has no newer fact
        rules = [match for match, rule in incident.matching_rules.items() if rule in ctx.compiled.rules]
        ctx.state.dismissed |= dict.fromkeys((*rules, *incident.stands_for), ctx.now)
    heir = ctx.state.incidents.get(incident.explained_by)
    for node in drains.owned(ctx, incident):
        if incident.explained_by and (heir is None or _stands_there(ctx, heir, node)):
            drains.hand_over(ctx, node, incident.id, incident.explained_by)
        else:
            ctx.left.append((node, incident, by_operator))
    for run_id in incident.runs:
        if (run := ctx.state.runs.get(run_id)) is not None:
            runs.cancel(ctx, run, why)
    ctx.index.remove_incident(incident)
    ctx.released.append(incident)
    ctx.cancel_timer(f"incident:{incident.id}")
    escalation.resolve(ctx, incident, why)


def _stands_there(ctx: Context, incident: Incident, node: str) -> bool:
    """Whether it is of this node, or of a place around it."""
    return incident.node == node or wider.reaches(ctx, incident, f"node/{node}")


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
        reopening.forgotten(ctx, incident)
        for run in incident.runs:
            ctx.state.runs.pop(run, None)
            ctx.index.claims.pop(run, None)
            ctx.cancel_timer(f"run:{run}")


def match_began(ctx: Context, rule: Rule, scope: str) -> Incident | None:
    """A rule began to match at a scope. Returns the incident that it joins or opens; None: another one explains it."""
    cause = rule.cause or rule.name
    incident = _same_fault(ctx, rule, scope) or several.of_node(ctx, rule, scope)
    if incident is not None:
        _join(ctx, incident, rule, scope)
        return incident
    by = explaining.explained_by(ctx, rule, scope) or _for_a_stray(ctx, rule, scope)
    if by is not None:
        by.explains += 1
        affected.add(ctx, by, [node_of(scope)])
        ctx.show(by)
        if by.explains <= listed.MAX_LISTED:
            text = f"{cause} at {scope} is explained by {by.cause} at {by.scope}"
            ctx.note("incident.explains", text, incident=by.id, scope=scope)
        if parts.belongs(ctx, by, rule, scope):
            _join(ctx, by, rule, scope)
            return by
        stands_for(ctx, by, rule, scope)
        take_over_all(ctx, by, explaining.open_on_job(ctx, by, rule, scope))
        return None
    if explaining.is_dismissed(ctx, rule, scope):
        return None
    if parts_of_node := several.of_many_parts(ctx, rule, scope):
        return _open_for_node(ctx, rule, scope, parts_of_node)
    return _open(ctx, rule, cause, scope)


def _open_for_node(ctx: Context, rule: Rule, scope: str, others: list[Incident]) -> Incident:
    """So many parts of the node have the fault that it is the node's: one incident and one remedy in place of theirs."""
    incident = _open(ctx, rule, rule.cause or rule.name, scope, node=True)
    incident.runbook = several.runbook(ctx, incident, rule)
    take_over_all(ctx, incident, others)
    return incident


def _for_a_stray(ctx: Context, rule: Rule, scope: str) -> Incident | None:
    """The incident of another place that explains a shared cause around this node, which is a part of it only now: it stands for
    this node, too, and nothing is done to the node as long as that cause lasts (law 6). So does what explains a job of it.
    """
    for name, place in (
        wider.shared_around(ctx, situations.named_by(ctx, rule, scope)) if node_of(scope) else ()
    ):
        by = explaining.standing_for(ctx, ids.key(name, place))
        if by is not None:
            stands_for(ctx, by, ctx.compiled.rules[name], place)
            if (found := explaining.explained_by(ctx, rule, scope)) is not None:
                return found
            if not wider.related(ctx, by.rule, name):
                return by
    return None


def match_ended(ctx: Context, rule: str, scope: str) -> Incident | None:
    """A rule no longer matches at a scope. Returns its incident if no other rule matches for it; else None."""
    match = ids.key(rule, scope)
    ctx.state.dismissed.pop(match, None)
    known.match_ended(ctx, match)
    incident = ctx.state.incidents.get(ctx.index.by_match.pop(match, ""))
    if incident is None:
        return None
    incident.matching_rules.pop(match, None)
    ctx.show(incident)
    return incident if not incident.matching_rules else None


def _same_fault(ctx: Context, rule: Rule, scope: str) -> Incident | None:
    """The incident of the rule's cause whose scope overlaps."""
    nodes: dict[str, dict[str, Incident]] = ctx.index.by_cause.get(rule.cause or rule.name, {})
    here: list[Incident] = list(nodes.get(node_of(scope), {}).values())
    wider: list[Incident] = list(nodes.get("", {}).values()) if node_of(scope) else []
    for incident in here + wider:
        if several.belongs(ctx, incident, rule, scope):
            return incident
    return None


def stands_for(ctx: Context, by: Incident, rule: Rule, scope: str) -> None:
    """`by` explains a match at a wide scope: if both count the same symptom, it explains all nodes there that show it."""
    if wider.stand_for(ctx, by, rule.name, scope, rule.inhibits):
        _absorb(ctx, by, strays=True)


def placed_anew(ctx: Context, incident: Incident, rule: Rule) -> bool:
    """More nodes show the fault of a wide incident: another place may explain it now, and then takes it over; or what explains
    one of the nodes of a job does.
    """
    match = closed_places.explainer(ctx, rule, incident.scope) if incident.rule == rule.name else ""
    by = explaining.standing_for(ctx, match) if match else None
    if by is None and type_of(incident.scope) == JOB:
        by = explaining.explained_by(ctx, rule, incident.scope)
    if by is None or by.id == incident.id:
        if incident.state is not S.SETTLING:
            wider.consider(ctx, incident)
        return False
    _take_over(ctx, by, incident)
    stands_for(ctx, by, rule, incident.scope)
    take_over_all(ctx, by, explaining.open_on_job(ctx, by, rule, incident.scope))
    return True


def _open(ctx: Context, rule: Rule, cause: str, match_at: str, *, node: bool = False) -> Incident:
    """Opens the incident of a match. `node`: several parts have it, and it is the node's."""
    scope = f"node/{node_of(match_at)}" if node else match_at
    severity, hold_off_s = wider.urgency(ctx, rule, scope)
    former = reopening.known(ctx, cause, scope)
    incident = Incident(
        id=former.id if former is not None else ids.hashed(ids.INCIDENT, ctx.cause, cause, scope),
        cause=cause,
        state=S.SETTLING if former is None else TRANSITIONS[S.CLOSED, T.CAME_BACK],
        severity=severity,
        scope=scope,
        node=node_of(scope),
        rule=rule.name,
        because=rule.because,
        because_zh=rule.because_zh,
        runbook=rule.runbook,
        pack=ctx.compiled.pack.version,
        opened_at=ctx.now,
        hold_off_until=ctx.now + hold_off_s,
        resolve_delay_s=rule.resolve_delay_s,
        page=rule.page,
        params=dict(rule.params),
        matching_rules={ids.key(rule.name, match_at): rule.name},
        several=node,
        inhibits=list(rule.inhibits),
        inhibits_on_node=list(rule.inhibits_on_node),
    )
    if rule.page_once and (value := situations.situation(ctx, scope).get(rule.page_once)) is not None:
        incident.page_once = ids.key(rule.name, str(value))
    if former is not None:
        reopening.begin(ctx, incident, former)
    ctx.state.incidents[incident.id] = incident
    ctx.state.dismissed.pop(ids.key(rule.name, match_at), None)
    ctx.index.add_incident(incident)
    affected.add(ctx, incident, [incident.node])
    _gather(ctx, incident, rule, match_at)
    past.tell(ctx, incident, rule)
    stale_s = ctx.compiled.settings.stale_s + situations.waited_s(ctx, incident.symptoms)
    incident.stale = bool(incident.evidence) and all(
        ctx.now - fact.at > stale_s for fact in incident.evidence
    )
    data: dict[str, Scalar | list[str]] = {"cause": cause, "rule": rule.name, "pack": incident.pack}
    data |= {"severity": incident.severity, "symptoms": list(incident.symptoms)}
    kind = "incident.opened" if former is None else "incident.reopened"
    ctx.note(kind, f"{cause} at {scope}: {incident.because}", incident=incident.id, scope=scope, data=data)
    ctx.show(incident)
    if not recurrence.never_left(ctx, incident):
        recurrence.came(ctx, incident)
    wider.stands_no_more(ctx, ids.key(rule.name, match_at))
    _absorb(ctx, incident)
    return incident


def _join(ctx: Context, incident: Incident, rule: Rule, scope: str) -> None:
    """Adds a match to an open incident, which may narrow its scope, raise its severity, or give it a runbook."""
    match = ids.key(rule.name, scope)
    if several.joins_late(ctx, incident, rule, scope):
        several.tell_late(ctx, incident, scope)
    incident.matching_rules[match] = rule.name
    incident.vouched_by = ""
    ctx.index.by_match[match] = incident.id
    if not ctx.compiled.topology.overlap(incident.scope, scope):
        several.widen(ctx, incident, scope)
    at_node = type_of(incident.scope) == "node" and not incident.several
    if at_node and node_of(scope) == incident.node and scope != incident.scope:
        text = f"{incident.cause} is now known to be at {scope}"
        ctx.note("incident.narrowed", text, incident=incident.id, scope=scope)
        incident.scope = scope
    if rule.severity < incident.severity:
        _raise(ctx, incident, rule.severity, f"by rule {rule.name}: {rule.because}", scope)
    if rule.page is Paging.OPEN:
        incident.page = Paging.OPEN
    if rule.runbook and not incident.runbook:
        incident.runbook, incident.params = rule.runbook, dict(rule.params)
    _gather(ctx, incident, rule, scope)
    inhibit(ctx, incident, rule)
    ctx.show(incident)


def _raise(ctx: Context, incident: Incident, to: Priority, why: str, scope: str) -> None:
    text = f"from {incident.severity} to {to} {why}"
    ctx.note("incident.raised", text, incident=incident.id, scope=scope)
    before, incident.severity = incident.severity, to
    escalation.raised(ctx, incident, before)


def inhibit(ctx: Context, incident: Incident, rule: Rule) -> None:
    """The incident explains what the rule explains, too."""
    _explain_more(ctx, incident, rule.inhibits, rule.inhibits_on_node)


def _explain_more(
    ctx: Context, incident: Incident, causes: Iterable[str], causes_on_node: Iterable[str] = ()
) -> None:
    more = [cause for cause in causes if cause not in incident.inhibits]
    on_node = [cause for cause in causes_on_node if cause not in incident.inhibits_on_node]
    if more or on_node:
        incident.inhibits += more
        incident.inhibits_on_node += on_node
        ctx.index.add_incident(incident)
        _absorb(ctx, incident)


def _gather(ctx: Context, incident: Incident, rule: Rule, scope: str) -> None:
    """Takes over the active symptoms that the rule names, and their facts."""
    for symptom in situations.named_by(ctx, rule, scope):
        renewed(ctx, incident, symptom)


def renewed(ctx: Context, incident: Incident, symptom: SymptomState) -> None:
    """Takes over a symptom that began or has new facts. A fresh fact ends the incident's being stale."""
    listed.take(incident, symptom)
    affected.grows(ctx, incident, symptom, at_once.ill_with(symptom) or releases.ill_with(ctx, symptom))
    _explain_more(ctx, incident, (*releases.explains(ctx, symptom), *sprees.explains(ctx, symptom)))
    rule = ctx.compiled.rules.get(incident.rule)
    if symptom.members and rule is not None and rule.severity < incident.severity and not symptom.at_once:
        severity = min(incident.severity, wider.urgency(ctx, rule, incident.scope)[0])
        if severity < incident.severity:
            _raise(ctx, incident, severity, f"{len(symptom.members)} nodes show it by now", incident.scope)
    if symptom.at_once:
        _absorb(ctx, incident)
    if incident.stale and ctx.now - symptom.last <= ctx.compiled.settings.stale_s:
        incident.stale = False
        text = f"a fresh fact confirms it ({symptom.name})"
        ctx.note("incident.fresh", text, incident=incident.id, scope=symptom.scope)
    ctx.show(incident)


def _absorb(ctx: Context, inhibitor: Incident, *, strays: bool = False) -> None:
    """Ends the incidents that the inhibitor explains, oldest first. `strays`: only its reach has changed."""
    take_over_all(ctx, inhibitor, explaining.open_ones(ctx, inhibitor, strays=strays))


def take_over_all(ctx: Context, by: Incident, explained: list[Incident]) -> None:
    """The incident explains others, which end, oldest first."""
    for other in sorted(explained, key=lambda each: (each.opened_at, each.id)):
        if other.state not in OVER:
            _take_over(ctx, by, other)


def _take_over(ctx: Context, by: Incident, other: Incident) -> None:
    """The incident explains another one, which ends."""
    other.explained_by = by.id
    called = bool(other.pages.first_at) and by.page is Paging.FAILURE
    known_by_now = called and remedied_alike(ctx, by, other)
    if called and not known_by_now:
        by.page = Paging.OPEN  # whoever was called for the other one hears of what took it over
    known.keep(ctx, by, other)
    by.explains += 1
    affected.add(ctx, by, [*other.affected, other.node])
    wider.inherits(ctx, by, other)
    if not wider.stood_before(ctx, by, other):
        escalation.passed_on(ctx, by, other)
        by.pages.was = None if known_by_now else by.pages.was
    told = f"incident {by.id}" + (f", whose alert is {by.pages.key}" if by.pages.key else "")
    its_own = parts.of_former(ctx, by, other)
    transition(ctx, other, T.ABSORBED, f"{by.cause} at {by.scope} explains it ({told})")
    for rule, at in its_own:
        _join(ctx, by, rule, at)


def rejudged(ctx: Context, incident: Incident, rule: Rule) -> None:
    """New rules are in force and this one still matches: the incident takes over what it says now.

    A run under way keeps the runbook with which it began.
    """
    inhibit(ctx, incident, rule)
    if incident.rule != rule.name:
        return
    several.tell_why(incident, rule)
    incident.resolve_delay_s = rule.resolve_delay_s
    incident.pack = ctx.compiled.pack.version
    if rule.runbook:
        incident.runbook, incident.params = several.runbook(ctx, incident, rule), dict(rule.params)
    if (severity := wider.urgency(ctx, rule, incident.scope)[0]) < incident.severity:
        before, incident.severity = incident.severity, severity
        escalation.raised(ctx, incident, before)
    ctx.show(incident)

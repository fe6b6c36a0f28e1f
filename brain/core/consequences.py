"""What follows when the rules that match change, a run ends, or a person vouches: incidents begin, recover, are remedied.

Each consequence may lead to more: they wait in the context, and `propagate` handles them until none is left.

It is a little long, and one file: each of these steps may lead to any other (a match that begins, one that is released), so that
the way of a change is read here from top to bottom.
"""

from brain.core import (
    demotion,
    endings,
    explaining,
    ids,
    incidents,
    known,
    left_drained,
    recurrence,
    remedying,
    several,
)
from brain.core.context import Context
from brain.core.faults import growing, reach, situations, spread, sprees, symptoms, wider
from brain.core.healing import at_work, blame, drains, run_states, runs, steps, told, turns
from brain.core.incidents import IncidentTrigger
from brain.core.operators import requests, returning
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.spec import Paging, Rule
from brain.core.pack.topology import node_of
from brain.core.paging import again, escalation
from brain.core.people import do
from brain.core.state import Incident, IncidentState, Run, RunState, SymptomState

LEFT_TIMER = "left"
LEFT_S = 3600.0  # so long after the end of a shared cause that an operator had closed, what is left of it is dismissed like it
RECHECK_S = 5.0  # how often an incident that a run of ours may have caused checks whether that has ended


def propagate(ctx: Context) -> None:
    """Handles changed symptoms, ended runs and released incidents; each may lead to more, so until none is left."""
    while ctx.changed or ctx.ended or ctx.let_go or ctx.left or ctx.released or ctx.vouched or ctx.freed:
        if ctx.changed:
            changed, ctx.changed = ctx.changed, []
            judge(ctx, changed)
        elif ctx.vouched:
            _vouched(ctx, *ctx.vouched.pop(0))
        elif ctx.ended:
            _run_ended(ctx, ctx.ended.pop(0))
        elif ctx.let_go:
            _let_go(ctx, ctx.let_go.pop(0))
        elif ctx.released:
            _released(ctx, ctx.released.pop(0))
        elif ctx.left:
            left_drained.left(ctx, *ctx.left.pop(0))
        else:
            ctx.freed = False
            turns.wake_held(ctx)


def incident_timer(ctx: Context, incident: Incident) -> None:
    if incident.state is IncidentState.SETTLING:
        _end_hold_off(ctx, incident)
    elif incident.state is IncidentState.RECOVERED and incident.matching_rules:
        still = ", ".join(incident.matching_rules)
        incidents.transition(ctx, incident, IncidentTrigger.RECURRED, f"it is not over: {still} matches")
        again.is_there_again(ctx, incident)
        remedying.begin(ctx, incident)
    elif incident.state is IncidentState.RECOVERED:
        run = ctx.state.runs.get(incident.runs[-1]) if incident.runs else None
        incidents.transition(
            ctx, incident, IncidentTrigger.STAYED_CLEAR, endings.stayed_clear(ctx, incident, run)
        )


def _end_hold_off(ctx: Context, incident: Incident) -> None:
    """Opens the incident, unless a run of ours may have caused it: then it waits until that run has ended.

    A shared cause that is on its way out waits until it is over, or grows again; not for long.
    """
    rule = ctx.compiled.rules.get(incident.rule)
    if rule is not None and not incident.node and _placed_anew(ctx, incident, rule):
        return
    if spree := sprees.place_told(ctx, incident):
        ctx.changed.extend(spree)
        ctx.set_timer(f"incident:{incident.id}", ctx.now + RECHECK_S)
        return
    wider.consider(ctx, incident)
    run = blame.run_behind(ctx, incident)
    soon = ctx.now < incident.hold_off_until + spread.GROWS_S
    shared = growing.may_be_shared(ctx, incident)
    wanes = soon and growing.wanes(ctx, incident)
    drained, again_s = at_work.why_not_yet(ctx, rule, incident) if not (run or shared or wanes) else ("", 0.0)
    if run is None and not shared and not wanes and not drained:
        incidents.transition(ctx, incident, IncidentTrigger.HOLD_OFF_ENDED, "nothing wider explains it")
        demotion.incident_opened(ctx, incident)
        remedying.begin(ctx, incident)
        return
    why = "few nodes show it by now: it is judged when it is over, or grows again"
    if (
        why := blame.judged_later(run) if run else drained or shared or why
    ) != incident.waits:  # one note, not one for each check
        incident.waits = why
        ctx.show(incident)
        ctx.note("incident.waits", why, incident=incident.id, scope=incident.scope)
    waited_s = ctx.now - incident.hold_off_until  # each check is a message on the log
    again_s = again_s or max(RECHECK_S, min(60.0, waited_s / 60))
    ctx.set_timer(f"incident:{incident.id}", ctx.now + again_s)


def judge(ctx: Context, changed: list[SymptomState]) -> None:
    """Matches the rules at every scope that sees a changed symptom, then rechecks the runs concerned."""
    for scope in situations.scopes_to_judge(ctx, changed):
        before = list(ctx.state.matched.get(scope, ()))
        ended = judge_scope(ctx, scope)
        for rule in before:
            if rule not in ended:
                _match_continues(ctx, rule, scope, changed)
    if any(not symptom.active for symptom in changed):
        for run in list(ctx.state.runs.values()):
            steps.check(ctx, run)
    for symptom in changed:
        if symptom.active:
            _recheck(ctx, symptom.scope)


def judge_scope(ctx: Context, scope: str, why: str = "", *, proven: bool = True) -> list[str]:
    """Matches the rules at a scope. Returns those that matched before and do not any more: because of `why`, else of the facts.

    Unless that is `proven`, their incidents are not proven to be healed.
    """
    began, ended = situations.judge(ctx, scope)
    for rule in began:
        match_began(ctx, rule, scope)
    for rule in ended:
        incident = ctx.state.incidents.get(ctx.index.by_match.get(ids.key(rule, scope), ""))
        if incident is not None and not proven:
            incident.unproven = True
        match_ended(ctx, rule, scope, why)
    return ended


def match_began(ctx: Context, rule: str, scope: str) -> None:
    spec = ctx.compiled.rules.get(rule)
    incident = incidents.match_began(ctx, spec, scope) if spec is not None else None
    if incident is None:
        return
    if incident.state is IncidentState.SETTLING:
        if ctx.now >= incident.hold_off_until:
            _end_hold_off(ctx, incident)
        else:
            ctx.set_timer(f"incident:{incident.id}", incident.hold_off_until)
    elif (  # this rule has a runbook; that with which the incident opened had none
        incident.state is IncidentState.OPEN
        and not incident.runs
        and incident.runbook in ctx.compiled.runbooks
    ):
        remedying.begin(ctx, incident)
    elif incident.state is IncidentState.RECOVERED:
        ctx.cancel_timer(f"incident:{incident.id}")
        incidents.transition(ctx, incident, IncidentTrigger.RECURRED, f"it is back: rule {rule} at {scope}")
        recurrence.came(ctx, incident)
        again.is_there_again(ctx, incident)
        remedying.begin(ctx, incident)
    elif incident.page is Paging.OPEN:
        escalation.open_page(ctx, incident, incident.because)


def match_ended(ctx: Context, rule: str, scope: str, why: str = "") -> None:
    """A rule does not match any more. `why`, where it is not for the facts."""
    closed_at = ctx.state.dismissed.get(ids.key(rule, scope))
    incident = incidents.match_ended(ctx, rule, scope)
    if rule in ctx.compiled.families:
        _stands_no_more(ctx, ids.key(rule, scope))
    if rule in ctx.compiled.rules:
        ctx.changed.extend(sprees.match_ended(ctx, ctx.compiled.cause(rule)))
    if closed_at is not None:
        _closed_cause_is_over(ctx, rule, scope, closed_at)
    if incident is None:
        return
    _recover(ctx, incident, IncidentTrigger.CLEARED, why or endings.cleared(incident))
    run = ctx.state.runs.get(incident.runs[-1]) if incident.runs else None
    if run is not None and run.state in (RunState.HELD, RunState.APPROVAL):
        runs.proceed(ctx, run)  # the reason for which it waits to act is gone


def _closed_cause_is_over(ctx: Context, rule: str, scope: str, closed_at: float) -> None:
    """What an operator has closed explained other matches, which go on without it: each is as if it had been closed itself.

    Of those of which something newer is known, or will be, people hear; and of one that is there still an hour later.
    """
    rules = ctx.compiled.rules
    explained = [
        (spec, place)
        for place in sorted(ctx.state.matched, key=lambda place: bool(node_of(place)))  # the wider ones first
        for name in ctx.state.matched[place]
        if rule in rules
        and (spec := rules.get(name)) is not None
        and reach.covers(ctx, rules[rule], scope, spec.cause or name, place)
    ]
    for spec, place in explained:
        match = ids.key(spec.name, place)
        if match in ctx.index.by_match or match in ctx.state.dismissed:
            continue
        if any(symptom.arrived > closed_at for symptom in situations.named_by(ctx, spec, place)):
            match_began(ctx, spec.name, place)
        elif explaining.explained_by(ctx, spec, place) is None:
            ctx.state.dismissed[match] = closed_at
            ctx.set_timer(f"{LEFT_TIMER}:{match}", ctx.now + LEFT_S)


def still_left(ctx: Context, match: str) -> None:
    """What is left of a cause that an operator has closed did not end with it, nor in the hour since: now it has an incident of
    its own. Who closed a rack that is dark did not speak of the one node that stays so.
    """
    rule, scope = ids.split(match)
    if ctx.state.dismissed.pop(match, None) is not None and rule in ctx.state.matched.get(scope, ()):
        match_began(ctx, rule, scope)


def _match_continues(ctx: Context, rule: str, scope: str, changed: list[SymptomState]) -> None:
    """The rule's incident takes over new facts of the symptoms that the rule names."""
    match = ids.key(rule, scope)
    incident_id = ctx.index.by_match.get(match)
    spec = ctx.compiled.rules.get(rule)
    if spec is not None and rule in ctx.compiled.families and match not in ctx.state.dismissed:
        if incident_id is None:
            _still_explained(ctx, spec, scope)
        elif _placed_anew(ctx, ctx.state.incidents[incident_id], spec):
            return
    if incident_id is None and match not in ctx.state.dismissed:
        return
    named = list(symptoms_in(spec.when)) if spec else []
    renewed = [
        symptom
        for symptom in changed
        if symptom.active and symptom.name in named and ctx.compiled.topology.overlap(scope, symptom.scope)
    ]
    if incident_id is not None:
        for symptom in renewed:
            incidents.renewed(ctx, ctx.state.incidents[incident_id], symptom)
    elif any(symptom.arrived > ctx.state.dismissed[match] for symptom in renewed):
        del ctx.state.dismissed[match]
        match_began(ctx, rule, scope)


def _placed_anew(ctx: Context, incident: Incident, rule: Rule) -> bool:
    """Another place explains a wide incident by now. It may have none of its own yet: it was the worse one when it began."""
    if incidents.placed_anew(ctx, incident, rule):
        return True
    untold = explaining.untold_place(ctx, incident, rule)
    if untold is None:
        return False
    match_began(ctx, *untold)
    return incident.state in incidents.OVER


def _still_explained(ctx: Context, rule: Rule, scope: str) -> None:
    """More nodes of a wide scope show what another incident explains: it may be more by now than that one explains."""
    by = wider.standing(ctx, rule, scope)
    if by is not None and wider.still_explained(ctx, rule, scope, by):
        return
    by = explaining.explained_by(ctx, rule, scope)
    if by is None:
        match_began(ctx, rule.name, scope)
    else:
        incidents.stands_for(ctx, by, rule, scope)


def _recheck(ctx: Context, scope: str) -> None:
    """After a symptom began or got new facts: a verification may fail, or an approval become void or unnecessary."""
    for rule in ctx.state.matched.get(scope, ()):
        incident = ctx.state.incidents.get(ctx.index.by_match.get(ids.key(rule, scope), ""))
        run = ctx.state.runs.get(incident.runs[-1]) if incident is not None and incident.runs else None
        if run is None:
            continue
        if run.state is RunState.VERIFYING:
            steps.check(ctx, run)
        elif run.state is RunState.APPROVAL or (run.state is RunState.HELD and run.worked):
            runs.proceed(ctx, run)


def _recover(ctx: Context, incident: Incident, trigger: IncidentTrigger, why: str) -> bool:
    """Moves the incident; if it has recovered, which is returned, it closes after its resolve delay.

    Not while it keeps its node out of service: it stays open, and says so, until the node is given back (law 14).
    Nodes that a shared cause has from others are left to incidents of their own when it closes: meanwhile it would
    explain every fault around it.
    """
    drained = drains.owned(ctx, incident) if incident.node else []
    if drained and incident.state is IncidentState.HEALING and trigger is IncidentTrigger.RUN_SUCCEEDED:
        _run_failed(ctx, incident, f"{why}; {endings.stays_out(drained)}")
    elif drained and incident.state is IncidentState.NEEDS_HUMAN and incident.vouched_by:
        ctx.note("incident.waits", f"{why}; {', '.join(drained)} is being given back", incident=incident.id)
    elif drained and incident.state is IncidentState.NEEDS_HUMAN:
        escalation.gave_up(ctx, incident, f"{why}; {endings.stays_out(drained)}", "it waits for your word")
    elif incidents.transition(ctx, incident, trigger, why) and incident.state is IncidentState.RECOVERED:
        incident.clear_since, incident.clear_why = ctx.now, why
        again.is_gone(ctx, incident)
        ctx.set_timer(f"incident:{incident.id}", ctx.now + recurrence.resolve_delay_s(ctx.state, incident))
        return True
    return False


def _run_ended(ctx: Context, run: Run) -> None:
    ctx.changed.extend(symptoms.run_ended(ctx, run.id))
    demotion.run_ended(ctx, run)
    for former in requests.ended(ctx, run):
        _recover(ctx, former, IncidentTrigger.CLEARED, f"it was done again ({run.id}), and ended well")
    incident = ctx.state.incidents.get(run.incident)
    back = run.state is RunState.SUCCEEDED or runs.given_back(ctx, run)  # what else failed, people are told
    if incident is not None and back and not drains.owned(ctx, incident):
        left_drained.end_left(ctx, incident)
    if incident is not None and incident.state is IncidentState.HEALING:
        if run.state is RunState.SUCCEEDED:
            recovered = _recover(ctx, incident, IncidentTrigger.RUN_SUCCEEDED, run.why)
            if recovered and incident.matching_rules and runs.given_back(ctx, run):
                # The fault came back while its node was given back.
                ctx.set_timer(f"incident:{incident.id}", ctx.now)
        else:
            _run_failed(ctx, incident, run.why)
    if incident is not None:
        incidents.forget_if_done(ctx, incident)
    ctx.freed = True


def _run_failed(ctx: Context, incident: Incident, why: str) -> None:
    """People are told that gpuward does nothing more, unless a last resort fences the node first."""
    run = ctx.state.runs[incident.runs[-1]]
    found = requests.found(run)
    incidents.transition(ctx, incident, IncidentTrigger.RUN_FAILED, why)
    # what was to be tried on further parts of the node, is not
    incidents.take_over_all(ctx, incident, several.left_alone(ctx, incident))
    resort = run.runbook.last_resort
    if run.spent and resort in ctx.compiled.runbooks and not drains.owned(ctx, incident):
        incidents.transition(ctx, incident, IncidentTrigger.RUN_STARTED, f"{why}: runbook {resort}")
        if incident.page is not Paging.NEVER:
            escalation.gave_up(ctx, incident, why)
        runs.start(ctx, incident, instead=resort)
        return
    if incident.page is not Paging.NEVER:
        if run.state is RunState.OBSERVED or runs.told_last(run):
            escalation.open_page(ctx, incident, why)
        elif told.only_tells(run):  # it has told others than those on call, and there was nothing to give up
            escalation.open_page(ctx, incident, incident.because)
        else:
            drained = run.node in drains.owned(ctx, incident)
            text = f"{why}. {told.drained(ctx, run)}" if drained else why
            escalation.gave_up(ctx, incident, text, f"{run.runbook.name} did not end well" if found else "")
    keeps = bool(incident.node and drains.owned(ctx, incident))
    if found:
        return  # it has no symptoms that could be gone: somebody closes it, or the next one ends well
    if not incident.matching_rules and not incident.unproven and not keeps:
        _recover(ctx, incident, IncidentTrigger.CLEARED, endings.cleared(incident))


def _vouched(ctx: Context, node: str, who: str, since: float, run: Run | None) -> None:
    """An operator has said that a node is healthy, and if it could, it has looked again. `run`: gives the node back."""
    why = f"{do(who, 'says')} that {node} is healthy"
    done = returning.healthy(ctx, node, who, since)
    changed, ctx.changed = ctx.changed, []
    judge(ctx, changed)
    for incident in done:
        if not drains.owned(ctx, incident):  # else it is over when the node is back
            _recover(ctx, incident, IncidentTrigger.CLEARED, why)
    if run is not None and run.state is RunState.HELD:
        runs.go_on(ctx, run)


def _let_go(ctx: Context, incident: Incident) -> None:
    """The node that the incident kept out of service was given back by an operator's word. A run that waits is over by that:
    what it was about to do to the node, because of a test that failed before, has lost its reason (law 13).
    """
    left_drained.end_left(ctx, incident)
    run = ctx.state.runs.get(incident.runs[-1]) if incident.runs else None
    why = "its node was given back"
    if incident.matching_rules:
        return
    if run is not None and run.state in run_states.WAITING:
        run_states.transition(ctx, run, run_states.RunTrigger.SUCCEEDED, why)
    else:
        _recover(ctx, incident, IncidentTrigger.CLEARED, why)


def _released(ctx: Context, incident: Incident) -> None:
    """An incident is over or remedied: matches that it inhibited and that still hold become incidents of their own."""
    if not incident.inhibits and not incident.inhibits_on_node:
        return
    for of_job, job in list(explaining.jobs_explained(ctx, incident)):
        _left(ctx, incident, of_job, job)
    here = ctx.index.matched.get(incident.node, {}) if incident.node else ctx.state.matched
    if wider.taken_over(ctx, incident):
        here = {}  # that one explains all that it did
    for rule, scope in list(wider.unexplained(ctx, incident.rule)) if here else ():  # they explain the others
        _again(ctx, rule, scope)
    for scope in list(here):
        for name in list(ctx.state.matched.get(scope, ())):
            if reach.may_explain(ctx, incident, ctx.compiled.cause(name), scope):
                _left(ctx, incident, ctx.compiled.rules[name], scope)
    for match in list(incident.known):
        known.hand_on(ctx, incident, match, explaining.standing_for(ctx, match))


def _left(ctx: Context, former: Incident, rule: Rule, scope: str) -> None:
    """What explained a match is over. What the logs of a job told until then came of it; a newer word of them is news again."""
    if former.state is IncidentState.EXPLAINED or not explaining.is_word_of_jobs(ctx, rule):
        _again(ctx, rule.name, scope)
    elif explaining.is_untold(ctx, rule.name, scope) and explaining.explained_by(ctx, rule, scope) is None:
        ctx.state.dismissed[ids.key(rule.name, scope)] = ctx.now


def _again(ctx: Context, rule: str, scope: str) -> None:
    if explaining.is_untold(ctx, rule, scope):
        match_began(ctx, rule, scope)


def _stands_no_more(ctx: Context, match: str) -> None:
    """A wide match has ended for which an incident of another place stood: what is left outside of that place is its own."""
    around = ids.split(match)[1]
    incident = wider.stands_no_more(ctx, match)
    if incident is None:
        return
    for scope in list(ctx.state.matched):
        if ctx.compiled.topology.contains(around, scope) and not wider.reaches(ctx, incident, scope):
            for name in ctx.state.matched[scope]:
                if ctx.compiled.cause(name) in incident.inhibits:
                    _again(ctx, name, scope)
    for known_match in list(incident.known):
        heir = explaining.standing_for(ctx, known_match)
        if heir is not None and heir is not incident:
            known.hand_on(ctx, incident, known_match, heir, moved=True)
    for node in drains.owned(ctx, incident):
        if not wider.reaches(ctx, incident, f"node/{node}"):
            ctx.left.append((node, incident, False))

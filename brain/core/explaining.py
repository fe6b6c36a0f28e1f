"""Which open incident explains a rule's match: it inhibits its cause around it, or its place is the better one. Pure."""

from collections.abc import Iterator
from functools import partial

from brain.core import ids
from brain.core.context import Context
from brain.core.faults import closed_places, reach, releases, situations, sprees, symptoms, wider
from brain.core.healing import runs
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.spec import Rule
from brain.core.pack.topology import JOB, node_of, type_of
from brain.core.state import Incident, SymptomState


def explained_by(ctx: Context, rule: Rule, scope: str) -> Incident | None:
    """The incident that explains a match: it inhibits its cause here (reach.py), or its place is the better one.

    A better place without an incident of its own is explained by another one, or by none. Places of which each is better than
    the next, in a circle, explain nothing: the first that is asked about opens an incident, which explains the others.
    """
    passed: dict[str, None] = {}
    while (first := _inhibitor(ctx, rule, scope)) is None:
        passed[ids.key(rule.name, scope)] = None
        match = closed_places.explainer(ctx, rule, scope)
        if not match or match in passed or (matched := _matched(ctx, match)) is None:
            return None
        if (incident := ctx.state.incidents.get(ctx.index.by_match.get(match, ""))) is not None:
            return incident
        rule, scope = matched, ids.split(match)[1]
    return first


def _inhibitor(ctx: Context, rule: Rule, scope: str) -> Incident | None:
    """Of several the first, as after a restart. One whose remedy was verified explains nothing that is there still."""
    cause = rule.cause or rule.name
    around = [
        incident
        for incident in ctx.index.inhibitors.get(cause, {}).values()
        if incident.cause != cause
        and not wider.related(ctx, incident.rule, rule.name)
        and reach.explains(ctx, incident, cause, scope, partial(situations.began_at, ctx, rule, scope))
        and not runs.remedied(ctx, incident)
    ]
    return min(around, key=lambda incident: (incident.opened_at, incident.id), default=None)


def _matched(ctx: Context, match: str) -> Rule | None:
    """The rule of a match; None: it does not match there (any more)."""
    name, scope = ids.split(match)
    return ctx.compiled.rules.get(name) if name in ctx.state.matched.get(scope, ()) else None


def standing_for(ctx: Context, match: str) -> Incident | None:
    """The open incident of a match, else the one that explains it. None: it has ended, or an operator has closed it."""
    rule = _matched(ctx, match)
    if rule is None:
        return None
    own = ctx.state.incidents.get(ctx.index.by_match.get(match, ""))
    return own or explained_by(ctx, rule, ids.split(match)[1])


def open_ones(ctx: Context, inhibitor: Incident, *, strays: bool) -> list[Incident]:
    """The open incidents that this one explains. `strays`: only those that it inhibits."""
    explained = {
        other.id: other
        for cause in (*inhibitor.inhibits, *inhibitor.inhibits_on_node)
        for incidents in ctx.index.by_cause.get(cause, {}).values()
        for other in incidents.values()
        if other.id != inhibitor.id
        and not wider.related(ctx, inhibitor.rule, other.rule)
        and reach.explains(ctx, inhibitor, cause, other.scope, partial(reach.begun, other))
        and not sprees.goes_on(ctx, inhibitor, other)
    }
    if not strays:
        explained |= {other.id: other for other in closed_places.explained(ctx, inhibitor)}
    return list(explained.values())


def open_on_job(ctx: Context, by: Incident, rule: Rule, scope: str) -> list[Incident]:
    """The incident explains a match of a job: the open incidents on its nodes that the job would explain."""
    if type_of(scope) != JOB:
        return []
    explained = {
        other.id: other
        for cause in rule.inhibits
        for incidents in ctx.index.by_cause.get(cause, {}).values()
        for other in incidents.values()
        if other.id != by.id and releases.serves(ctx, scope, other.scope)
    }
    return list(explained.values())


def jobs_explained(ctx: Context, incident: Incident) -> Iterator[tuple[Rule, str]]:
    """(rule, job) of the matches at jobs that have no incident, and that this one may have explained."""
    for of in ctx.compiled.by_job:
        for counter in ctx.compiled.spreads[of]:
            for job in list(ctx.index.spread_at.get(counter.name, ())) if counter.scope == JOB else ():
                match = wider.match_at(ctx, of, job)
                rule = ctx.compiled.rules.get(ids.name_of(match))
                if rule is None or match in ctx.index.by_match or match in ctx.state.dismissed:
                    continue
                if reach.may_explain(ctx, incident, rule.cause or rule.name, job):
                    yield rule, job


def is_word_of_jobs(ctx: Context, rule: Rule) -> bool:
    """Whether all that the rule names, or counts nodes by, is told by logs of jobs, and does not last until a fact ends it."""
    named = ctx.compiled.families.get(rule.name) or tuple(symptoms_in(rule.when))
    specs = [ctx.compiled.symptoms.get(of) for of in named if of in ctx.compiled.by_job]
    return bool(named) and len(specs) == len(named) and not any(spec and spec.clear for spec in specs)


def is_untold(ctx: Context, rule: str, scope: str) -> bool:
    """Whether a match has no incident, and was not closed, by an operator or with what explained it."""
    match = ids.key(rule, scope)
    known = match in ctx.index.by_match or match in ctx.state.dismissed
    return not known and rule in ctx.state.matched.get(scope, ())


def untold_place(ctx: Context, incident: Incident, rule: Rule) -> tuple[str, str] | None:
    """(rule, place) of the better place for a wide incident where that has none, since it was the worse one when it began."""
    match = closed_places.explainer(ctx, rule, incident.scope) if incident.rule == rule.name else ""
    matched = _matched(ctx, match) if match else None
    if matched is None or not is_untold(ctx, *ids.split(match)):
        return None
    name, place = ids.split(match)
    return (name, place) if explained_by(ctx, matched, place) is None else None


def is_dismissed(ctx: Context, rule: Rule, scope: str) -> bool:
    """Whether an operator has closed what explains a match, and nothing newer is known."""
    return bool(dismissed_around(ctx, rule, scope)) or bool(closed_elsewhere(ctx, rule, scope))


def dismissed_around(ctx: Context, rule: Rule, scope: str) -> str:
    """The match "<rule>@<scope>" of a wider cause that an operator has closed, whose rule still matches, and that explains this
    one; empty: there is none.
    """
    cause = rule.cause or rule.name
    for match, closed_at in ctx.state.dismissed.items():
        name, around = ids.split(match)
        spec = ctx.compiled.rules.get(name)
        if spec is None or not reach.covers(ctx, spec, around, cause, scope):
            continue
        if not _is_elsewhere(ctx, spec, around, situations.named_by(ctx, rule, scope), closed_at):
            return match
    return ""


def _began(ctx: Context, state: SymptomState) -> float:
    """When an active symptom has lasted for long enough to be one, in seconds since 1970."""
    symptom = ctx.compiled.symptoms.get(state.name)
    lasts = symptom is not None and symptom.detect in symptoms.LASTING
    return state.since + (symptom.for_s if symptom is not None and lasts else 0.0)


def _is_elsewhere(
    ctx: Context, closed: Rule, around: str, shown: list[SymptomState], closed_at: float
) -> bool:
    """Whether all that a node shows is what the closed cause counts nodes by, began since, and is not counted there: whoever
    closed a split of kernels knew nothing of another node's BIOS.
    """
    families = ctx.compiled.families.get(closed.name, ())
    counters = list(symptoms_in(closed.when))
    return bool(shown) and all(
        one.name in families
        and _began(ctx, one) > closed_at
        and not any(
            wide.active and node_of(one.scope) in wide.members
            for spec in ctx.compiled.spreads.get(one.name, ())
            if spec.name in counters
            and (wide := ctx.state.symptoms.get(ids.key(spec.name, around))) is not None
        )
        for one in shown
    )


def closed_elsewhere(ctx: Context, rule: Rule, scope: str) -> str:
    """The match "<rule>@<place>" that an operator has closed and that explains this one, where nothing newer is known here, or
    too little; empty: there is none.
    """
    match = wider.explainer(ctx, rule, scope)
    closed_at = ctx.state.dismissed.get(match)
    if closed_at is None:
        return ""
    old = all(symptom.arrived <= closed_at for symptom in situations.named_by(ctx, rule, scope))
    return match if old or closed_places.holds_most(ctx, rule, scope) else ""

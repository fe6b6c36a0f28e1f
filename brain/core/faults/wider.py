"""Which of the places where one symptom is spread has the incident: the engine's side of places.py. Pure.

All rules that count the nodes of one symptom are one family. Where several match, the judgement names the one place whose
incident explains the others. An incident that explains a wider or a crossing place stands for all nodes there as long as that is
a shared cause, too: while a large share of the cell shows it, no node is touched for it (law 6), however clear the place is.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from brain.core import ids, stops
from brain.core.context import Context
from brain.core.faults import at_once, jobs, places, reached, releases, spread
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.spec import Priority, Rule, Symptom
from brain.core.pack.topology import CELL, JOB, node_of, type_of
from brain.core.state import Incident, IncidentState, SymptomState

_OVER = (IncidentState.CLOSED, IncidentState.EXPLAINED)
MUCH = 1.5  # so many times as ill as the cell, a place is ill by itself
AT_ONCE_HOLD_OFF_S = 5.0
MAX_LOOKED_AT = 64  # nodes whose places are listed as alternatives


def counted(ctx: Context, rule: Rule, scope: str) -> tuple[Symptom, SymptomState] | None:
    """The active symptom that counts the nodes for a rule that matches at a wide scope. None: it counts none."""
    if rule.name not in ctx.compiled.families:
        return None
    for name in symptoms_in(rule.when):
        spec, state = ctx.compiled.symptoms.get(name), ctx.state.symptoms.get(ids.key(name, scope))
        if (
            spec is not None
            and spec.detect == "spread"
            and state is not None
            and state.active
            and state.members
        ):
            return spec, state
    return None


def urgency(ctx: Context, rule: Rule, scope: str) -> tuple[Priority, float]:
    """How urgent a match is, and for how long it is held off. A few nodes of a large place that fell ill at once are no P0, and
    within seconds they may be many; nor are the nodes of a place in whose maintenance window it is.
    """
    found = counted(ctx, rule, scope)
    if found is not None and found[1].at_once:
        return max(rule.severity, Priority.P1), max(rule.hold_off_s, AT_ONCE_HOLD_OFF_S)
    if found is not None and _announced(ctx, scope):
        return max(rule.severity, Priority.P1), rule.hold_off_s
    return rule.severity, rule.hold_off_s


def _announced(ctx: Context, scope: str) -> bool:
    """Whether people have said that they work at just this place, or around it: not of the cell or a fabric, whoever saw it."""
    wide = scope == CELL or type_of(scope) == "fabric"
    contains = ctx.compiled.topology.contains
    return not wide and any(contains(window.scope, scope) for window in stops.windows(ctx))


def related(ctx: Context, rule: str, other: str) -> bool:
    """Whether both rules count the nodes with the same symptom: then the judgement decides between them."""
    families = ctx.compiled.families
    theirs = families.get(other)
    return theirs is not None and any(of in theirs for of in families.get(rule, ()))


def explainer(ctx: Context, rule: Rule, scope: str) -> str:
    """ "<rule>@<scope>" of the match that explains this one; empty: none does, by the judgement of places."""
    found = counted(ctx, rule, scope)
    if found is None:
        return ""
    spec, wide = found
    if match := _part_of(ctx, spec, wide):
        return match
    place = _explaining(ctx, spec, wide)
    return match_at(ctx, spec.of, place) if place != scope else _no_worse(ctx, spec, wide)


def _no_worse(ctx: Context, spec: Symptom, wide: SymptomState) -> str:
    """The match of the place that explains the whole cell, as long as it does, where this one crosses it and is no more ill than
    the cell is. A pod that holds the leaf switch which stood for the cell is ill as a whole by now, and explains it itself.
    """
    whole = match_at(ctx, spec.of, CELL)
    by = ctx.state.incidents.get(ctx.index.stood_for.get(whole, ""))
    if wide.scope == CELL or by is None or by.scope == wide.scope:
        return ""
    cell = ctx.state.symptoms.get(ids.key(counter_at(ctx, spec.of, CELL), CELL))
    kept = reached.kept(ctx, spec.of)
    if CELL in kept.seen and places.best(kept.seen[CELL], kept.ranked) != by.scope:
        return ""
    size = ctx.compiled.topology.size
    known = len(ctx.state.nodes)
    if (
        cell is None
        or len(wide.members) * size(CELL, known) > len(cell.members) * size(wide.scope, known) * MUCH
    ):
        return ""
    return ids.key(by.rule, by.scope)


def counter_at(ctx: Context, of: str, kind: str) -> str:
    return next((one.name for one in ctx.compiled.spreads[of] if one.scope == kind), "")


def consider(ctx: Context, incident: Incident) -> None:
    """Writes into the incident of a shared cause which places were considered, and how sure it is of its own."""
    rule = ctx.compiled.rules.get(incident.rule)
    found = counted(ctx, rule, incident.scope) if rule is not None else None
    if found is None:
        return
    spec, wide = found
    asked, own = incident.scope, wide.members.keys()
    # strays are strays of the widest place for which it stands, around its own
    for match in incident.stands_for:
        name, scope = ids.split(match)
        other = ctx.compiled.rules.get(name)
        of_other = counted(ctx, other, scope) if other is not None else None
        if (
            of_other is not None
            and of_other[0].of == spec.of
            and len(of_other[1].members) > len(wide.members)
            and own <= of_other[1].members.keys()
        ):
            (_, wide), asked = of_other, scope
    seen = reached_beside(ctx, spec, wide)
    seen |= {one.place: one for one in _not_reached(ctx, spec, wide) if one.place not in seen}
    verdict = places.judge(asked, seen, chosen=incident.scope, unplaced=_unplaced(ctx, wide))
    incident.places, incident.sure = list(verdict.candidates), verdict.sure
    ctx.show(incident)


def reaches(ctx: Context, incident: Incident, scope: str) -> bool:
    """Whether a fault at the scope may be explained by the incident: it is within its place, or where it stands for another. A
    job is, where the scheduler has named it on a node there: one that is silent tells nothing.
    """
    if releases.serves(ctx, incident.scope, scope) or _is_hit(incident, scope):
        return True
    if not incident.stands_for:
        return False
    topology = ctx.compiled.topology
    stood_at = ctx.index.stood_at.get(incident.id)
    if stood_at is None:  # it is over
        stood_at = {ids.split(match)[1]: 1 for match in incident.stands_for}
    node = node_of(scope)
    around = (*(topology.above(node) if node else (CELL,)), scope)
    return any(place in stood_at and topology.serves(place, scope) for place in around)


def _is_hit(incident: Incident, scope: str) -> bool:
    return not incident.node and type_of(scope) == JOB and jobs.was_hit(incident, scope)


def holds_nearly_all(ctx: Context, incident: Incident, cause: str, scope: str) -> bool:
    """Whether nearly all nodes that make a shared cause of another place are in the incident's: tasks that hang in a pod are
    those of the nodes of one file server. Strays are not touched as long as that cause lasts (law 6).
    """
    if incident.node or node_of(scope) or scope == CELL or type_of(scope) == JOB:
        return False
    for name in ctx.state.matched.get(scope, ()):
        rule = ctx.compiled.rules.get(name)
        found = counted(ctx, rule, scope) if rule is not None and (rule.cause or name) == cause else None
        if found is not None:
            members = found[1].members
            within = sum(releases.serves(ctx, incident.scope, f"node/{node}") for node in members)
            return len(members) - within <= places.few(len(members))
    return False


def taken_over(ctx: Context, incident: Incident) -> bool:
    """Whether an incident of its family has explained it, and stands for all that it stood for."""
    by = ctx.state.incidents.get(incident.explained_by)
    return by is not None and not incident.node and related(ctx, by.rule, incident.rule)


def stood_before(ctx: Context, by: Incident, other: Incident) -> bool:
    """Whether an incident of a node was there before the shared cause that explains it: a cable was bad when its switch went."""
    rule = ctx.compiled.rules.get(by.rule)
    found = counted(ctx, rule, by.scope) if rule is not None and other.node else None
    if found is None:
        return False
    wide = found[1]
    if other.node in wide.earlier:  # which of its parts is the incident's?
        return other.opened_at < wide.cause_at
    return spread.stood_before(wide, other.node)


def still_explained(ctx: Context, rule: Rule, scope: str, by: Incident) -> bool:
    """Whether nearly all nodes that show it at a wide scope are, as before, part of what is ill at the place of an incident."""
    found, own = counted(ctx, rule, scope), ctx.compiled.rules.get(by.rule)
    there = counted(ctx, own, by.scope) if own is not None else None
    if found is None or there is None or found[0].of != there[0].of:
        return False
    inner, outer = found[1].members, there[1].members
    return len(inner) < len(outer) and (
        len(inner) - sum(map(outer.__contains__, inner)) <= places.few(len(inner))
    )


def standing(ctx: Context, rule: Rule, scope: str) -> Incident | None:
    """The incident of the family that stands for a match."""
    match = ids.key(rule.name, scope)
    return ctx.state.incidents.get(ctx.index.stood_for.get(match, ""))


def shared_around(ctx: Context, symptoms: Iterable[SymptomState]) -> Iterator[tuple[str, str]]:
    """(rule, place) of the shared causes that count the nodes of these symptoms."""
    for symptom in symptoms:
        for spec, place, _ in spread.watchers(ctx, symptom.name, symptom.scope, symptom.jobs):
            wide = ctx.state.symptoms.get(ids.key(spec.name, place))
            if wide is not None and wide.active and (match := match_at(ctx, spec.of, place)):
                name, scope = ids.split(match)
                yield name, scope


def stand_for(ctx: Context, incident: Incident, rule: str, scope: str, inhibits: Sequence[str]) -> bool:
    """The incident explains a match of its family, and so what that inhibits, on all nodes there. Whether that is new."""
    if not related(ctx, incident.rule, rule):
        return False
    known = dict.fromkeys(incident.inhibits)
    more = [cause for cause in inhibits if cause not in known]
    match = ids.key(rule, scope)
    new = incident.scope != CELL and match != ids.key(incident.rule, incident.scope)
    new = new and match not in incident.stands_for and _strays(ctx, incident, rule, scope)
    if new:
        former = ctx.state.incidents.get(ctx.index.stood_for.get(match, ""))
        if former is not None and not former.explained_by:
            stands_no_more(ctx, match)  # one incident stands for a match, before a restart and after it
        incident.stands_for.append(match)
        ctx.index.add_stood_for(incident, match)
    if more:
        incident.inhibits += more
        ctx.index.add_incident(incident)
    ctx.show(incident)
    return new or bool(more)


def inherits(ctx: Context, by: Incident, other: Incident) -> None:
    """The incident takes over another one: if that is of its family, it stands for all that the other one stood for."""
    if not other.node and related(ctx, by.rule, other.rule):
        for match in (ids.key(other.rule, other.scope), *other.stands_for):
            stand_for(ctx, by, *ids.split(match), other.inhibits)


def stands_no_more(ctx: Context, match: str) -> Incident | None:
    """The match has ended, or has an incident of its own. The incident that stood for it."""
    incident = ctx.state.incidents.get(ctx.index.stood_for.pop(match, ""))
    if incident is not None and match in incident.stands_for:
        incident.stands_for.remove(match)
        ctx.index.remove_stood_for(incident, match)
        ctx.show(incident)
    return incident


def _part_of(ctx: Context, spec: Symptom, wide: SymptomState) -> str:
    """The match of a much larger place that has its own incident, so that it was judged as it grew, and holds these nodes."""
    here = wide.members
    for scope in reversed(ctx.compiled.topology.above(next(iter(here)))):
        match = match_at(ctx, spec.of, scope)
        incident = ctx.state.incidents.get(ctx.index.by_match.get(match, "")) if match else None
        if incident is None or incident.scope != scope or scope == wide.scope:
            continue
        there = counted(ctx, ctx.compiled.rules[ids.name_of(match)], scope)
        if (
            there is None
            or len(there[1].members) < 2 * len(here)
            or not here.keys() <= there[1].members.keys()
        ):
            continue
        apart = all(at_once.is_apart(there[1], node) for node in here)
        if not apart and not places.fell_ill_apart(reached.recent(wide), there[1].members):
            return match
    return ""


def _strays(ctx: Context, by: Incident, rule: str, scope: str) -> bool:
    """Whether nodes that show it at the scope are not where the incident is; or what shows it there is not: of a node that stands
    in several places of one kind, as in a leaf switch for each rail, each port is at one of them.
    """
    spec = ctx.compiled.rules.get(rule)
    found = counted(ctx, spec, scope) if spec is not None else None
    if found is None:
        return False
    if by.scope != scope and type_of(by.scope) == type_of(scope):
        return True
    if type_of(by.scope) == JOB:
        return any(not jobs.holds(ctx, by.scope, node) for node in found[1].members)
    above = ctx.compiled.topology.above
    return any(by.scope not in above(node) for node in found[1].members)


def unexplained(ctx: Context, rule: str) -> Iterator[tuple[str, str]]:
    """(rule, scope) of the matches of its family that have no incident and that nobody has closed, the widest first."""
    for of in ctx.compiled.families.get(rule, ()):
        for symptom in reversed(ctx.compiled.spreads[of]):
            for scope in list(ctx.index.spread_at.get(symptom.name, ())):
                match = match_at(ctx, of, scope)
                if match and match not in ctx.index.by_match and match not in ctx.state.dismissed:
                    yield ids.split(match)


def around(ctx: Context, of: str, wide: SymptomState) -> dict[str, None]:
    """The places of its nodes, and their jobs, each once."""
    places_ = dict.fromkeys(chain.from_iterable(map(ctx.compiled.topology.above, wide.members)))
    return places_ | jobs.around(ctx, of, wide.members)


def match_at(ctx: Context, of: str, place: str) -> str:
    """The match of the family's rule at a place; empty: no rule matches there."""
    matched = ctx.state.matched.get(place)
    if matched:  # in a storm it is asked a million times
        for rule in ctx.compiled.counting_at.get(of, {}).get(type_of(place), ()):
            if rule.name in matched:
                return ids.key(rule.name, place)
    return ""


def _explaining(ctx: Context, spec: Symptom, wide: SymptomState) -> str:
    """The place that explains the one where a symptom is spread; itself, when none does."""
    kept = reached.kept(ctx, spec.of)
    if _is_wide(kept, wide):
        return places.best(kept.seen[wide.scope], kept.ranked)
    return places.explaining(wide.scope, _beside(ctx, spec.of, kept, wide))


def reached_beside(ctx: Context, spec: Symptom, wide: SymptomState) -> dict[str, places.Seen]:
    """The places where the symptom is spread, this one among them, that share nodes with it."""
    kept = reached.kept(ctx, spec.of)
    return dict(kept.seen) if _is_wide(kept, wide) else _beside(ctx, spec.of, kept, wide)


def _is_wide(kept: reached.Spreads, wide: SymptomState) -> bool:
    """Whether it has so many nodes that all places are looked at, and not only those of its nodes."""
    return len(kept.seen) <= len(wide.members)


def _beside(ctx: Context, of: str, kept: reached.Spreads, wide: SymptomState) -> dict[str, places.Seen]:
    scopes = {wide.scope: None} | around(ctx, of, wide)
    return {scope: kept.seen[scope] for scope in scopes if scope in kept.seen}


def _not_reached(ctx: Context, spec: Symptom, wide: SymptomState) -> Iterator[places.Seen]:
    """Further places of the nodes, where too few show it."""
    above = ctx.compiled.topology.above
    scopes: dict[str, None] = {}
    for number, node in enumerate(wide.members):
        if number >= MAX_LOOKED_AT:
            break
        scopes.update(dict.fromkeys(above(node)))
    scopes |= jobs.around(ctx, spec.of, islice(wide.members, MAX_LOOKED_AT))
    for other in ctx.compiled.spreads.get(spec.of, ()):
        for scope in scopes:
            state = ctx.state.symptoms.get(ids.key(other.name, scope))
            if state is not None and not state.active and len(state.members) > 1:
                yield reached.look(ctx, other, state)


def _unplaced(ctx: Context, wide: SymptomState) -> int:
    """How many of the nodes have no known place."""
    known = ctx.compiled.topology.places
    if wide.scope != CELL:
        return 0
    return len(wide.members) - (sum(map(known.__contains__, wide.members)) if known else 0)

"""A pack was put into force: what was known is judged by its symptoms, rules and places.

What they end is not proven to be healed.
"""

from collections.abc import Mapping

from agent.contract.counted import counted
from brain.core import consequences, demotion, explaining, ids, incidents, known
from brain.core.context import Context
from brain.core.faults import remembered, symptoms, wider
from brain.core.healing import drains
from brain.core.operators import requests
from brain.core.pack.spec import Place, Symptom
from brain.core.paging import escalation
from brain.core.state import IncidentState

_SHOWN = 5  # nodes that a note names


def reloaded(ctx: Context, before: Mapping[str, Symptom]) -> None:
    """Judges everything anew. `before`: the symptoms of the pack that was in force."""
    remembered.redefined(ctx, before)
    _end_removed_symptoms(ctx)
    _judge_by_new_rules(ctx)
    _judge_what_matched(ctx)
    ctx.changed.extend(symptom for symptom in ctx.state.symptoms.values() if symptom.active)
    _judge_by_new_places(ctx)
    requests.plan_schedules(ctx)
    for incident in list(ctx.state.incidents.values()):
        escalation.look_again(ctx, incident)
    ctx.freed = True  # the site may have set other modes and limits


def tell_of_moves(ctx: Context, before: Mapping[str, Place]) -> None:
    """Notes how many nodes stand elsewhere than by the places that were in force."""
    now = ctx.compiled.pack.places
    if now == before:
        return
    moved = [node for node, place in now.items() if node in before and before[node] != place]
    added = [node for node in now if node not in before]
    removed = [node for node in before if node not in now]
    counts = {
        f"{counted(len(moved), 'node')} {'stands' if len(moved) == 1 else 'stand'} elsewhere": moved,
        f"{counted(len(added), 'node')} more {'has' if len(added) == 1 else 'have'} a place": added,
        f"of {counted(len(removed), 'node')} it is not known any more": removed,
    }
    told = [f"{text} ({_names(nodes)})" for text, nodes in counts.items() if nodes]
    data = {"moved": len(moved), "added": len(added), "removed": len(removed)}
    ctx.note("topology.changed", f"the topology: {'; '.join(told)}", data=data)


def _names(nodes: list[str]) -> str:
    more = len(nodes) - _SHOWN
    return ", ".join(nodes[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _end_removed_symptoms(ctx: Context) -> None:
    for key, symptom in list(ctx.state.symptoms.items()):
        spec = ctx.compiled.symptoms.get(symptom.name)
        if spec is not None and (spec.detect == "spread") == bool(symptom.members):
            continue
        why = "its definition was removed" if spec is None else "it is defined in another way now"
        if symptom.active:
            ctx.changed.extend(symptoms.end(ctx, symptom, why, proven=False))
        else:
            symptoms.forget(ctx, key)


def _judge_by_new_rules(ctx: Context) -> None:
    """Open incidents are judged by the new rules: those whose rule was removed or names another cause end so."""
    rules = ctx.compiled.rules
    for scope, matched in list(ctx.state.matched.items()):
        left = [rule for rule in matched if rule in rules]
        for rule in left:
            incident = ctx.state.incidents.get(ctx.index.by_match.get(ids.key(rule, scope), ""))
            if incident is not None and incident.cause != ctx.compiled.cause(rule):
                left = [each for each in left if each != rule]  # it begins anew, for its new cause
                consequences.match_ended(ctx, rule, scope, f"rule {rule} names another cause now")
            elif incident is not None:
                incidents.rejudged(ctx, incident, rules[rule])
        if left:
            ctx.state.matched[scope] = left
        else:
            del ctx.state.matched[scope]
            ctx.index.remove_match(scope)
    kept = (*rules, requests.REQUEST, drains.LEFT, demotion.HARMS)
    for key in [key for key in ctx.index.by_match if ids.name_of(key) not in kept]:
        rule, scope = ids.split(key)
        consequences.match_ended(ctx, rule, scope, f"rule {rule} was removed")
    for key in [key for key in ctx.state.dismissed if ids.name_of(key) not in rules]:
        del ctx.state.dismissed[key]
    known.rules_removed(ctx)


def _judge_what_matched(ctx: Context) -> None:
    """A rule may have another scope or condition now: where it matched, it may match no more, which proves nothing."""
    for scope in list(ctx.state.matched):
        why = "the rules that are in force now do not match any more"
        consequences.judge_scope(ctx, scope, why, proven=False)


def _judge_by_new_places(ctx: Context) -> None:
    """Nodes count in the spreads around them. What explained a fault may be elsewhere now: then it has its own incident."""
    consequences.judge(ctx, list(symptoms.new_places(ctx)))
    for scope, matched in list(ctx.state.matched.items()):
        for name in matched:
            rule, match = ctx.compiled.rules[name], ids.key(name, scope)
            known_here = match in ctx.index.by_match or match in ctx.state.dismissed
            if not known_here and explaining.explained_by(ctx, rule, scope) is None:
                consequences.match_began(ctx, name, scope)
    _pass_on_places(ctx)
    for incident in list(ctx.state.incidents.values()):
        for match in list(incident.known):
            heir = explaining.standing_for(ctx, match)
            if heir is not None and heir is not incident:
                known.hand_on(ctx, incident, match, heir, moved=True)


def _pass_on_places(ctx: Context) -> None:
    """A place whose nodes stand elsewhere now was not healed: the incident that has opened for most of them goes on for it."""
    open_ones = [
        one for one in ctx.state.incidents.values() if not one.node and one.state not in incidents.OVER
    ]
    left = [one for one in open_ones if one.state is IncidentState.RECOVERED and one.clear_since == ctx.now]
    for former in left:
        for heir in open_ones:
            rule = ctx.compiled.rules.get(heir.rule)
            found = wider.counted(ctx, rule, heir.scope) if rule is not None else None
            if heir is former or found is None or not wider.related(ctx, heir.rule, former.rule):
                continue
            within = sum(node in found[1].members for node in former.affected)
            if heir.state is not IncidentState.RECOVERED and 2 * within > len(former.affected):
                incidents.take_over_all(ctx, heir, [former])
                break

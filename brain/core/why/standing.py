"""What is known now of one symptom in the situation of a scope: active, on the way to it, or not there. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.contract.counted import counted, span
from brain.core import ids
from brain.core.context import Context
from brain.core.faults import reach, situations, spread, stragglers
from brain.core.pack.spec import Rule, Symptom
from brain.core.pack.topology import WIDE, component_of, node_of, type_of
from brain.core.pack.vocabulary import COMPARED
from brain.core.state import Incident, SymptomState
from brain.core.why import words


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One symptom, as it stands."""

    symptom: str
    # where it is, or would be; of a part that nobody has told of: the node
    scope: str
    active: bool
    # a sentence without its full stop
    text: str
    # when the first and the newest fact behind it occurred; 0: there is none
    since: float = 0.0
    last: float = 0.0
    # spread: the nodes that count for it, and how many it takes; 0: it is none
    nodes: tuple[str, ...] = ()
    takes: int = 0


Here = Sequence[SymptomState]
MOMENT_S = 60.0  # what began within that of each other began together, for people


def here(ctx: Context, scope: str) -> Here:
    """The symptoms of the scope's node and its parts, active or on the way to it: looked for once for many questions."""
    node = node_of(scope)
    return [state for state in ctx.state.symptoms.values() if node_of(state.scope) == node] if node else ()


def of(ctx: Context, name: str, scope: str, around: Here) -> Standing:
    """How a symptom stands in the situation of a scope. Of several of the node's parts the active one, else the newest.

    `around`: `here` of the scope.
    """
    spec = ctx.compiled.symptoms.get(name)
    if spec is None:
        return Standing(
            symptom=name, scope=scope, active=False, text=f"{name} is no symptom of the rules in force"
        )
    place = place_of(ctx, spec, scope)
    found = _states(ctx, spec, scope, place, around)
    if not found:
        return _absent(ctx, spec, scope, place)
    state = max(found, key=lambda one: (one.active, len(one.members), one.last, one.scope))
    return _present(ctx, spec, state)


def beside(ctx: Context, rule: Rule, scope: str, by: Incident) -> list[str]:
    """How long before or after what explains it a match began, as a sentence; none where that is a moment."""
    apart_s = situations.began_at(ctx, rule, scope) - reach.begun(by)
    if abs(apart_s) < MOMENT_S:
        return []
    apart = span(abs(apart_s))
    return [f"it began {apart} after that" if apart_s > 0 else f"it began {apart} before that"]


def place_of(ctx: Context, spec: Symptom, scope: str) -> str:
    """The scope at which the symptom counts for this scope, of several the first; empty: any part of the node, or not known."""
    node = node_of(scope)
    if not node:
        return scope if spec.scope == type_of(scope) else ""
    return ctx.compiled.topology.at(node, component_of(scope), spec.scope)


def _states(ctx: Context, spec: Symptom, scope: str, place: str, around: Here) -> list[SymptomState]:
    node = node_of(scope)
    if place:  # a node may stand in several places of one kind
        places = ctx.compiled.topology.all_at(node, component_of(scope), spec.scope) if node else (place,)
        found = [ctx.state.symptoms.get(ids.key(spec.name, one)) for one in places]
        return [state for state in found if state is not None]
    return [
        state
        for state in around
        if state.name == spec.name
        and (type_of(scope) == "node" or ctx.compiled.topology.overlap(scope, state.scope))
    ]


def _absent(ctx: Context, spec: Symptom, scope: str, place: str) -> Standing:
    node = node_of(scope)
    if spec.detect == "spread" and place:
        return _spread(ctx, spec, SymptomState(name=spec.name, scope=place))
    aside = ctx.state.set_aside.get(ids.key(spec.name, place)) if place else None
    if aside is not None:
        text = f"{spec.name} at {place} is set aside while {aside.run} verifies its remedy"
    elif place:
        text = f"{spec.name} is not active at {place}{_compared(ctx, spec, node)}"
    elif spec.scope in WIDE:
        text = f"{spec.name} is of a {spec.scope}, and it is not known which {spec.scope} {node or scope} belongs to"
    elif type_of(scope) == "node":
        text = f"{spec.name} is active at no {spec.scope} of {node}"
    else:
        text = f"{spec.name} is not active around {scope}"
    return Standing(
        symptom=spec.name, scope=place or f"node/{node}" if node else scope, active=False, text=text
    )


def _compared(ctx: Context, spec: Symptom, node: str) -> str:
    """What a symptom that the brain finds by comparison was compared with; empty: it is another one."""
    found = any(match.kind in COMPARED for match in spec.on)
    return f": {stragglers.standing(ctx, node)}" if found else ""


def _present(ctx: Context, spec: Symptom, state: SymptomState) -> Standing:
    if spec.detect == "spread":
        return _spread(ctx, spec, state)
    now, where = ctx.now, f"{state.name} at {state.scope}"
    if state.active:
        newest = f", newest fact {words.ago(now, state.last)}" if state.last else ""
        text = f"{where} is active: it began {words.ago(now, state.since)}{newest}"
    else:
        text = f"{where} is not active yet: {_on_the_way(spec, state, now)}"
    return Standing(
        symptom=state.name,
        scope=state.scope,
        active=state.active,
        text=text,
        since=state.since,
        last=state.last,
    )


def _on_the_way(spec: Symptom, state: SymptomState, now: float) -> str:
    newest = words.ago(now, state.last)
    match spec.detect:
        case "count" | "sum" | "flapping":
            last = state.hits[-1][0] if state.hits else now
            total = sum(weight for at, weight in state.hits if at > last - spec.within_s)
            what = {"count": "fact", "sum": "", "flapping": "change"}[spec.detect]
            many = f"{total:g} of {spec.sum_of}" if not what else counted(round(total), what)
            needs = f"it takes {spec.at_least:g} within {span(spec.within_s)}"
            return f"{many} so far, {needs}; the newest came {newest}"
        case "lasting" | "unlike" if state.on:
            lasted = span(max(0.0, now - state.since))
            return f"it has lasted {lasted}, and it takes {span(spec.for_s)}"
        case "absence":
            return f"it was seen {newest}, and begins when it is not seen for {span(spec.for_s)}"
        case _:
            return f"its newest fact came {newest}"


def _spread(ctx: Context, spec: Symptom, state: SymptomState) -> Standing:
    takes = spread.takes(ctx, spec, state)
    nodes = tuple(state.members) if state.active else spread.counts(ctx, spec, state)
    longer = [node for node in state.members if node not in nodes]
    shown = f" ({words.listed(nodes)})" if nodes else ""
    verb = "shows" if len(nodes) == 1 else "show"
    few = f"{counted(len(nodes), 'node')} of {state.scope} {verb} {spec.of}{shown}, and it takes {takes}"
    few += f" within {span(spec.within_s)}" if spec.within_s else ""
    if longer:
        few += f"; {words.listed(longer)} {'has' if len(longer) == 1 else 'have'} shown it for longer"
    text = f"{spec.name} is active: {counted(len(nodes), 'node')} of {state.scope} {verb} {spec.of}{shown}"
    return Standing(
        symptom=spec.name,
        scope=state.scope,
        active=state.active,
        text=text if state.active else f"{spec.name} is not active: {few}",
        since=state.since,
        last=state.last,
        nodes=nodes,
        takes=takes,
    )

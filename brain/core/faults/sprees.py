"""One fault after the other on ever more nodes, in no place that they share: one incident of the cell in place of dozens. Pure.

The gate `related` holds a further node when one cause was treated on several within the hour (decision 33), each with an
incident and a page of its own. When as many wait as were treated, they wait for people for a day anyway: from then on one
incident says so, with the list, and explains the others of that cause, as for a suspected version (decision 56). What is at
work goes on. It ends when no node has the fault any more, or after a day; who closes it has the nodes judged one by one
again. Decision 68.
"""

from collections.abc import Mapping, Sequence

from agent.contract.components import NODE
from agent.contract.counted import counted
from agent.contract.messages import Event, Scalar, Severity, clip
from brain.core.context import Context
from brain.core.faults import symptoms, wider
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.shared import GENERATED
from brain.core.pack.spec import Rule, Symptom
from brain.core.pack.topology import CELL, JOB, NODELESS, type_of
from brain.core.pack.vocabulary import FLEET_SPREE
from brain.core.state import Incident, SymptomState

TOLD_S = 2 * 86_400.0  # so long the same is not told anew
PLACES = 3  # places with few ill nodes each are no cause of what goes round
_SHOWN = 16  # nodes that the evidence names


def held(ctx: Context, cause: str, treated: Sequence[str], waiting: Sequence[str]) -> list[SymptomState]:
    """The last of the nodes that wait has begun to. Returns the symptom of the cell; none where it was told before it: none
    waits for ever because others do.
    """
    if not _is_news(ctx, cause):
        return []
    nodes = [*treated, *waiting]
    more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
    text = (
        f"{cause} came to {counted(len(nodes), 'node')}, one after the other ({', '.join(nodes[:_SHOWN])}{more}): "
        f"{len(treated)} of them were treated within the hour, and {len(waiting)} wait{_in_common(ctx, nodes)}"
    )
    ctx.note("spree.suspected", text, scope=CELL)
    data: dict[str, Scalar] = {"active": True, "cause": cause, "nodes": len(nodes), "waiting": len(waiting)}
    return symptoms.feed(ctx, _event(ctx, waiting[-1], data, text))


def place_told(ctx: Context, incident: Incident) -> list[SymptomState]:
    """The incident of a place is about to be told. Of three such places where only few nodes of each have the fault, and which
    fell ill one after the other, none is the cause: returns the symptom of the cell then.
    """
    spec = _few_of(ctx, incident)
    if spec is None:
        return []
    others = [
        one
        for one in ctx.index.open_at.get("", {}).values()
        if one.id != incident.id
        and one.opened_at > ctx.now - ctx.compiled.settings.breaker_within_s
        and _few_of(ctx, one) is spec
    ]
    rules = [rule for rule in ctx.compiled.named_by.get(spec.of, ()) if rule.scope not in NODELESS]
    cause = next((rule.cause or rule.name for rule in rules), "")
    if len(others) < PLACES - 1 or not cause or not _is_news(ctx, cause):
        return []
    all_of_them = [*others, incident]
    nodes = list(dict.fromkeys(node for one in all_of_them for node in one.affected))
    text = (
        f"{cause} came to few nodes of each of {len(all_of_them)} places within the hour, one after the other "
        f"({', '.join(one.scope for one in all_of_them)}; {counted(len(nodes), 'node')}), so none of these places is its cause"
    )
    ctx.note("spree.suspected", text, scope=CELL)
    data: dict[str, Scalar] = {"active": True, "cause": cause, "nodes": len(nodes), "waiting": len(nodes)}
    return symptoms.feed(ctx, _event(ctx, nodes[-1] if nodes else "", data, text))


def _few_of(ctx: Context, incident: Incident) -> Symptom | None:
    """What counts the nodes at the incident's place, where a generated rule opened it and at most half of the nodes are ill."""
    rule = ctx.compiled.rules.get(incident.rule)
    found = wider.counted(ctx, rule, incident.scope) if rule is not None and incident.scope != CELL else None
    if found is None or not found[0].name.startswith(GENERATED):
        return None
    size = ctx.compiled.topology.size(incident.scope, len(ctx.state.nodes))
    return found[0] if 2 * len(found[1].members) <= size else None


def match_ended(ctx: Context, cause: str) -> list[SymptomState]:
    """A rule of this cause matches no more. Returns the symptom that ends when none does anywhere."""
    if not any(cause in one.open_facts for one in _active(ctx)):
        return []
    rules = ctx.compiled.rules
    for matched in ctx.state.matched.values():
        if any(name in rules and ctx.compiled.cause(name) == cause for name in matched):
            return []
    data: dict[str, Scalar] = {"active": False, "cause": cause, "nodes": 0, "waiting": 0}
    return symptoms.feed(ctx, _event(ctx, "", data, f"{cause} is on no node any more"))


def explains(ctx: Context, symptom: SymptomState) -> list[str]:
    """The causes that a symptom of the cell explains, besides those that its rule names: those of single nodes, and of narrower
    places where few nodes share them. The cell's own shared cause is told beside it (law 6).
    """
    if not _is_spree(ctx, symptom):
        return []
    found = dict.fromkeys(symptom.open_facts)
    for rule in ctx.compiled.rules.values():
        if (rule.cause or rule.name) in symptom.open_facts and rule.scope not in NODELESS:
            for counting in (ctx.compiled.counting.get(name, ()) for name in symptoms_in(rule.when)):
                found |= dict.fromkeys(one.name for one in counting if _is_narrow(one))
    return list(found)


def _is_narrow(rule: Rule) -> bool:
    return rule.scope not in (CELL, JOB) and not rule.examples  # a generated one has none


def goes_on(ctx: Context, by: Incident, other: Incident) -> bool:
    """Whether an incident is left to its remedy, which has begun: what is at work on a node is not left half done."""
    if by.scope != CELL or not any(_is_spree(ctx, one) for one in _named(ctx, by)):
        return False
    runs = [ctx.state.runs[run] for run in other.runs if run in ctx.state.runs]
    return any(run.counted and not run.ended_at for run in runs)


def _is_news(ctx: Context, cause: str) -> bool:
    """Whether it was not told lately that this cause goes round; remembers that it is told now."""
    kept = {one: at for one, at in ctx.state.rounds.items() if ctx.now < at + TOLD_S}
    ctx.state.rounds = kept
    if cause in kept:
        return False
    kept[cause] = ctx.now
    return True


def _active(ctx: Context) -> list[SymptomState]:
    return [one for one in ctx.index.active.get(CELL, {}).values() if _is_spree(ctx, one)]


def _named(ctx: Context, incident: Incident) -> list[SymptomState]:
    return [ctx.state.symptoms[key] for key in incident.symptoms if key in ctx.state.symptoms]


def _is_spree(ctx: Context, symptom: SymptomState) -> bool:
    spec = ctx.compiled.symptoms.get(symptom.name)
    return spec is not None and any(match.kind == FLEET_SPREE for match in spec.on)


def _in_common(ctx: Context, nodes: Sequence[str]) -> str:
    """What all the nodes share and not the whole cell does, as the end of a sentence."""
    above = [ctx.compiled.topology.above(node) for node in nodes]
    shared = [place for place in above[0] if place != CELL and type_of(place) != "fabric"]
    shared = [place for place in shared if all(place in places for places in above)]
    return (
        f"; they share {' and '.join(shared)}" if shared else "; no place that gpuward knows holds them all"
    )


def _event(ctx: Context, node: str, data: Mapping[str, Scalar], text: str) -> Event:
    return Event(
        id=ctx.cause, node=node, kind=FLEET_SPREE, component=NODE, severity=Severity.ERROR, at="", age_s=0.0, boot="",
        count=1, data=data, evidence=clip(text),
    )  # fmt: skip

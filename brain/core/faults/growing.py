"""Why an incident is not told yet: its place may still grow, or explain more than one node, or is on its way out. Pure."""

from brain.core import ids
from brain.core.context import Context
from brain.core.faults import places, spread, tails, wider
from brain.core.pack.shared import GENERATED, SMALL
from brain.core.pack.spec import Symptom
from brain.core.pack.topology import CELL
from brain.core.state import Incident, SymptomState

HELD_BACK_S = 120.0  # so long a second node of a small place waits for a third and fourth, and a place that grows for a wider one
AWAKE_S = 240.0  # so long where people were called for another place of it already
PACES = 3  # a place grows until no further node fell ill for so many times the pause between two of its nodes
LATELY_S = 180.0  # when another node of it fell ill within this time


def wanes(ctx: Context, incident: Incident) -> bool:
    """Whether its shared cause is on its way out: nobody is called for that anew, and it may grow again.

    So is what one of another place has left behind: no node fell ill there since this incident opened, nor with it. A place whose
    nodes fell ill one by one is suspected however few show it now.
    """
    keys = [(name, ids.key(name, incident.scope)) for name in map(ids.name_of, incident.symptoms)]
    return any(
        (spec := ctx.compiled.symptoms.get(name)) is not None
        and spec.detect == "spread"
        and (wide := ctx.state.symptoms.get(key)) is not None
        and ((not wide.crept and spread.waning(ctx, spec, wide)) or _left_behind(incident, spec, wide))
        for name, key in keys
    )


def _left_behind(incident: Incident, spec: Symptom, wide: SymptomState) -> bool:
    """A rule that people wrote may have begun to match for another reason than a node that fell ill."""
    return not incident.node and spec.name.startswith(GENERATED) and wide.arrived < incident.opened_at


def may_be_shared(ctx: Context, incident: Incident) -> str:
    """Why the incident of a single node waits: it may be the tail of a shared cause that is over; or others of the same small
    place fell ill so lately that it may be the place's. Why that of a place does: it still grows, so that a wider one may
    explain it.

    Empty: it need not wait (any more).
    """
    if not incident.node:
        return _still_grows(ctx, incident)
    if tail := tails.behind(ctx, incident):
        return tail
    if ctx.now >= incident.opened_at + HELD_BACK_S:
        return ""
    for key in incident.symptoms:
        for spec, place, node in spread.watchers(ctx, *ids.split(key)):
            wide = ctx.state.symptoms.get(ids.key(spec.name, place))
            counts = ctx.compiled.symptoms.get(spec.of)
            judged_by_few = spec.scope in SMALL or (counts is not None and spec.scope in counts.accuses)
            if not judged_by_few or wide is None or wide.active:
                continue
            lately = [
                other for other, at in wide.members.items() if at > ctx.now - LATELY_S and other != node
            ]
            if lately:
                return (
                    f"{lately[-1]} of the same {spec.scope} fell ill a short while ago: it is judged with it"
                )
    return ""


def _still_grows(ctx: Context, incident: Incident) -> str:
    """Why a place waits: there or around it one node after the other falls ill, still, or one place after the other. The cell has
    nothing wider, and people who wrote a rule for a place have said how long it waits, unless they are up for another one.
    """
    rule = ctx.compiled.rules.get(incident.rule)
    found = wider.counted(ctx, rule, incident.scope) if rule is not None else None
    if found is None or incident.scope == CELL:
        return ""
    spec, wide = found
    awake = _people_know(ctx, spec.of)
    if not awake and not spec.name.startswith(GENERATED):
        return ""
    if ctx.now >= incident.opened_at + (AWAKE_S if awake else HELD_BACK_S):
        return ""
    began = [at for at in wide.members.values() if at >= wide.cause_at]
    pause_s = (max(began) - min(began)) / (len(began) - 1) if len(began) > 1 else 0.0
    pause_s = max(pause_s, _after_another_s(ctx, spec, wide) if awake else 0.0)
    around = ctx.state.symptoms.get(ids.key(wider.counter_at(ctx, spec.of, CELL), CELL), wide)
    if not pause_s or ctx.now >= around.arrived + PACES * pause_s:
        return ""
    return "ever more nodes fall ill, there or around it: a wider place may be the cause"


def _after_another_s(ctx: Context, spec: Symptom, wide: SymptomState) -> float:
    """How long after another place of its kind it fell ill; 0: long after, or none did."""
    here = min(wide.members.values())
    others = [
        here - max(one.members.values())
        for scope, one in ctx.index.spread_at.get(spec.name, {}).items()
        if scope != wide.scope and one.members
    ]
    return min((abs(each) for each in others if abs(each) <= places.APART_S), default=0.0)


def _people_know(ctx: Context, of: str) -> bool:
    """Whether people were called for another place of the family, whose cause is not over."""
    causes = {rule.cause or rule.name: None for rule in ctx.compiled.counting.get(of, ())}
    return any(
        one.pages.first_at and one.pages.was is None and not one.pages.resolved
        for cause in causes
        for one in ctx.index.by_cause.get(cause, {}).get("", {}).values()
    )

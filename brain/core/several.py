"""Several parts of one node with one fault are one fault of the node: its power, a PCIe switch, a cable tree, the driver. Pure.

The incident of the first part is widened to the node, and its run with it as long as that has only prepared: the remedy is the
parts' own, once for all of them. So it is for rules without a runbook, and for runbooks that say that they can do that
(`Runbook.several`); a remedy of one part alone, as of a port or a service, is one for each part. Three parts that need such a
remedy at once are the node's all the same: where the runbook names another one for that (`Runbook.for_several`), an incident of
the node takes over those of its parts. Two ports may be two cables.
"""

from agent.contract.actions.spec import Disrupts
from brain.core import ids
from brain.core.context import Context
from brain.core.faults import reach, situations
from brain.core.healing import drains, plans, run_states
from brain.core.pack.spec import Rule, Text
from brain.core.pack.topology import node_of, type_of
from brain.core.paging import escalation
from brain.core.state import Incident, IncidentState, Run, RunState

WITHIN_S = 600.0  # parts that began to show a fault within this time have one cause
AT_LEAST = 3  # parts with a remedy each that began within this time
_WHY = Text(
    en="several parts of one node show it within minutes, so the cause is taken to be the node's: power, "
    "a PCIe switch, the driver",
    zh="同一节点的多个部件在几分钟内出现该故障，因此认定原因在节点：供电、PCIe 交换机或驱动",
)
_OVER = (IncidentState.CLOSED, IncidentState.EXPLAINED)


def of_node(ctx: Context, rule: Rule, scope: str) -> Incident | None:
    """The open incident of the rule's cause at another part of the same node, of the same type, that began about then."""
    node, kind = node_of(scope), type_of(scope)
    if not node or kind == "node" or not _for_all(ctx, rule.runbook):
        return None
    for incident in ctx.index.by_cause.get(rule.cause or rule.name, {}).get(node, {}).values():
        same_type = type_of(incident.scope) == kind or incident.several
        if incident.state not in _OVER and same_type and takes_in(ctx, incident, rule, scope):
            return incident
    return None


def of_many_parts(ctx: Context, rule: Rule, scope: str) -> list[Incident]:
    """The incidents of other parts of the node that began about then, if with this one they are the node's; else none."""
    node, kind = node_of(scope), type_of(scope)
    runbook = ctx.compiled.runbooks.get(rule.runbook)
    if not node or kind == "node" or runbook is None or runbook.for_several not in ctx.compiled.runbooks:
        return []
    began = situations.began_at(ctx, rule, scope)
    here = ctx.index.by_cause.get(rule.cause or rule.name, {}).get(node, {}).values()
    others = [
        one
        for one in here
        if one.state not in _OVER
        and type_of(one.scope) == kind
        and one.runbook == rule.runbook
        and one.matching_rules
        and abs(began - reach.begun(one)) <= WITHIN_S
    ]
    return others if len(others) >= AT_LEAST - 1 else []


def belongs(ctx: Context, incident: Incident, rule: Rule, scope: str) -> bool:
    """Whether a match at a scope is within the incident of its cause; of one of several parts, that it is one of them."""
    if not ctx.compiled.topology.overlap(incident.scope, scope):
        return False
    return not incident.several or scope == incident.scope or takes_in(ctx, incident, rule, scope)


def takes_in(ctx: Context, incident: Incident, rule: Rule, scope: str) -> bool:
    """Whether a part belongs to the incident of its node: it is one of those that it has, or began to show the fault with them.

    What its run does, or has left to people, must be for one more part too: what fails after a remedy is another fault. Where
    several have it, it is the node's: so is one more whenever it began, as long as nothing has been done yet, or the incident
    keeps the node out of service for people.
    """
    if any(ids.split(key)[1] == scope for key in incident.symptoms):
        return True
    near = abs(situations.began_at(ctx, rule, scope) - reach.begun(incident)) <= WITHIN_S
    return (
        (near or _has_the_node(ctx, incident))
        and _for_all(ctx, incident.runbook)
        and _goes_for_all(ctx, incident)
    )


def left_alone(ctx: Context, incident: Incident) -> list[Incident]:
    """The incidents of further parts for which nothing has been done, once the remedy of their node has not helped: to try one
    of each part's own would do to a node that people have what did not help the others.
    """
    if incident.state in _OVER or not _has_the_node(ctx, incident):
        return []
    kinds = {type_of(ids.split(key)[1]) for key in incident.symptoms}
    return [
        one
        for one in ctx.index.by_cause.get(incident.cause, {}).get(incident.node, {}).values()
        if one.id != incident.id
        and one.state not in _OVER
        and type_of(one.scope) in kinds
        and all(_only_prepared(ctx, run) for id_ in one.runs if (run := ctx.state.runs.get(id_)) is not None)
    ]


def joins_late(ctx: Context, incident: Incident, rule: Rule, scope: str) -> bool:
    """Whether a part that joins the incident of its node is news to whoever knows of that: the others began long before."""
    symptoms = [ids.split(key) for key in incident.symptoms]
    if not incident.several or type_of(scope) == "node" or any(part == scope for _, part in symptoms):
        return False
    began = situations.began_at(ctx, rule, scope)
    known = (ctx.state.symptoms.get(key) for key in incident.symptoms)
    parts = [reach.begun(incident), *(one.since for one in known if one is not None)]
    return all(abs(began - part) > WITHIN_S for part in parts)


def tell_late(ctx: Context, incident: Incident, scope: str) -> None:
    """Tells of a part that has joined the incident of its node long after the others."""
    text = f"{incident.cause} is now at {scope}, too"
    ctx.note("incident.widened", text, incident=incident.id, scope=incident.scope)
    if incident.pages.first_at:
        escalation.page(ctx, incident, "update", text)


def widen(ctx: Context, incident: Incident, scope: str) -> None:
    """The incident is the node's from now on; `scope` is the part that has joined it. Whoever was paged is told."""
    first, incident.scope, incident.several = incident.scope, f"node/{incident.node}", True
    rule = ctx.compiled.rules.get(incident.rule)
    if rule is not None:
        tell_why(incident, rule)
    text = f"{incident.cause} is at {first} and at {scope}: {_WHY.en}"
    ctx.note("incident.widened", text, incident=incident.id, scope=incident.scope)
    run = ctx.state.runs.get(incident.runs[-1]) if incident.runs else None
    if run is not None and run.state not in run_states.OVER and _only_prepared(ctx, run):
        run.scope = incident.scope
        run.params = incident.params | plans.values(ctx, incident)
        ctx.show_run(run)
    if incident.pages.first_at:
        escalation.page(ctx, incident, "update", text)


def runbook(ctx: Context, incident: Incident, rule: Rule) -> str:
    """The runbook of a rule's incident."""
    spec = ctx.compiled.runbooks.get(rule.runbook)
    if incident.several and spec is not None and spec.for_several in ctx.compiled.runbooks:
        return spec.for_several
    return rule.runbook


def tell_why(incident: Incident, rule: Rule) -> None:
    """Tells people why the incident is what the rule says; of a rule without Chinese only in English."""
    several = incident.several
    why, why_zh = incident.slow or rule.because, incident.slow_zh or rule.because_zh
    incident.because = "; ".join(filter(None, (why, _WHY.en if several else "", incident.past)))
    zh = (why_zh, _WHY.zh if several else "", incident.past_zh)
    incident.because_zh = "；".join(filter(None, zh)) if rule.because_zh else ""


def _has_the_node(ctx: Context, incident: Incident) -> bool:
    """Whether it is of several parts, and nobody has given their node back since without a remedy of them all."""
    run = ctx.state.runs.get(incident.runs[-1]) if incident.runs else None
    waits = run is None or run.state not in run_states.OVER
    return incident.several and (waits or bool(drains.owned(ctx, incident)))


def _for_all(ctx: Context, name: str) -> bool:
    """Whether what is done for one part can be done once for several."""
    runbook = ctx.compiled.runbooks.get(name)
    return runbook is None or runbook.several


def _goes_for_all(ctx: Context, incident: Incident) -> bool:
    """Whether its run has prepared only, restarts the node just now, or has left the rest to people."""
    run = ctx.state.runs.get(incident.runs[-1]) if incident.runs else None
    if run is None:
        return True
    if run.state in run_states.OVER:
        return run.state is not RunState.SUCCEEDED
    return not run.worked and (_only_prepared(ctx, run) or _is_away(ctx, run))


def _only_prepared(ctx: Context, run: Run) -> bool:
    """Whether nothing was begun yet that is to heal."""
    begun = [ctx.actions[step.action] for step in run.steps if step.action in ctx.actions]
    return not any(spec.heals and spec.disrupts is not Disrupts.NOTHING for spec in begun)


def _is_away(ctx: Context, run: Run) -> bool:
    """Whether the node restarts just now: that is for all its parts."""
    if run.state not in (RunState.INTENT, RunState.PERFORMING) or not run.steps:
        return False
    spec = ctx.actions.get(run.steps[-1].action)
    return spec is not None and spec.takes_node_away

"""Remedies that harm: what became of the nodes that a runbook treated last, and whether more of them were worse than by chance.

A node was made worse when, within AFTER_S of a disruptive step that was to heal it, it fell silent, or got a fault that is more
urgent than the one that was treated; or when the step itself could not be done, and nothing after it helped. Each node
counts once, by its newest treatment within WITHIN_S: so no node alone, whatever it tells, speaks against a runbook (law 15).
What people start by themselves does not count: they may try on broken nodes what they like.
"""

from agent.contract.actions.spec import Disrupts
from agent.contract.commands import Outcome
from agent.contract.counted import counted
from brain.core import wilson
from brain.core.context import Context
from brain.core.effects import Step
from brain.core.healing import alone, modes
from brain.core.pack.spec import Mode
from brain.core.pack.vocabulary import NODE_UNREACHABLE
from brain.core.state import Aftermath, Incident, Run, RunState

AFTER_S = 3600.0
WITHIN_S = 14 * 86_400.0
MAX_NODES = 100  # of one runbook, those that it treated last
_NAMED = 4


def began(ctx: Context, run: Run, step: Step) -> None:
    """A step leaves: if it disrupts its node and is to heal it, what becomes of the node is counted."""
    if run.requested_by or run.worked or not run.node or step.disrupts is Disrupts.NOTHING:
        return
    if not ctx.actions[step.action].heals:
        return
    incident, node = ctx.state.incidents[run.incident], ctx.state.nodes.get(run.node)
    treated = ctx.state.aftermath.setdefault(run.runbook.name, {})
    for name in [name for name, one in treated.items() if one.at <= ctx.now - WITHIN_S]:
        del treated[name]
    treated.pop(run.node, None)  # the newest stand last, also after a restart
    treated[run.node] = Aftermath(
        at=ctx.now,
        incident=incident.id,
        severity=incident.severity,
        heard=node is not None and node.alive,
    )
    if len(treated) > MAX_NODES:
        del treated[next(iter(treated))]


def ended(ctx: Context, run: Run) -> str:
    """A run has ended. Returns its runbook if its node counts as made worse from now on; empty: it does not."""
    if run.state is not RunState.EXHAUSTED or not run.steps or run.worked:
        return ""
    treated = ctx.state.aftermath.get(run.runbook.name, {}).get(run.node)
    if treated is None or treated.incident != run.incident or treated.worse:
        return ""
    tried = [step for step in run.steps if (spec := ctx.actions.get(step.action)) is not None and spec.heals]
    if not tried or tried[-1].outcome != Outcome.FAILED or tried[-1].at < treated.at:
        return ""
    treated.worse = f"{tried[-1].rung} failed"
    return run.runbook.name


def opened(ctx: Context, incident: Incident) -> str:
    """An incident is open that nothing wider explains. Returns the runbook whose treatment of the node lies just behind it, if
    the node counts as made worse by it from now on; empty: none does.
    """
    node = incident.node
    lately = [
        (one.at, name, one)
        for name, nodes in ctx.state.aftermath.items()
        if (one := nodes.get(node)) is not None and one.at > ctx.now - AFTER_S
    ]
    if not node or not lately:
        return ""
    _, name, treated = max(lately, key=lambda each: each[:2])
    since = min((fact.at for fact in incident.evidence), default=incident.opened_at)
    if treated.incident == incident.id or treated.worse or since < treated.at:
        return ""
    silent = any(fact.kind == NODE_UNREACHABLE for fact in incident.evidence)
    if silent and treated.heard:
        treated.worse = "fell silent"
    elif not silent and incident.severity < treated.severity:
        treated.worse = f"got {incident.cause}"
    return name if treated.worse else ""


def verdict(ctx: Context, runbook: str) -> str:
    """Why the runbook may not go on by itself; empty: it may. What counts is where it does so now.

    At least `harm_nodes` nodes were made worse, and of all that it treated a larger share than `harm_share`, by the lower one of
    Wilson's bounds.
    """
    settings, spec = ctx.compiled.settings, ctx.compiled.runbooks.get(runbook)
    if spec is None or not settings.harm_nodes:
        return ""
    lately = {
        node: one
        for node, one in ctx.state.aftermath.get(runbook, {}).items()
        if one.at > ctx.now - WITHIN_S
        and modes.mode_of(ctx, runbook, node, alone.loosest(ctx, spec)) is Mode.AUTO
    }
    worse = {node: one for node, one in lately.items() if one.worse}
    lower, _ = wilson.bounds(len(worse), len(lately))
    if len(worse) < settings.harm_nodes or lower <= settings.harm_share:
        return ""
    named = ", ".join(f"{node} {one.worse}" for node, one in list(worse.items())[:_NAMED])
    more = f", and {len(worse) - _NAMED} more" if len(worse) > _NAMED else ""
    return f"{len(worse)} of {counted(len(lately), 'node')} were worse after it: {named}{more}"


def is_demoted(ctx: Context, runbook: str) -> bool:
    """Whether gpuward itself has taken it back, and no person has said anything about it since."""
    return any(one.why and one.runbook == runbook for one in ctx.state.modes)


def forget(ctx: Context, runbook: str, nodes: str) -> None:
    """A person has set the mode of runbooks on nodes (globs), and knows what they did there: what follows counts anew."""
    for name, treated in list(ctx.state.aftermath.items()):
        if modes.fits(runbook, name):
            for node in [node for node in treated if modes.fits(nodes, node)]:
                del treated[node]
            if not treated:
                del ctx.state.aftermath[name]

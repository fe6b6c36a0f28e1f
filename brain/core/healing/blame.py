"""Which run of ours may be behind what begins on its node."""

from agent.contract.actions.spec import Disrupts
from brain.core.context import Context
from brain.core.healing import run_states
from brain.core.state import Incident, Run, RunState


def run_behind(ctx: Context, incident: Incident) -> Run | None:
    """The run of another incident that explains what begins on this incident's node now.

    It is performing or cancelling a step that takes the node or parts of it away, or waits for the node to return
    from such a step, or has left the node switched off.
    """
    node = ctx.state.nodes.get(incident.node)
    if node is None:
        return None
    for run_id, claimed in ctx.index.claims.items():
        run = ctx.state.runs[run_id]
        if claimed != incident.node or run.incident == incident.id or not run.steps:
            continue
        spec = ctx.actions.get(run.steps[-1].action)
        if spec is None:
            continue
        takes_away = spec.takes_node_away or (
            spec.heals and spec.disrupts in (Disrupts.NODE, Disrupts.FABRIC)
        )
        if run.state in (RunState.PERFORMING, RunState.CANCELLING) and takes_away:
            return run
        if run.state is RunState.VERIFYING and spec.takes_node_away and not node.alive:
            return run
    return None if node.alive else _run_that_switched_off(ctx, incident)


def judged_later(run: Run) -> str:
    """Until when an incident of its node is not judged that this run is behind."""
    if run.state in run_states.OVER:
        return f"{run.incident} has switched {run.node} off: it is judged when that incident is over"
    return f"{run.id} is at work on {run.node}: it is judged when that has ended"


def _run_that_switched_off(ctx: Context, incident: Incident) -> Run | None:
    """The finished run of another incident, not yet forgotten, whose last disruptive action switched the node off."""
    for run in ctx.state.runs.values():
        if run.node == incident.node and run.incident != incident.id and run.state in run_states.OVER:
            specs = [spec for step in run.steps if (spec := ctx.actions.get(step.action)) is not None]
            disruptive = [spec for spec in specs if spec.disrupts is not Disrupts.NOTHING]
            if disruptive and disruptive[-1].takes_node_away and not disruptive[-1].heals:
                return run
    return None

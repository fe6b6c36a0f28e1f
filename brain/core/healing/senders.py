"""A node speaks for its own steps only (law 15)."""

from brain.core.context import Context
from brain.core.healing import plans
from brain.core.inputs import StepResult
from brain.core.state import Run


def speaks_for_another(ctx: Context, given: StepResult) -> bool:
    """Whether a node reports the result of a step, or of a look, that was not sent to it."""
    run = ctx.state.runs.get(plans.run_of(given.step))
    if run is None or not given.node:
        return False
    step = next((step for step in run.steps if step.id == given.step), None)
    if step is not None:
        action = ctx.actions.get(step.action)
        return given.node != run.node or (action is not None and action.where != "node")
    return given.node != run.node and given.step.startswith(f"{run.id}.k")


def is_foreign(ctx: Context, run: Run, node: str) -> bool:
    """Whether a node speaks of a step that is not its own: another node's, or one that the brain performs."""
    return bool(node) and (node != run.node or ctx.actions[plans.rungs(run)[run.rung].do].where != "node")

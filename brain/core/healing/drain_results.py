"""What the result of a step says about the drain of its node."""

from collections.abc import Mapping

from agent.contract.commands import Outcome
from brain.core.context import Context
from brain.core.healing import (
    drains,
    plans,
)
from brain.core.pack.spec import Rung, Scalar
from brain.core.state import Run


def keep(ctx: Context, run: Run, rung: Rung, outcome: Outcome, data: Mapping[str, Scalar]) -> None:
    """What a result says about the node's drain: it began, did not begin, was undone, or is over."""
    spec = ctx.actions.get(rung.do)
    if spec is None or not run.node:
        return
    if spec.drains and outcome is Outcome.OK:
        theirs = f"somebody else has drained {run.node} ({data.get('reason', '')})"
        run.kept_out = theirs if data.get("ours") is False else ""
        drains.done(ctx, run.node, run.incident, str(data.get("record", "")))
    elif spec.drains and not _drained_before(ctx, run):
        undone = outcome is Outcome.FAILED and run.steps[-1].params.get("then") == "undo"
        if outcome is Outcome.REFUSED or undone:
            drains.undone(ctx, run.node, run.incident)
    elif spec.returns and outcome is Outcome.OK:
        ctx.let_go.extend(drains.returned(ctx, run))


def _drained_before(ctx: Context, run: Run) -> bool:
    """Whether an earlier step of the incident may have drained the node."""
    incident = ctx.state.incidents[run.incident]
    earlier = [
        step
        for each in incident.runs
        if (other := ctx.state.runs.get(each)) is not None
        for step in other.steps
        if step.id != plans.last_step_id(run)
        and (spec := ctx.actions.get(step.action)) is not None
        and spec.drains
    ]
    return any(step.outcome not in (Outcome.REFUSED.value, "withdrawn") for step in earlier)

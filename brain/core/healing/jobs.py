"""The scheduler's answer to which jobs run on a node: requested by a gate, kept for FRESH_S, then forgotten."""

from brain.core.context import Context
from brain.core.healing import runs
from brain.core.inputs import JobsAnswer
from brain.core.state import NodeJobs, RunState

FRESH_S = 60.0


def answered(ctx: Context, given: JobsAnswer) -> None:
    """Keeps the scheduler's answer and asks the gates again for the runs that wait on the node."""
    ctx.state.jobs[given.node] = NodeJobs(
        at=ctx.now,
        known=given.known,
        jobs=list(given.jobs),
        protected=given.protected,
        why=given.why,
        drained=given.drained,
        ours=given.ours,
    )
    ctx.set_timer(f"jobs:{given.node}", ctx.now + FRESH_S)
    for run in list(ctx.state.runs.values()):
        if run.node == given.node and run.state in (RunState.HELD, RunState.APPROVAL):
            runs.proceed(ctx, run)

"""How long the steps of jobs take, as their logs tell it: whether a straggler harms its job. Pure.

It accuses nobody: in a synchronous job the steps of all ranks take as long. It only stands in the words about a straggler.
"""

from agent.contract.messages import Event
from brain.core.context import Context
from brain.core.state import JobSteps

KIND = "job.steps"
HOLDS_S = 1500.0  # told again every ten minutes
MAX_JOBS = 2000
_SHARE = 0.05


def feed(ctx: Context, event: Event) -> str:
    """Takes what a job's log tells (an event of KIND). Returns the job; empty: it tells none."""
    job, step = str(event.data.get("job", "")), event.data.get("step_s")
    if not job or isinstance(step, bool) or not isinstance(step, (int, float)) or not 0 < step < 1e12:
        return ""
    kept = ctx.state.steps
    before = kept.pop(job, None)
    least = step if before is None or ctx.now - before.at > HOLDS_S else min(before.least, step)
    kept[job] = JobSteps(at=ctx.now, least=float(least), newest=float(step))
    while len(kept) > MAX_JOBS or kept[next(iter(kept))].at < ctx.now - HOLDS_S:
        del kept[next(iter(kept))]
    return job


def said_of(ctx: Context, job: str) -> str:
    """What is known of the job's steps, as a clause that begins with a semicolon; empty: nothing."""
    steps = ctx.state.steps.get(job)
    if steps is None or steps.at < ctx.now - HOLDS_S:
        return ""
    longer = steps.newest / steps.least - 1
    if longer <= _SHARE:
        return "; its job's steps take as long as before, so it does not seem to be slowed down"
    return f"; its job's steps take {100 * longer:.0f} % longer than at their best"

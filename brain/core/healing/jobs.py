"""The scheduler's answer to which jobs run on a node: requested by a gate, kept for FRESH_S, then forgotten."""

from brain.core import hit
from brain.core.context import Context
from brain.core.faults import job_answers
from brain.core.healing import at_work, lost_drains, runs
from brain.core.inputs import JobsAnswer
from brain.core.jobs_seen import JobSeen
from brain.core.state import NodeJobs, RunState, State

FRESH_S = 60.0


def answered(ctx: Context, given: JobsAnswer) -> None:
    """Keeps the scheduler's answer and asks the gates again for the runs that wait on the node.

    An answer for people only goes to the node's incidents: no gate sees it.
    """
    answer = NodeJobs(
        at=ctx.now,
        known=given.known,
        jobs=list(given.jobs),
        protected=given.protected,
        why=given.why,
        drained=given.drained,
        ours=given.ours,
        record=given.record,
        seen=list(given.seen) or [JobSeen(id=job) for job in given.jobs],
        unlisted=given.unlisted,
        scheduler=given.scheduler,
    )
    hit.answered(ctx, given.node, answer)
    ctx.changed.extend(job_answers.named(ctx, given.node, answer.seen if answer.known else ()))
    if given.people:
        return
    ctx.state.jobs.pop(given.node, None)  # the newest answer stands last
    ctx.state.jobs[given.node] = answer
    ctx.set_timer(f"jobs:{given.node}", ctx.now + FRESH_S)
    lost_drains.answered(ctx, given)
    at_work.answered(ctx, given.node)
    for run in list(ctx.state.runs.values()):
        if run.node == given.node and run.state in (RunState.HELD, RunState.APPROVAL):
            run.jobs_asked_since = 0.0  # whichever gate holds it now
            runs.proceed(ctx, run)


def forget_old(state: State) -> None:
    """Forgets the answers that are not fresh any more, and the questions that were not answered in that time. The timers of the
    answers may come late: nobody sets off timers without a leader.
    """
    while state.asked:
        node, at = next(iter(state.asked.items()))
        if state.now < at + FRESH_S:
            break
        del state.asked[node]
    while state.jobs:
        node, oldest = next(iter(state.jobs.items()))
        if state.now < oldest.at + FRESH_S:
            return
        del state.jobs[node]

"""A test before the return has failed. Is it the node, or what it shares with others?

Ports of a node whose leaf restarts have no link, and programs on a node whose file server hangs do not end. So what a failed test
means is decided a while later, as with any fault: by then a shared cause shows. Under one the node is tested again when that is
over; else the run goes back into its ladder, once, or a person must look. A test is never repeated for a second chance.
"""

from agent.contract.commands import Outcome
from brain.core.context import Context
from brain.core.healing import holding, plans, run_states, verdicts
from brain.core.healing.run_states import RunTrigger
from brain.core.pack.spec import Rung
from brain.core.state import Incident, Run

SETTLE_S = 60.0  # within it, what many nodes show becomes a shared cause: a port counts as down after 30 s
AGAIN_S = 60.0  # how often is looked whether the shared cause is over
LONGEST_S = (
    4 * 3600.0
)  # a shared cause that lasts longer is not waited for: the node may be one of those that it is made of


def remember(ctx: Context, run: Run, rung: Rung) -> None:
    """A rung of the return to service has failed."""
    run.failed_test, run.test_failed_at = f"{rung.name} failed: {run.steps[-1].why}", ctx.now


def settled(ctx: Context, run: Run, incident: Incident) -> bool:
    """Decides what the failed test means. Returns whether the run goes on: with the test again, or back in the ladder."""
    rung = plans.rungs(run)[run.rung]
    tested = run.steps[-1].outcome == Outcome.FAILED.value and not ctx.actions[rung.do].returns
    verdict = _waits(ctx, run) if tested else None
    if verdict is not None and ctx.now - run.test_failed_at < LONGEST_S:
        holding.stopped_by_gate(ctx, run, incident, rung, verdict)
        return False
    failed, again = f"{run.worked}, but {run.failed_test}", run.retest
    forget(run)
    if verdict is not None:
        failed += ", under a shared cause that lasts"
    elif tested and again:
        return True
    elif tested and not run.relapses and run.back_to < len(run.runbook.rungs):
        _relapse(ctx, run, failed)
        return True
    run_states.transition(
        ctx, run, RunTrigger.EXHAUSTED, f"{failed}: a person must bring it back into service"
    )
    return False


def forget(run: Run) -> None:
    """It is decided what the failed test means, or the fault itself has come back."""
    run.failed_test, run.test_failed_at, run.retest = "", 0.0, False


def _waits(ctx: Context, run: Run) -> verdicts.Verdict | None:
    """What the decision waits for."""
    for place in ctx.compiled.topology.above(run.node):
        for symptom in ctx.index.active.get(place, {}).values():
            if run.node in symptom.members:
                run.retest = True
                why = f"{symptom.scope} shows {symptom.name}, {run.node} among its nodes"
                reason = f"{run.failed_test}, and {why}: tested again when that is over"
                return verdicts.Verdict(
                    answer=verdicts.Decision.HOLD, gate="shared", reason=reason, retry_s=AGAIN_S
                )
    left_s = 0.0 if run.retest else run.test_failed_at + SETTLE_S - ctx.now
    if left_s <= 0:
        return None
    reason = f"{run.failed_test}; it is not known yet whether other nodes show it too"
    return verdicts.Verdict(answer=verdicts.Decision.HOLD, gate="settling", reason=reason, retry_s=left_s)


def _relapse(ctx: Context, run: Run, why: str) -> None:
    ctx.note(
        "run.not_verified", f"{why}: back into the ladder", incident=run.incident, run=run.id, scope=run.scope
    )
    run.relapses += 1
    run.worked, run.rung, run.attempt = "", run.back_to, 1
    run_states.release(ctx, run)  # its tests asked no budget: what disrupts again does

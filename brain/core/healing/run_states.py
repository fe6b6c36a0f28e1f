"""The states of a run. TRANSITIONS is the only table of their changes."""

from enum import StrEnum

from brain.core import ids
from brain.core.context import Context
from brain.core.healing import limits
from brain.core.state import Run, RunState


class RunTrigger(StrEnum):
    """What can happen to a run."""

    HELD = "held"  # by a gate
    APPROVAL_REQUESTED = "approval requested"
    INTENT_REQUESTED = "intent requested"
    INTENT_LOGGED = "intent logged"
    STEP_PERFORMED = "step performed"  # and to be verified
    SUCCEEDED = "succeeded"
    EXHAUSTED = "exhausted"  # no rung is left, or a gate or a rung stops the run for good
    OBSERVED = "observed"  # observe mode
    CANCELLED = "cancelled"  # by an operator, or because its incident is over
    STEP_STOPPED = "step stopped"  # the last step of a cancelled run has ended


S, T = RunState, RunTrigger
WAITING = (S.HELD, S.APPROVAL)
_ACTIVE = (*WAITING, S.PERFORMING, S.VERIFYING)
TRANSITIONS: dict[tuple[RunState, RunTrigger], RunState] = {
    # from INTENT: something has happened between the decision and the moment when the step was to be sent
    **{(state, T.HELD): S.HELD for state in (*_ACTIVE, S.INTENT)},
    **{(state, T.APPROVAL_REQUESTED): S.APPROVAL for state in (*_ACTIVE, S.INTENT)},
    **{(state, T.INTENT_REQUESTED): S.INTENT for state in (*_ACTIVE, S.INTENT)},
    (S.INTENT, T.INTENT_LOGGED): S.PERFORMING,
    (S.PERFORMING, T.STEP_PERFORMED): S.VERIFYING,
    **{(state, T.SUCCEEDED): S.SUCCEEDED for state in (*_ACTIVE, S.INTENT)},
    **{(state, T.EXHAUSTED): S.EXHAUSTED for state in (*_ACTIVE, S.INTENT)},
    (S.HELD, T.OBSERVED): S.OBSERVED,
    **{(state, T.CANCELLED): S.CANCELLED for state in (*WAITING, S.INTENT, S.VERIFYING)},
    (S.PERFORMING, T.CANCELLED): S.CANCELLING,
    (S.CANCELLING, T.STEP_STOPPED): S.CANCELLED,
}
OVER = (S.SUCCEEDED, S.EXHAUSTED, S.OBSERVED, S.CANCELLED)


def transition(ctx: Context, run: Run, trigger: RunTrigger, why: str, *, gate: str = "") -> None:
    """Changes the run's state by TRANSITIONS. KeyError, which is a bug, where the table has no entry. `gate`: that led to it."""
    run.state = TRANSITIONS[run.state, trigger]
    run.why = why
    ctx.show_run(run)
    data = {"gate": gate} if gate else None
    ctx.note(f"run.{run.state}", why, incident=run.incident, run=run.id, scope=run.scope, data=data)
    if run.state in (*OVER, *WAITING) and run.claimed:
        release(ctx, run)
    if run.state in OVER:
        run.ended_at = ctx.now
        ctx.cancel_timer(f"run:{run.id}")
        if run.disrupted and not run.requested_by:
            _count_try(ctx, run)
        ctx.ended.append(run)


def release(ctx: Context, run: Run) -> None:
    """Ends the run's claim: other runs may disrupt its node, and it counts against no budget."""
    run.claimed = False
    ctx.index.claims.pop(run.id, None)
    ctx.freed = True


def _count_try(ctx: Context, run: Run) -> None:
    key = limits.tries_key(run, ctx.state.incidents[run.incident])
    ctx.state.tries.setdefault(key, []).append(ctx.now)
    ctx.set_timer(f"tries:{key}", ctx.now + run.runbook.tries_within_s)


def forget_tries(ctx: Context, key: str) -> None:
    """Forgets the tries of a remedy that are older than its runbook's window; all of them if there is no such runbook now."""
    runbook = ctx.compiled.runbooks.get(ids.name_of(key))
    window = runbook.tries_within_s if runbook else 0.0
    left = [at for at in ctx.state.tries.get(key, ()) if at > ctx.now - window]
    if left:
        ctx.state.tries[key] = left
        ctx.set_timer(f"tries:{key}", left[0] + window + 0.001)
    else:
        ctx.state.tries.pop(key, None)

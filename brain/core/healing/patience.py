"""Steps that do not end: who is told, what is asked again, and when they are given up (law 14)."""

from agent.contract.actions.spec import Repeat
from agent.contract.commands import Outcome
from brain.core.context import Context
from brain.core.effects import CancelStep, Perform, WriteIntent
from brain.core.healing import plans, run_states, runs, steps, unanswered
from brain.core.healing.run_states import RunTrigger
from brain.core.healing.unanswered import NO_ANSWER_S, NO_PROGRESS_S
from brain.core.pack.spec import Rung
from brain.core.state import Run, RunState

# It is given up after this long without a report, however late its deadline is: a drain may wait for days.
GIVE_UP_S = 1800.0


def timer(ctx: Context, run: Run) -> None:
    """The run's timer fired: asks the gates again, checks the verification, or looks after a step without progress."""
    steps.tell_if_long(ctx, run)
    match run.state:
        case RunState.HELD | RunState.APPROVAL:
            runs.proceed(ctx, run)
        case RunState.VERIFYING:
            steps.check(ctx, run)
        case RunState.INTENT:
            runs.intend_again(ctx, run)
        case RunState.PERFORMING | RunState.CANCELLING:
            _no_progress(ctx, run)


def _no_progress(ctx: Context, run: Run) -> None:
    """Gives a step up at its deadline (outcome unknown); before that, sends one of class `safe` again, for some time."""
    rung = steps.rung_of(run)
    unanswered.look(ctx, run, rung)
    if ctx.now >= run.deadline:
        if unanswered.is_overdue(ctx, run, rung):
            unanswered.remember(ctx, run)
        steps.unknown(ctx, plans.last_step_id(run), "no answer within its deadline")
        return
    if steps.reconsider(ctx, run):
        return
    if unanswered.has_started_anew(ctx, run):
        why = f"{run.node} has started anew, and does not say how {rung.name} ended"
        steps.unknown(ctx, plans.last_step_id(run), why)
        return
    if unanswered.is_idle(ctx, run, rung):
        _give_up(ctx, run, rung)
        return
    safe = plans.repeat(ctx, rung) is Repeat.SAFE
    if safe and ctx.now - max(run.heard_at, run.steps[-1].at) >= GIVE_UP_S:
        why = f"nothing heard of it for {GIVE_UP_S / 60:.0f} minutes"
        step = plans.step(ctx, run, ctx.state.incidents[run.incident], rung)
        ctx.effects.append(
            CancelStep(step=step, why=why)
        )  # if it is under way after all, it must not go on unseen
        steps.unknown(ctx, step.id, why)
        return
    steps.watch(ctx, run)
    if run.state is RunState.PERFORMING and safe and steps.objection(ctx, run, rung) is None:
        # Under the same id: a node that is performing it, or has performed it, answers so and does not do it twice.
        incident = ctx.state.incidents[run.incident]
        why = f"no sign of life of {rung.name} for {NO_PROGRESS_S:.0f} s: asked again under the same id"
        ctx.note("step.asked_again", why, incident=run.incident, run=run.id, scope=run.scope)
        step = plans.step(ctx, run, incident, rung)
        ctx.effects.append(Perform(step=plans.rest_of(ctx, run, step)))


def _give_up(ctx: Context, run: Run, rung: Rung) -> None:
    """The node leaves the budgets, and a person must look: whoever waits for them does not wait for its deadlines."""
    why = f"{run.node} is heard, and gives no sign of life of {rung.name} for {NO_ANSWER_S:.0f} s"
    unanswered.remember(ctx, run)
    ctx.state.nodes[run.node].unanswered_at = ctx.now
    if run.state is RunState.CANCELLING:
        steps.unknown(ctx, plans.last_step_id(run), why)
        return
    ctx.effects.append(
        CancelStep(step=plans.step(ctx, run, ctx.state.incidents[run.incident], rung), why=why)
    )
    run.steps[-1].outcome, run.steps[-1].why = Outcome.UNKNOWN.value, why
    run_states.transition(ctx, run, RunTrigger.EXHAUSTED, f"{why}: a person must look")


def heard(ctx: Context, run: Run) -> None:
    """The run's node is heard again."""
    before = run.back_at
    if run.rung < len(plans.rungs(run)) and run.steps:
        unanswered.look(ctx, run, steps.rung_of(run))
    if run.back_at != before:
        steps.watch(ctx, run)


def new_leader(ctx: Context, run: Run) -> None:
    """Takes over the run's step from the last leader: the repeat class decides whether it is sent again or verified."""
    if run.state not in (RunState.INTENT, RunState.PERFORMING, RunState.CANCELLING):
        return
    rung = steps.rung_of(run)
    step = plans.step(ctx, run, ctx.state.incidents[run.incident], rung)
    if run.state is RunState.INTENT:
        ctx.effects.append(WriteIntent(step=step))
    elif run.state is RunState.CANCELLING:
        ctx.effects.append(CancelStep(step=step, why=run.why))
    elif plans.repeat(ctx, rung) is Repeat.SAFE:
        # Under the same id: a node that has it in its journal answers with the result and does not do it twice.
        # It may be under way there, so the run stays PERFORMING: cancelled now, it awaits the step's end.
        run.heard_at = ctx.now
        why = f"{rung.name}: asked again by the new leader under the same id"
        ctx.note("step.asked_again", why, incident=run.incident, run=run.id, scope=run.scope)
        ctx.effects.append(WriteIntent(step=step))
    else:
        steps.unknown(ctx, step.id, "the leader changed before the result was known")

"""Steps of runs: performed once their intent is on the log, then verified; and what a new leader does with them.

A step is performed only after its intent came back on the log with the present leader's epoch, so that a deposed
brain cannot act. For a step whose outcome is unknown the repeat class decides (law 4).
"""

from collections.abc import Mapping

from agent.contract.actions.spec import Disrupts, Repeat
from agent.contract.commands import Outcome
from brain.core import ids
from brain.core.context import Context
from brain.core.effects import CancelStep, Perform, WriteIntent
from brain.core.faults import reports, situations, symptoms
from brain.core.healing import drains, gates, looks, plans, runs, unanswered, validation, verdicts
from brain.core.healing.runs import RunTrigger
from brain.core.healing.unanswered import NO_ANSWER_S, NO_PROGRESS_S
from brain.core.inputs import StepProgress, StepResult
from brain.core.pack.spec import Paging, Priority, Rung, Scalar
from brain.core.paging import escalation
from brain.core.state import Run, RunState

ANSWER_GRACE_S = 15.0  # how long after its own timeout the result of a step may still arrive
# The times of facts that belong together differ by less than this; a fact of an earlier boot precedes the boot by more.
JITTER_S = 1.0
# People are told of a P0 or P1 that was not paged at once, and of a node that waits drained, when it has lasted this long.
PATIENCE_S = 1800.0
# It is given up after this long without a report, however late its deadline is: a drain may wait for days.
GIVE_UP_S = 1800.0


def intended(ctx: Context, step_id: str, epoch: int) -> None:
    """Performs a step whose intent is on the log; not if the leader has changed or the step is not wanted any more."""
    run = _run_of(ctx, step_id)
    if run is None or run.state not in (RunState.INTENT, RunState.PERFORMING) or epoch != ctx.state.epoch:
        return
    incident, rung = ctx.state.incidents[run.incident], _rung(run)
    step = plans.step(ctx, run, incident, rung)
    objection = _objection(ctx, run, rung)
    if run.state is RunState.PERFORMING:
        # A new leader asks again under the same id; what was logged since prevents that request, and does not stop the step.
        if objection is None and epoch > run.epoch and step.repeat is Repeat.SAFE:
            run.epoch = epoch
            ctx.effects.append(Perform(step=plans.rest_of(ctx, run, step)))
        return
    if objection is not None:
        runs.withdraw(ctx, run, rung, objection)
        return
    if runs.needless(run, incident) and step.disrupts is not Disrupts.NOTHING:
        run.steps[-1].outcome, run.steps[-1].why = "withdrawn", "the fault is gone"
        runs.proceed(ctx, run)
        return
    runs.transition(ctx, run, RunTrigger.INTENT_LOGGED, f"{step.action} on {step.node or 'the brain'}")
    run.epoch, run.deadline = epoch, ctx.now + step.timeout_s + ANSWER_GRACE_S
    run.heard_at, run.back_at = ctx.now, 0.0
    # What disrupts has passed the gates just now; evidence is collected however old the facts are.
    run.in_time = step.disrupts is not Disrupts.NOTHING or not gates.old_news(ctx, run, incident)
    _watch(ctx, run)
    if step.disrupts is not Disrupts.NOTHING:
        run.disrupted, run.disturbed_at = True, ctx.now
    if step.node and ctx.actions[step.action].drains:
        drains.began(ctx, step)
    elif step.node and ctx.actions[step.action].returns:
        drains.doubted(ctx, step.node)
    ctx.effects.append(Perform(step=step))


def _objection(ctx: Context, run: Run, rung: Rung) -> verdicts.Verdict | None:
    """Law 2: the gates are asked again at the last moment, before a disruptive step leaves. None: none objects."""
    if run.node and ctx.actions[rung.do].returns:
        gate, why = runs.not_to_be_returned(ctx, run)
        if why:
            return verdicts.Verdict(answer=verdicts.Decision.HOLD, gate=gate, reason=why, retry_s=1)
    if plans.disrupts(ctx, rung, returning=bool(run.worked)) is Disrupts.NOTHING:
        return None
    verdict = gates.check(ctx, run, ctx.state.incidents[run.incident], rung)
    return None if verdict.answer is verdicts.Decision.GO else verdict


def progress(ctx: Context, given: StepProgress) -> None:
    """A step reports that it is under way, and with what; empty text: that is not known.

    A sign of life of another node's step, or of one that the brain performs, changes nothing (law 15).
    """
    run = _run_of(ctx, given.step)
    if run is None or _is_foreign(ctx, run, given.node):
        return
    if run.state in (RunState.PERFORMING, RunState.CANCELLING) and unanswered.counts(ctx, run, _rung(run)):
        _has_answered(ctx, given.node)
        run.heard_at = ctx.now
        _tell_if_long(ctx, run)
        if reconsider(ctx, run):
            return
        _watch(ctx, run)
        if given.text and given.text != run.steps[-1].doing:
            run.steps[-1].doing = given.text
            ctx.note("step.progress", given.text, incident=run.incident, run=run.id, scope=run.scope)
        ctx.show_run(run)


def reconsider(ctx: Context, run: Run) -> bool:
    """Stops a drain that would end jobs when its wait is over, if a person has objected since it began (law 2).

    The node stays drained. Returns whether it was stopped.
    """
    if run.state is not RunState.PERFORMING:
        return False
    rung = _rung(run)
    if not ctx.actions[rung.do].drains:
        return False
    step = plans.step(ctx, run, ctx.state.incidents[run.incident], rung)
    if step.params.get("then") != "requeue":
        return False
    verdict = gates.objection_since(ctx, run, rung, run.steps[-1].at)
    if verdict is not None:
        runs.interrupt(ctx, run, rung, verdict)
    return verdict is not None


def _watch(ctx: Context, run: Run) -> None:
    """Sets the timer for the step's deadline, or for the next check of its progress."""
    ctx.set_timer(f"run:{run.id}", unanswered.due(ctx, run, _rung(run)))


def result(ctx: Context, given: StepResult) -> None:
    """A step or a look has ended. A result for one that is not under way is out of date and changes nothing.

    A node answers for itself only (law 15): what it says of a step that was not sent to it is an incident about that node,
    and changes nothing else.
    """
    if _speaks_for_another(ctx, given):
        text = f"{given.node} reports a result of {given.step}, which is not its own: ignored"
        ctx.note("step.foreign", text)
        reports.foreign_result(ctx, given.node, given.step)
        return
    _has_answered(ctx, given.node)
    if _looked(ctx, given):
        return
    run = _run_of(ctx, given.step)
    if run is None or run.state not in (RunState.PERFORMING, RunState.CANCELLING):
        return
    rung = _rung(run)
    given = validation.judged(ctx, run, rung, given)
    outcome, why = given.outcome, given.why
    if run.in_time:
        run.moved_at = ctx.now
    if plans.disrupts(ctx, rung, returning=bool(run.worked)) is not Disrupts.NOTHING:
        run.disturbed_at = ctx.now
    _keep_drain(ctx, run, rung, outcome, given.data)
    run.steps[-1].outcome, run.steps[-1].why = outcome.value, why
    ctx.note(
        "step.result",
        f"{rung.name}: {outcome}: {why}",
        incident=run.incident,
        run=run.id,
        scope=run.scope,
        data={"step": given.step, "outcome": outcome.value},
    )
    ctx.show_run(run)
    if run.state is RunState.CANCELLING:
        runs.transition(ctx, run, RunTrigger.STEP_STOPPED, run.why)
    else:
        _after(ctx, run, rung, outcome)


def _looked(ctx: Context, given: StepResult) -> bool:
    """Whether the result is that of a look; if it is awaited, the run that asked goes on."""
    run = ctx.state.runs.get(plans.run_of(given.step))
    if run is None or not given.step.startswith(f"{run.id}.k"):
        return False
    if given.step == run.looking and given.node in ("", run.node) and run.state not in runs.OVER:
        proven = looks.answered(ctx, run, given)
        if run.state is RunState.VERIFYING:
            check(ctx, run)
        elif run.state in (RunState.HELD, RunState.APPROVAL) and proven:
            runs.proceed(ctx, run)
        elif run.state in (RunState.HELD, RunState.APPROVAL):
            ctx.set_timer(f"run:{run.id}", ctx.now + looks.AGAIN_S)
    return True


def _keep_drain(ctx: Context, run: Run, rung: Rung, outcome: Outcome, data: Mapping[str, Scalar]) -> None:
    """What a result says about the node's drain: it began, did not begin, was undone, or is over."""
    spec = ctx.actions.get(rung.do)
    if spec is None or not run.node:
        return
    if spec.drains and outcome is Outcome.OK:
        theirs = f"somebody else has drained {run.node} ({data.get('reason', '')})"
        run.kept_out = theirs if data.get("ours") is False else ""
        drains.done(ctx, run.node, run.incident)
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


def _after(ctx: Context, run: Run, rung: Rung, outcome: Outcome) -> None:
    """What follows a step: verification, the next rung, another attempt, or the end of the run."""
    repeat = plans.repeat(ctx, rung)
    may_be_done = outcome is Outcome.OK or (outcome is Outcome.UNKNOWN and repeat is not Repeat.SAFE)
    if may_be_done and rung.verify is not None:
        _verify(ctx, run, rung)
    elif outcome is Outcome.OK:
        _next_rung(ctx, run)
    elif may_be_done:
        why = f"nobody knows whether {rung.name} was done, and nothing verifies it: a person must look"
        runs.transition(ctx, run, RunTrigger.EXHAUSTED, why)
    elif outcome is Outcome.REFUSED:
        _failed(ctx, run, rung, again=False, then=rung.on_refusal)
    else:
        done = outcome is Outcome.FAILED
        _failed(ctx, run, rung, again=not (done and repeat is Repeat.NEVER))


def _next_rung(ctx: Context, run: Run) -> None:
    run.rung += 1
    run.attempt = 1
    runs.proceed(ctx, run)


def _failed(ctx: Context, run: Run, rung: Rung, *, again: bool, then: str = "") -> None:
    """Retries the rung if `again` and a retry is left; otherwise does `then` (empty: the rung's `on_failure`)."""
    refused_and_fine = then == "next"
    then = then or rung.on_failure
    if again and run.attempt <= rung.retries:
        run.attempt += 1
        runs.proceed(ctx, run)
    elif run.worked and not refused_and_fine and _relapse(ctx, run, rung):
        return
    elif run.worked and not refused_and_fine:
        why = f"{run.worked}, but {rung.name} failed: {run.steps[-1].why}: a person must bring it back into service"
        runs.transition(ctx, run, RunTrigger.EXHAUSTED, why)
    elif then == "quit":
        why = f"{rung.name} was not to be done now, so nothing else is"
        runs.transition(ctx, run, RunTrigger.SUCCEEDED, why)
    elif then == "stop":
        last = run.steps[-1]
        how = (
            f"{rung.name} {'was refused' if last.outcome == Outcome.REFUSED.value else 'failed'}: {last.why}"
        )
        why = f"{how}. The runbook stops there: a person must take it from here"
        runs.transition(ctx, run, RunTrigger.EXHAUSTED, why)
    else:
        _next_rung(ctx, run)


def _relapse(ctx: Context, run: Run, rung: Rung) -> bool:
    """A check before the return failed: once, the run goes back into the ladder. False: it did so before, or has none left."""
    found = run.steps[-1].outcome == Outcome.FAILED.value and not ctx.actions[rung.do].returns
    if not found or run.relapses or run.back_to >= len(run.runbook.rungs):
        return False
    why = f"{run.worked}, but {rung.name} failed: {run.steps[-1].why}: back into the ladder"
    ctx.note("run.not_verified", why, incident=run.incident, run=run.id, scope=run.scope)
    run.relapses += 1
    run.worked, run.rung, run.attempt = "", run.back_to, 1
    runs.release(ctx, run)  # its tests asked no budget: what disrupts again does
    runs.proceed(ctx, run)
    return True


def _verify(ctx: Context, run: Run, rung: Rung) -> None:
    """Starts the verification of a step. Symptoms that are reset on act end first: if the fault persists, they return.

    So do those that the incident explains: after it they must not lead to the same remedy once more.
    """
    assert rung.verify is not None  # noqa: S101  # the only caller has just checked
    why = f"{rung.name} is done; verifying that the symptoms are gone"
    runs.transition(ctx, run, RunTrigger.STEP_PERFORMED, why)
    run.deadline = ctx.now + rung.verify.within_s
    run.quiet_since = 0.0
    node = ctx.state.nodes.get(run.node)
    # If the node rebooted during the step, facts of the new boot are newer than the step: their symptoms stay.
    booted_at = node.booted_at if node is not None and node.booted_at > run.steps[-1].at else None
    explained = situations.explained_symptoms(ctx, ctx.state.incidents[run.incident])
    for key in dict.fromkeys((*runs.still_active(ctx, run, rung), *explained)):
        state = ctx.state.symptoms[key]
        if _resets_on_act(ctx, rung, key) and (booted_at is None or state.last < booted_at - JITTER_S):
            why = f"set aside while {rung.name} is verified"
            ctx.changed.extend(symptoms.set_aside(ctx, state, run.id, why))
    check(ctx, run)


def _resets_on_act(ctx: Context, rung: Rung, key: str) -> bool:
    """Whether only facts from now on count: because no fact can clear the symptom, or because the rung says so."""
    name = ids.name_of(key)
    spec = ctx.compiled.symptoms.get(name)
    if spec is None or spec.detect == "spread":
        return False
    reset = rung.verify.reset_on_act if rung.verify is not None else ()
    return not spec.clear or name in reset or "*" in reset


def _unreachable(ctx: Context, run: Run) -> bool:
    """Whether the run's node is unreachable. An unreachable node proves nothing: symptoms may be there unreported."""
    node = ctx.state.nodes.get(run.node)
    return node is not None and not node.alive


def check(ctx: Context, run: Run) -> None:
    """Decides a verification: passed, failed, or to be checked again later. Nothing for a run in another state."""
    if run.state is not RunState.VERIFYING:
        return
    rung = _rung(run)
    assert rung.verify is not None  # noqa: S101  # only a rung with verify leads to VERIFYING
    active = runs.still_active(ctx, run, rung)
    unreachable = _unreachable(ctx, run)
    if not active and not unreachable:
        run.quiet_since = run.quiet_since or ctx.now
        if ctx.now < run.quiet_since + rung.verify.for_s:
            ctx.set_timer(f"run:{run.id}", run.quiet_since + rung.verify.for_s)
        else:
            _check_proof(ctx, run, rung)
        return
    run.quiet_since = 0.0
    looks.forget(run)
    # A symptom that was reset and is active again is a new fact: the step did not help, whatever the deadline.
    returned = not unreachable and any(_resets_on_act(ctx, rung, key) for key in active)
    if ctx.now < run.deadline and not returned:
        ctx.set_timer(f"run:{run.id}", run.deadline)
    else:
        left = f"{', '.join(active[:3])} still there" if active else f"{run.node} is not heard"
        _not_verified(ctx, run, rung, left)


def _check_proof(ctx: Context, run: Run, rung: Rung) -> None:
    """The symptoms have been gone for long enough. Silence proves nothing (law 8): has the node looked again since?"""
    if looks.needless(run) or run.looked_at >= run.quiet_since:
        _verified(ctx, run, rung)
    elif looks.given_up(ctx, run):
        _not_verified(ctx, run, rung, run.unseen)
    else:
        ctx.set_timer(f"run:{run.id}", looks.ask(ctx, run))


def _verified(ctx: Context, run: Run, rung: Rung) -> None:
    run.steps[-1].verified = True
    gone_s = ctx.now - run.quiet_since
    why = f"{rung.name} worked: the symptoms have been gone for {gone_s:.0f} s"
    runs.succeed(ctx, run, why, run.rung + 1)


def _not_verified(ctx: Context, run: Run, rung: Rung, left: str) -> None:
    run.steps[-1].verified = False
    run.moved_at = ctx.now
    looks.forget(run)
    ctx.note(
        "run.not_verified",
        f"{rung.name} did not help: {left}",
        incident=run.incident,
        run=run.id,
        scope=run.scope,
    )
    _failed(ctx, run, rung, again=plans.repeat(ctx, rung) is not Repeat.NEVER)


def timer(ctx: Context, run: Run) -> None:
    """The run's timer fired: asks the gates again, checks the verification, or looks after a step without progress."""
    _tell_if_long(ctx, run)
    match run.state:
        case RunState.HELD | RunState.APPROVAL:
            runs.proceed(ctx, run)
        case RunState.VERIFYING:
            check(ctx, run)
        case RunState.INTENT:
            runs.intend_again(ctx, run)
        case RunState.PERFORMING | RunState.CANCELLING:
            _no_progress(ctx, run)


def _tell_if_long(ctx: Context, run: Run) -> None:
    """Law 14: a person is told of whatever waits; not of what a rule pages at once, since people know it already."""
    incident = ctx.state.incidents[run.incident]
    urgent = incident.severity <= Priority.P1 or bool(drains.owned(ctx, incident))
    if (
        urgent
        and ctx.now - run.started_at >= PATIENCE_S
        and incident.page is Paging.FAILURE
        and not run.requested_by
        and not incident.pages.first_at
    ):
        doing = run.steps[-1].doing if run.state is RunState.PERFORMING else ""
        minutes = (ctx.now - run.started_at) / 60
        escalation.open_page(ctx, incident, f"not healed after {minutes:.0f} minutes: {doing or run.why}")


def _no_progress(ctx: Context, run: Run) -> None:
    """Gives a step up at its deadline (outcome unknown); before that, sends one of class `safe` again, for some time."""
    rung = _rung(run)
    unanswered.look(ctx, run, rung)
    if ctx.now >= run.deadline:
        if unanswered.is_overdue(ctx, run, rung):
            unanswered.remember(ctx, run)
        _unknown(ctx, plans.last_step_id(run), "no answer within its deadline")
        return
    if reconsider(ctx, run):
        return
    if unanswered.has_started_anew(ctx, run):
        why = f"{run.node} has started anew, and does not say how {rung.name} ended"
        _unknown(ctx, plans.last_step_id(run), why)
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
        _unknown(ctx, step.id, why)
        return
    _watch(ctx, run)
    if run.state is RunState.PERFORMING and safe and _objection(ctx, run, rung) is None:
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
        _unknown(ctx, plans.last_step_id(run), why)
        return
    ctx.effects.append(
        CancelStep(step=plans.step(ctx, run, ctx.state.incidents[run.incident], rung), why=why)
    )
    run.steps[-1].outcome, run.steps[-1].why = Outcome.UNKNOWN.value, why
    runs.transition(ctx, run, RunTrigger.EXHAUSTED, f"{why}: a person must look")


def heard(ctx: Context, run: Run) -> None:
    """The run's node is heard again."""
    before = run.back_at
    if run.rung < len(plans.rungs(run)) and run.steps:
        unanswered.look(ctx, run, _rung(run))
    if run.back_at != before:
        _watch(ctx, run)


def _has_answered(ctx: Context, node: str) -> None:
    """A node reports of what it was told to do."""
    if (known := ctx.state.nodes.get(node)) is not None:
        known.unanswered_at = 0.0


def new_leader(ctx: Context, run: Run) -> None:
    """Takes over the run's step from the last leader: the repeat class decides whether it is sent again or verified."""
    if run.state not in (RunState.INTENT, RunState.PERFORMING, RunState.CANCELLING):
        return
    rung = _rung(run)
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
        _unknown(ctx, step.id, "the leader changed before the result was known")


def _unknown(ctx: Context, step_id: str, why: str) -> None:
    """Ends a step whose result is not known."""
    result(ctx, StepResult(id=ctx.cause, step=step_id, outcome=Outcome.UNKNOWN, why=why))


def _speaks_for_another(ctx: Context, given: StepResult) -> bool:
    """Whether a node reports the result of a step, or of a look, that was not sent to it."""
    run = ctx.state.runs.get(plans.run_of(given.step))
    if run is None or not given.node:
        return False
    step = next((step for step in run.steps if step.id == given.step), None)
    if step is not None:
        action = ctx.actions.get(step.action)
        return given.node != run.node or (action is not None and action.where != "node")
    return given.node != run.node and given.step.startswith(f"{run.id}.k")


def _is_foreign(ctx: Context, run: Run, node: str) -> bool:
    """Whether a node speaks of a step that is not its own: another node's, or one that the brain performs."""
    return bool(node) and (node != run.node or ctx.actions[_rung(run).do].where != "node")


def _rung(run: Run) -> Rung:
    return plans.rungs(run)[run.rung]


def _run_of(ctx: Context, step_id: str) -> Run | None:
    """The run whose present step this is; None: another step is, or no such run is known."""
    run = ctx.state.runs.get(plans.run_of(step_id))
    if run is None or run.rung >= len(plans.rungs(run)) or plans.last_step_id(run) != step_id:
        return None
    return run

"""Steps of runs: performed once their intent is on the log, then verified; and what a new leader does with them.

A step is performed only after its intent came back on the log with the present leader's epoch, so that a deposed
brain cannot act. For a step whose outcome is unknown the repeat class decides (law 4).
"""

from agent.contract.actions.spec import Disrupts, Repeat
from agent.contract.commands import Outcome
from brain.core import ids
from brain.core.context import Context
from brain.core.effects import Perform
from brain.core.faults import parts, reports, situations, symptoms
from brain.core.healing import (
    drain_results,
    drains,
    failed_tests,
    gates,
    harm,
    holding,
    looks,
    plans,
    run_states,
    runs,
    senders,
    unanswered,
    unheard,
    validation,
    verdicts,
    way_back,
)
from brain.core.healing.run_states import RunTrigger
from brain.core.inputs import StepProgress, StepResult
from brain.core.pack.spec import Paging, Priority, Rung
from brain.core.paging import escalation
from brain.core.state import Run, RunState

ANSWER_GRACE_S = 15.0  # how long after its own timeout the result of a step may still arrive
# The times of facts that belong together differ by less than this; a fact of an earlier boot precedes the boot by more.
JITTER_S = 1.0
# People are told of a P0 or P1 that was not paged at once, and of a node that waits drained, when it has lasted this long.
PATIENCE_S = 1800.0


def intended(ctx: Context, step_id: str, epoch: int) -> None:
    """Performs a step whose intent is on the log; not if the leader has changed or the step is not wanted any more."""
    run = _run_of(ctx, step_id)
    if run is None or run.state not in (RunState.INTENT, RunState.PERFORMING) or epoch != ctx.state.epoch:
        return
    incident, rung = ctx.state.incidents[run.incident], rung_of(run)
    step = plans.step(ctx, run, incident, rung)
    stopped = objection(ctx, run, rung)
    if run.state is RunState.PERFORMING:
        # A new leader asks again under the same id; what was logged since prevents that request, and does not stop the step.
        if stopped is None and epoch > run.epoch and step.repeat is Repeat.SAFE:
            run.epoch = epoch
            ctx.effects.append(Perform(step=plans.rest_of(ctx, run, step)))
        return
    if stopped is not None:
        runs.withdraw(ctx, run, rung, stopped)
        return
    if runs.needless(run, incident) and step.disrupts is not Disrupts.NOTHING:
        run.steps[-1].outcome, run.steps[-1].why = "withdrawn", "the fault is gone"
        runs.proceed(ctx, run)
        return
    run_states.transition(ctx, run, RunTrigger.INTENT_LOGGED, f"{step.action} on {step.node or 'the brain'}")
    run.epoch, run.deadline = epoch, ctx.now + step.timeout_s + ANSWER_GRACE_S
    run.heard_at, run.back_at = ctx.now, 0.0
    # What disrupts has passed the gates just now; evidence is collected however old the facts are.
    run.in_time = step.disrupts is not Disrupts.NOTHING or not gates.old_news(ctx, run, incident)
    watch(ctx, run)
    if step.disrupts is not Disrupts.NOTHING:
        run.disrupted, run.disturbed_at = True, ctx.now
    harm.began(ctx, run, step)
    if step.node and ctx.actions[step.action].drains:
        drains.began(ctx, step)
    elif step.node and ctx.actions[step.action].returns:
        drains.doubted(ctx, step.node)
    ctx.effects.append(Perform(step=step))


def objection(ctx: Context, run: Run, rung: Rung) -> verdicts.Verdict | None:
    """Law 2: the gates are asked again at the last moment, before a disruptive step leaves. None: none objects."""
    if run.node and ctx.actions[rung.do].returns:
        gate, why = way_back.not_to_be_returned(ctx, run)
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
    if run is None or senders.is_foreign(ctx, run, given.node):
        return
    if run.state in (RunState.PERFORMING, RunState.CANCELLING) and unanswered.counts(ctx, run, rung_of(run)):
        _has_answered(ctx, given.node)
        run.heard_at = ctx.now
        tell_if_long(ctx, run)
        if reconsider(ctx, run):
            return
        watch(ctx, run)
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
    rung = rung_of(run)
    if not ctx.actions[rung.do].drains:
        return False
    step = plans.step(ctx, run, ctx.state.incidents[run.incident], rung)
    if step.params.get("then") != "requeue":
        return False
    verdict = gates.objection_since(ctx, run, rung, run.steps[-1].at)
    if verdict is not None:
        runs.interrupt(ctx, run, rung, verdict)
    return verdict is not None


def watch(ctx: Context, run: Run) -> None:
    """Sets the timer for the step's deadline, or for the next check of its progress."""
    ctx.set_timer(f"run:{run.id}", unanswered.due(ctx, run, rung_of(run)))


def result(ctx: Context, given: StepResult) -> None:
    """A step or a look has ended. A result for one that is not under way is out of date and changes nothing.

    A node answers for itself only (law 15): what it says of a step that was not sent to it is an incident about that node,
    and changes nothing else.
    """
    if senders.speaks_for_another(ctx, given):
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
    rung = rung_of(run)
    given = validation.judged(ctx, run, rung, given)
    outcome, why = given.outcome, given.why
    if run.in_time:
        run.moved_at = ctx.now
    if plans.disrupts(ctx, rung, returning=bool(run.worked)) is not Disrupts.NOTHING:
        run.disturbed_at = ctx.now
    drain_results.keep(ctx, run, rung, outcome, given.data)
    run.steps[-1].outcome, run.steps[-1].why = outcome.value, why
    run.steps[-1].settled_at = ctx.now
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
        run_states.transition(ctx, run, RunTrigger.STEP_STOPPED, run.why)
    else:
        _after(ctx, run, rung, outcome)


def _looked(ctx: Context, given: StepResult) -> bool:
    """Whether the result is that of a look; if it is awaited, the run that asked goes on."""
    run = ctx.state.runs.get(plans.run_of(given.step))
    if run is None or not given.step.startswith(f"{run.id}.k"):
        return False
    if given.step == run.looking and given.node in ("", run.node) and run.state not in run_states.OVER:
        proven = looks.answered(ctx, run, given)
        waits = run.state in (RunState.VERIFYING, RunState.HELD, RunState.APPROVAL)
        if waits and not proven and not run.vouched:  # it is asked again, not as fast as it answers
            ctx.set_timer(f"run:{run.id}", ctx.now + looks.AGAIN_S)
        elif run.state is RunState.VERIFYING:
            check(ctx, run)
        elif waits:
            runs.proceed(ctx, run)
    return True


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
        run_states.transition(ctx, run, RunTrigger.EXHAUSTED, why)
    elif outcome is Outcome.REFUSED:
        _failed(ctx, run, rung, again=False, then=rung.on_refusal)
    elif outcome is Outcome.UNREACHABLE and (silent := unheard.may_yet_be(ctx, run, rung)) is not None:
        holding.stopped_by_gate(ctx, run, ctx.state.incidents[run.incident], rung, silent)
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
    elif run.worked and not refused_and_fine:
        failed_tests.remember(ctx, run, rung)
        runs.proceed(ctx, run)
    elif then == "quit":
        why = f"{rung.name} was not to be done now, so nothing else is"
        run_states.transition(ctx, run, RunTrigger.SUCCEEDED, why)
    elif then == "stop":
        last = run.steps[-1]
        how = (
            f"{rung.name} {'was refused' if last.outcome == Outcome.REFUSED.value else 'failed'}: {last.why}"
        )
        why = f"{how}. The runbook stops there: a person must take it from here"
        run_states.transition(ctx, run, RunTrigger.EXHAUSTED, why)
    else:
        _next_rung(ctx, run)


def _verify(ctx: Context, run: Run, rung: Rung) -> None:
    """Starts the verification of a step. Symptoms that are reset on act end first: if the fault persists, they return.

    So do those that the incident explains: after it they must not lead to the same remedy once more.
    """
    assert rung.verify is not None  # noqa: S101  # the only caller has just checked
    why = f"{rung.name} is done; verifying that the symptoms are gone"
    run_states.transition(ctx, run, RunTrigger.STEP_PERFORMED, why)
    run.deadline = ctx.now + rung.verify.within_s
    run.quiet_since = 0.0
    node = ctx.state.nodes.get(run.node)
    # If the node rebooted during the step, facts of the new boot are newer than the step: their symptoms stay.
    booted_at = node.booted_at if node is not None and node.booted_at > run.steps[-1].at else None
    explained = situations.explained_symptoms(ctx, ctx.state.incidents[run.incident])
    own = [
        key for key in runs.still_active(ctx, run, rung) if plans.reaches(ctx, run, rung, ids.split(key)[1])
    ]
    for key in dict.fromkeys((*own, *explained)):
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
    rung = rung_of(run)
    assert rung.verify is not None  # noqa: S101  # only a rung with verify leads to VERIFYING
    active = runs.still_active(ctx, run, rung)
    unreachable = _unreachable(ctx, run)
    coming = runs.on_the_way(ctx, run, rung)
    if not active and not unreachable and not coming:
        run.quiet_since = run.quiet_since or ctx.now
        if ctx.now < run.quiet_since + rung.verify.for_s:
            ctx.set_timer(f"run:{run.id}", run.quiet_since + rung.verify.for_s)
        else:
            _check_proof(ctx, run, rung)
        return
    run.quiet_since = 0.0
    looks.forget(run)
    # A symptom that was reset and is active again is a new fact: the step did not help, whatever the deadline.
    # A port of a card has the time that the card has.
    incident = ctx.state.incidents[run.incident]
    own = [key for key in active if not parts.is_part(incident, ids.split(key)[1])]
    returned = not unreachable and any(_resets_on_act(ctx, rung, key) for key in own)
    if coming and not active and not unreachable:
        # Within its own time it is a symptom again, or over without a word to the run: then it is known whether it helped.
        ctx.set_timer(f"run:{run.id}", ctx.now + looks.AGAIN_S)
    elif ctx.now < run.deadline and not returned:
        ctx.set_timer(f"run:{run.id}", run.deadline)
    else:
        if active:
            _not_verified(
                ctx, run, f"{rung.name} did not help: {', '.join(active[:3])} still there", seen=True
            )
        else:
            _not_verified(ctx, run, f"nobody knows whether {rung.name} helped: {run.node} is not heard")
        _failed(ctx, run, rung, again=plans.repeat(ctx, rung) is not Repeat.NEVER)


def _check_proof(ctx: Context, run: Run, rung: Rung) -> None:
    """The symptoms have been gone for long enough. Silence proves nothing (law 8): has the node looked again since?"""
    if looks.needless(run) or run.looked_at >= run.quiet_since:
        _verified(ctx, run, rung)
    elif looks.given_up(ctx, run):
        _not_verified(ctx, run, f"nobody knows whether {rung.name} helped: {run.unseen}")
        _failed(ctx, run, rung, again=plans.repeat(ctx, rung) is not Repeat.NEVER)
    else:
        ctx.set_timer(f"run:{run.id}", looks.ask(ctx, run))


def _verified(ctx: Context, run: Run, rung: Rung) -> None:
    run.steps[-1].verified, run.steps[-1].settled_at = True, ctx.now
    gone_s = ctx.now - run.quiet_since
    why = f"{rung.name} worked: the symptoms have been gone for {gone_s:.0f} s"
    runs.succeed(ctx, run, why, run.rung + 1)


def _not_verified(ctx: Context, run: Run, why: str, *, seen: bool = False) -> None:
    """The remedy is not proven. `seen`: the fault is still there; else it is not known whether it helped."""
    run.steps[-1].verified, run.steps[-1].settled_at = False if seen else None, ctx.now
    run.moved_at = ctx.now
    looks.forget(run)
    ctx.note("run.not_verified", why, incident=run.incident, run=run.id, scope=run.scope)


def _has_answered(ctx: Context, node: str) -> None:
    """A node reports of what it was told to do."""
    if (known := ctx.state.nodes.get(node)) is not None:
        known.unanswered_at = 0.0


def tell_if_long(ctx: Context, run: Run) -> None:
    """Law 14: a person is told of whatever waits; not of what a rule pages at once, since people know it already."""
    incident = ctx.state.incidents[run.incident]
    urgent = incident.severity <= Priority.P1 or bool(drains.owned(ctx, incident))
    if (
        urgent
        and ctx.now - run.started_at >= PATIENCE_S
        and incident.page is Paging.FAILURE
        and not run.requested_by
        and not incident.pages.first_at
        and not unheard.is_waited_for(ctx, run)
    ):
        doing = run.steps[-1].doing if run.state is RunState.PERFORMING else ""
        minutes = (ctx.now - run.started_at) / 60
        escalation.open_page(ctx, incident, f"not healed after {minutes:.0f} minutes: {doing or run.why}")


def unknown(ctx: Context, step_id: str, why: str) -> None:
    """Ends a step whose result is not known."""
    result(ctx, StepResult(id=ctx.cause, step=step_id, outcome=Outcome.UNKNOWN, why=why))


def rung_of(run: Run) -> Rung:
    return plans.rungs(run)[run.rung]


def _run_of(ctx: Context, step_id: str) -> Run | None:
    """The run whose present step this is; None: another step is, or no such run is known."""
    run = ctx.state.runs.get(plans.run_of(step_id))
    if run is None or run.rung >= len(plans.rungs(run)) or plans.last_step_id(run) != step_id:
        return None
    return run

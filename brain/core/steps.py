"""Steps of runs: performed once their intent is on the log, answered, verified; and what a new leader does with them.

A step is performed only after its intent has come back on the log with the present leader's epoch, so no deposed
brain acts. A step of which nobody knows whether it was done is handled by its repeat class (law 4).
"""

from agent.contract.actions.spec import Repeat
from agent.contract.commands import Outcome
from brain.core import plans, runs, symptoms
from brain.core.effects import CancelStep, Perform, WriteIntent
from brain.core.runs import Event
from brain.core.spec import Rung
from brain.core.state import Run, RunState
from brain.core.turn import Turn

ANSWER_GRACE_S = 15.0  # a step's result may come so much later than its own deadline
JITTER_S = 1.0  # facts of one moment arrive with ages that differ by less; those of an older boot are older than that
SILENT_S = (
    45.0  # a long step says every 10 s that it is under way; without that one of class `safe` is asked again
)


def intended(turn: Turn, step_id: str, epoch: int) -> None:
    """The intent came back on the log: now it may be performed, if it is this leader's and still wanted."""
    run = _run_of(turn, step_id)
    if run is None or run.state is not RunState.INTENT or epoch != turn.state.epoch:
        return
    incident = turn.state.incidents[run.incident]
    step = plans.step(turn, run, incident, _rung(run))
    runs.move(turn, run, Event.INTENDED, f"{step.action} on {step.node or 'the brain'}")
    run.deadline = turn.now + step.timeout_s + ANSWER_GRACE_S
    _watch(turn, run)
    turn.effects.append(Perform(step=step))


def progress(turn: Turn, step_id: str, text: str) -> None:
    """A sign of life of a long step."""
    run = _run_of(turn, step_id)
    if run is not None and run.state in (RunState.PERFORMING, RunState.CANCELLING):
        _watch(turn, run)
        if text and text != run.steps[-1].doing:
            run.steps[-1].doing = text
            turn.note("step.progress", text, incident=run.incident, run=run.id, scope=run.scope)
        turn.show_run(run)


def _watch(turn: Turn, run: Run) -> None:
    turn.set_timer(f"run:{run.id}", min(run.deadline, turn.now + SILENT_S))


def result(turn: Turn, step_id: str, outcome: Outcome, why: str) -> None:
    """A step's answer. An answer to a step that is not under way is stale and changes nothing."""
    run = _run_of(turn, step_id)
    if run is None or run.state not in (RunState.PERFORMING, RunState.CANCELLING):
        return
    rung = _rung(run)
    run.steps[-1].outcome, run.steps[-1].why = outcome.value, why
    turn.note(
        "step.result",
        f"{rung.name}: {outcome.value}: {why}",
        incident=run.incident,
        run=run.id,
        scope=run.scope,
        data={"step": step_id, "outcome": outcome.value},
    )
    turn.show_run(run)
    if run.state is RunState.CANCELLING:
        runs.move(turn, run, Event.STOPPED, run.why)
        return
    repeat = plans.repeat(turn, rung)
    if outcome is Outcome.OK or (outcome is Outcome.UNKNOWN and repeat is not Repeat.SAFE):
        if rung.verify is not None:
            _verify(turn, run, rung)
        elif outcome is Outcome.OK:
            _next_rung(turn, run)
        else:
            why = f"nobody knows whether {rung.name} was done, and nothing verifies it: a person must look"
            runs.move(turn, run, Event.NO_RUNG, why)
    elif outcome is Outcome.REFUSED:
        _failed(turn, run, rung, again=False, then=rung.on_refusal or rung.on_failure)
    else:
        done = outcome is Outcome.FAILED
        _failed(turn, run, rung, again=not (done and repeat is Repeat.NEVER))


def _next_rung(turn: Turn, run: Run) -> None:
    run.rung += 1
    run.attempt = 1
    runs.proceed(turn, run)


def _failed(turn: Turn, run: Run, rung: Rung, *, again: bool, then: str = "") -> None:
    if again and run.attempt <= rung.retries:
        run.attempt += 1
        runs.proceed(turn, run)
    elif run.worked:
        why = f"{run.worked}, but {rung.name} failed: a person must bring it back into service"
        runs.move(turn, run, Event.NO_RUNG, why)
    elif (then or rung.on_failure) == "quit":
        runs.move(turn, run, Event.WORKED, f"{rung.name} was not to be done now, so nothing else is")
    elif (then or rung.on_failure) == "stop":
        why = f"{rung.name} failed and the runbook stops there: a person must take it from here"
        runs.move(turn, run, Event.NO_RUNG, why)
    else:
        _next_rung(turn, run)


def _verify(turn: Turn, run: Run, rung: Rung) -> None:
    """Symptoms that nothing can clear are set aside: if the fault is still there they come back."""
    assert rung.verify is not None  # noqa: S101  # the only caller has just asked
    runs.move(turn, run, Event.DONE, f"{rung.name} is done; verifying that the symptoms are gone")
    run.deadline = turn.now + rung.verify.within_s
    run.quiet_since = 0.0
    node = turn.state.nodes.get(run.node)
    # What the agent of a new boot has said by now is no matter of the past.
    booted_at = node.booted_at if node is not None and node.booted_at > run.steps[-1].at else None
    for key in runs.there(turn, run, rung):
        state = turn.state.symptoms[key]
        if _counts_anew(turn, rung, key) and (booted_at is None or state.last < booted_at - JITTER_S):
            turn.changed.extend(symptoms.end(turn, state, f"set aside while {rung.name} is verified"))
    check(turn, run)


def _counts_anew(turn: Turn, rung: Rung, key: str) -> bool:
    """Does only what is said from now on count? So where nothing but time ends the symptom, or the rung says so."""
    name = key.partition("@")[0]
    spec = turn.book.symptoms.get(name)
    if spec is None or spec.detect == "spread":
        return False
    anew = rung.verify.anew if rung.verify is not None else ()
    return not spec.clear or name in anew or "*" in anew


def _deaf(turn: Turn, run: Run) -> bool:
    """Is the node not heard? Its silence is no sign of health: nothing is proven while it lasts."""
    node = turn.state.nodes.get(run.node)
    return node is not None and not node.alive


def check(turn: Turn, run: Run) -> None:
    """Looks at a verification: passed, failed, or still to wait for."""
    if run.state is not RunState.VERIFYING:
        return
    rung = _rung(run)
    assert rung.verify is not None  # noqa: S101  # only a rung with verify leads to VERIFYING
    there = runs.there(turn, run, rung)
    deaf = _deaf(turn, run)
    if not there and not deaf:
        run.quiet_since = run.quiet_since or turn.now
        if turn.now >= run.quiet_since + rung.verify.for_s:
            run.steps[-1].verified = True
            quiet_s = turn.now - run.quiet_since
            why = f"{rung.name} worked: the symptoms have been gone for {quiet_s:.0f} s"
            runs.worked(turn, run, why, run.rung + 1)
            return
        turn.set_timer(f"run:{run.id}", run.quiet_since + rung.verify.for_s)
        return
    run.quiet_since = 0.0
    if turn.now < run.deadline and (deaf or not any(_counts_anew(turn, rung, key) for key in there)):
        turn.set_timer(f"run:{run.id}", run.deadline)
        return
    run.steps[-1].verified = False
    left = f"{', '.join(there[:3])} still there" if there else f"{run.node} is not heard"
    turn.note(
        "run.not_verified",
        f"{rung.name} did not help: {left}",
        incident=run.incident,
        run=run.id,
        scope=run.scope,
    )
    _failed(turn, run, rung, again=plans.repeat(turn, rung) is not Repeat.NEVER)


def timer(turn: Turn, run: Run) -> None:
    """The run's timer: ask the gates again, look at the verification, ask for a silent step again or give it up."""
    if run.state in (RunState.HELD, RunState.APPROVAL):
        runs.proceed(turn, run)
    elif run.state is RunState.VERIFYING:
        check(turn, run)
    elif run.state in (RunState.PERFORMING, RunState.CANCELLING):
        if turn.now >= run.deadline:
            result(turn, plans.step_id(run), Outcome.UNKNOWN, "no answer within its deadline")
            return
        _watch(turn, run)
        rung = _rung(run)
        if run.state is RunState.PERFORMING and plans.repeat(turn, rung) is Repeat.SAFE:
            # The same id: who is still at it, or has done it, says so and does not do it twice.
            incident = turn.state.incidents[run.incident]
            why = f"no sign of life of {rung.name} for {SILENT_S:.0f} s: asked again under the same id"
            turn.note("step.silent", why, incident=run.incident, run=run.id, scope=run.scope)
            turn.effects.append(Perform(step=plans.step(turn, run, incident, rung)))


def led_anew(turn: Turn, run: Run) -> None:
    """A new leader: a step without a result is done again, verified first, or never repeated, by its class."""
    incident = turn.state.incidents[run.incident]
    if run.state in (RunState.INTENT, RunState.PERFORMING, RunState.CANCELLING):
        rung = _rung(run)
        step = plans.step(turn, run, incident, rung)
    if run.state is RunState.INTENT:
        turn.effects.append(WriteIntent(step=step))
    elif run.state is RunState.CANCELLING:
        turn.effects.append(CancelStep(step=step, why=run.why))
    elif run.state is RunState.PERFORMING:
        if plans.repeat(turn, rung) is Repeat.SAFE:
            # The same id: a node that has it in its journal answers with the result and does not do it twice.
            runs.move(turn, run, Event.BEGUN, f"{rung.name}: asked again by the new leader under the same id")
            turn.cancel_timer(f"run:{run.id}")
            turn.effects.append(WriteIntent(step=step))
        else:
            result(turn, step.id, Outcome.UNKNOWN, "the leader changed before the result was known")


def _rung(run: Run) -> Rung:
    return plans.rungs(run)[run.rung]


def _run_of(turn: Turn, step_id: str) -> Run | None:
    """The run that stands at this very step."""
    run = turn.state.runs.get(plans.run_of(step_id))
    if run is None or run.rung >= len(plans.rungs(run)) or plans.step_id(run) != step_id:
        return None
    return run

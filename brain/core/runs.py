"""Runs: executions of runbooks, rung by rung. This file holds their only transition table (TRANSITIONS).

A step is performed only after its intent has come back on the log with the present leader's epoch, so no deposed
brain acts. A step of which nobody knows whether it was done is handled by its repeat class (law 4).
"""

from enum import StrEnum

from agent.contract.actions.spec import Disrupts, Repeat
from agent.contract.commands import Outcome
from brain.core import conditions, gates, judge, paging, plans, symptoms
from brain.core.effects import Perform, Step, WriteIntent
from brain.core.spec import Mode, Rung
from brain.core.state import Incident, Run, RunState, StepRecord
from brain.core.turn import Turn

ANSWER_GRACE_S = 15.0  # a step's result may come so much later than its own deadline


class Event(StrEnum):
    """What can happen to a run."""

    HELD = "held by a gate"
    ASKED = "approval asked"
    BEGUN = "intent asked for"
    INTENDED = "intent on the log"
    DONE = "done, to be verified"
    WORKED = "worked"
    NO_RUNG = "no rung left"
    OBSERVE = "observe mode"
    CANCEL = "cancelled"


S, E = RunState, Event
_WAITING = (S.HELD, S.APPROVAL)
TRANSITIONS: dict[tuple[RunState, Event], RunState] = {
    **{(state, E.HELD): S.HELD for state in (*_WAITING, S.PERFORMING, S.VERIFYING)},
    **{(state, E.ASKED): S.APPROVAL for state in (*_WAITING, S.PERFORMING, S.VERIFYING)},
    **{(state, E.BEGUN): S.INTENT for state in (*_WAITING, S.INTENT, S.PERFORMING, S.VERIFYING)},
    (S.INTENT, E.INTENDED): S.PERFORMING,
    (S.PERFORMING, E.DONE): S.VERIFYING,
    **{(state, E.WORKED): S.SUCCEEDED for state in (*_WAITING, S.PERFORMING, S.VERIFYING)},
    **{(state, E.NO_RUNG): S.EXHAUSTED for state in (*_WAITING, S.PERFORMING, S.VERIFYING)},
    (S.HELD, E.OBSERVE): S.OBSERVED,
    **{(state, E.CANCEL): S.CANCELLED for state in (*_WAITING, S.INTENT, S.PERFORMING, S.VERIFYING)},
}
OVER = (S.SUCCEEDED, S.EXHAUSTED, S.OBSERVED, S.CANCELLED)


def move(turn: Turn, run: Run, event: Event, why: str) -> None:
    """Along the table; KeyError (a bug of ours) where it has no such arrow."""
    run.state = TRANSITIONS[run.state, event]
    run.why = why
    turn.show_run(run)
    turn.note(f"run.{run.state.value}", why, incident=run.incident, run=run.id, scope=run.scope)
    if run.state in OVER:
        run.ended_at = turn.now
        turn.cancel_timer(f"run:{run.id}")
        if run.claimed:
            _count_try(turn, run)
            run.claimed = False
            turn.index.claims.pop(run.id, None)
        turn.ended.append(run)


def _count_try(turn: Turn, run: Run) -> None:
    key = gates.tries_key(run, turn.state.incidents[run.incident])
    turn.state.tries.setdefault(key, []).append(turn.now)
    turn.set_timer(f"tries:{key}", turn.now + run.runbook.tries_within_s)


def start(turn: Turn, incident: Incident) -> Run | None:
    """A new run of the incident's runbook; None when it has none (any more)."""
    runbook = turn.book.runbooks.get(incident.runbook)
    if runbook is None:
        return None
    run = Run(
        id=f"{incident.id}.r{len(incident.runs) + 1}",
        incident=incident.id,
        runbook=runbook,
        pack=turn.book.pack.version,
        scope=incident.scope,
        node=incident.node,
        params=incident.params | plans.values(turn, incident),
        state=S.HELD,
        started_at=turn.now,
    )
    turn.state.runs[run.id] = run
    incident.runs.append(run.id)
    turn.note(
        "run.started",
        f"{runbook.name}: {runbook.summary}",
        incident=incident.id,
        run=run.id,
        scope=run.scope,
        data={"runbook": runbook.name, "plan": plans.plan(turn, run, incident)},
    )
    if gates.mode_of(turn, runbook.name, run.node, runbook.at_most) is Mode.OBSERVE:
        move(
            turn,
            run,
            E.OBSERVE,
            f"{runbook.name} is in observe mode here: nothing is done, this is what would be",
        )
    else:
        proceed(turn, run)
    return run


def proceed(turn: Turn, run: Run) -> None:
    """Begins the present rung, or says why not. Rungs that need nothing of the shell are passed at once."""
    incident = turn.state.incidents[run.incident]
    while run.rung < len(run.runbook.rungs):
        rung = run.runbook.rungs[run.rung]
        disrupts = plans.disrupts(turn, rung)
        if rung.when and not conditions.holds(rung.when, judge.situation(turn, run.scope)):
            turn.note(
                "run.skipped",
                f"{rung.name}: its precheck is not met",
                incident=run.incident,
                run=run.id,
                scope=run.scope,
            )
        elif rung.do == plans.PAGE:
            text = str(rung.params.get("text", "")) or f"{run.runbook.name}: {rung.name}"
            paging.page(turn, incident, "update", text, to=str(rung.params.get("to", paging.ONCALL)))
            run.steps.append(
                StepRecord(
                    id=_step_id(run),
                    rung=rung.name,
                    action=rung.do,
                    params=dict(rung.params),
                    at=turn.now,
                    outcome="ok",
                    why="paged",
                )
            )
        elif not incident.support and disrupts is not Disrupts.NOTHING:
            move(turn, run, E.WORKED, "the fault is gone: nothing disruptive is needed")
            return
        elif _begin(turn, run, incident, rung, disrupts):
            return
        run.rung += 1
        run.attempt = 1
    move(turn, run, E.NO_RUNG, "no rung of the ladder is left: a person must take it from here")


def _begin(turn: Turn, run: Run, incident: Incident, rung: Rung, disrupts: Disrupts) -> bool:
    """Asks the gates and for the intent. Always True: the run waits for something now, or is over."""
    if disrupts is not Disrupts.NOTHING:
        verdict = gates.check(turn, run, incident, rung)
        if verdict.say is not gates.Say.GO:
            _held(turn, run, incident, rung, verdict)
            return True
        run.claimed = True
        turn.index.claims[run.id] = run.node
    step = _step(turn, run, incident, rung)
    run.steps.append(
        StepRecord(id=step.id, rung=rung.name, action=step.action, params=dict(step.params), at=turn.now)
    )
    move(turn, run, E.BEGUN, f"{rung.name}: {step.action} (attempt {run.attempt})")
    turn.effects.append(WriteIntent(step=step))
    return True


def _held(turn: Turn, run: Run, incident: Incident, rung: Rung, verdict: gates.Verdict) -> None:
    why = f"{rung.name} waits: {verdict.reason} (gate {verdict.gate})"
    if verdict.say is gates.Say.STOP:
        move(turn, run, E.NO_RUNG, f"{verdict.reason}: a person must take it from here")
    elif verdict.say is gates.Say.HOLD:
        if run.state is not S.HELD or run.why != why:
            move(turn, run, E.HELD, why)
        turn.set_timer(f"run:{run.id}", turn.now + verdict.retry_s)
    elif run.state is not S.APPROVAL or run.why != why:
        move(turn, run, E.ASKED, why)
        paging.page(
            turn,
            incident,
            "update",
            f"approval wanted: {rung.name} ({rung.do}) — gpuward approve {incident.id}",
        )


def _step_id(run: Run) -> str:
    return f"{run.id}.s{run.rung + 1}.a{run.attempt}"


def _step(turn: Turn, run: Run, incident: Incident, rung: Rung) -> Step:
    spec = turn.actions[rung.do]
    return Step(
        id=_step_id(run),
        run=run.id,
        incident=run.incident,
        node=run.node,
        action=rung.do,
        where=spec.where,
        params=plans.params(run, rung),
        timeout_s=rung.timeout_s or spec.timeout_s,
        disrupts=plans.disrupts(turn, rung),
        repeat=plans.repeat(turn, rung),
        why=f"{incident.cause} at {incident.scope} (rule {incident.rule})",
    )


def intended(turn: Turn, step_id: str, epoch: int) -> None:
    """The intent came back on the log: now it may be performed, if it is this leader's and still wanted."""
    run = _run_of(turn, step_id)
    if run is None or run.state is not S.INTENT or _step_id(run) != step_id or epoch != turn.state.epoch:
        return
    incident = turn.state.incidents[run.incident]
    step = _step(turn, run, incident, run.runbook.rungs[run.rung])
    move(turn, run, E.INTENDED, f"{step.action} on {step.node or 'the brain'}")
    turn.set_timer(f"run:{run.id}", turn.now + step.timeout_s + ANSWER_GRACE_S)
    turn.effects.append(Perform(step=step))


def result(turn: Turn, step_id: str, outcome: Outcome, why: str) -> None:
    """A step's answer. An answer to a step that is not under way is stale and changes nothing."""
    run = _run_of(turn, step_id)
    if run is None or run.state is not S.PERFORMING or _step_id(run) != step_id:
        return
    rung = run.runbook.rungs[run.rung]
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
    repeat = plans.repeat(turn, rung)
    if outcome is Outcome.OK or (outcome is Outcome.UNKNOWN and repeat is not Repeat.SAFE):
        if rung.verify is not None:
            _verify(turn, run, rung)
        elif outcome is Outcome.OK:
            _next_rung(turn, run)
        else:
            move(
                turn,
                run,
                E.NO_RUNG,
                f"nobody knows whether {rung.name} was done, and nothing verifies it: a person must look",
            )
    elif outcome is Outcome.REFUSED:
        _failed(turn, run, rung, again=False)
    else:
        done = outcome is Outcome.FAILED
        _failed(turn, run, rung, again=not (done and repeat is Repeat.NEVER))


def _next_rung(turn: Turn, run: Run) -> None:
    run.rung += 1
    run.attempt = 1
    proceed(turn, run)


def _failed(turn: Turn, run: Run, rung: Rung, *, again: bool) -> None:
    if again and run.attempt <= rung.retries:
        run.attempt += 1
        proceed(turn, run)
    elif rung.on_failure == "stop":
        move(
            turn,
            run,
            E.NO_RUNG,
            f"{rung.name} failed and the runbook stops there: a person must take it from here",
        )
    else:
        _next_rung(turn, run)


def _verify(turn: Turn, run: Run, rung: Rung) -> None:
    """Symptoms that nothing can clear are set aside: if the fault is still there they come back."""
    assert rung.verify is not None  # noqa: S101  # the only caller has just asked
    move(turn, run, E.DONE, f"{rung.name} is done; verifying that the symptoms are gone")
    run.deadline = turn.now + rung.verify.within_s
    run.quiet_since = 0.0
    for key in _watched(turn, run, rung):
        state = turn.state.symptoms.get(key)
        spec = turn.book.symptoms.get(key.partition("@")[0])
        if (
            state is not None
            and state.active
            and spec is not None
            and not spec.clear
            and spec.detect != "spread"
        ):
            turn.changed.extend(symptoms.end(turn, state, f"set aside while {rung.name} is verified"))
    check(turn, run)


def _watched(turn: Turn, run: Run, rung: Rung) -> list[str]:
    wanted = rung.verify.gone if rung.verify else ()
    return [
        key
        for key in turn.state.incidents[run.incident].symptoms
        if not wanted or key.partition("@")[0] in wanted
    ]


def check(turn: Turn, run: Run) -> None:
    """Looks at a verification: passed, failed, or still to wait for."""
    if run.state is not S.VERIFYING:
        return
    rung = run.runbook.rungs[run.rung]
    assert rung.verify is not None  # noqa: S101  # only a rung with verify leads to VERIFYING
    there = [
        key
        for key in _watched(turn, run, rung)
        if (state := turn.state.symptoms.get(key)) is not None and state.active
    ]
    if not there:
        run.quiet_since = run.quiet_since or turn.now
        if turn.now >= run.quiet_since + rung.verify.for_s:
            run.steps[-1].verified = True
            move(
                turn,
                run,
                E.WORKED,
                f"{rung.name} worked: the symptoms have been gone for {turn.now - run.quiet_since:.0f} s",
            )
            return
        turn.set_timer(f"run:{run.id}", run.quiet_since + rung.verify.for_s)
        return
    run.quiet_since = 0.0
    if turn.now < run.deadline and not _came_back(turn, there):
        turn.set_timer(f"run:{run.id}", run.deadline)
        return
    run.steps[-1].verified = False
    turn.note(
        "run.not_verified",
        f"{rung.name} did not help: {', '.join(there[:3])} still there",
        incident=run.incident,
        run=run.id,
        scope=run.scope,
    )
    _failed(turn, run, rung, again=plans.repeat(turn, rung) is not Repeat.NEVER)


def _came_back(turn: Turn, keys: list[str]) -> bool:
    """Is one of them a symptom that was set aside? Nothing but time ends it, so there is no need to wait."""
    specs = [turn.book.symptoms.get(key.partition("@")[0]) for key in keys]
    return any(spec is not None and not spec.clear and spec.detect != "spread" for spec in specs)


def timer(turn: Turn, run: Run) -> None:
    """The run's timer: ask the gates again, look at the verification, or give a step up as unknown."""
    if run.state in _WAITING:
        proceed(turn, run)
    elif run.state is S.VERIFYING:
        check(turn, run)
    elif run.state is S.PERFORMING:
        result(turn, _step_id(run), Outcome.UNKNOWN, "no answer within its deadline")


def led_anew(turn: Turn, run: Run) -> None:
    """A new leader: a step without a result is done again, verified first, or never repeated, by its class."""
    if run.state is S.INTENT:
        turn.effects.append(
            WriteIntent(
                step=_step(turn, run, turn.state.incidents[run.incident], run.runbook.rungs[run.rung])
            )
        )
    elif run.state is S.PERFORMING:
        rung = run.runbook.rungs[run.rung]
        if plans.repeat(turn, rung) is Repeat.SAFE:
            # The same id: a node that has it in its journal answers with the result and does not do it twice.
            move(turn, run, E.BEGUN, f"{rung.name}: asked again by the new leader under the same id")
            turn.cancel_timer(f"run:{run.id}")
            turn.effects.append(WriteIntent(step=_step(turn, run, turn.state.incidents[run.incident], rung)))
        else:
            result(turn, _step_id(run), Outcome.UNKNOWN, "the leader changed before the result was known")


def cancel(turn: Turn, run: Run, why: str) -> None:
    """Ends a run that is still under way. What is being performed on the node runs to its end."""
    if run.state not in OVER:
        move(turn, run, E.CANCEL, why)


def _run_of(turn: Turn, step_id: str) -> Run | None:
    return turn.state.runs.get(step_id.rpartition(".s")[0])


def forget_tries(turn: Turn, key: str) -> None:
    """Drops the tries of a remedy that are out of its window."""
    runbook = turn.book.runbooks.get(key.partition("@")[0])
    window = runbook.tries_within_s if runbook else 0.0
    left = [at for at in turn.state.tries.get(key, ()) if at > turn.now - window]
    if left:
        turn.state.tries[key] = left
        turn.set_timer(f"tries:{key}", left[0] + window + 0.001)
    else:
        turn.state.tries.pop(key, None)

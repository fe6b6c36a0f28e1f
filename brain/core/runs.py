"""Runs: executions of runbooks, rung by rung. This file holds their only transition table (TRANSITIONS).

What becomes of a step once its intent is on the log stands in `steps.py`. A run whose rung has worked goes along the
runbook's way back (into service) before it has succeeded.
"""

from enum import StrEnum

from agent.contract.actions.spec import Disrupts
from brain.core import conditions, gates, judge, outline, paging, plans
from brain.core.effects import AskPlan, CancelStep, WriteIntent
from brain.core.spec import Mode, Rung
from brain.core.state import Incident, Run, RunState, StepRecord
from brain.core.turn import Turn


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
    STOPPED = "its last step has ended"


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
    **{(state, E.CANCEL): S.CANCELLED for state in (*_WAITING, S.INTENT, S.VERIFYING)},
    (S.PERFORMING, E.CANCEL): S.CANCELLING,
    (S.CANCELLING, E.STOPPED): S.CANCELLED,
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


def start(turn: Turn, incident: Incident, requested_by: str = "") -> Run | None:
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
        requested_by=requested_by,
    )
    turn.state.runs[run.id] = run
    incident.runs.append(run.id)
    turn.note(
        "run.started",
        f"{runbook.name}: {runbook.summary}",
        incident=incident.id,
        run=run.id,
        scope=run.scope,
        data={"runbook": runbook.name, "plan": outline.outline(turn, run, incident)},
    )
    if gates.mode_of(turn, runbook.name, run.node, runbook.at_most) is Mode.OBSERVE:
        for run.rung, rung in enumerate(runbook.rungs):
            _ask_plan(turn, run, incident, rung)
        run.rung = 0
        move(
            turn,
            run,
            E.OBSERVE,
            f"{runbook.name} is in observe mode here: nothing is done, this is what would be",
        )
    else:
        proceed(turn, run)
    return run


def _ask_plan(turn: Turn, run: Run, incident: Incident, rung: Rung) -> None:
    """Lets the one who would do it say what it would do. Only the leader's shell asks."""
    if rung.do != plans.PAGE and (step := plans.step(turn, run, incident, rung)).id not in run.asked:
        run.asked.append(step.id)
        turn.effects.append(AskPlan(step=step))


def planned(turn: Turn, step: str, lines: tuple[str, ...], *, ok: bool) -> None:
    """What a step would do, said by who would do it."""
    run = turn.state.runs.get(plans.run_of(step))
    if run is not None and step in run.asked:
        turn.note(
            "step.plan",
            "; ".join(lines) if ok else f"would be refused: {'; '.join(lines)}",
            incident=run.incident,
            run=run.id,
            scope=run.scope,
            data={"step": step, "lines": list(lines), "ok": ok},
        )


def proceed(turn: Turn, run: Run) -> None:
    """Begins the present rung, or says why not. Rungs that need nothing of the shell are passed at once."""
    incident = turn.state.incidents[run.incident]
    while run.rung < len(plans.rungs(run)):
        rung = plans.rungs(run)[run.rung]
        disrupts = plans.disrupts(turn, rung)
        if run.worked and _is_back(turn, run, incident):
            continue
        if rung.when and not conditions.holds(rung.when, judge.situation(turn, run.scope)):
            turn.note(
                "run.skipped",
                f"{rung.name}: its precheck is not met",
                incident=run.incident,
                run=run.id,
                scope=run.scope,
            )
        elif rung.do == plans.PAGE:
            _page(turn, run, incident, rung)
        elif not run.worked and not incident.support and disrupts is not Disrupts.NOTHING:
            worked(turn, run, "the fault is gone: nothing disruptive is needed", run.rung)
            return
        elif _begin(turn, run, incident, rung, disrupts):
            return
        run.rung += 1
        run.attempt = 1
    if run.worked and _is_back(turn, run, incident):
        proceed(turn, run)
    elif run.worked:
        move(turn, run, E.WORKED, f"{run.worked}; back in service")
    elif run.requested_by and all(_well(run, step) for step in run.steps):
        worked(turn, run, "all its steps are done", run.rung)
    else:
        move(turn, run, E.NO_RUNG, "no rung of the ladder is left: a person must take it from here")


def _well(run: Run, step: StepRecord) -> bool:
    """Was the step done, or refused where the runbook takes a refusal for no failure?"""
    lenient = [rung.name for rung in run.runbook.rungs if rung.on_refusal == "next"]
    return step.outcome == "ok" or (step.outcome == "refused" and step.rung in lenient)


def worked(turn: Turn, run: Run, why: str, back_to: int) -> None:
    """The fault is over: along the way back if something was disturbed, and then success.

    `back_to`: the rung to go on with if the fault comes back meanwhile.
    """
    if not run.runbook.way_back or not run.disrupted:
        move(turn, run, E.WORKED, why)
        return
    turn.note("run.returning", why, incident=run.incident, run=run.id, scope=run.scope)
    run.worked, run.back_to, run.rung, run.attempt = why, back_to, 0, 1
    proceed(turn, run)


def _is_back(turn: Turn, run: Run, incident: Incident) -> bool:
    """On the way back: is the fault there again? Then it goes on up the ladder."""
    rung = run.runbook.rungs[run.back_to - 1] if run.back_to else None
    if not incident.support or not there(turn, run, rung):
        return False
    why = "the fault came back before the node was back in service"
    turn.note("run.not_verified", why, incident=run.incident, run=run.id, scope=run.scope)
    run.worked, run.rung, run.attempt = "", run.back_to, 1
    return True


def _page(turn: Turn, run: Run, incident: Incident, rung: Rung) -> None:
    text = str(rung.params.get("text", "")) or f"{run.runbook.name}: {rung.name}"
    paging.page(turn, incident, "update", text, to=str(rung.params.get("to", paging.ONCALL)))
    run.steps.append(
        StepRecord(
            id=plans.step_id(run),
            rung=rung.name,
            action=rung.do,
            params=dict(rung.params),
            at=turn.now,
            outcome="ok",
            why="paged",
        )
    )


def _begin(turn: Turn, run: Run, incident: Incident, rung: Rung, disrupts: Disrupts) -> bool:
    """Asks the gates and for the intent. Always True: the run waits for something now, or is over."""
    if disrupts is not Disrupts.NOTHING:
        verdict = gates.check(turn, run, incident, rung)
        if verdict.say is not gates.Say.GO:
            _held(turn, run, incident, rung, verdict)
            return True
        if not run.claimed:
            gates.claim(turn, run)
    step = plans.step(turn, run, incident, rung)
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
        _ask_plan(turn, run, incident, rung)
        paging.page(
            turn,
            incident,
            "update",
            f"approval wanted: {rung.name} ({rung.do}) — gpuward approve {incident.id}",
        )


def there(turn: Turn, run: Run, rung: Rung | None) -> list[str]:
    """The incident's symptoms that are active, of those that `rung` must make go away (None: all of them)."""
    wanted = rung.verify.gone if rung is not None and rung.verify is not None else ()
    return [
        key
        for key in turn.state.incidents[run.incident].symptoms
        if (not wanted or key.partition("@")[0] in wanted)
        and (state := turn.state.symptoms.get(key)) is not None
        and state.active
    ]


def behind(turn: Turn, incident: Incident) -> Run | None:
    """Our own work on the incident's node that explains what begins there now: a step that takes the node or its parts
    away, a node that is not back from it, or one that we have left switched off."""
    node = turn.state.nodes.get(incident.node)
    if node is None:
        return None
    for run_id, claimed in turn.index.claims.items():
        run = turn.state.runs[run_id]
        if claimed != incident.node or run.incident == incident.id or not run.steps:
            continue
        spec = turn.actions.get(run.steps[-1].action)
        if spec is None:
            continue
        away = spec.silences or (spec.heals and spec.disrupts in (Disrupts.NODE, Disrupts.FABRIC))
        if run.state in (S.PERFORMING, S.CANCELLING) and away:
            return run
        if run.state is S.VERIFYING and spec.silences and not node.alive:
            return run
    return None if node.alive else _left_off(turn, incident)


def _left_off(turn: Turn, incident: Incident) -> Run | None:
    """The run of an incident that is still open whose last deed was to switch the node off."""
    for run in turn.state.runs.values():
        if run.node == incident.node and run.incident != incident.id and run.state in OVER:
            done = [spec for step in run.steps if (spec := turn.actions.get(step.action)) is not None]
            deeds = [spec for spec in done if spec.disrupts is not Disrupts.NOTHING]
            if deeds and deeds[-1].silences and not deeds[-1].heals:
                return run
    return None


def cancel(turn: Turn, run: Run, why: str) -> None:
    """Ends a run that is still under way. A step that is being performed is asked to stop and waited for: until it
    has ended the node is not free for another run."""
    if run.state is S.PERFORMING:
        incident = turn.state.incidents[run.incident]
        step = plans.step(turn, run, incident, plans.rungs(run)[run.rung])
        move(turn, run, E.CANCEL, why)
        turn.effects.append(CancelStep(step=step, why=why))
    elif run.state not in (*OVER, S.CANCELLING):
        move(turn, run, E.CANCEL, why)


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

"""Runs: executions of runbooks, rung by rung. TRANSITIONS is the only table of their state changes.

`steps.py` handles a step once its intent is on the log. A run whose rung worked then performs the runbook's
`return_to_service` rungs; only after them has it succeeded.
"""

from enum import StrEnum

from agent.contract.actions.spec import Disrupts
from agent.contract.commands import Outcome
from brain.core import ids
from brain.core.context import Context
from brain.core.effects import AskPlan, CancelStep, WriteIntent
from brain.core.healing import (
    approvals,
    drains,
    gates,
    limits,
    looks,
    outline,
    plans,
    told,
    validation,
    verdicts,
)
from brain.core.pack.spec import ONCALL, PAGE, Mode, Rung
from brain.core.paging import escalation
from brain.core.state import Incident, Run, RunState, StepRecord


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
_WAITING = (S.HELD, S.APPROVAL)
_ACTIVE = (*_WAITING, S.PERFORMING, S.VERIFYING)
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
    **{(state, T.CANCELLED): S.CANCELLED for state in (*_WAITING, S.INTENT, S.VERIFYING)},
    (S.PERFORMING, T.CANCELLED): S.CANCELLING,
    (S.CANCELLING, T.STEP_STOPPED): S.CANCELLED,
}
OVER = (S.SUCCEEDED, S.EXHAUSTED, S.OBSERVED, S.CANCELLED)
INTENT_S = 30.0  # an intent that has not come back on the log after this long is written again
APPROVAL_S = 300.0  # how often a run that waits for an approval is judged anew: its reason may be gone
LOOKED_S = 300.0  # how old a look may be when a node is given back


def transition(ctx: Context, run: Run, trigger: RunTrigger, why: str) -> None:
    """Changes the run's state by TRANSITIONS. KeyError, which is a bug, where the table has no entry."""
    run.state = TRANSITIONS[run.state, trigger]
    run.why = why
    ctx.show_run(run)
    ctx.note(f"run.{run.state}", why, incident=run.incident, run=run.id, scope=run.scope)
    if run.state in (*OVER, *_WAITING) and run.claimed:
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


def start(ctx: Context, incident: Incident, requested_by: str = "", instead: str = "") -> Run | None:
    """Starts a run of the incident's runbook, or of `instead`; None when the pack has no such runbook (any more).

    `requested_by`: an operator's name or `schedule`; empty: a fault led to it.
    """
    runbook = ctx.compiled.runbooks.get(instead or incident.runbook)
    if runbook is None:
        return None
    run = Run(
        id=f"{incident.id}.r{len(incident.runs) + 1}",
        incident=incident.id,
        runbook=runbook,
        pack=ctx.compiled.pack.version,
        scope=incident.scope,
        node=incident.node,
        params=incident.params | plans.values(ctx, incident),
        state=S.HELD,
        started_at=ctx.now,
        moved_at=ctx.now if requested_by else 0.0,
        requested_by=requested_by,
    )
    ctx.state.runs[run.id] = run
    incident.runs.append(run.id)
    observed = gates.mode_of(ctx, runbook.name, run.node, runbook.at_most) is Mode.OBSERVE
    ctx.note(
        "run.started",
        f"{runbook.name}: {runbook.summary}",
        incident=incident.id,
        run=run.id,
        scope=run.scope,
        data={"runbook": runbook.name, "plan": outline.outline(ctx, run, incident, observed=observed)},
    )
    if observed:
        for number, rung in plans.ahead(ctx, run)[0]:
            run.rung = number - 1
            _ask_plan(ctx, run, incident, rung)
        run.rung = 0
        transition(
            ctx,
            run,
            T.OBSERVED,
            f"{runbook.name} is in observe mode here: nothing is done, this is what would be",
        )
    else:
        proceed(ctx, run)
    return run


def _ask_plan(ctx: Context, run: Run, incident: Incident, rung: Rung) -> None:
    """Requests the plan of the run's present step, once: the node or the brain lists what it would do."""
    if rung.do == PAGE:
        return
    step = plans.step(ctx, run, incident, rung, plans.next_step_id(run))
    if step.id not in run.asked:
        run.asked.append(step.id)
        ctx.effects.append(AskPlan(step=step))


def planned(ctx: Context, step: str, lines: tuple[str, ...], *, ok: bool) -> None:
    """Notes the plan of a step. A plan that was not asked for is ignored."""
    run = ctx.state.runs.get(plans.run_of(step))
    if run is not None and step in run.asked:
        ctx.note(
            "step.plan",
            "; ".join(lines) if ok else f"would be refused: {'; '.join(lines)}",
            incident=run.incident,
            run=run.id,
            scope=run.scope,
            data={"step": step, "lines": list(lines), "ok": ok},
        )


def proceed(ctx: Context, run: Run) -> None:
    """Begins the present rung, waits for a gate, or ends the run. Pages and rungs whose `when` is false are passed."""
    incident = ctx.state.incidents[run.incident]
    while run.rung < len(plans.rungs(run)):
        rung = plans.rungs(run)[run.rung]
        disrupts = plans.disrupts(ctx, rung, returning=bool(run.worked))
        if run.worked and _resume_ladder(ctx, run, incident):
            continue
        if not plans.applies(run, rung):
            ctx.note(
                "run.skipped",
                f"{rung.name}: nothing was done that it tests ({', '.join(rung.after)})",
                incident=run.incident,
                run=run.id,
                scope=run.scope,
            )
        elif not plans.fits(ctx, run, rung):
            ctx.note(
                "run.skipped",
                f"{rung.name}: its precheck is not met",
                incident=run.incident,
                run=run.id,
                scope=run.scope,
            )
        elif rung.do == PAGE:
            _page(ctx, run, incident, rung)
        elif needless(run, incident) and disrupts is not Disrupts.NOTHING:
            _fault_gone(ctx, run, incident)
            return
        else:
            _begin(ctx, run, incident, rung, disrupts)
            return
        run.rung += 1
        run.attempt = 1
    _finish(ctx, run, incident)


def needless(run: Run, incident: Incident) -> bool:
    """Whether no rule matches any more before the ladder's next rung. Not after a failed check: that is a fault too."""
    return not run.worked and not run.relapses and not incident.matching_rules


def _finish(ctx: Context, run: Run, incident: Incident) -> None:
    """No rung is left: the run is back in service, has done what was requested, or is exhausted."""
    if run.worked and _resume_ladder(ctx, run, incident):
        proceed(ctx, run)
    elif run.worked:
        why = f"{run.worked}; back in service{validation.left_out(run)}"
        transition(ctx, run, T.SUCCEEDED, why)
    elif (run.requested_by or _gave_back(ctx, run)) and all(_is_fine(run, step) for step in run.steps):
        succeed(ctx, run, "all its steps are done", run.rung)
    else:
        transition(ctx, run, T.EXHAUSTED, "no rung of the ladder is left: a person must take it from here")


def _gave_back(ctx: Context, run: Run) -> bool:
    """Whether the ladder itself ends with the node's return, as that for a node that was left drained."""
    spec = ctx.actions.get(run.runbook.rungs[-1].do) if run.runbook.rungs else None
    return spec is not None and spec.returns


def _fault_gone(ctx: Context, run: Run, incident: Incident) -> None:
    """No rule matches any more, before the next disruptive rung. If no fact has said so, the node must look again."""
    if incident.rule not in ctx.compiled.rules and drains.owned(ctx, incident):
        why = f"rule {incident.rule} was removed, which proves nothing about {incident.scope}"
        transition(ctx, run, T.EXHAUSTED, f"{why}. A person must look")
    elif not incident.unproven or looks.needless(run):
        succeed(ctx, run, "the fault is gone: nothing disruptive is needed", run.rung)
    elif looks.given_up(ctx, run):
        why = f"its symptoms have ended, but nothing proves that the fault is gone: {run.unseen}"
        transition(ctx, run, T.EXHAUSTED, f"{why}. A person must look")
    else:
        _wait_for_look(ctx, run, "its symptoms have ended without a fact that says so")


def _wait_for_look(ctx: Context, run: Run, why: str) -> None:
    """Holds the run until its node has looked again."""
    due = looks.ask(ctx, run)
    text = f"{why}: {run.node} looks again" + (f" ({run.unseen})" if run.unseen else "")
    if run.state is not S.HELD or run.why != text:
        transition(ctx, run, T.HELD, text)
    ctx.set_timer(f"run:{run.id}", due)


def _is_fine(run: Run, step: StepRecord) -> bool:
    """Whether the step was done, or refused by a rung for which a refusal is no failure."""
    ladder = (*run.runbook.rungs, *run.runbook.return_to_service)
    lenient = [rung.name for rung in ladder if rung.on_refusal == "next"]
    return step.outcome == Outcome.OK or (step.outcome == Outcome.REFUSED and step.rung in lenient)


def succeed(ctx: Context, run: Run, why: str, back_to: int) -> None:
    """The fault is over. If a rung disrupted something, the return to service follows; otherwise the run has succeeded.

    `back_to`: index of the rung to go on with if the fault recurs during the return to service.
    """
    drained = bool(drains.owned(ctx, run.incident))
    if drained and not run.runbook.return_to_service:
        why = f"{why}. {run.node} stays out of service: give it back by `gpuward return {run.node}`"
        transition(ctx, run, T.EXHAUSTED, why)
        return
    if not run.runbook.return_to_service or not (run.disrupted or drained):
        transition(ctx, run, T.SUCCEEDED, why)
        return
    ctx.note("run.returning", why, incident=run.incident, run=run.id, scope=run.scope)
    run.worked, run.back_to, run.rung, run.attempt = why, back_to, 0, 1
    if run.node:
        ctx.released.append(ctx.state.incidents[run.incident])
    # The run that brings the node back tests it; now the node would fail its tests because of the other incident's fault.
    if run.node and _left_to_others(ctx, run):
        return
    proceed(ctx, run)


def given_back(ctx: Context, run: Run) -> bool:
    """Whether the last step of the run has given its node back to the scheduler."""
    spec = ctx.actions.get(run.steps[-1].action) if run.steps else None
    return spec is not None and spec.returns and run.steps[-1].outcome == Outcome.OK


def remedied(ctx: Context, incident: Incident) -> bool:
    """Whether a remedy on the incident's node was verified: what its fault explained there is over, too, or is another fault."""
    run = ctx.state.runs.get(incident.runs[-1]) if incident.runs else None
    return run is not None and bool(run.node) and bool(run.worked) and not incident.matching_rules


def _resume_ladder(ctx: Context, run: Run, incident: Incident) -> bool:
    """Whether the fault recurred during the return to service; if so, the run goes on with the next rung of the ladder."""
    if given_back(ctx, run):
        return False  # jobs may run there again: whatever comes next begins with a drain of its own
    rung = run.runbook.rungs[run.back_to - 1] if run.back_to else None
    if not incident.matching_rules or not still_active(ctx, run, rung):
        return False
    why = "the fault came back before the node was back in service"
    ctx.note("run.not_verified", why, incident=run.incident, run=run.id, scope=run.scope)
    run.worked, run.rung, run.attempt = "", run.back_to, 1
    looks.forget(run)
    return True


def told_last(run: Run) -> bool:
    """Whether the ladder came to its end with a page to those on call."""
    if run.worked or run.rung < len(run.runbook.rungs) or not run.steps:
        return False
    last = run.steps[-1]
    return last.action == PAGE and last.params.get("to", ONCALL) == ONCALL


def _page(ctx: Context, run: Run, incident: Incident, rung: Rung) -> None:
    text = told.fill(ctx, run, str(rung.params.get("text", ""))) or f"{run.runbook.name}: {rung.name}"
    escalation.page(ctx, incident, "update", text, to=str(rung.params.get("to", ONCALL)))
    run.steps.append(
        StepRecord(
            id=plans.next_step_id(run),
            rung=rung.name,
            action=rung.do,
            params=dict(rung.params) | ({"text": text} if "text" in rung.params else {}),
            at=ctx.now,
            outcome=Outcome.OK.value,
            why="paged",
        )
    )


def _begin(ctx: Context, run: Run, incident: Incident, rung: Rung, disrupts: Disrupts) -> None:
    """Asks the gates, if the rung disrupts anything, and requests the intent of its step."""
    if disrupts is not Disrupts.NOTHING:
        verdict = gates.check(ctx, run, incident, rung)
        if verdict.answer is not verdicts.Decision.GO:
            _stopped_by_gate(ctx, run, incident, rung, verdict)
            return
        if not run.claimed:
            limits.claim(ctx, run)
    elif (run.worked and run.node and not run.claimed and not _has_node_to_itself(ctx, run, rung)) or (
        ctx.actions[rung.do].returns and not _may_return(ctx, run, rung)
    ):
        return
    looks.forget(run)
    step = plans.step(ctx, run, incident, rung, plans.next_step_id(run))
    run.steps.append(
        StepRecord(id=step.id, rung=rung.name, action=step.action, params=dict(step.params), at=ctx.now)
    )
    transition(ctx, run, T.INTENT_REQUESTED, f"{rung.name}: {step.action} (attempt {run.attempt})")
    ctx.set_timer(f"run:{run.id}", ctx.now + INTENT_S)
    ctx.effects.append(WriteIntent(step=step))


def _left_to_others(ctx: Context, run: Run) -> bool:
    """Whether another incident wants the node out of service: then that one keeps the drain, and the run ends."""
    others = drains.others(ctx, run)
    if not others:
        return False
    drains.hand_over(ctx, run.node, run.incident, others[0])
    heir = ctx.state.incidents.get(others[0])
    cause = heir.cause if heir is not None else others[0]
    why = f"{run.node} stays out of service for {cause} ({others[0]})"
    if run.worked:
        transition(ctx, run, T.SUCCEEDED, f"{run.worked}; {why}")
    elif not run.requested_by:  # it was only to bring the node back, which the other one will do
        transition(ctx, run, T.SUCCEEDED, why)
    else:
        transition(ctx, run, T.EXHAUSTED, f"not given back: {why}")
    return True


def _may_return(ctx: Context, run: Run, rung: Rung) -> bool:
    """Whether the node may be given back to its scheduler now (laws 3 and 8); if not, the run waits or ends.

    Not while another incident wants it out of service, and not before the node has looked again since it was last
    disturbed. An operator who asks for the return answers for the latter.
    """
    if looks.needless(run):
        return True
    if _left_to_others(ctx, run):
        return False
    if not run.worked and not _has_node_to_itself(ctx, run, rung):
        return False
    if run.requested_by not in ("", limits.SCHEDULE):
        return True
    node = ctx.state.nodes.get(run.node)
    if run.looked_at >= run.disturbed_at and run.looked_at >= ctx.now - LOOKED_S and node and node.alive:
        return True
    if looks.given_up(ctx, run):
        transition(ctx, run, T.EXHAUSTED, f"not given back: {run.unseen}. A person must look")
        return False
    _wait_for_look(ctx, run, f"before {rung.name}")
    return False


def _has_node_to_itself(ctx: Context, run: Run, rung: Rung) -> bool:
    """Claims the node for the way back, unless another run works on it; then this one waits.

    Else that other run would disturb what the tests test.
    """
    incident = ctx.state.incidents[run.incident]
    busy = gates.one_per_node(verdicts.Case(ctx=ctx, run=run, incident=incident, rung=rung))
    if busy is not None:
        _stopped_by_gate(ctx, run, incident, rung, busy)
        return False
    limits.occupy(ctx, run)
    return True


def not_to_be_returned(ctx: Context, run: Run) -> tuple[str, str]:
    """(gate, why) if something forbids by now to give the run's node back, as it was about to be; else two empty texts.

    Another incident wants it out of service, or it fell silent. Whoever asks for the return answers for the latter.
    """
    if wanted := drains.others(ctx, run):
        return "drained", f"{wanted[0]} wants {run.node} out of service"
    node = ctx.state.nodes.get(run.node)
    if node is not None and not node.alive and run.requested_by in ("", limits.SCHEDULE):
        return "unheard", f"{run.node} is not heard"
    return "", ""


def _stopped_by_gate(
    ctx: Context, run: Run, incident: Incident, rung: Rung, verdict: verdicts.Verdict
) -> None:
    """Waits for the gate or for an approval, or ends the run. One note and one page for each new reason."""
    why = f"{rung.name} waits: {verdict.reason} (gate {verdict.gate})"
    match verdict.answer:
        case verdicts.Decision.STOP:
            run.spent = True
            transition(ctx, run, T.EXHAUSTED, f"{verdict.reason}: a person must take it from here")
        case verdicts.Decision.HOLD:
            # The nodes that wait for one reason are told by the first two of them.
            first = verdict.gate == limits.RELATED and not limits.told_already(ctx, run)
            if verdict.gate == limits.RELATED:
                run.related_since = run.related_since or ctx.now
            if run.state is not S.HELD or run.why != why:
                transition(ctx, run, T.HELD, why)
                if first:
                    escalation.page(ctx, incident, "update", verdict.reason)
            ctx.set_timer(f"run:{run.id}", ctx.now + verdict.retry_s)
        case verdicts.Decision.APPROVAL:
            approvals.end_if_void(ctx, run)
            if run.state is not S.APPROVAL or run.why != why:
                transition(ctx, run, T.APPROVAL_REQUESTED, why)
            if (
                run.wanted != why
            ):  # people are asked once, however often the run has waited for something else since
                run.wanted = why
                _ask_plan(ctx, run, incident, rung)
                named = f"'{rung.name}'" if " " in rung.name else rung.name
                text = (
                    f"approval wanted: {rung.name} ({rung.do}), because {verdict.reason} — "
                    f"gpuward approve {incident.id} --rung {named}"
                )
                escalation.page(ctx, incident, "update", text)
            ctx.set_timer(f"run:{run.id}", ctx.now + APPROVAL_S)


def intend_again(ctx: Context, run: Run) -> None:
    """The intent has not come back on the log: it is written again, under the same id."""
    incident = ctx.state.incidents[run.incident]
    rung = plans.rungs(run)[run.rung]
    why = f"the intent of {rung.name} has not come back within {INTENT_S:.0f} s: written again"
    ctx.note("run.waits", why, incident=run.incident, run=run.id, scope=run.scope)
    ctx.set_timer(f"run:{run.id}", ctx.now + INTENT_S)
    ctx.effects.append(WriteIntent(step=plans.step(ctx, run, incident, rung)))


def withdraw(ctx: Context, run: Run, rung: Rung, verdict: verdicts.Verdict) -> None:
    """A gate objects at the last moment, when the step's intent has come back: the step does not leave.

    Of attempts of one rung that did so one after the other, the run keeps the last: there may be thousands.
    """
    run.steps[-1].outcome, run.steps[-1].why = "withdrawn", verdict.reason
    last = run.steps[-2:]
    if len(last) == 2 and last[0].outcome == "withdrawn" and last[0].rung == last[1].rung:
        del run.steps[-2]
    _stopped_by_gate(ctx, run, ctx.state.incidents[run.incident], rung, verdict)


def interrupt(ctx: Context, run: Run, rung: Rung, verdict: verdicts.Verdict) -> None:
    """A gate objects to a step that waits before it disturbs anything more: it ends, and the rung begins anew later."""
    incident = ctx.state.incidents[run.incident]
    why = f"its wait was stopped: {verdict.reason}"
    ctx.effects.append(CancelStep(step=plans.step(ctx, run, incident, rung), why=why))
    run.steps[-1].outcome, run.steps[-1].why = Outcome.FAILED.value, why
    _stopped_by_gate(ctx, run, incident, rung, verdict)


def still_active(ctx: Context, run: Run, rung: Rung | None) -> list[str]:
    """The active symptoms of the run's incident: those that `rung` must clear, or all of them (None)."""
    wanted = rung.verify.gone if rung is not None and rung.verify is not None else ()
    return [
        key
        for key in ctx.state.incidents[run.incident].symptoms
        if (not wanted or ids.name_of(key) in wanted)
        and (state := ctx.state.symptoms.get(key)) is not None
        and state.active
    ]


def run_behind(ctx: Context, incident: Incident) -> Run | None:
    """The run of another incident that explains what begins on this incident's node now.

    It is performing or cancelling a step that takes the node or parts of it away, or waits for the node to return
    from such a step, or has left the node switched off.
    """
    node = ctx.state.nodes.get(incident.node)
    if node is None:
        return None
    for run_id, claimed in ctx.index.claims.items():
        run = ctx.state.runs[run_id]
        if claimed != incident.node or run.incident == incident.id or not run.steps:
            continue
        spec = ctx.actions.get(run.steps[-1].action)
        if spec is None:
            continue
        takes_away = spec.takes_node_away or (
            spec.heals and spec.disrupts in (Disrupts.NODE, Disrupts.FABRIC)
        )
        if run.state in (S.PERFORMING, S.CANCELLING) and takes_away:
            return run
        if run.state is S.VERIFYING and spec.takes_node_away and not node.alive:
            return run
    return None if node.alive else _run_that_switched_off(ctx, incident)


def judged_later(run: Run) -> str:
    """Until when an incident of its node is not judged that this run is behind."""
    if run.state in OVER:
        return f"{run.incident} has switched {run.node} off: it is judged when that incident is over"
    return f"{run.id} is at work on {run.node}: it is judged when that has ended"


def _run_that_switched_off(ctx: Context, incident: Incident) -> Run | None:
    """The finished run of another incident, not yet forgotten, whose last disruptive action switched the node off."""
    for run in ctx.state.runs.values():
        if run.node == incident.node and run.incident != incident.id and run.state in OVER:
            specs = [spec for step in run.steps if (spec := ctx.actions.get(step.action)) is not None]
            disruptive = [spec for spec in specs if spec.disrupts is not Disrupts.NOTHING]
            if disruptive and disruptive[-1].takes_node_away and not disruptive[-1].heals:
                return run
    return None


def cancel(ctx: Context, run: Run, why: str) -> None:
    """Cancels a run that is not over. A step under way is cancelled and its end awaited: until then the run keeps its node."""
    if run.state is S.PERFORMING:
        incident = ctx.state.incidents[run.incident]
        step = plans.step(ctx, run, incident, plans.rungs(run)[run.rung])
        ctx.set_timer(f"run:{run.id}", run.deadline)
        transition(ctx, run, T.CANCELLED, why)
        ctx.effects.append(CancelStep(step=step, why=why))
    elif run.state not in (*OVER, S.CANCELLING):
        transition(ctx, run, T.CANCELLED, why)


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

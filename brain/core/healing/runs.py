"""Runs: executions of runbooks, rung by rung. The table of their state changes is in `run_states.py`.

`steps.py` handles a step once its intent is on the log. A run whose rung worked then performs the runbook's
`return_to_service` rungs; only after them has it succeeded.
"""

import math
from collections.abc import Iterator

from agent.contract.actions.spec import Disrupts
from agent.contract.commands import Outcome
from brain.core import ids
from brain.core.context import Context
from brain.core.effects import CancelStep, WriteIntent
from brain.core.healing import (
    drains,
    failed_tests,
    gates,
    holding,
    limits,
    looks,
    observing,
    outline,
    plans,
    run_states,
    told,
    unanswered,
    unheard,
    validation,
    verdicts,
    way_back,
)
from brain.core.healing.run_states import RunTrigger
from brain.core.pack.spec import ONCALL, PAGE, Rung
from brain.core.paging import escalation
from brain.core.people import do
from brain.core.state import Incident, Run, RunState, StepRecord, SymptomState

MAX_KEPT = 30  # runs of one incident that are remembered, where the older ones went well
INTENT_S = 30.0  # an intent that has not come back on the log after this long is written again


def start(
    ctx: Context, incident: Incident, requested_by: str = "", instead: str = "", *, vouched: bool = False
) -> Run | None:
    """Starts a run of the incident's runbook, or of `instead`; None when the pack has no such runbook (any more).

    `requested_by`: an operator's name or `schedule`; empty: a fault led to it. `vouched`: who says that the node is healthy.
    """
    runbook = ctx.compiled.runbooks.get(instead or incident.runbook)
    if runbook is None:
        return None
    run = Run(
        id=f"{incident.id}.r{incident.runs_before + len(incident.runs) + 1}",
        incident=incident.id,
        runbook=runbook,
        pack=ctx.compiled.pack.version,
        scope=incident.scope,
        node=incident.node,
        params=incident.params | plans.values(ctx, incident),
        state=RunState.HELD,
        started_at=ctx.now,
        moved_at=ctx.now if requested_by else 0.0,
        requested_by=requested_by,
        vouched=vouched,
    )
    ctx.state.runs[run.id] = run
    incident.runs.append(run.id)
    _forget_old(ctx, incident)
    observed = observing.is_observed(ctx, run)
    ctx.note(
        "run.started",
        f"{runbook.name}: {runbook.summary}",
        incident=incident.id,
        run=run.id,
        scope=run.scope,
        data={"runbook": runbook.name, "plan": outline.outline(ctx, run, incident, observed=observed)},
    )
    if observed and not vouched:
        observing.observe(ctx, run, incident)
    else:
        proceed(ctx, run)
    return run


def _forget_old(ctx: Context, incident: Incident) -> None:
    """Of a remedy that disturbs nobody and helps for a while, for ever, the last runs are remembered; history has them all."""
    for old in incident.runs[:-MAX_KEPT]:
        run = ctx.state.runs.get(old)
        if run is not None and run.state is RunState.SUCCEEDED and not run.disrupted:
            del ctx.state.runs[old]


def proceed(ctx: Context, run: Run) -> None:
    """Begins the present rung, waits for a gate, or ends the run. Pages and rungs whose `when` is false are passed."""
    incident = ctx.state.incidents[run.incident]
    if run.vouched:
        _hear_the_node(ctx, run)
        return
    undecided = run.failed_test and not (run.worked and _resume_ladder(ctx, run, incident))
    if undecided and not failed_tests.settled(ctx, run, incident):
        return
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


def _hear_the_node(ctx: Context, run: Run) -> None:
    """An operator says that the node is healthy. It looks again first: a fault that it still reports keeps its incident.

    Asked once. Of a node that does not answer, or is not heard, the operator's word counts.
    """
    node = ctx.state.nodes.get(run.node)
    heard = run.looked_at or (run.looks and (not run.looking or ctx.now >= run.looking_until))
    if not heard and node is not None and node.alive:
        holding.wait_for_look(ctx, run, f"{do(run.requested_by, 'says')} that {run.node} is healthy")
        return
    run.vouched = False
    looks.forget(run)
    since = run.looked_since if run.looked_at else math.inf
    ctx.vouched.append((run.node, run.requested_by, since, run))


def go_on(ctx: Context, run: Run) -> None:
    """The operator's word has been weighed: the run that it asked for begins."""
    if observing.is_observed(ctx, run):
        observing.observe(ctx, run, ctx.state.incidents[run.incident])
    else:
        proceed(ctx, run)


def needless(run: Run, incident: Incident) -> bool:
    """Whether no rule matches any more before the ladder's next rung. Not after a failed check: that is a fault too."""
    return not run.worked and not run.relapses and not incident.matching_rules


def _finish(ctx: Context, run: Run, incident: Incident) -> None:
    """No rung is left: the run is back in service, has done what was requested, or is exhausted."""
    if run.worked and _resume_ladder(ctx, run, incident):
        proceed(ctx, run)
    elif run.worked:
        why = f"{run.worked}; back in service{validation.left_out(run)}"
        run_states.transition(ctx, run, RunTrigger.SUCCEEDED, why)
    elif (run.requested_by or _gave_back(ctx, run)) and _all_fine(run):
        succeed(ctx, run, "all its steps are done", run.rung)
    else:
        left = "people are told" if told.only_tells(run) else "no rung of the ladder is left"
        run_states.transition(ctx, run, RunTrigger.EXHAUSTED, f"{left}: a person must take it from here")


def _gave_back(ctx: Context, run: Run) -> bool:
    """Whether the ladder itself ends with the node's return, as that for a node that was left drained."""
    spec = ctx.actions.get(run.runbook.rungs[-1].do) if run.runbook.rungs else None
    return spec is not None and spec.returns


def _fault_gone(ctx: Context, run: Run, incident: Incident) -> None:
    """No rule matches any more, before the next disruptive rung. If no fact has said so, the node must look again."""
    if incident.rule not in ctx.compiled.rules and drains.owned(ctx, incident):
        why = f"rule {incident.rule} was removed, which proves nothing about {incident.scope}"
        run_states.transition(ctx, run, RunTrigger.EXHAUSTED, f"{why}. A person must look")
    elif not incident.unproven or looks.needless(run):
        succeed(ctx, run, "the fault is gone: nothing disruptive is needed", run.rung)
    elif looks.given_up(ctx, run):
        why = f"its symptoms have ended, but nothing proves that the fault is gone: {run.unseen}"
        run_states.transition(ctx, run, RunTrigger.EXHAUSTED, f"{why}. A person must look")
    else:
        holding.wait_for_look(ctx, run, "its symptoms have ended without a fact that says so")


def _all_fine(run: Run) -> bool:
    """Whether each rung that was begun is done. What counts is its last attempt: it may have failed before, or was withdrawn."""
    last = {step.rung: step for step in run.steps}
    return all(_is_fine(run, step) for step in last.values())


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
        run_states.transition(ctx, run, RunTrigger.EXHAUSTED, why)
        return
    if not run.runbook.return_to_service or not (run.disrupted or drained):
        run_states.transition(ctx, run, RunTrigger.SUCCEEDED, why)
        return
    ctx.note("run.returning", why, incident=run.incident, run=run.id, scope=run.scope)
    run.worked, run.back_to, run.rung, run.attempt = why, back_to, 0, 1
    if run.node:
        ctx.released.append(ctx.state.incidents[run.incident])
    # The run that brings the node back tests it; now the node would fail its tests because of the other incident's fault.
    if run.node and way_back.left_to_others(ctx, run):
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
    failed_tests.forget(run)
    run_states.release(
        ctx, run
    )  # after long tests it has no share of the budgets: what disrupts again asks for one
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
            holding.stopped_by_gate(ctx, run, incident, rung, verdict)
            return
        if not run.claimed:
            limits.claim(ctx, run)
    elif (
        run.worked
        and (silent := unheard.heard(verdicts.Case(ctx=ctx, run=run, incident=incident, rung=rung)))
        is not None
    ):
        holding.stopped_by_gate(ctx, run, incident, rung, silent)
        return
    elif (
        run.worked and run.node and not run.claimed and not way_back.has_node_to_itself(ctx, run, rung)
    ) or (ctx.actions[rung.do].returns and not way_back.may_return(ctx, run, rung)):
        return
    looks.forget(run)
    step = plans.step(ctx, run, incident, rung, plans.next_step_id(run))
    run.steps.append(
        StepRecord(id=step.id, rung=rung.name, action=step.action, params=dict(step.params), at=ctx.now)
    )
    run_states.transition(
        ctx, run, RunTrigger.INTENT_REQUESTED, f"{rung.name}: {step.action} (attempt {run.attempt})"
    )
    ctx.set_timer(f"run:{run.id}", ctx.now + INTENT_S)
    ctx.effects.append(WriteIntent(step=step))


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
    holding.stopped_by_gate(ctx, run, ctx.state.incidents[run.incident], rung, verdict)


def interrupt(ctx: Context, run: Run, rung: Rung, verdict: verdicts.Verdict) -> None:
    """A gate objects to a step that waits before it disturbs anything more: it ends, and the rung begins anew later."""
    incident = ctx.state.incidents[run.incident]
    why = f"its wait was stopped: {verdict.reason}"
    ctx.effects.append(CancelStep(step=plans.step(ctx, run, incident, rung), why=why))
    run.steps[-1].outcome, run.steps[-1].why = Outcome.FAILED.value, why
    holding.stopped_by_gate(ctx, run, incident, rung, verdict)


def still_active(ctx: Context, run: Run, rung: Rung | None) -> list[str]:
    """The active symptoms of the run's incident: those that `rung` must clear, or all of them (None)."""
    return [key for key, state in _its_symptoms(ctx, run, rung) if state.active]


def on_the_way(ctx: Context, run: Run, rung: Rung) -> list[str]:
    """Those that are told to be there, and have not lasted for long enough to be symptoms yet: they are not gone."""
    return [
        key
        for key, state in _its_symptoms(ctx, run, rung)
        if state.on
        and not state.active
        and (spec := ctx.compiled.symptoms.get(state.name)) is not None
        and spec.detect == "lasting"
    ]


def _its_symptoms(ctx: Context, run: Run, rung: Rung | None) -> Iterator[tuple[str, SymptomState]]:
    wanted = rung.verify.gone if rung is not None and rung.verify is not None else ()
    for key in ctx.state.incidents[run.incident].symptoms:
        state = ctx.state.symptoms.get(key)
        if state is not None and (not wanted or ids.name_of(key) in wanted):
            yield key, state


def cancel(ctx: Context, run: Run, why: str) -> None:
    """Cancels a run that is not over. A step under way is cancelled and its end awaited: until then the run keeps its node."""
    if run.state is RunState.PERFORMING:
        incident, rung = ctx.state.incidents[run.incident], plans.rungs(run)[run.rung]
        step = plans.step(ctx, run, incident, rung)
        ctx.set_timer(f"run:{run.id}", unanswered.due(ctx, run, rung))
        run_states.transition(ctx, run, RunTrigger.CANCELLED, why)
        ctx.effects.append(CancelStep(step=step, why=why))
    elif run.state not in (*run_states.OVER, RunState.CANCELLING):
        run_states.transition(ctx, run, RunTrigger.CANCELLED, why)

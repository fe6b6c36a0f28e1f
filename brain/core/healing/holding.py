"""What a gate holds up, or a look that is awaited: the run waits, asks for an approval, or ends."""

from brain.core.context import Context
from brain.core.healing import approvals, limits, looks, observing, run_states, verdicts
from brain.core.healing.run_states import RunTrigger
from brain.core.pack.spec import Rung
from brain.core.paging import escalation
from brain.core.state import Incident, Run, RunState

APPROVAL_S = 300.0  # how often a run that waits for an approval is judged anew: its reason may be gone


def wait_for_look(ctx: Context, run: Run, why: str) -> None:
    """Holds the run until its node has looked again."""
    due = looks.ask(ctx, run)
    text = f"{why}: {run.node} looks again" + (f" ({run.unseen})" if run.unseen else "")
    if run.state is not RunState.HELD or run.why != text:
        run_states.transition(ctx, run, RunTrigger.HELD, text)
    ctx.set_timer(f"run:{run.id}", due)


def stopped_by_gate(
    ctx: Context, run: Run, incident: Incident, rung: Rung, verdict: verdicts.Verdict
) -> None:
    """Waits for the gate or for an approval, or ends the run. One note and one page for each new reason."""
    why = f"{rung.name} waits: {verdict.reason} (gate {verdict.gate})"
    match verdict.answer:
        case verdicts.Decision.STOP:
            run.spent = True
            run_states.transition(
                ctx, run, RunTrigger.EXHAUSTED, f"{verdict.reason}: a person must take it from here"
            )
        case verdicts.Decision.HOLD:
            # The nodes that wait for one reason are told by the first two of them.
            first = verdict.gate == limits.RELATED and limits.wait_for_people(ctx, run)
            if run.state is not RunState.HELD or run.why != why:
                run_states.transition(ctx, run, RunTrigger.HELD, why, gate=verdict.gate)
                if first:
                    escalation.page(ctx, incident, "update", verdict.reason)
            ctx.set_timer(f"run:{run.id}", ctx.now + verdict.retry_s)
        case verdicts.Decision.APPROVAL:
            approvals.end_if_void(ctx, run)
            if run.state is not RunState.APPROVAL or run.why != why:
                run_states.transition(ctx, run, RunTrigger.APPROVAL_REQUESTED, why, gate=verdict.gate)
            if (
                run.wanted != why
            ):  # people are asked once, however often the run has waited for something else since
                run.wanted = why
                observing.ask_plan(ctx, run, incident, rung)
                named = f"'{rung.name}'" if " " in rung.name else rung.name
                text = (
                    f"approval wanted: {rung.name} ({rung.do}), because {verdict.reason} — "
                    f"gpuward approve {incident.id} --rung {named}"
                )
                escalation.page(ctx, incident, "update", text)
            ctx.set_timer(f"run:{run.id}", ctx.now + max(APPROVAL_S, verdict.retry_s))

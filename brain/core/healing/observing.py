"""What a run would do: the plans of its steps."""

from brain.core.context import Context
from brain.core.effects import AskPlan
from brain.core.healing import (
    gates,
    plans,
    run_states,
)
from brain.core.healing.run_states import RunTrigger
from brain.core.pack.spec import PAGE, Mode, Rung
from brain.core.state import Incident, Run


def is_observed(ctx: Context, run: Run) -> bool:
    return gates.mode_of(ctx, run.runbook.name, run.node, run.runbook.at_most) is Mode.OBSERVE


def observe(ctx: Context, run: Run, incident: Incident) -> None:
    """Asks what would be done, and does nothing."""
    for number, rung in plans.ahead(ctx, run)[0]:
        run.rung = number - 1
        ask_plan(ctx, run, incident, rung)
    run.rung = 0
    why = f"{run.runbook.name} is in observe mode here: nothing is done, this is what would be"
    run_states.transition(ctx, run, RunTrigger.OBSERVED, why)


def ask_plan(ctx: Context, run: Run, incident: Incident, rung: Rung) -> None:
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

"""What a run would do: the plans of its steps."""

from agent.contract.actions.spec import Disrupts
from brain.core.context import Context
from brain.core.effects import AskPlan
from brain.core.healing import budgets, gates, limits, modes, plans, run_states
from brain.core.healing.run_states import RunTrigger
from brain.core.healing.verdicts import Case, Gate
from brain.core.pack.spec import PAGE, Mode, Rung
from brain.core.state import Incident, Run

# Gates whose answer is told beside a plan that nobody performs: they only look, and ask nobody anything.
_LOOKING: tuple[Gate, ...] = (
    gates.hold,
    gates.shared,
    limits.breaker,
    limits.tries,
    limits.offender,
    limits.answers,
    limits.related,
    gates.maintenance,
    budgets.one_per_node,
    budgets.budget,
    gates.kept_out,
)


def is_observed(ctx: Context, run: Run) -> bool:
    return modes.mode_of(ctx, run.runbook.name, run.node, run.runbook.at_most) is Mode.OBSERVE


def observe(ctx: Context, run: Run, incident: Incident) -> None:
    """Asks what would be done, and does nothing."""
    ahead = plans.ahead(ctx, run)[0]
    for number, rung in ahead:
        run.rung = number - 1
        ask_plan(ctx, run, incident, rung)
    run.rung = 0
    disruptive = [rung for _, rung in ahead if plans.disrupts(ctx, rung) is not Disrupts.NOTHING]
    gate = _in_the_way(ctx, run, incident, disruptive[0]) if disruptive else ""
    why = f"{run.runbook.name} is in observe mode here: nothing is done, this is what would be"
    run_states.transition(ctx, run, RunTrigger.OBSERVED, why, gate=gate)


def _in_the_way(ctx: Context, run: Run, incident: Incident, rung: Rung) -> str:
    """The gate that would keep a rung from beginning now, besides the mode and what passes by itself; empty: none is known."""
    case = Case(ctx=ctx, run=run, incident=incident, rung=rung)
    return next((verdict.gate for gate in _LOOKING if (verdict := gate(case)) is not None), "")


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

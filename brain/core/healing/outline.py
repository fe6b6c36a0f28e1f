"""The plan of a run, as text: `explain`, `diagnose` and observe mode show it. Nothing is performed."""

from agent.contract.actions.spec import Disrupts
from brain.core.context import Context
from brain.core.healing import gates, plans, told, verdicts
from brain.core.pack.spec import Rung
from brain.core.state import Incident, Run


def outline(ctx: Context, run: Run, incident: Incident, *, observed: bool) -> list[str]:
    """One line for each rung that fits the situation: its action and parameters, what it disrupts, its verification.

    `observed`: the gates' present answer too, as nothing else will tell it; a run that goes on notes it when it is asked.
    """
    ladder, back = plans.ahead(ctx, run)
    lines = [f"{number}. {_rung(ctx, run, incident, rung, observed=observed)}" for number, rung in ladder]
    for number, rung in back:
        lines.append(f"back {number}. {_rung(ctx, run, incident, rung, observed=observed, returning=True)}")
    return lines


def _rung(
    ctx: Context, run: Run, incident: Incident, rung: Rung, *, observed: bool, returning: bool = False
) -> str:
    given = ", ".join(f"{name}={told.foretell(value)}" for name, value in plans.params(run, rung).items())
    line = f"{rung.name}: {rung.do}({given})"
    if rung.after:
        line += f" (after {' or '.join(rung.after)})"
    disrupts = plans.disrupts(ctx, rung, returning=returning)
    line += f" — disrupts {disrupts.value}"
    if observed and disrupts is not Disrupts.NOTHING:
        verdict = gates.check(ctx, run, incident, rung)
        line += f"; gates: {verdict.answer.value}"
        if verdict.answer is not verdicts.Decision.GO:
            line += f" ({verdict.reason})"
    if rung.verify is not None:
        line += f"; verified by symptoms gone within {rung.verify.within_s:g} s for {rung.verify.for_s:g} s"
    return line

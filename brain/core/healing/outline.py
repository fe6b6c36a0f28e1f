"""The plan of a run, as text: `explain`, `diagnose` and observe mode show it. Nothing is performed."""

from agent.contract.actions.spec import Disrupts
from brain.core.context import Context
from brain.core.healing import gates, plans, told, verdicts
from brain.core.pack.spec import Rung
from brain.core.state import Incident, Run


def outline(ctx: Context, run: Run, incident: Incident, *, observed: bool) -> list[str]:
    """One line for each rung that fits the situation: its action and parameters, what it disrupts, its verification.

    Rungs that do not fit are named, so that nobody wonders about their numbers: one line for those that follow one another.
    `observed`: the gates' present answer too, as nothing else will tell it; a run that goes on notes it when it is asked.
    """
    ladder, back = (dict(ahead) for ahead in plans.ahead(ctx, run))
    lines: list[str] = []
    for rungs, fit, head in ((run.runbook.rungs, ladder, ""), (run.runbook.return_to_service, back, "back ")):
        left_out: list[str] = []
        for number, rung in enumerate(rungs, 1):
            if number not in fit:
                left_out.append(f"{number}. {rung.name}")
                continue
            lines += _left_out(head, left_out)
            left_out = []
            line = _rung(ctx, run, incident, rung, observed=observed, returning=bool(head))
            lines.append(f"{head}{number}. {line}")
        lines += _left_out(head, left_out)
    return lines


def _left_out(head: str, names: list[str]) -> list[str]:
    """The line for rungs that follow one another and do not fit."""
    one = len(names) == 1
    fit = f"{'it does' if one else 'they do'} not fit what is known as the run begins"  # more may be, when their turn comes
    tests = f"{'it tests' if one else 'they test'} what this plan does not do"
    return [f"{head}{', '.join(names)}: left out, {tests if head else fit}"] if names else []


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

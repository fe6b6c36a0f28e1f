"""The plan of a run, as text: `explain` and observe mode show it. Nothing is performed."""

from agent.contract.actions.spec import Disrupts
from brain.core.context import Context
from brain.core.healing import gates, plans, verdicts
from brain.core.state import Incident, Run


def outline(ctx: Context, run: Run, incident: Incident) -> list[str]:
    """One line for each rung: its action and parameters, what it disrupts, the gates' present answer, its verification."""
    lines = []
    asked: dict[Disrupts, verdicts.Verdict] = {}  # of a rung, gates want to know only what it disrupts
    numbered = [(str(number), rung, False) for number, rung in enumerate(run.runbook.rungs, 1)]
    back = enumerate(run.runbook.return_to_service, 1)
    numbered += [(f"back {number}", rung, True) for number, rung in back]
    for number, rung, returning in numbered:
        given = ", ".join(f"{name}={value}" for name, value in plans.params(run, rung).items())
        line = f"{number}. {rung.name}: {rung.do}({given})"
        if rung.after:
            line += f" (after {' or '.join(rung.after)})"
        disrupts = plans.disrupts(ctx, rung, returning=returning)
        if disrupts is Disrupts.NOTHING:
            line += " — disrupts nothing"
        else:
            if disrupts not in asked:
                asked[disrupts] = gates.check(ctx, run, incident, rung)
            verdict = asked[disrupts]
            line += f" — disrupts {disrupts}; gates: {verdict.answer}"
            if verdict.answer is not verdicts.Answer.GO:
                line += f" ({verdict.reason})"
        if rung.verify is not None:
            line += (
                f"; verified by symptoms gone within {rung.verify.within_s:g} s for {rung.verify.for_s:g} s"
            )
        lines.append(line)
    return lines

"""What a run would do, for people: `explain` and observe mode show it. Performs nothing."""

from agent.contract.actions.spec import Disrupts
from brain.core import gates, plans
from brain.core.state import Incident, Run
from brain.core.turn import Turn


def outline(turn: Turn, run: Run, incident: Incident) -> list[str]:
    """One line for each rung: what, with what, what it disrupts, and what the gates would say now."""
    lines = []
    numbered = [(str(number), rung) for number, rung in enumerate(run.runbook.rungs, 1)]
    numbered += [(f"back {number}", rung) for number, rung in enumerate(run.runbook.way_back, 1)]
    for number, rung in numbered:
        given = ", ".join(f"{name}={value}" for name, value in plans.params(run, rung).items())
        line = f"{number}. {rung.name}: {rung.do}({given})"
        if plans.disrupts(turn, rung) is Disrupts.NOTHING:
            line += " — disrupts nothing"
        else:
            verdict = gates.check(turn, run, incident, rung)
            line += f" — disrupts {plans.disrupts(turn, rung).value}; gates: {verdict.say.value}"
            if verdict.say is not gates.Say.GO:
                line += f" ({verdict.reason})"
        if rung.verify is not None:
            line += (
                f"; verified by symptoms gone within {rung.verify.within_s:g} s for {rung.verify.for_s:g} s"
            )
        lines.append(line)
    return lines

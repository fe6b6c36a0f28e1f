"""What a run would do: rungs with their parameters filled in. Performs nothing; `explain` and shadow mode print it."""

from agent.contract.actions.spec import Disrupts, Repeat
from brain.core import gates, judge
from brain.core.spec import Rung, Scalar
from brain.core.state import Incident, Run
from brain.core.topology import component_of
from brain.core.turn import Turn

PAGE = "page"  # the engine's own action: tells people; params: to (a channel group), text
_WORSE = (Disrupts.NOTHING, Disrupts.JOB, Disrupts.NODE, Disrupts.FABRIC)


def disrupts(turn: Turn, rung: Rung) -> Disrupts:
    """What a rung disrupts: what its action says, or worse if the rung says so."""
    if rung.do == PAGE:
        return Disrupts.NOTHING
    own = turn.actions[rung.do].disrupts
    return max(own, rung.disrupts, key=_WORSE.index) if rung.disrupts else own


def repeat(turn: Turn, rung: Rung) -> Repeat:
    """A rung's repeat class."""
    return rung.repeat or turn.actions[rung.do].repeat


def values(turn: Turn, incident: Incident) -> dict[str, Scalar]:
    """What `$name` can stand for: the situation's fields and the incident's own."""
    return judge.situation(turn, incident.scope) | {
        "incident": incident.id,
        "cause": incident.cause,
        "scope": incident.scope,
    }


def params(run: Run, rung: Rung) -> dict[str, Scalar]:
    """A rung's parameters with every `$name` filled in from the run, or from its scope; an unknown one stays as it is
    and the node refuses it."""
    known = run.params | {"component": component_of(run.scope), "node": run.node, "scope": run.scope}
    filled: dict[str, Scalar] = {}
    for name, value in rung.params.items():
        filled[name] = (
            known.get(value[1:], value) if isinstance(value, str) and value.startswith("$") else value
        )
    return filled


def plan(turn: Turn, run: Run, incident: Incident) -> list[str]:
    """One line for each rung: what, with what, what it disrupts, and what the gates would say now."""
    lines = []
    for number, rung in enumerate(run.runbook.rungs, 1):
        given = ", ".join(f"{name}={value}" for name, value in params(run, rung).items())
        line = f"{number}. {rung.name}: {rung.do}({given})"
        if disrupts(turn, rung) is Disrupts.NOTHING:
            line += " — disrupts nothing"
        else:
            verdict = gates.check(turn, run, incident, rung)
            line += f" — disrupts {disrupts(turn, rung).value}; gates: {verdict.say.value}"
            if verdict.say is not gates.Say.GO:
                line += f" ({verdict.reason})"
        if rung.verify is not None:
            line += (
                f"; verified by symptoms gone within {rung.verify.within_s:g} s for {rung.verify.for_s:g} s"
            )
        lines.append(line)
    return lines

"""Rungs with their parameters filled in: what a step will be. Decides nothing."""

import re

from agent.contract.actions.spec import Disrupts, Repeat
from brain.core import judge
from brain.core.effects import Step
from brain.core.spec import Rung, Scalar
from brain.core.state import Incident, Run
from brain.core.topology import component_of
from brain.core.turn import Turn

NAMED = re.compile(r"\$[a-z][a-z0-9_]*")  # alone it keeps its type; within a text it is a text: `link/$name`
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
    return {name: _filled(run, value) for name, value in rung.params.items()}


def _filled(run: Run, value: Scalar) -> Scalar:
    known = run.params | {"component": component_of(run.scope), "node": run.node, "scope": run.scope}
    if not isinstance(value, str):
        return value
    if NAMED.fullmatch(value):
        return known.get(value[1:], value)
    return NAMED.sub(lambda found: str(known.get(found[0][1:], found[0])), value)


def rungs(run: Run) -> tuple[Rung, ...]:
    """The rungs that the run goes along now: the ladder, or the way back."""
    return run.runbook.way_back if run.worked else run.runbook.rungs


def step_id(run: Run) -> str:
    """Names one attempt of one rung for ever: `<run>.s<rung>.a<attempt>`, on the way back `<run>.b<rung>.a<attempt>`."""
    return f"{run.id}.{'b' if run.worked else 's'}{run.rung + 1}.a{run.attempt}"


def run_of(step: str) -> str:
    """The run of a step's id."""
    return step.rsplit(".", 2)[0]


def step(turn: Turn, run: Run, incident: Incident, rung: Rung) -> Step:
    """The present attempt of a rung."""
    spec = turn.actions[rung.do]
    return Step(
        id=step_id(run),
        run=run.id,
        incident=run.incident,
        node=run.node,
        action=rung.do,
        where=spec.where,
        params=params(run, rung),
        timeout_s=rung.timeout_s or spec.timeout_s,
        disrupts=disrupts(turn, rung),
        repeat=repeat(turn, rung),
        why=f"{incident.cause} at {incident.scope} (rule {incident.rule})",
    )

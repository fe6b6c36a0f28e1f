"""Approvals: who agreed, to what exactly, until when. Changed circumstances void one."""

from brain.core import plans
from brain.core.state import Approval, Run
from brain.core.turn import Turn


def give(turn: Turn, run: Run, who: str) -> Approval:
    """`who` agrees to the rung at which the run stands, as things are now."""
    incident = turn.state.incidents[run.incident]
    run.approved = Approval(
        who=who,
        until=turn.now + turn.book.settings.approval_s,
        what=_what(run),
        symptoms=_symptoms(turn, run),
        nodes=incident.nodes,
        severity=incident.severity,
    )
    return run.approved


def stands(turn: Turn, run: Run) -> bool:
    """Did a person agree to this very rung, and is everything still as it was then?"""
    return run.approved is not None and not void(turn, run)


def void(turn: Turn, run: Run) -> str:
    """Why the approval that was given does not count (any more); empty: it does, or there is none."""
    given = run.approved
    if given is None:
        return ""
    incident = turn.state.incidents[run.incident]
    if given.what != _what(run):
        return "it was for another step"
    if turn.now > given.until:
        return "its time is over"
    if incident.severity < given.severity:
        return f"the incident is {incident.severity} now"
    if incident.nodes > given.nodes:
        return f"{incident.nodes} nodes show it now"
    new = [symptom for symptom in _symptoms(turn, run) if symptom not in given.symptoms]
    return f"{new[0]} has come up since" if new else ""


def _what(run: Run) -> str:
    rungs = plans.rungs(run)
    if run.rung >= len(rungs):
        return ""
    rung = rungs[run.rung]
    params = sorted(plans.params(run, rung).items())
    given = ", ".join(f"{name}={value}" for name, value in params)
    return f"{rung.name}: {rung.do}({given}) on {run.scope}"


def _symptoms(turn: Turn, run: Run) -> list[str]:
    return [
        key
        for key in turn.state.incidents[run.incident].symptoms
        if (state := turn.state.symptoms.get(key)) is not None and state.active
    ]

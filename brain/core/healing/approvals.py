"""Approvals: who agreed, to what exactly, until when. An approval becomes void when the circumstances get worse."""

from brain.core.context import Context
from brain.core.healing import plans
from brain.core.state import Approval, Run


def give(ctx: Context, run: Run, who: str) -> Approval:
    """Records that `who` approves the run's present rung under the present circumstances."""
    incident = ctx.state.incidents[run.incident]
    run.approved = Approval(
        who=who,
        until=ctx.now + ctx.compiled.settings.approval_s,
        what=_what(run),
        symptoms=_symptoms(ctx, run),
        nodes=incident.nodes,
        severity=incident.severity,
    )
    return run.approved


def valid(ctx: Context, run: Run) -> bool:
    """Whether the run has an approval for its present rung that is not void."""
    return run.approved is not None and not void(ctx, run)


def void(ctx: Context, run: Run) -> str:
    """Why the given approval is void; empty: it is valid, or none was given."""
    given = run.approved
    if given is None:
        return ""
    incident = ctx.state.incidents[run.incident]
    if given.what != _what(run):
        return "it was for another step"
    if ctx.now > given.until:
        return "its time is over"
    if incident.severity < given.severity:
        return f"the incident is {incident.severity} now"
    if incident.nodes > given.nodes:
        return f"{incident.nodes} nodes show it now"
    new = [symptom for symptom in _symptoms(ctx, run) if symptom not in given.symptoms]
    return f"{new[0]} has come up since" if new else ""


def _what(run: Run) -> str:
    rungs = plans.rungs(run)
    if run.rung >= len(rungs):
        return ""
    rung = rungs[run.rung]
    params = sorted(plans.params(run, rung).items())
    given = ", ".join(f"{name}={value}" for name, value in params)
    return f"{rung.name}: {rung.do}({given}) on {run.scope}"


def _symptoms(ctx: Context, run: Run) -> list[str]:
    return [
        key
        for key in ctx.state.incidents[run.incident].symptoms
        if (state := ctx.state.symptoms.get(key)) is not None and state.active
    ]

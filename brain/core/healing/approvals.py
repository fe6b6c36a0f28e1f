"""Approvals: who agreed, to what exactly, until when. An approval becomes void when the circumstances get worse."""

from dataclasses import replace

from brain.core.context import Context
from brain.core.healing import plans
from brain.core.state import Approval, Run


def give(ctx: Context, run: Run, who: str) -> Approval:
    """Records that `who` approves the run's present rung under the present circumstances."""
    incident = ctx.state.incidents[run.incident]
    run.approved = Approval(
        who=who,
        until=ctx.now + ctx.compiled.settings.approval_s,
        what=what(run),
        symptoms=_symptoms(ctx, run),
        nodes=incident.nodes,
        severity=incident.severity,
        windows=_windows(ctx, run),
        protected=_protected(ctx, run),
    )
    return run.approved


def valid(ctx: Context, run: Run) -> bool:
    """Whether the run has an approval for its present rung that is not void."""
    return run.approved is not None and not void(ctx, run)


def end_if_void(ctx: Context, run: Run) -> None:
    """An approval that has become void stays so, whatever the circumstances are later."""
    why = void(ctx, run)
    if run.approved is not None and why:
        run.approved = replace(run.approved, ended=why)


def void(ctx: Context, run: Run) -> str:
    """Why the given approval is void; empty: it is valid, or none was given."""
    given = run.approved
    if given is None:
        return ""
    if given.ended:
        return given.ended
    incident = ctx.state.incidents[run.incident]
    if given.what != what(run):
        return "it was for another step"
    if ctx.now > given.until:
        return "its time is over"
    if incident.severity < given.severity:
        return f"the incident is {incident.severity} now"
    if incident.nodes > given.nodes:
        return f"{incident.nodes} nodes show it now"
    opened = [window for window in _windows(ctx, run) if window not in given.windows]
    if opened:
        return f"the maintenance window of {opened[0].split()[0]} has opened since"
    job = _protected(ctx, run)
    if job and job != given.protected:
        return f"protected job {job} runs there now"
    new = [symptom for symptom in _symptoms(ctx, run) if symptom not in given.symptoms]
    return f"{new[0]} has come up since" if new else ""


def _windows(ctx: Context, run: Run) -> list[str]:
    return [
        f"{window.scope} {window.since:.0f}"
        for window in ctx.compiled.settings.maintenance
        if window.since <= ctx.now < window.until and ctx.compiled.topology.contains(window.scope, run.scope)
    ]


def _protected(ctx: Context, run: Run) -> str:
    answer = ctx.state.jobs.get(run.node)
    return answer.protected if answer is not None else ""


def rung(run: Run) -> str:
    """The name of the rung that an approval would be for; empty: none is left."""
    rungs = plans.rungs(run)
    return rungs[run.rung].name if run.rung < len(rungs) else ""


def what(run: Run) -> str:
    """What an approval would be for, exactly: rung, action, parameters and scope; empty: no rung is left."""
    rungs = plans.rungs(run)
    if run.rung >= len(rungs):
        return ""
    present = rungs[run.rung]
    params = sorted(plans.params(run, present).items())
    given = ", ".join(f"{name}={value}" for name, value in params)
    return f"{present.name}: {present.do}({given}) on {run.scope}"


def _symptoms(ctx: Context, run: Run) -> list[str]:
    return [
        key
        for key in ctx.state.incidents[run.incident].symptoms
        if (state := ctx.state.symptoms.get(key)) is not None and state.active
    ]

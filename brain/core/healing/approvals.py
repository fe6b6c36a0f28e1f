"""Approvals: who agreed, to what exactly, until when. An approval becomes void when the circumstances get worse."""

from collections.abc import Container
from dataclasses import replace

from brain.core.context import Context
from brain.core.healing import plans
from brain.core.pack.spec import Priority, Window
from brain.core.state import Approval, Run, State


def give(ctx: Context, run: Run, who: str) -> Approval:
    """Records that `who` approves the run's present rung under the present circumstances."""
    incident = ctx.state.incidents[run.incident]
    run.approved = Approval(
        who=who,
        until=ctx.now + ctx.compiled.settings.approval_s,
        what=what(run),
        symptoms=active_symptoms(ctx.state, run),
        nodes=incident.nodes,
        severity=incident.severity,
        windows=_windows(ctx, run),
        protected=protected_job(ctx.state, run),
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
    if given.what != what(run):
        return "it was for another step"
    if ctx.now > given.until:
        return "its time is over"
    return worse(
        ctx,
        run,
        severity=given.severity,
        nodes=given.nodes,
        windows=given.windows,
        protected=(given.protected,),
        symptoms=given.symptoms,
    )


def worse(
    ctx: Context,
    run: Run,
    *,
    severity: Priority,
    nodes: int,
    windows: Container[str],
    protected: Container[str],
    symptoms: Container[str],
) -> str:
    """What is worse now than when things stood so; empty: nothing."""
    incident = ctx.state.incidents[run.incident]
    if incident.severity < severity:
        return f"the incident is {incident.severity} now"
    if incident.nodes > nodes:
        return f"{incident.nodes} nodes show it now"
    opened = [window for window in _windows(ctx, run) if window not in windows]
    if opened:
        return f"the maintenance window of {opened[0].split()[0]} has opened since"
    job = protected_job(ctx.state, run)
    if job and job not in protected:
        return f"protected job {job} runs there now"
    new = [symptom for symptom in active_symptoms(ctx.state, run) if symptom not in symptoms]
    return f"{new[0]} has come up since" if new else ""


def window_text(window: Window) -> str:
    """By which a maintenance window is known."""
    return f"{window.scope} {window.since:.0f}"


def _windows(ctx: Context, run: Run) -> list[str]:
    return [
        window_text(window)
        for window in ctx.compiled.settings.maintenance
        if window.since <= ctx.now < window.until and ctx.compiled.topology.contains(window.scope, run.scope)
    ]


def protected_job(state: State, run: Run) -> str:
    """The protected job on the run's node, by the scheduler's last answer; empty: none, or nobody has asked."""
    answer = state.jobs.get(run.node)
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


def active_symptoms(state: State, run: Run) -> list[str]:
    """Those of the run's incident: `<symptom>@<scope>`."""
    return [
        key
        for key in state.incidents[run.incident].symptoms
        if (one := state.symptoms.get(key)) is not None and one.active
    ]

"""Where a runbook that asks for people may do without them: `alone_if`, and the site's `restart_lost_nodes_s`.

A silent node may be one whose agent alone is dead, beside a job that runs. Where its scheduler, which has a daemon of its own
there, hears nothing of it either and has given up what ran there, a restart ends nothing that anybody counts on.
"""

from dataclasses import dataclass

from agent.contract.actions.spec import Disrupts
from agent.contract.commands import Outcome
from agent.contract.counted import span
from brain.core import ids
from brain.core.context import Context
from brain.core.effects import AskJobs
from brain.core.pack.spec import Mode, Runbook
from brain.core.state import Run

LOST_BY = "lost_by"  # which scheduler it is, as the symptom of `alone_if` carries it
ASKED_S = 10.0  # how soon the scheduler is asked again what runs there
LOOK_S = 600.0  # how soon a long wait is judged anew: the site may want another one by then


def loosest(ctx: Context, runbook: Runbook) -> Mode:
    """The loosest mode that the runbook may have anywhere on this site."""
    return Mode.AUTO if _wanted(ctx, runbook) else runbook.at_most


@dataclass(frozen=True, slots=True)
class Alone:
    """What a run may do now without people."""

    # the loosest mode that it may have
    at_most: Mode
    # what keeps it from being auto; empty: nothing does, or nothing ever would
    kept: str = ""
    # people are not asked before that: it may need none of them
    wait_s: float = 0.0


def judge(ctx: Context, run: Run) -> Alone:
    """The scheduler is asked what runs there, where all depends on it; its answer wakes the run."""
    spec = run.runbook
    if not _wanted(ctx, spec) or run.requested_by or not run.node:
        return Alone(spec.at_most)
    node, after_s = ctx.state.nodes.get(run.node), ctx.compiled.settings.restart_lost_nodes_s
    if node is None or node.alive:
        return Alone(spec.at_most)
    name = spec.name
    left_s = node.silent_at + after_s - ctx.now
    if left_s > 0:
        return _wait(
            spec,
            f"{name} may go on without an approval once {run.node} has been silent for {span(after_s)}",
            left_s,
        )
    done, left_s = _restarted(ctx, run.node), 0.0
    if done is not None:
        left_s = done[0] + after_s - ctx.now
    if done is not None and left_s > 0:
        return _wait(
            spec,
            f"{name} may go on without an approval when {span(after_s)} have passed since {done[1]}",
            left_s,
        )
    symptom = ctx.state.symptoms.get(ids.key(spec.alone_if, f"node/{run.node}"))
    if symptom is None or not symptom.active:
        known = ctx.compiled.symptoms.get(spec.alone_if)
        return Alone(spec.at_most, f"nothing says that {known.summary if known else spec.alone_if}")
    answer = ctx.state.jobs.get(run.node)
    if answer is None:
        ask = AskJobs(node=run.node)
        if ask not in ctx.effects:
            ctx.effects.append(ask)
        run.jobs_asked_since = run.jobs_asked_since or ctx.now
        if ctx.now - run.jobs_asked_since < ctx.compiled.settings.page_repeat_s[0]:
            return _wait(
                spec,
                f"{name} may go on without an approval if no job runs there: the scheduler is asked",
                ASKED_S,
            )
        return Alone(spec.at_most, "the scheduler has not said what runs there")
    run.jobs_asked_since = 0.0
    if not answer.known:
        return Alone(spec.at_most, f"it is not known what runs there: {answer.why}")
    if answer.jobs:
        return Alone(spec.at_most, f"by the scheduler {answer.jobs[0]} runs there")
    by = symptom.carried.get(LOST_BY, "")
    if not answer.scheduler or answer.scheduler != by:
        return Alone(spec.at_most, f"it is not {by or 'its scheduler'} that has answered")
    return Alone(Mode.AUTO)


def _wait(runbook: Runbook, why: str, left_s: float) -> Alone:
    return Alone(runbook.at_most, why, min(left_s, LOOK_S))


def _restarted(ctx: Context, node: str) -> tuple[float, str] | None:
    """When and by which action somebody has last restarted or switched the node by us: it may be booting since then."""
    done = [
        (step.at, step.action)
        for run in ctx.state.runs.values()
        if run.node == node
        for step in run.steps
        if _takes_away(ctx, step.action) and step.outcome in (Outcome.OK, Outcome.UNKNOWN)
    ]
    return max(done, default=None)


def _takes_away(ctx: Context, action: str) -> bool:
    spec = ctx.actions.get(action)
    return spec is not None and spec.takes_node_away and spec.disrupts is not Disrupts.NOTHING


def _wanted(ctx: Context, runbook: Runbook) -> bool:
    settings = ctx.compiled.settings
    return bool(runbook.alone_if) and settings.restart_lost_nodes_s > 0 and settings.ask_jobs

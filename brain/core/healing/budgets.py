"""The gates of law 1: one disruptive run on a node, and no more at once than the budgets of its places, job and runbook."""

from agent.contract.counted import counted
from brain.core.context import Context
from brain.core.healing.verdicts import Case, Decision, Verdict
from brain.core.pack.topology import type_of
from brain.core.state import Run

# A drain that has waited this long for jobs no longer counts against the budgets, nor do tests that take longer after the
# node was last disturbed. Until then they do: budgets also limit how fast faults are acted on, so that a shared cause has time
# to show on other nodes.
LONG_WAIT_S = 900.0
_COUNTED = ("chassis", "leaf", "rack", "pod")  # places with a budget of their own (law 1)


def one_per_node(case: Case) -> Verdict | None:
    """Law 1: never two disruptive runs on one node."""
    for other, node in case.ctx.index.claims.items():
        if other != case.run.id and case.run.node and node == case.run.node:
            return Verdict(
                answer=Decision.HOLD, gate="one_per_node", reason=f"{other} works on {case.run.node}"
            )
    return None


def budget(case: Case) -> Verdict | None:
    """Law 1: never more runs at once than the budgets of cell, runbook, job, chassis, leaf, rack and pod.

    A run whose drain has waited for jobs for a while, and may for days, or that has long only tested its node, keeps the node
    and uses up no budget: it is asked for one again before it disturbs anything more.
    """
    at_work = (
        case.run.claimed and case.run.disrupted
    )  # else a budget may have been lowered since it was chosen
    if at_work and not keeps_its_node_only(case.ctx, case.run):
        return None
    settings, others = case.ctx.compiled.settings, _at_work(case)
    if len(others) >= settings.disruptive_runs:
        return _over("cell", len(others), settings.disruptive_runs)
    same = sum(1 for other in others if case.ctx.state.runs[other].runbook.name == case.run.runbook.name)
    if same >= settings.disruptive_runs_per_runbook:
        return _over(case.run.runbook.name, same, settings.disruptive_runs_per_runbook)
    over = _over_job(case)
    if over is not None:
        return over
    for place in case.ctx.compiled.topology.above(case.run.node) if case.run.node else ():
        if type_of(place) in _COUNTED:
            here = sum(1 for node in others.values() if place in case.ctx.compiled.topology.above(node))
            if here >= settings.disruptive_runs_per_leaf:
                return _over(place, here, settings.disruptive_runs_per_leaf)
    return None


def _at_work(case: Case) -> dict[str, str]:
    """The other runs that disrupt their nodes now -> node."""
    return {
        other: node
        for other, node in case.ctx.index.claims.items()
        if other != case.run.id and not keeps_its_node_only(case.ctx, case.ctx.state.runs[other])
    }


def keeps_its_node_only(ctx: Context, run: Run) -> bool:
    """Whether for LONG_WAIT_S the run has only kept new jobs away: it waited for the running ones, or tested the node."""
    if not run.steps:
        return False
    newest = run.steps[-1]
    spec = ctx.actions.get(newest.action)
    if spec is None:
        return False
    if run.worked or spec.tests:
        return ctx.now - run.disturbed_at >= LONG_WAIT_S
    waits = spec.drains and not spec.heals and not spec.takes_node_away
    return waits and ctx.now - newest.at >= LONG_WAIT_S


def _over_job(case: Case) -> Verdict | None:
    """At most `disruptive_runs_per_job` runs on nodes of one job. A job that the scheduler has not named is not counted."""
    answer = case.ctx.state.jobs.get(case.run.node)
    most = case.ctx.compiled.settings.disruptive_runs_per_job
    for job in answer.jobs if answer is not None else ():
        same = sum(1 for other in _at_work(case) if job in case.ctx.state.runs[other].jobs)
        if same >= most:
            return _over(f"job {job}", same, most)
    return None


def _over(what: str, have: int, most: int) -> Verdict:
    return Verdict(
        answer=Decision.HOLD,
        gate="budget",
        reason=f"{counted(have, 'disruptive run')} in {what}, at most {most} at once",
    )

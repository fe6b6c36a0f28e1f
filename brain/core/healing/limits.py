"""Gates that count over time: how often a remedy was tried, a node healed, a cause treated, the cell disrupted.

And what they count: `claim` keeps it when a disruptive rung begins.
"""

from collections.abc import Iterable, Iterator

from agent.contract.actions.spec import Disrupts
from agent.contract.counted import counted
from brain.core import ids
from brain.core.context import Context
from brain.core.faults import creeping, job_suspects, lemons, racks, sprees
from brain.core.healing import approvals, plans, unanswered
from brain.core.healing.verdicts import Case, Decision, Verdict
from brain.core.pack.topology import CELL, type_of
from brain.core.paging import escalation
from brain.core.people import SCHEDULE
from brain.core.state import Disruption, Incident, NodeJobs, Run, RunState

RELATED = "related"  # the gate that people must hear of: it holds nodes for a reason that only they can find
DAY_S = 86_400.0
# In a large job five nodes that need one remedy within a day are chance: Llama 3's 2,007 nodes had 7.8 faults a day, two of which
# need the commonest remedy (arXiv 2407.21783, table 5). So one node in so many is what a day brings.
ONE_A_DAY_OF = 250


def breaker(case: Case) -> Verdict | None:
    """Too many disruptive runs in a short time: the mistake may be ours. Only an operator resets the breaker."""
    state, settings = case.ctx.state, case.ctx.compiled.settings
    if not case.run.counted and state.tripped:
        nodes, minutes = counted(settings.breaker_runs, "node"), settings.breaker_within_s / 60
        reason = f"{nodes} disrupted within {minutes:.0f} minutes: say `reset`"
        return Verdict(answer=Decision.HOLD, gate="breaker", reason=reason, retry_s=300)
    return None


def tries(case: Case) -> Verdict | None:
    """Law 8: a remedy that was tried `tries` times in the runbook's window is not tried again, on a part and its node together.

    A last resort, which stands in for such a remedy, only fences: it may always be tried.
    """
    if case.run.counted or case.run.requested_by:
        return None
    stands_in = case.ctx.compiled.runbooks.get(case.incident.runbook)
    if stands_in is not None and stands_in.last_resort == case.run.runbook.name:
        return None
    before = [at for at in _tried(case) if at > case.ctx.now - case.run.runbook.tries_within_s]
    if len(before) >= case.run.runbook.tries:
        hours = case.run.runbook.tries_within_s / 3600
        return Verdict(
            answer=Decision.STOP,
            gate="tries",
            reason=f"{case.run.runbook.name} was tried {counted(len(before), 'time')} here in {hours:.0f} h",
        )
    return None


def _tried(case: Case) -> list[float]:
    """When this remedy was tried for this fault at the run's scope, or at one that contains it or lies within it."""
    found: list[float] = []
    for key, times in case.ctx.state.tries.items():
        runbook, fault = ids.split(key)
        cause, scope = ids.split(fault)
        same = runbook == case.run.runbook.name and cause == case.incident.cause
        if same and case.ctx.compiled.topology.overlap(scope, case.run.scope):
            found += times
    return found


def offender(case: Case) -> Verdict | None:
    """Law 8: a node or a chassis that needs one remedy after the other, whatever each was for, goes to a person."""
    ctx, run = case.ctx, case.run
    if run.counted or run.requested_by or not run.node:
        return None
    settings = ctx.compiled.settings
    limits = (
        (1, settings.remedies_per_day),
        (7, settings.remedies_per_week),
        (30, settings.remedies_per_month),
    )
    for name, nodes in _remedied(ctx, run.node):
        for days, most in limits:
            count = _count(nodes, ctx.now - days * DAY_S, most, shared=name != run.node)
            if count >= most and _heals(ctx, run):
                period = "a day" if days == 1 else f"{days} days"
                reason = f"{name} had {count} remedies within {period}: another one would hide what is wrong with it"
                return Verdict(answer=Decision.STOP, gate="offender", reason=reason)
    return None


def answers(case: Case) -> Verdict | None:
    """A node that is heard and did not answer a step goes to a person: it would hold what others wait for (decisions 33, 37).

    Until it answers, or starts anew; not any more when it has left several steps so within a day.
    """
    ctx, run = case.ctx, case.run
    node = ctx.state.nodes.get(run.node)
    if node is None or run.requested_by or approvals.valid(ctx, run):
        return None
    lately = sum(at > ctx.now - DAY_S for at in node.unanswered)
    if lately >= unanswered.REMEMBERED:
        reason = f"{run.node} is heard, and has left {lately} steps without a result within a day"
        return Verdict(answer=Decision.STOP, gate="answers", reason=reason)
    if not node.unanswered_at or node.booted_at > node.unanswered_at:
        return None
    reason = f"{run.node} is heard, and has not answered what it was told to do"
    return Verdict(answer=Decision.STOP, gate="answers", reason=reason)


def _remedied(ctx: Context, node: str) -> Iterator[tuple[str, list[list[float]]]]:
    """When remedies began on the node, and on each node of its chassis: its power supplies and its backplane are shared."""
    known, above = ctx.state.remedied, ctx.compiled.topology.above
    yield node, [known.get(node, [])]
    for chassis in (place for place in above(node) if type_of(place) == "chassis"):
        yield chassis, [times for other, times in known.items() if chassis in above(other)]


def _count(nodes: list[list[float]], since: float, most: int, *, shared: bool) -> int:
    """How many remedies there were. Of a chassis only when several of its nodes had some, and of each less than `most`: no
    node alone uses up what the others may have (decision 33).
    """
    counts = [count for times in nodes if (count := sum(at > since for at in times))]
    if not shared:
        return sum(counts)
    return sum(min(count, most - 1) for count in counts) if len(counts) > 1 else 0


def _heals(ctx: Context, run: Run) -> bool:
    """Whether the run's ladder has a rung that is to heal and disturbs the whole node, such as a reset or a reboot."""
    return any(
        plans.disrupts(ctx, rung) in (Disrupts.NODE, Disrupts.FABRIC) and ctx.actions[rung.do].heals
        for rung in run.runbook.rungs
    )


def related(case: Case) -> Verdict | None:
    """Law 6: when one fault after the other needs the same remedy, they belong together, though never many at once."""
    ctx, run = case.ctx, case.run
    if run.counted or not run.node or run.requested_by or approvals.valid(ctx, run):
        return None
    why = _within_the_hour(case) or _where_one_job_ran(case) or _within_a_day(case) or _in_one_place(case)
    if not why:
        return None
    reason = f"{why}; `gpuward approve` lets this one go on"
    return Verdict(answer=Decision.HOLD, gate=RELATED, reason=reason, retry_s=300)


def _within_the_hour(case: Case) -> str:
    """So many other nodes were treated for one cause within the hour, or wait for it.

    The number is the same for a cell of any size, unlike those of a day. One node in 1,000 a day needs the commonest remedy
    (ONE_A_DAY_OF), so in the largest cell (10,000 nodes) by 0.4 an hour: five within an hour come by chance about three times a
    year there, and cost one approval; in a cell of 2,000 they do not in a lifetime. A share of the cell would let a bad
    release or rule treat 40 nodes of the largest one before anybody is asked.
    """
    ctx, run, settings = case.ctx, case.run, case.ctx.compiled.settings
    nodes = _nodes_of(_treated(case, settings.breaker_within_s))
    waiting = [node for node in others_waiting(ctx, run) if node not in nodes]
    if run.node in nodes or len(nodes) + len(waiting) < settings.same_cause_nodes:
        return ""
    if not nodes:
        few = f"at least {settings.same_cause_nodes} other nodes"
        return f"{few} began to wait with {case.incident.cause} within a day: these belong together"
    why = _were_treated(case, nodes, f"{settings.breaker_within_s / 60:.0f} minutes")
    why += ", and others wait" if len(nodes) < settings.same_cause_nodes else ""
    return f"{why}: these belong together{_in_common(ctx, [*nodes, run.node])}"


def _where_one_job_ran(case: Case) -> str:
    """A job that is requeued takes what it does to its nodes with it."""
    job, nodes = _of_one_job(case.ctx, case.run)
    if not job:
        return ""
    why = f"{_were_treated(case, nodes, 'a day')}, and job {job} ran on each of them as it does here"
    return f"{why}: these belong together"


def _of_one_job(ctx: Context, run: Run) -> tuple[str, list[str]]:
    """The job that ran on so many other nodes when the same fault was treated there, and on this one; and these nodes."""
    answer, cause = ctx.state.jobs.get(run.node), ctx.state.incidents[run.incident].cause
    today = [each for each in ctx.state.began if each.at > ctx.now - DAY_S and each.cause == cause]
    for job in dict.fromkeys([*run.jobs, *(answer.jobs if answer is not None else ())]):
        nodes = _nodes_of(each for each in today if job in each.jobs)
        most = max(ctx.compiled.settings.same_cause_nodes, _size(answer, job) // ONE_A_DAY_OF)
        if run.node not in nodes and len(nodes) >= most:
            return job, nodes
    return "", []


def _size(answer: NodeJobs | None, job: str) -> int:
    """How many nodes the job has, as its scheduler has said for the gates; 0: it has not."""
    return next((one.nodes for one in answer.seen if one.id == job), 0) if answer is not None else 0


def _within_a_day(case: Case) -> str:
    ctx, run = case.ctx, case.run
    nodes = _nodes_of(_treated(case, DAY_S))
    most = max(ctx.compiled.settings.same_cause_nodes_per_day, len(ctx.state.nodes) // 100)
    if run.node in nodes or len(nodes) < most or not _heals(ctx, run):
        return ""
    return (
        f"{_were_treated(case, nodes, 'a day')}: these belong together{_in_common(ctx, [*nodes, run.node])}"
    )


def _in_one_place(case: Case) -> str:
    """The place may be the cause, though its nodes fall ill too slowly to be counted together."""
    treated = [node for node in _nodes_of(_treated(case, creeping.WITHIN_S)) if node != case.run.node]
    why = creeping.of_one_place(case.ctx, case.run.node, case.run.scope, treated) if treated else ""
    return f"{case.incident.cause}: {why}" if why else ""


def _treated(case: Case, within_s: float) -> list[Disruption]:
    """Where disruptive runs for the same cause began."""
    since = case.ctx.now - within_s
    return [each for each in case.ctx.state.began if each.at > since and each.cause == case.incident.cause]


def _nodes_of(began: Iterable[Disruption]) -> list[str]:
    return list(dict.fromkeys(each.node for each in began))


def _were_treated(case: Case, nodes: list[str], within: str) -> str:
    named = ", ".join(nodes[:6])
    return f"{case.incident.cause} was treated on {counted(len(nodes), 'node')} within {within} ({named})"


def waits_for_people(run: Run) -> bool:
    """Is it held with others for a reason that only people can find, so that an approval lets it go on?"""
    return run.state in (RunState.HELD, RunState.APPROVAL) and run.why.endswith(f"(gate {RELATED})")


def others_waiting(ctx: Context, run: Run) -> list[str]:
    """The other nodes that wait for this reason, with the same cause: they belong together when the first remedies are past.

    Each counts once, however many faults it tells, and for a day from when it was first held, never anew: so what one
    node says holds nobody, and none hold each other for ever.
    """
    cause = ctx.state.incidents[run.incident].cause
    return list(
        dict.fromkeys(
            other.node
            for other in ctx.state.runs.values()
            if other.node not in ("", run.node)
            and other.related_since > ctx.now - DAY_S
            and waits_for_people(other)
            and ctx.state.incidents[other.incident].cause == cause
        )
    )


def wait_for_people(ctx: Context, run: Run) -> bool:
    """The run waits for this reason, with what runs on its node now. Returns whether people are to be told: of the first two
    nodes. One alone may have made it up, and what the third has to say is known.
    """
    waiting = others_waiting(ctx, run)
    first = len(waiting) < 2
    cause = ctx.state.incidents[run.incident].cause
    answer = ctx.state.jobs.get(run.node)
    run.related_since = run.related_since or ctx.now
    run.jobs = run.jobs or (list(answer.jobs) if answer is not None else [])
    job, nodes = _of_one_job(ctx, run)
    if job:
        ctx.changed.extend(job_suspects.suspected(ctx, job, cause, [*nodes, run.node]))
    elif len(waiting) >= ctx.compiled.settings.same_cause_nodes:
        lately = _nodes_of(each for each in began_lately(ctx) if each.cause == cause)
        ctx.changed.extend(sprees.held(ctx, cause, lately, [*waiting, run.node]))
    return first


def _in_common(ctx: Context, nodes: list[str]) -> str:
    """What all the nodes share and not the whole cell does, as a clause."""
    above = [ctx.compiled.topology.above(node) for node in nodes]
    shared = [place for place in above[0] if place != CELL and type_of(place) != "fabric"]
    shared = [place for place in shared if all(place in places for places in above)]
    return f", they share {' and '.join(shared)}" if shared else ""


def occupy(ctx: Context, run: Run) -> None:
    """Claims the node: until the run waits or ends, no other run disrupts it."""
    run.claimed = True
    ctx.index.claims[run.id] = run.node


def claim(ctx: Context, run: Run) -> None:
    """Claims the node for a disruptive rung; the first time the run counts for the breaker and the node's limits."""
    occupy(ctx, run)
    answer = ctx.state.jobs.get(run.node)
    run.jobs = list(answer.jobs) if answer is not None else []
    if run.requested_by == SCHEDULE or run.counted:
        return  # an inspection is no remedy, and every node gets one
    run.counted = True
    settings, state = ctx.compiled.settings, ctx.state
    incident = state.incidents[run.incident]
    if run.node and not run.requested_by and _heals(ctx, run):
        times = [at for at in state.remedied.get(run.node, ()) if at > ctx.now - 30 * DAY_S]
        state.remedied[run.node] = [*times, ctx.now][-settings.remedies_per_month :]
        ctx.changed.extend(lemons.remedied(ctx, run.node, incident.cause))
        ctx.changed.extend(racks.remedied(ctx, run.node, incident.cause))
    disruption = Disruption(
        at=ctx.now, node=run.node or run.scope, cause=incident.cause, jobs=tuple(run.jobs)
    )
    kept_s = max(settings.breaker_within_s, DAY_S)
    state.began = [each for each in state.began if each.at > ctx.now - kept_s] + [disruption]
    nodes = _nodes_of(began_lately(ctx))  # one node alone cannot trip it
    if len(nodes) >= settings.breaker_runs and not state.tripped:
        state.tripped = ctx.now
        why = f"disruptive runs on {counted(len(nodes), 'node')} within {settings.breaker_within_s / 60:.0f} minutes"
        ctx.note("breaker.tripped", f"{why}: no further one begins until a person says `reset`")
        escalation.urgent(ctx, incident, f"the breaker has tripped: {why}")


def began_lately(ctx: Context) -> list[Disruption]:
    """The disruptive runs that count for the breaker, and for whose turn at a budget it is."""
    since = ctx.now - ctx.compiled.settings.breaker_within_s
    return [each for each in ctx.state.began if each.at > since]


def tries_key(run: Run, incident: Incident) -> str:
    """Key of State.tries: one runbook for one cause at one scope is the same remedy for the same fault."""
    return ids.key(run.runbook.name, ids.key(incident.cause, run.scope))

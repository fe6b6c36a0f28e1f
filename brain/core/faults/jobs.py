"""Jobs as places: which nodes a job runs on, as its own logs and the scheduler's answers tell. Pure.

A job is no place of the topology: its nodes change with each job, and nobody lists them. What its log tells on a node names it
(`component` of the event: `job/4711`), and a symptom that a rule counts by jobs keeps by which jobs it was told. So a job is
judged only by what the logs of jobs tell; a part that fails is no word of the job that ran there, and on nodes that one job
fills, each fault of a switch would else be the job's. Decision 65.

Faults of GPUs are counted by the jobs that the scheduler names on their nodes, too, where it says how many nodes a job has: what
stayed well in the job and what fell ill beside it then tell whether it is the job, as of any other place.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from agent.contract.messages import Event
from brain.core import ids
from brain.core.context import Context
from brain.core.effects import AskJobs
from brain.core.pack.spec import Symptom
from brain.core.pack.topology import CELL, JOB, node_of, type_of
from brain.core.state import Incident, SymptomState

LATELY = 16  # nodes that fell ill last, by which it is decided whether the scheduler is asked about others
NAMED = 3  # when one job was named on so many of them
MAX_ASKED = 256  # questions about nodes that are out at most
MAX_JOBS = 8  # jobs of one node whose logs told one symptom; a node has as many GPUs


def told_by(ctx: Context, symptom: Symptom, state: SymptomState, event: Event) -> bool:
    """A fact came. Whether the log of another job than before told it, where nodes are counted by jobs."""
    job = event.component
    if symptom.name not in ctx.compiled.by_job or type_of(job) != JOB or job in state.jobs:
        return False
    if len(state.jobs) >= MAX_JOBS:
        return False
    state.jobs.append(job)
    return True


def nodes_of(ctx: Context, job: str) -> Iterable[str]:
    """The nodes on which a job, `job/4711`, shows what its nodes are counted by now, each once."""
    return dict.fromkeys(
        node for wide in ctx.index.active.get(job, {}).values() for node in wide.members
    )  # of one symptom mostly


def around(ctx: Context, of: str, nodes: Iterable[str]) -> dict[str, None]:
    """The jobs by which these nodes show a symptom."""
    if of not in ctx.compiled.by_job and of not in ctx.compiled.by_scheduler:
        return {}
    return {
        job: None
        for node in nodes
        for state in ctx.index.active.get(node, {}).values()
        if state.name == of
        for job in state.jobs
    }


def falls_ill(ctx: Context, of: str, node: str) -> None:
    """A fault shows on a node. If it is one of GPUs, and the scheduler has named one job on several of the nodes that fell ill
    last, it is asked what runs there.
    """
    if of not in ctx.compiled.by_scheduler:
        return
    named = Counter(
        job
        for other_node in islice(reversed(in_the_cell(ctx, of)), LATELY)
        for other in ctx.index.active.get(other_node, {}).values()
        if other.name == of
        for job in dict.fromkeys(other.jobs)
    )
    if max(named.values(), default=0) >= NAMED:
        ask(ctx, (node,))


def ask(ctx: Context, nodes: Iterable[str]) -> None:
    """Asks the scheduler what runs on the nodes, for people and for the judgement of places."""
    for node in nodes:
        if node not in ctx.state.asked and len(ctx.state.asked) < MAX_ASKED:
            ctx.state.asked[node] = ctx.now
            ctx.effects.append(AskJobs(node=node, people=True))


def in_the_cell(ctx: Context, of: str) -> dict[str, float]:
    """The nodes of the cell that show a symptom -> when it began there."""
    for counter in ctx.compiled.spreads.get(of, ()):
        wide = ctx.state.symptoms.get(ids.key(counter.name, CELL)) if counter.scope == CELL else None
        if wide is not None:
            return wide.members
    return {}


def holds(ctx: Context, job: str, node: str) -> bool:
    """Whether the node is one of those of the job, as far as it is known by what they show."""
    return any(node in wide.members for wide in ctx.index.active.get(job, {}).values())


def telling(ctx: Context, cause: str, scope: str) -> dict[str, None]:
    """The jobs whose logs alone tell a cause on a node: `node/n1`."""
    node = node_of(scope)
    told = [
        state
        for state in ctx.index.active.get(node, {}).values()
        if state.jobs
        and state.name in ctx.compiled.by_job
        and any(cause == (rule.cause or rule.name) for rule in ctx.compiled.named_by.get(state.name, ()))
    ]
    return {job: None for state in told if state.scope == scope for job in state.jobs}


def ran_at(ctx: Context, job: str, incident: Incident) -> bool:
    """Whether the job runs on the incident's node, or did when that began or its remedy: by its logs, or by the scheduler."""
    if holds(ctx, job, incident.node) or was_hit(incident, job):
        return True
    if any(job in state.jobs for state in ctx.index.active.get(incident.node, {}).values()):
        return True
    name = job.partition("/")[2]
    return any(name in jobs for jobs in _answered(ctx, incident))


def was_hit(incident: Incident, job: str) -> bool:
    """Whether the scheduler named the job, `job/4711`, when it was asked who is hit by the incident, on any node of it."""
    name = job.partition("/")[2]
    return any(one.job.id == name for told in incident.hit.values() for one in told.jobs)


def _answered(ctx: Context, incident: Incident) -> Iterable[Sequence[str]]:
    """What the scheduler has said of the node lately, and what it said when a run of the incident claimed the node."""
    answer = ctx.state.jobs.get(incident.node)
    if answer is not None:
        yield answer.jobs
    for run in incident.runs:
        if run in ctx.state.runs:
            yield ctx.state.runs[run].jobs

"""Jobs as places: which nodes a job runs on, as its own logs and the scheduler's answers tell. Pure.

A job is no place of the topology: its nodes change with each job, and nobody lists them. What its log tells on a node names it
(`component` of the event: `job/4711`), and a symptom that a rule counts by jobs keeps by which jobs it was told. So a job is
judged only by what the logs of jobs tell; a part that fails is no word of the job that ran there, and on nodes that one job
fills, each fault of a switch would else be the job's. Decision 65.
"""

from collections.abc import Iterable, Sequence

from agent.contract.messages import Event
from brain.core.context import Context
from brain.core.pack.spec import Symptom
from brain.core.pack.topology import JOB, type_of
from brain.core.state import Incident, SymptomState

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
    """The jobs by whose logs these nodes show a symptom."""
    if of not in ctx.compiled.by_job:
        return {}
    return {
        job: None
        for node in nodes
        for state in ctx.index.active.get(node, {}).values()
        if state.name == of
        for job in state.jobs
    }


def holds(ctx: Context, job: str, node: str) -> bool:
    """Whether the node is one of those of the job, as far as it is known by what they show."""
    return any(node in wide.members for wide in ctx.index.active.get(job, {}).values())


def ran_at(ctx: Context, job: str, incident: Incident) -> bool:
    """Whether the job runs on the incident's node, or did when the remedy of that began: by its logs, or by the scheduler."""
    if holds(ctx, job, incident.node):
        return True
    name = job.partition("/")[2]
    return any(name in jobs for jobs in _answered(ctx, incident))


def _answered(ctx: Context, incident: Incident) -> Iterable[Sequence[str]]:
    """What the scheduler has said of the node lately, and what it said when a run of the incident claimed the node."""
    answer = ctx.state.jobs.get(incident.node)
    if answer is not None:
        yield answer.jobs
    for run in incident.runs:
        if run in ctx.state.runs:
            yield ctx.state.runs[run].jobs

"""What the scheduler says of a node that has a fault of its GPUs: by which jobs it is counted (jobs.py). Pure."""

from collections.abc import Iterator, Sequence

from agent.contract.components import check
from agent.contract.errors import ContractError
from brain.core import ids
from brain.core.context import Context
from brain.core.faults import at_once, jobs, symptoms
from brain.core.jobs_seen import JobSeen
from brain.core.pack.topology import JOB
from brain.core.state import SymptomState


def named(ctx: Context, node: str, seen: Sequence[JobSeen]) -> Iterator[SymptomState]:
    """The scheduler has said which jobs run on the node. Yields the symptoms of jobs that began or grew by that.

    A job of which it does not say how many nodes it has is no place, nor is a small one: its nodes are healed one by one.
    """
    scopes = {scope: job.nodes for job in seen if job.nodes >= at_once.FEWEST and (scope := _scope(job.id))}
    for state in list(ctx.index.active.get(node, {}).values()) if scopes else ():
        counter = ctx.compiled.by_scheduler.get(state.name)
        for scope, size in scopes.items():
            if counter is None or scope in state.jobs or len(state.jobs) >= jobs.MAX_JOBS:
                continue
            state.jobs.append(scope)
            key = ids.key(counter.name, scope)
            made = SymptomState(name=counter.name, scope=scope, since=state.since)
            wide = ctx.state.symptoms.setdefault(key, made)
            wide.size = size
            yield from symptoms.count_job_in(ctx, state, scope)
            if (
                wide.active
            ):  # its answers come after its faults: it is asked again with each whether it is the place
                yield wide
            if len(wide.members) == jobs.NAMED:
                ill = jobs.in_the_cell(ctx, state.name)
                jobs.ask(ctx, [one for one in ill if one not in wide.members])


def _scope(job: str) -> str:
    """Empty for a name that is no name of a part."""
    try:
        return check(f"{JOB}/{job}")
    except ContractError:
        return ""

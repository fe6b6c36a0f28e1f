"""The jobs of a node in a sentence, and whether they may be stopped."""

from collections.abc import Sequence

from agent.contract.errors import ActionError, Refused
from brain.actions.base import Job

LISTED = 8  # jobs that one sentence lists


def unprotected(node: str, jobs: Sequence[Job]) -> None:
    """Raises Refused when one of the jobs is protected."""
    for job in jobs:
        if job.protected:
            raise Refused(f"job {job.id} on {node} is protected ({job.protected}): a person must decide")


def movable(node: str, jobs: Sequence[Job]) -> None:
    """Raises ActionError when one of the jobs cannot start again elsewhere: the others would be stopped in vain."""
    if fixed := [f"{job.id} {job.fixed}" for job in jobs if job.fixed]:
        says = "; ".join(fixed[:LISTED])
        raise ActionError(f"{node} is drained; no job was stopped, since not all can start elsewhere: {says}")


def listed(jobs: Sequence[Job]) -> str:
    """Returns how many there are, and the first LISTED of them with user, state and GPUs."""
    names = []
    for job in jobs[:LISTED]:
        gpus = f" GPU {','.join(job.gpus)}" if job.gpus else f" {job.gpu_count} GPUs" if job.gpu_count else ""
        names.append(f"{job.id} ({' '.join(filter(None, (job.user, job.state)))}{gpus})")
    more = f" and {len(jobs) - LISTED} more" if len(jobs) > LISTED else ""
    return f"{len(jobs)} {'job' if len(jobs) == 1 else 'jobs'}: {', '.join(names)}{more}"

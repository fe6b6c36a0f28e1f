"""Asks a node's scheduler what runs there, for the gates that protect jobs."""

import asyncio
from collections.abc import Callable

from agent.contract.errors import ActionError
from agent.contract.messages import clip
from brain.actions.base import Scheduler
from brain.core.inputs import JobsTold

ASK_S = 15.0
MAX_JOBS = 100  # of one node, that are compared


async def ask(schedulers: Callable[[str], Scheduler | None], node: str, id_: str) -> JobsTold:
    """What runs on `node`, as the input `id_`. A node that no scheduler has runs no jobs."""
    scheduler = schedulers(node)
    if scheduler is None:
        return JobsTold(id=id_, node=node, known=True)
    try:
        async with asyncio.timeout(ASK_S):
            jobs = await scheduler.jobs(node)
    except (ActionError, OSError, TimeoutError) as error:
        why = clip(f"{scheduler.name}: {error or f'no answer within {ASK_S:g} s'}", 200)
        return JobsTold(id=id_, node=node, known=False, why=why)
    protected = next((f"{job.id} ({job.protected})" for job in jobs if job.protected), "")
    return JobsTold(
        id=id_, node=node, known=True, jobs=tuple(job.id for job in jobs[:MAX_JOBS]), protected=protected
    )

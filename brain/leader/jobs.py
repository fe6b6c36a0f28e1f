"""Asks a node's scheduler what runs there, for the gates that protect jobs."""

import asyncio
from collections.abc import Callable

from agent.contract.errors import ActionError
from agent.contract.messages import clip
from agent.shared.tasks import Tasks
from brain.actions.base import Scheduler
from brain.actions.marks import of_a_person
from brain.core.inputs import JobsAnswer
from brain.leader.leadership import Leadership
from brain.leader.log_writer import LogWriter

ANSWER_S = 15.0
MAX_JOBS = 100  # of one node, that are compared


class JobQuestions:
    """Asks in the background; each answer becomes an input."""

    def __init__(
        self,
        *,
        schedulers: Callable[[str], Scheduler | None],
        leadership: Leadership,
        writer: LogWriter,
        background: Tasks,
    ) -> None:
        """`schedulers`: node -> the scheduler that has it."""
        self._schedulers = schedulers
        self._leadership = leadership
        self._writer = writer
        self._background = background
        self._count = 0

    def ask(self, node: str) -> None:
        """Begins to ask what runs on the node."""
        self._background.start(self._ask(node), f"jobs of {node}")

    async def _ask(self, node: str) -> None:
        self._count += 1
        id_ = f"j:{node}:{self._leadership.epoch}.{self._count}"
        self._writer.append_or_drop(await answer(self._schedulers(node), node, id_))


async def answer(scheduler: Scheduler | None, node: str, id_: str) -> JobsAnswer:
    """What runs on `node` and whose drain it has, as the input `id_`. A node that no scheduler has runs no jobs."""
    if scheduler is None:
        return JobsAnswer(id=id_, node=node, known=True)
    try:
        async with asyncio.timeout(ANSWER_S):
            jobs = await scheduler.jobs(node)
            drained = await scheduler.drained(node)
            ours = bool(drained) and (bool(await scheduler.marks(node)) or not of_a_person(drained))
    except (ActionError, OSError, TimeoutError) as error:
        why = clip(f"{scheduler.name}: {error or f'no answer within {ANSWER_S:g} s'}", 200)
        return JobsAnswer(id=id_, node=node, known=False, why=why)
    protected = next((f"{job.id} ({job.protected})" for job in jobs if job.protected), "")
    return JobsAnswer(
        id=id_,
        node=node,
        known=True,
        jobs=tuple(job.id for job in jobs[:MAX_JOBS]),
        protected=protected,
        drained=clip(drained, 200),
        ours=ours,
    )

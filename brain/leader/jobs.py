"""Asks a node's scheduler what runs there, for the gates that protect jobs and for people who want to know who is hit."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from agent.contract.errors import ActionError
from agent.contract.messages import clip
from agent.shared.tasks import Tasks
from brain.actions.base import Job, Renewing, Scheduler, Sizes, StandingDrain
from brain.actions.marks import of_a_person
from brain.core.inputs import JobsAnswer
from brain.core.jobs_seen import JobSeen, listed
from brain.leader.leadership import Leadership
from brain.leader.log_writer import LogWriter
from brain.unreadable import answered_by

ANSWER_S = 15.0
SIZES_S = 5.0  # of it, for the sizes of jobs: what a gate waits for does not wait longer for what people read
MAX_JOBS = 100  # of one node, that are compared
MAX_MARKS = 100  # of one node
AT_ONCE = 4  # questions for people: a storm of incidents must not become one of questions
MAX_WAITING = 1000  # of them; a node that does not fit is asked about later

_log = logging.getLogger(__name__)


class JobQuestions:
    """Asks in the background; each answer becomes an input. What a gate waits for is asked at once, what people read in turn."""

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
        # Nodes that people want to know of, in order, and those whose question is under way.
        self._waiting: dict[str, None] = {}
        self._under_way: dict[str, None] = {}

    def ask(self, node: str, *, people: bool = False) -> None:
        """Begins to ask what runs on the node. An answer for a gate is one for people too, where it has the sizes of the jobs."""
        if not people:
            if not isinstance(self._schedulers(node), Sizes):
                self._waiting.pop(node, None)
            self._background.start(self._ask(node, people=False), f"jobs of {node}")
        elif node in self._under_way:
            return
        elif len(self._waiting) < MAX_WAITING or node in self._waiting:
            self._waiting[node] = None
            self._next()
        else:
            why = f"{MAX_WAITING} other nodes are asked about first"
            late = JobsAnswer(id=self._id(node), node=node, known=False, why=why, people=True)
            self._writer.append_or_drop(late)

    def _next(self) -> None:
        while self._waiting and len(self._under_way) < AT_ONCE:
            node = next(iter(self._waiting))
            del self._waiting[node]
            self._under_way[node] = None
            self._background.start(self._for_people(node), f"who is hit on {node}")

    async def _for_people(self, node: str) -> None:
        try:
            if self._leadership.leads():
                await self._ask(node, people=True)
        finally:
            del self._under_way[node]
        self._next()

    async def _ask(self, node: str, *, people: bool) -> None:
        id_ = self._id(node)
        self._writer.append_or_drop(await answer(self._schedulers(node), node, id_, people=people))

    def _id(self, node: str) -> str:
        self._count += 1
        return f"j:{node}:{self._leadership.epoch}.{self._count}"


async def answer(scheduler: Scheduler | None, node: str, id_: str, *, people: bool = False) -> JobsAnswer:
    """What runs on `node` and whose drain it has, as the input `id_`. A node that no scheduler has runs no jobs."""
    if scheduler is None:
        return JobsAnswer(id=id_, node=node, known=True, people=people, scheduler="")
    name = clip(scheduler.name, 80)
    try:
        with answered_by():
            async with asyncio.timeout(ANSWER_S):
                jobs = await scheduler.jobs(node)
                found = await standing(scheduler, node)
                ours = bool(found.drained) and (bool(found.marks) or not of_a_person(found.drained))
    except (ActionError, OSError, TimeoutError) as error:
        why = clip(f"{scheduler.name}: {error or f'no answer within {ANSWER_S:g} s'}", 200)
        return JobsAnswer(id=id_, node=node, known=False, why=why, people=people, scheduler=name)
    protected = next((f"{job.id} ({job.protected})" for job in jobs if job.protected), "")
    seen = listed(map(_seen, await _sized(scheduler, jobs) if people else jobs))
    return JobsAnswer(
        id=id_,
        node=node,
        known=True,
        jobs=tuple(job.id for job in jobs[:MAX_JOBS]),
        protected=protected,
        drained=clip(found.drained, 200),
        ours=ours,
        marks=tuple(mark.incident for mark in found.marks[:MAX_MARKS]) if found.record else (),
        record=clip(found.record, 80),
        people=people,
        seen=seen,
        unlisted=len(jobs) - len(seen),
        scheduler=name,
    )


async def standing(scheduler: Scheduler, node: str) -> StandingDrain:
    """What stands on the node: where its record may be made anew, as seen at one moment, so that it is about one record."""
    if isinstance(scheduler, Renewing):
        return await scheduler.standing(node)
    drained = await scheduler.drained(node)
    return StandingDrain(drained=drained, marks=await scheduler.marks(node) if drained else ())


async def _sized(scheduler: Scheduler, jobs: Sequence[Job]) -> Sequence[Job]:
    """The jobs with their sizes. Where these are not to be had in time, people read of the jobs without them."""
    if not isinstance(scheduler, Sizes):
        return jobs
    try:
        with answered_by():
            async with asyncio.timeout(SIZES_S):
                return await scheduler.sized(jobs)
    except (ActionError, OSError, TimeoutError) as error:
        _log.info("%s does not tell how large its jobs are: %s", scheduler.name, error)
        return jobs


def _seen(job: Job) -> JobSeen:
    """As people know it: of a pod its workload and its namespace."""
    namespace, _, pod = job.id.rpartition("/")
    return JobSeen(
        id=job.id,
        name=job.owner or (job.name if job.name != pod else ""),
        user=job.user or namespace,
        nodes=job.nodes,
        gpus=max(job.gpu_count, len(job.gpus)),
    )

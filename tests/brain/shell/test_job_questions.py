"""The leader's questions to schedulers: a gate's at once, those for people in turn, and both answered with whose the jobs are."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from math import inf
from typing import Any, cast

import pytest

from agent.contract.errors import Unreachable
from agent.shared.tasks import Tasks
from brain.actions.base import Job, Scheduler, Sizes, Wanted, always
from brain.actions.marks import Mark
from brain.core.inputs import Input, JobsAnswer
from brain.core.jobs_seen import MAX_SEEN, JobSeen
from brain.leader import jobs
from brain.leader.jobs import AT_ONCE, MAX_WAITING, JobQuestions


class Queue:
    """A scheduler that answers when it is let."""

    name = "queue"

    def __init__(self, listed: Sequence[Job] = (Job(id="1", user="alice", name="train", nodes=4),)) -> None:
        self.listed = list(listed)
        self.asked: list[str] = []
        self.let = asyncio.Event()

    async def jobs(self, node: str) -> list[Job]:
        """As in Scheduler."""
        self.asked.append(node)
        await self.let.wait()
        return self.listed

    async def drained(self, node: str) -> str:
        """Never."""
        return ""

    async def marks(self, node: str) -> tuple[Mark, ...]:
        """None."""
        return ()

    async def drain(self, node: str, mark: Mark) -> None:
        """Is not asked for."""

    async def resume(self, node: str, owners: Collection[str] | None) -> bool:
        """Is not asked for."""
        return False

    async def requeue(self, job: Job, *, within_s: float = inf, wanted: Wanted = always) -> None:
        """Is not asked for."""

    async def reboot(self, node: str, mark: Mark) -> None:
        """Is not asked for."""


class Sized(Queue):
    """One whose jobs come without their sizes."""

    away = False

    async def sized(self, jobs: Sequence[Job]) -> list[Job]:
        """As in Sizes."""
        if self.away:
            raise Unreachable("away")
        return [replace(job, nodes=7) for job in jobs]


class Leads:
    """It leads."""

    epoch = 3

    def leads(self) -> bool:
        """As in Leadership."""
        return True


class Log(list[Input]):
    """What was appended."""

    def append_or_drop(self, given: Input) -> None:
        """As in LogWriter."""
        self.append(given)


def questions(scheduler: Scheduler | None, log: Log, background: Tasks) -> JobQuestions:
    """Of a leader with one scheduler."""
    return JobQuestions(
        schedulers=lambda _: scheduler,
        leadership=cast("Any", Leads()),
        writer=cast("Any", log),
        background=background,
    )


async def turns() -> None:
    """Lets everything go on that can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_people_wait_in_turn_and_a_gate_does_not() -> None:
    """No more than AT_ONCE questions for people at a time, each node once; a gate's is one for people too."""
    log, queue = Log(), Queue()
    async with Tasks() as background:
        ask = questions(queue, log, background)
        for number in range(10):
            ask.ask(f"n{number}", people=True)
            ask.ask(f"n{number}", people=True)
        await turns()
        assert queue.asked == [f"n{n}" for n in range(AT_ONCE)]
        ask.ask("n9")
        await turns()
        assert queue.asked[-1] == "n9"
        queue.let.set()
        await turns()
    told = cast("list[JobsAnswer]", log)
    assert sorted(one.node for one in told) == sorted(f"n{n}" for n in range(10))
    assert [one.node for one in told if not one.people] == ["n9"]
    assert len({one.id for one in told}) == 10


async def test_a_storm_of_questions_is_bounded() -> None:
    """What does not fit is answered at once: not known, so that it is asked again later."""
    log, queue = Log(), Queue()
    async with Tasks() as background:
        ask = questions(queue, log, background)
        for number in range(MAX_WAITING + AT_ONCE + 5):
            ask.ask(f"n{number}", people=True)
        (*_, last) = cast("list[JobsAnswer]", log)
        assert len(log) == 5
        assert (last.known, last.people, last.why) == (False, True, "1000 other nodes are asked about first")


@pytest.mark.parametrize(("away", "people", "nodes"), [(False, True, 7), (True, True, 0), (False, False, 0)])
async def test_sizes_are_asked_for_people_only(away: bool, people: bool, nodes: int) -> None:
    """A gate does not wait for them, and without them people read of the job all the same."""
    scheduler = Sized([Job(id="ml/a-0", name="a-0", owner="a", workload="k=a", gpu_count=8)])
    scheduler.away = away
    scheduler.let.set()
    assert isinstance(scheduler, Sizes)
    assert not isinstance(Queue(), Sizes)
    said = await jobs.answer(scheduler, "n1", "j", people=people)
    assert said.seen == (JobSeen(id="ml/a-0", name="a", user="ml", nodes=nodes, gpus=8),)


class Odd(Sized):
    """One whose answers have another form than anybody knows."""

    async def jobs(self, node: str) -> list[Job]:
        """Breaks."""
        return [cast(Any, None).job]

    async def sized(self, jobs: Sequence[Job]) -> list[Job]:
        """Breaks, too."""
        return [replace(jobs[len(jobs)], nodes=2)]


async def test_an_answer_that_nobody_can_read_is_none_and_not_the_end_of_the_brain() -> None:
    """The gate waits as for a scheduler that is away; people read of the jobs without their sizes."""
    said = await jobs.answer(cast(Scheduler, Odd()), "n1", "j:1")
    assert not said.known
    assert "its answer has a form that nobody here knows (AttributeError" in said.why
    odd = Odd()
    odd.jobs = Queue.jobs.__get__(odd)  # type: ignore[method-assign]  # it answers this one well
    odd.let.set()
    said = await jobs.answer(cast(Scheduler, odd), "n1", "j:2", people=True)
    assert said.known
    assert [one.nodes for one in said.seen] == [4]


async def test_an_answer_is_bounded_and_says_who_gave_it() -> None:
    """Of many jobs the large ones; without a scheduler nobody has said anything."""
    many = Queue([Job(id=str(n), nodes=n) for n in range(1, 201)])
    many.let.set()
    said = await jobs.answer(many, "n1", "j", people=True)
    assert (len(said.seen), said.seen[0].nodes, said.unlisted) == (MAX_SEEN, 200, 200 - MAX_SEEN)
    assert (len(said.jobs), said.scheduler) == (jobs.MAX_JOBS, "queue")
    none = await jobs.answer(None, "n1", "j", people=True)
    assert (none.known, none.scheduler, none.seen) == (True, "", ())

"""Actions through the scheduler that manages a node: drain, resume, requeue, reboot, jobs.

A node belongs to the first table `[schedulers.<name>]` whose `nodes` pattern matches its name.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from time import monotonic
from typing import Any, ClassVar, Protocol

from agent.contract.errors import ActionError, Refused
from brain.actions.base import Action, Done, Job, NoRecord, Order, Scheduler, Site, Wanted, text
from brain.actions.jobs_said import LISTED, listed, movable, unprotected
from brain.actions.kept_drain import KeptDrain
from brain.actions.marks import of_a_person, owns, without
from brain.actions.patience import OUTAGE_S, PASSING, Patient
from brain.actions.pauses import until
from brain.actions.scheduler_orders import (
    LEAVE_S,
    MAX_WAIT_S,
    idle_wait,
    mark_of,
    names_of,
    owners_of,
    rung_of,
    wait,
)
from brain.actions.telling import telling, told
from brain.options import plug_in

Choice = Callable[[str], Scheduler | None]  # node -> the scheduler that has it
LOOK_S = 60.0  # at most between two looks whether a node is idle
PLAN_S = 15.0  # how long a plan asks a scheduler that is away
ENDING = ("completing", "terminating")  # states of jobs that are leaving


class Closing(Scheduler, Protocol):
    """A scheduler with connections."""

    async def lacking(self) -> list[str]:
        """Returns the rights that our account lacks there; nothing is changed. Errors as in `Action`."""
        ...

    async def close(self) -> None:
        """Closes them."""
        ...


# One line for each type of scheduler: a function (name, its table, "schedulers.<name>" for errors) -> Closing.
TYPES: Mapping[str, str] = {
    "slurm": "brain.actions.slurm:build",
    "kubernetes": "brain.actions.kube:build",
}


def choose(
    tables: Mapping[str, Mapping[str, Any]], on_close: Callable[[Callable[[], Awaitable[object]]], object]
) -> Choice:
    """Builds the schedulers of a configuration; ConfigError names `schedulers.<name>.<key>`."""
    choices = [(str(table.get("nodes", "*")), built(name, table)) for name, table in tables.items()]
    for _, scheduler in choices:
        on_close(scheduler.close)
    return lambda node: next((found for glob, found in choices if fnmatchcase(node, glob)), None)


def table_of(tables: Mapping[str, Mapping[str, Any]], node: str) -> str:
    """The table that has a node; empty: none has."""
    return next(
        (name for name, table in tables.items() if fnmatchcase(node, str(table.get("nodes", "*")))), ""
    )


def built(name: str, table: Mapping[str, Any]) -> Closing:
    """Builds one scheduler of a configuration; ConfigError names `schedulers.<name>.<key>`."""
    found: Closing = plug_in(table, f"schedulers.{name}", TYPES)(name, table, f"schedulers.{name}")
    return found


def area(site: Site) -> list[Action]:
    """As in Area. Without a scheduler there is only `scheduler.resume`, which then has nothing to do."""
    if not site.config.schedulers:
        return [Resume(site.schedulers)]
    return [made(site.schedulers) for made in (Drain, Idle, Resume, Requeue, Reboot, Jobs)]


class _SchedulerAction:
    """What the actions share: finding the node's scheduler."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice

    def _scheduler(self, order: Order, *, within_s: float = OUTAGE_S) -> Patient:
        found = self._choice(order.node) if order.node else None
        if found is None:
            raise Refused(f"no table [schedulers.*] has node {order.node!r}")
        return Patient(found, order, within_s=within_s)


class Drain(_SchedulerAction):
    """Stops new jobs; then waits up to `wait_s` for the running ones to end.

    All attempts of one rung together wait for `wait_s`: a retry goes on with the wait of the attempt before it.
    """

    name: ClassVar[str] = "scheduler.drain"

    def __init__(self, choice: Choice) -> None:
        super().__init__(choice)
        self._waits_since: dict[str, float] = {}  # rung of a run -> when its wait began
        self._records: dict[str, str] = {}  # the same -> as of StandingDrain, where it has drained

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        scheduler, wait_s, then = self._scheduler(order, within_s=PLAN_S), *wait(order)
        drained, jobs = await scheduler.drained(order.node), await scheduler.jobs(order.node)
        if then == "requeue":
            unprotected(order.node, jobs)
        stands = f"{order.node} takes no new jobs already: {drained}"
        lines = [stands if drained else f"drain {order.node} in {scheduler.name}"]
        if jobs:
            lines.append(f"wait up to {wait_s:g} s for {listed(jobs)}")
            lines.append(f"with jobs left: {then}")
        return lines

    async def run(self, order: Order) -> Done:
        """As in Action. ActionError when jobs are left; the drain stays. Refused when someone has taken it off."""
        scheduler, wait_s, then = self._scheduler(order), *wait(order)
        kept = KeptDrain(scheduler, order, self._records.get(rung_of(order), ""))
        if "." in order.id and rung_of(order) in self._waits_since and not (await kept.look()).drained:
            raise Refused(f"someone has taken the drain off {order.node} since the attempt before this one")
        if then == "requeue":
            unprotected(order.node, await scheduler.jobs(order.node))
        await scheduler.drain(order.node, mark_of(order))
        wait_s -= self._waited_s(order)
        async with telling(self._choice(order.node), order) as shown:
            try:
                done = await self._emptied(scheduler, order, kept, wait_s, then)
            except (*PASSING, NoRecord) as error:
                raise ActionError(
                    f"{order.node} was drained; what runs there is not known: {error}"
                ) from error
            finally:
                self._records[rung_of(order)] = kept.record
            return replace(done, text=done.text + await shown)

    async def _emptied(
        self, scheduler: Patient, order: Order, kept: KeptDrain, wait_s: float, then: str
    ) -> Done:
        """Returns when the drain stands and, where that is wanted, no job is left."""
        if not (await kept.look()).drained:
            raise ActionError(f"{order.node} still takes jobs")
        left = await self._left(scheduler, order, kept, wait_s)
        # Whose it is by now: a person who takes a drain over may do so for the sake of the jobs.
        found = await kept.stands()
        reason, mine = found.drained, owns(found.marks, order.incident)
        whose = "by us" if mine else f"by someone else, left as it is ({reason})"
        if left and then == "requeue" and mine:
            left = await self._requeued(scheduler, order, kept, left)
        if left and then == "undo":
            await self._undo(scheduler, order, left)
        if left and then != "go_on":
            raise ActionError(f"drained {whose}, and there still run {listed(left)}")
        record = {"record": kept.record} if mine and kept.record else {}
        return Done(
            text=f"{order.node} is drained {whose}; "
            + (f"there still run {listed(left)}" if left else "no jobs"),
            data={"jobs_left": len(left), "reason": reason, "ours": mine, **record},
        )

    def _waited_s(self, order: Order) -> float:
        """Returns for how long earlier attempts of the order's rung have waited, or gone on since then."""
        now_s = monotonic()
        self._waits_since = {
            rung: since_s for rung, since_s in self._waits_since.items() if now_s - since_s < MAX_WAIT_S
        }
        self._records = {rung: one for rung, one in self._records.items() if rung in self._waits_since}
        return now_s - self._waits_since.setdefault(rung_of(order), now_s)

    async def _undo(self, scheduler: Scheduler, order: Order, left: Sequence[Job]) -> None:
        """Raises Refused: the node is in use. Takes this incident's mark off; what others want stays."""
        before = await scheduler.marks(order.node)
        await scheduler.resume(order.node, {order.incident})
        stays = await scheduler.drained(order.node)
        says = f"the drain that was there stays ({stays})" if stays else "the drain was taken back"
        shown = await told(self._choice(order.node), order.node, {order.incident}, before)
        raise Refused(f"{order.node} is in use: {listed(left)}; {says}{shown}")

    async def _left(self, scheduler: Patient, order: Order, kept: KeptDrain, wait_s: float) -> list[Job]:
        """Waits up to `wait_s` and returns the jobs that still run. A scheduler that is away is asked again, and so is one that
        has no such node just now.
        """
        jobs = await scheduler.jobs(order.node)
        reported = ""
        for pause_s in until(wait_s, first_s=0.5, most_s=30.0):
            if not jobs:
                break
            if (progress := f"waiting for {listed(jobs)}") != reported:
                reported = progress
                order.progress(progress)
            await asyncio.sleep(pause_s)
            try:
                jobs = await scheduler.jobs(order.node)
                await kept.stands()
            except (*PASSING, NoRecord) as error:
                order.progress(f"still waiting: {error}")
        return await scheduler.jobs(order.node) if jobs else []

    async def _requeued(
        self, scheduler: Patient, order: Order, kept: KeptDrain, jobs: Sequence[Job]
    ) -> list[Job]:
        """Requeues all jobs and returns those that are left. ActionError says why one could not be requeued; Refused: someone
        has taken the node back, or its drain over, meanwhile, and the jobs that were not requeued by then run on.
        """
        unprotected(order.node, jobs)  # again: one may have started before the drain
        order.progress(f"requeueing {listed(jobs)}")
        begun = [job for job in jobs if job.state not in ENDING]
        movable(order.node, begun)
        failed = dict(await asyncio.gather(*(_requeue(scheduler, job, kept.wanted) for job in begun)))
        there = {job.id for job in await scheduler.jobs(order.node)}
        if says := [why for job, why in failed.items() if why and job in there]:
            await kept.wanted()
            raise ActionError(f"{order.node} is drained; not requeued: {'; '.join(says[:LISTED])}")
        return await self._left(scheduler, order, kept, LEAVE_S)


class Idle(_SchedulerAction):
    """Waits until the node has no jobs. It takes jobs all the time: nobody waits for its sake."""

    name: ClassVar[str] = "scheduler.idle"

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        scheduler, wait_s = self._scheduler(order), idle_wait(order)
        jobs = await scheduler.jobs(order.node)
        if not jobs:
            return [f"nothing: {order.node} has no jobs in {scheduler.name}"]
        return [f"wait up to {wait_s:g} s until {order.node} has no jobs; now {listed(jobs)}"]

    async def run(self, order: Order) -> Done:
        """As in Action. ActionError when it was never seen idle. A scheduler that does not answer is asked again."""
        scheduler, reported = self._scheduler(order), ""
        for pause_s in until(idle_wait(order), first_s=1.0, most_s=LOOK_S):
            try:
                jobs = await scheduler.jobs(order.node)
                if not jobs:
                    return Done(text=f"{order.node} has no jobs")
                progress = f"waiting for an idle moment: {listed(jobs)}"
            except PASSING as error:
                progress = f"still waiting for an idle moment: {error}"
            if progress != reported:
                reported = progress
                order.progress(progress)
            await asyncio.sleep(pause_s)
        if left := await scheduler.jobs(order.node):
            raise ActionError(f"{order.node} was not idle in all that time; now {listed(left)}")
        return Done(text=f"{order.node} has no jobs")


class Resume(_SchedulerAction):
    """Removes marks of our own drain. A node without a scheduler was never drained, so nothing keeps it from service."""

    name: ClassVar[str] = "scheduler.resume"

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        if self._choice(order.node) is None:
            return [f"nothing: no table [schedulers.*] has node {order.node!r}"]
        scheduler, owners = self._scheduler(order, within_s=PLAN_S), owners_of(order)
        reason = await scheduler.drained(order.node)
        if not reason:
            return [f"nothing: {order.node} takes jobs"]
        marks = await scheduler.marks(order.node)
        left, of = without(marks, owners), names_of(owners)
        if len(left) == len(marks):
            return [f"nothing: {order.node} has no mark of {of}: {reason}"]
        if left:
            return [f"take the mark of {of} off {order.node}, which stays drained: {reason}"]
        return [f"resume {order.node} in {scheduler.name} if the drain is unchanged: {reason}"]

    async def run(self, order: Order) -> Done:
        """As in Action. A drain that others want stays, and that is no failure."""
        if self._choice(order.node) is None:
            return Done(
                text=f"no scheduler has {order.node}, so nothing was drained", data={"resumed": False}
            )
        scheduler, owners = self._scheduler(order), owners_of(order)
        before = await scheduler.marks(order.node)
        await scheduler.resume(order.node, owners)
        reason = await scheduler.drained(order.node)
        stand = await scheduler.marks(order.node) if reason else ()
        if stand:
            says = f"{order.node} stays drained by us, for other incidents: {reason}"
        elif reason:
            whose = "someone else" if of_a_person(reason) else "its prolog, for no incident of ours"
            says = f"{order.node} stays drained by {whose}: {reason}"
        else:
            says = f"{order.node} takes jobs again" if before else f"{order.node} was not drained"
        gone = {mark.incident for mark in before} if owners is None else owners
        shown = await told(self._choice(order.node), order.node, gone, before)
        return Done(
            text=says + shown, data={"resumed": bool(before) and not reason, "takes_jobs": not reason}
        )


class Requeue(_SchedulerAction):
    """Stops one job and lets it start again elsewhere."""

    name: ClassVar[str] = "scheduler.requeue"

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        job = await self._job(order, self._scheduler(order, within_s=PLAN_S))
        return [f"requeue {listed([job])} of {order.node} in {self._scheduler(order).name}"]

    async def run(self, order: Order) -> Done:
        """As in Action."""
        scheduler = self._scheduler(order)
        job = await self._job(order, scheduler)
        await scheduler.requeue(job)
        return Done(text=f"{listed([job])} was requeued", data={"job": job.id, "user": job.user})

    async def _job(self, order: Order, scheduler: Scheduler) -> Job:
        """Returns the job. Refused when it is not on the node now, or is protected."""
        wanted = text(order.params, "job", "")
        for job in await scheduler.jobs(order.node):
            if job.id == wanted:
                unprotected(order.node, [job])
                return job
        raise Refused(f"job {wanted!r} is not on {order.node}")


class Reboot(_SchedulerAction):
    """Reboots the node through its scheduler."""

    name: ClassVar[str] = "scheduler.reboot"

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        scheduler = self._scheduler(order, within_s=PLAN_S)
        jobs = await self._checked(order, scheduler)
        first = [f"wait for {listed(jobs)}"] if jobs else []
        return [f"drain {order.node} in {scheduler.name}", *first, f"reboot {order.node} by {scheduler.name}"]

    async def run(self, order: Order) -> Done:
        """As in Action."""
        scheduler = self._scheduler(order)
        await self._checked(order, scheduler)
        order.progress(f"{order.node} is rebooted as soon as it is idle")
        await scheduler.reboot(order.node, mark_of(order))
        return Done(text=f"{order.node} was rebooted and is back; it stays drained until it is resumed")

    async def _checked(self, order: Order, scheduler: Scheduler) -> list[Job]:
        jobs = await scheduler.jobs(order.node)
        unprotected(order.node, jobs)
        drained = await scheduler.drained(order.node)
        if drained and of_a_person(drained):
            raise Refused(f"{order.node} is not rebooted under a drain of someone else: {drained}")
        return jobs


class Jobs(_SchedulerAction):
    """Lists the jobs of a node."""

    name: ClassVar[str] = "scheduler.jobs"

    async def plan(self, order: Order) -> list[str]:
        """As in Action."""
        return [f"list the jobs of {order.node} in {self._scheduler(order).name}"]

    async def run(self, order: Order) -> Done:
        """As in Action."""
        scheduler = self._scheduler(order)
        jobs = await scheduler.jobs(order.node)
        data: dict[str, str | int | bool] = {
            "jobs": len(jobs),
            "protected": sum(bool(job.protected) for job in jobs),
            "drained": await scheduler.drained(order.node),
            "ids": " ".join(job.id for job in jobs),
        }
        for job in jobs:
            for gpu in job.gpus:
                data[f"gpu/{gpu}"] = job.id
        return Done(
            text=f"on {order.node}: {listed(jobs)}" if jobs else f"no jobs on {order.node}", data=data
        )


async def _requeue(scheduler: Scheduler, job: Job, wanted: Wanted) -> tuple[str, str]:
    """Requeues a job. Returns its id, and why it could not be requeued; empty when it was."""
    try:
        await scheduler.requeue(job, wanted=wanted)
    except ActionError as error:
        return job.id, f"{job.id}: {error}"
    return job.id, ""

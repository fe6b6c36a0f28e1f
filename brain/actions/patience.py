"""Asking again, within a step's own time, what failed only for now: a restart of a scheduler's server is no refusal.

Unreachable, TimedOut and Transient are asked again; every other error ends the step at once. Each request is one that may
be repeated: it looks first what is there, and changes only what is missing.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import TypeVar

from agent.contract.errors import ActionError, Refused, TimedOut, Transient, Unreachable
from brain.actions.base import Job, Order, Renewing, Scheduler, StandingDrain, Wanted, always
from brain.actions.marks import Mark
from brain.actions.pauses import until

Result = TypeVar("Result")
SPARE_S = 5.0  # asking ends so long before the step's deadline, so that its outcome can still be reported
# A server that has not answered for so long is not restarting: people are told. Slurm's backup controller takes over
# after two minutes (SlurmctldTimeout), and an upgrade of a control plane takes a few.
OUTAGE_S = 600.0
# For so long a denial of what had been allowed is taken as passing. A restarted API server denies for 10 to 40 ms.
DENIED_S = 30.0
PASSING = (Unreachable, TimedOut, Transient)


@dataclass(slots=True)
class Grants:
    """Whether a denial may be a passing one: the counterpart has let us in before, or was away just now."""

    _let_in: bool = False
    _away: bool = False  # and has not let us in since then
    _denied_at: dict[str, float] = field(default_factory=dict)  # right -> since when it is denied

    def allowed(self, right: str) -> None:
        """A request was let through."""
        self._let_in, self._away = True, False
        self._denied_at.pop(right, None)

    def away(self) -> None:
        """A request was not answered: a server that has just started may deny what it will allow."""
        if not self._away:
            self._away = True
            self._denied_at.clear()

    def denied(self, right: str, says: str) -> ActionError:
        """Returns the error of a request that was not: Transient at first, Refused later and for an unknown account."""
        since_s = self._denied_at.setdefault(right, monotonic())
        if (self._let_in or self._away) and monotonic() - since_s < DENIED_S:
            return Transient(f"not allowed just now to {right}: {says}")
        return Refused(f"the brain's account has no right to {right}: {says}")


@contextlib.contextmanager
def settling() -> Iterator[None]:
    """Around what follows a change that was accepted: a failure to read it back leaves its outcome unknown (TimedOut)."""
    try:
        yield
    except (Unreachable, Transient) as error:
        raise TimedOut(f"accepted, and not read back: {error}") from error


class Patient:
    """A scheduler that is asked again. The step's own time counts from when this is made."""

    def __init__(self, scheduler: Scheduler, order: Order, *, within_s: float = OUTAGE_S) -> None:
        """`within_s`: how long it may be away at most; never longer than the step's own time."""
        self._of = scheduler
        self._progress = order.progress
        self._end_s = monotonic() + max(order.timeout_s - SPARE_S, order.timeout_s / 2)
        self._within_s = within_s

    @property
    def name(self) -> str:
        """As in Scheduler."""
        return self._of.name

    async def drained(self, node: str) -> str:
        """As in Scheduler."""
        return await self._ask(lambda: self._of.drained(node))

    async def marks(self, node: str) -> tuple[Mark, ...]:
        """As in Scheduler."""
        return await self._ask(lambda: self._of.marks(node))

    async def standing(self, node: str) -> StandingDrain:
        """As in Renewing; of a scheduler that keeps its records without one."""
        if isinstance(of := self._of, Renewing):
            return await self._ask(lambda: of.standing(node))
        return StandingDrain(drained=await self.drained(node), marks=await self.marks(node))

    async def renew(self, node: str, marks: Sequence[Mark], record: str, wanted: Wanted = always) -> None:
        """As in Renewing; a scheduler that keeps its records has nothing to renew."""
        if isinstance(of := self._of, Renewing):
            await self._ask(lambda: of.renew(node, marks, record, wanted))

    async def drain(self, node: str, mark: Mark) -> None:
        """As in Scheduler."""
        await self._ask(lambda: self._of.drain(node, mark))

    async def resume(self, node: str, owners: Collection[str] | None) -> bool:
        """As in Scheduler."""
        return await self._ask(lambda: self._of.resume(node, owners))

    async def jobs(self, node: str) -> list[Job]:
        """As in Scheduler."""
        return await self._ask(lambda: self._of.jobs(node))

    async def requeue(self, job: Job, *, within_s: float = inf, wanted: Wanted = always) -> None:
        """As in Scheduler, within the step's own time."""

        def left_s() -> float:
            return min(within_s, max(1.0, self._end_s - monotonic()))

        await self._ask(lambda: self._of.requeue(job, within_s=left_s(), wanted=wanted))

    async def reboot(self, node: str, mark: Mark) -> None:
        """As in Scheduler. It is not asked again once the outcome is unknown: no node reboots twice for one step."""
        await self._ask(lambda: self._of.reboot(node, mark), again=(Unreachable, Transient))

    async def _ask(
        self, request: Callable[[], Awaitable[Result]], *, again: tuple[type[ActionError], ...] = PASSING
    ) -> Result:
        lost: TimedOut | None = None
        pauses = until(min(self._within_s, self._end_s - monotonic()), first_s=0.1, most_s=5.0)
        while True:
            try:
                return await request()
            except again as error:
                lost = error if isinstance(error, TimedOut) else lost
                pause_s = next(pauses, None)
                if pause_s is None:
                    if lost is not None and error is not lost:
                        raise TimedOut(f"{error}; before that: {lost}") from error
                    raise
                self._progress(f"asked again: {error}")
            await asyncio.sleep(pause_s)

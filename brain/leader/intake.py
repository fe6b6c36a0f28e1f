"""Takes in what nodes offer, while this brain leads (brain/leader/reception.py says what happens to it)."""

import asyncio
import contextlib
from collections.abc import Callable

from nats.aio.client import Client

from agent.shared.tasks import Tasks
from brain.adapters.evidence_store import EvidenceStore
from brain.adapters.lanes import Lanes
from brain.adapters.liveness import Beats
from brain.adapters.refused_writes import RefusedWrites
from brain.leader.event_queue import EventQueue
from brain.leader.leadership import Leadership
from brain.leader.node_reports import NodeReports
from brain.leader.reception import Reception

CHECK_S = 0.1  # how soon a brain that begins to lead takes offers, and one that no longer leads stops
SWEEP_EVERY = 10  # checks


class Intake:
    """Call `serve` once for each connection."""

    def __init__(
        self,
        *,
        cell: str,
        replicas: int,
        leadership: Leadership,
        beats: Beats,
        reports: NodeReports,
        evidence: EvidenceStore,
        interrupted: Callable[[], None],
        log_now: Callable[[], float],
        shut_out: Callable[[str], bool] = lambda _: False,
        refusals: RefusedWrites | None = None,
    ) -> None:
        """`shut_out`: nothing that this node offers is taken. `interrupted`: beats were not received for a while, through no
        fault of the nodes. `log_now`: the log's time, seconds since 1970. `refusals`: where it stands what the log does not take.
        """
        self._cell = cell
        self._replicas = replicas
        self._leadership = leadership
        self._beats = beats
        self._reports = reports
        self._evidence = evidence
        self._interrupted = interrupted
        self._log_now = log_now
        self._shut_out = shut_out
        self._refusals = refusals or RefusedWrites()

    async def serve(self, client: Client) -> None:
        """Takes offers whenever this brain leads, until cancelled. Until a brain leads they wait in their lanes."""
        lanes = Lanes(client, self._cell)
        await lanes.ensure(self._replicas)
        while True:
            while not self._leadership.leads():  # noqa: ASYNC110 - the lease ends by the clock, without an event
                await asyncio.sleep(CHECK_S)
            await self._lead(client, lanes)

    async def _lead(self, client: Client, lanes: Lanes) -> None:
        """Takes offers until this brain no longer leads."""
        self._reports.begin(str(self._leadership.epoch))
        self._evidence.begin(self._leadership.fence(), self._reports.slowed)
        queue = EventQueue(
            client,
            self._cell,
            lanes,
            self._reports,
            may_write=self._leadership.leads,
            log_now=self._log_now,
            refusals=self._refusals,
        )
        async with contextlib.AsyncExitStack() as stack:
            tasks = await stack.enter_async_context(Tasks())
            tasks.start(queue.serve(), "events")
            reception = Reception(
                client,
                self._cell,
                lanes=lanes,
                queue=queue,
                beats=self._beats,
                reports=self._reports,
                evidence=self._evidence,
                background=tasks,
                log_now=self._log_now,
                shut_out=self._shut_out,
            )
            dealing = await stack.enter_async_context(lanes.taken(reception.take, self._interrupted))
            tasks.start(_ended(dealing), "offers")
            self._interrupted()  # no beat was heard until now
            deposed = tasks.start(self._until_deposed(), "leads")
            failed = asyncio.ensure_future(tasks.wait())
            stack.callback(failed.cancel)
            await asyncio.wait((deposed, failed), return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                failed.result()

    async def _until_deposed(self) -> None:
        checks = 0
        while self._leadership.leads():
            await asyncio.sleep(CHECK_S)
            checks += 1
            if checks % SWEEP_EVERY == 0:
                self._reports.sweep()


async def _ended(task: asyncio.Task[None]) -> None:
    """Waits for it, and raises what it has raised."""
    await asyncio.wait((task,))
    if not task.cancelled():
        task.result()

"""What a leading brain does in the world: inputs onto the log, commands to nodes, pages to people.

Nothing here waits.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from nats.aio.client import Client

from agent.contract.commands import Outcome
from agent.contract.errors import ActionError
from agent.contract.messages import Event, clip
from brain.adapters.codec import Codec
from brain.adapters.lease import Lease
from brain.adapters.nodes import Nodes
from brain.adapters.outbox import Outbox
from brain.adapters.ufm_events import UfmEvents
from brain.core.effects import SendPage, Step
from brain.core.inputs import Delivery, Input, JobsTold, Reported, StepPlan
from brain.core.state import Incident, IncidentState, State
from brain.fleet import NodeFleet
from brain.notify import notifier as notify
from brain.performer import Performer

JobsOf = Callable[[str, str], Awaitable[JobsTold]]  # (node, the input's id) -> what the scheduler says
PLAN_S = 20.0
MAX_LINES = 40  # of a plan
Start = Callable[[Coroutine[Any, Any, None], str], object]
FIRST_PAUSE_S = 5.0  # after a page of the brain's own trouble that nobody took
MAX_PAUSE_S = 300.0


class RealHands:
    """`Hands` for the live loop."""

    def __init__(
        self,
        *,
        name: str,
        codec: Codec,
        outbox: Outbox,
        nodes: Nodes,
        own: Performer,
        fleet: NodeFleet,
        jobs: JobsOf,
        notifier: notify.Notifier,
        lease: Lease,
        state: Callable[[], State],
        tell: Callable[[str, str], None],
        start: Start,
    ) -> None:
        """`own` performs the brain's steps, `jobs` asks the schedulers; `state`: the engine's memory now; `tell` writes
        a note; `start` runs work in the background.
        """
        self._name = name
        self._codec = codec
        self._outbox = outbox
        self._nodes = nodes
        self._own = own
        self._fleet = fleet
        self._jobs = jobs
        self._notifier = notifier
        self._lease = lease
        self._state = state
        self._tell = tell
        self._start = start
        self._told: set[str] = set()  # own troubles that people were paged for
        self._count = 0
        self.client: Client | None = None  # of the present connection
        self.listeners: list[UfmEvents] = []  # who bring reports of other systems

    def put(self, given: Input, *, keep: bool) -> None:
        """Puts an input on the log."""
        what, body = self._codec.encode(given)
        self._outbox.put(what, body, given.id, keep=keep)

    def perform(self, step: Step, epoch: int) -> None:
        """Begins a step."""
        self._start(self._perform(step, epoch), f"step {step.id}")

    async def _perform(self, step: Step, epoch: int) -> None:
        if step.where != "node":
            result = await self._own.perform(step, epoch)
        elif self.client is None:
            return  # lost at this moment: the next leader asks again
        else:
            result = await self._nodes.perform(self.client, step, epoch)
        if result is not None:
            self.put(result, keep=True)

    def plan(self, step: Step) -> None:
        """Begins to ask what the step would do."""
        self._start(self._plan(step), f"plan {step.id}")

    async def _plan(self, step: Step) -> None:
        if step.where == "node" and self.client is None:
            return
        try:
            async with asyncio.timeout(PLAN_S):
                if step.where != "node" or self.client is None:
                    lines, ok = await self._own.plan(step), True
                else:
                    lines, ok = await self._nodes.plan(self.client, step, self._lease.epoch), True
        except (ActionError, OSError, TimeoutError) as error:
            lines, ok = [str(error) or f"no answer within {PLAN_S:g} s"], False
        id_ = f"w:{step.id}:{self._lease.epoch}"
        said = tuple(clip(line, 300) for line in lines[:MAX_LINES])
        self.put(StepPlan(id=id_, step=step.id, ok=ok, lines=said), keep=False)

    def cancel(self, step: Step, epoch: int, why: str) -> None:
        """Begins to stop a step."""
        self._own.cancel(step.id, why)
        if step.where == "node" and self.client is not None:
            self._start(self._nodes.cancel(self.client, step, epoch, why), f"cancel {step.id}")

    def ask_jobs(self, node: str) -> None:
        """Begins to ask the scheduler."""
        self._start(self._ask_jobs(node), f"jobs of {node}")

    async def _ask_jobs(self, node: str) -> None:
        self._count += 1
        self.put(await self._jobs(node, f"j:{node}:{self._lease.epoch}.{self._count}"), keep=False)

    def heard(self, result: Event) -> None:
        """A node's command has ended."""
        command, outcome, why = (str(result.data.get(key, "")) for key in ("command", "outcome", "why"))
        known = outcome in {one.value for one in Outcome}
        self._fleet.heard(command, Outcome(outcome) if known else Outcome.UNKNOWN, why)

    def reported(self, report: Reported) -> None:
        """A report is on the log."""
        for listener in self.listeners:
            listener.heard(report)

    def page(self, page: SendPage) -> None:
        """Begins to tell people."""
        self._start(self._page(page), f"page {page.id}")

    async def _page(self, page: SendPage) -> None:
        state = self._state()
        rules = state.pack.rules if state.pack else ()
        rule = next((rule for rule in rules if rule.name == page.incident.rule), None)
        runs = [state.runs[run] for run in page.incident.runs if run in state.runs]
        ok, channel, why = await self._notifier.send(page, rule=rule, runs=runs)
        self._count += 1
        id_ = f"d:{page.id}:{self._lease.epoch}.{self._count}"
        self.put(Delivery(id=id_, page=page.id, ok=ok, channel=channel, why=why), keep=True)

    def page_own(self, cause: str, text: str) -> None:
        """Tells people of the brain's own trouble, once until it is over; it needs no log and no lease."""
        if cause in self._told:
            return
        self._told.add(cause)
        self._tell(cause.replace("brain_", "brain."), text)
        self._start(self._page_own(cause, text), cause)

    async def _page_own(self, cause: str, text: str) -> None:
        now = time.time()
        incident = Incident(
            id=f"{cause}-{self._name}-{int(now)}",
            cause=cause,
            state=IncidentState.PERSON,
            severity="P1",
            scope="cell",
            node="",
            rule="",
            because=text,
            runbook="",
            pack="",
            opened_at=now,
            settle_until=now,
            quiet_s=0,
            page="open",
        )
        pause_s = FIRST_PAUSE_S
        page = SendPage(id=f"{incident.id}.p1", incident=incident, what="open", to=notify.ONCALL, text=text)
        while not (await self._notifier.send(page))[0]:
            await asyncio.sleep(pause_s)
            pause_s = min(MAX_PAUSE_S, pause_s * 2)

    def over(self, cause: str) -> None:
        """The brain's own trouble is over: the next time people are paged again."""
        self._told.discard(cause)

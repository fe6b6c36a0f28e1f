"""Sends each step to whoever performs it: an agent on its node, or the brain itself."""

import asyncio
from contextlib import AbstractContextManager

from agent.contract.errors import ActionError
from agent.contract.messages import clip
from agent.shared.log_fields import about
from agent.shared.tasks import Tasks
from brain.adapters.nodes import Nodes
from brain.core.effects import Step
from brain.core.inputs import StepPlan
from brain.leader.current_client import CurrentClient
from brain.leader.leadership import Leadership
from brain.leader.log_writer import LogWriter
from brain.leader.performer import Performer
from brain.unreadable import answered_by

PLAN_S = 20.0
MAX_PLAN_LINES = 40
MAX_PLAN_LINE = 300


class StepDispatcher:
    """Performs, plans and cancels steps in the background. Call it only while this brain leads."""

    def __init__(
        self,
        *,
        performer: Performer,
        nodes: Nodes,
        nats: CurrentClient,
        leadership: Leadership,
        writer: LogWriter,
        background: Tasks,
    ) -> None:
        self._performer = performer
        self._nodes = nodes
        self._nats = nats
        self._leadership = leadership
        self._writer = writer
        self._background = background

    def prepare(self, step: Step, epoch: int) -> None:
        """Makes ready what `perform` sends, if a node performs it. Nothing is sent."""
        if step.where == "node" and step.node:
            self._nodes.prepare(step, epoch)

    def perform(self, step: Step, epoch: int) -> None:
        """Begins a step; its result becomes an input."""
        self._background.start(self._perform(step, epoch), f"step {step.id}")

    def plan(self, step: Step) -> None:
        """Asks what the step would do; the answer becomes an input."""
        self._background.start(self._plan(step), f"plan {step.id}")

    def cancel(self, step: Step, epoch: int, why: str) -> None:
        """Begins to stop a step; its result comes as for any other."""
        self._performer.cancel(step.id, why)
        client = self._nats.client
        if step.where == "node" and client is not None:
            self._background.start(self._nodes.cancel(client, step, epoch, why), f"cancel {step.id}")

    async def _perform(self, step: Step, epoch: int) -> None:
        with _about(step):
            await self._performed(step, epoch)

    async def _performed(self, step: Step, epoch: int) -> None:
        if step.where != "node":
            result = await self._performer.perform(step, epoch)
        elif (client := self._nats.client) is not None:
            result = await self._nodes.perform(client, step, epoch)
        else:
            return  # the connection was lost just now: the next leader asks again
        if result is not None:
            self._writer.append(result)

    async def _plan(self, step: Step) -> None:
        with _about(step):
            await self._planned(step)

    async def _planned(self, step: Step) -> None:
        if step.where != "node":
            answer = self._performer.plan(step)
        elif self._nats.client is not None:
            answer = self._nodes.plan(step, self._leadership.epoch)
        else:
            return
        try:
            with answered_by():
                async with asyncio.timeout(PLAN_S):
                    lines, ok = await answer, True
        except (ActionError, OSError, TimeoutError) as error:
            lines, ok = [str(error) or f"no answer within {PLAN_S:g} s"], False
        self._writer.append_or_drop(
            StepPlan(
                id=f"w:{step.id}:{self._leadership.epoch}",
                step=step.id,
                ok=ok,
                lines=tuple(clip(line, MAX_PLAN_LINE) for line in lines[:MAX_PLAN_LINES]),
            )
        )


def _about(step: Step) -> AbstractContextManager[None]:
    return about(incident=step.incident, run=step.run, step=step.id, node=step.node)

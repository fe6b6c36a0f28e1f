"""Commands to nodes as parts of the brain's own steps: the port `brain.actions.base.NodeCommands`.

A command goes out with the id `<step>.<part>`, and is over when the node's `command.result` of that id has come back on
the log (`on_result`). The engine knows no such step and ignores those results.

A result may come while the command is still being sent (the command is over at once), twice, or for a command that
nothing waits for (ignored), or never (TimedOut: nobody knows). After a crash the next leader sends the same id again; the
node does not run it a second time and reports its result again.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from nats.aio.client import Client

from agent.contract.actions import ACTIONS
from agent.contract.actions.spec import ActionSpec
from agent.contract.commands import Outcome, check_params
from agent.contract.errors import ContractError, Refused, TimedOut
from agent.contract.messages import Scalar
from agent.shared.tasks import end
from brain.actions.base import Order
from brain.adapters.lease import Lease
from brain.core.effects import Step
from brain.core.inputs import StepResult, result_of_brain
from brain.leader.current_client import CurrentClient

GRACE_S = 15.0  # a result's way from the node onto the log, beyond the command's own time


class Sender(Protocol):
    """What brings a command to its node (brain.adapters.nodes.Nodes)."""

    async def perform(self, client: Client, step: Step, epoch: int) -> StepResult | None:
        """None: the node has it and will report its result, or this brain no longer leads."""
        ...


class AwaitedCommands:
    """Sends commands and waits for their results. It keeps nothing but those that wait now."""

    def __init__(
        self,
        sender: Sender,
        *,
        nats: CurrentClient,
        lease: Lease,
        actions: Mapping[str, ActionSpec] = ACTIONS,
        grace_s: float = GRACE_S,
        foreign: Callable[[str, str], None] = lambda _node, _command: None,
    ) -> None:
        """`foreign` is told of a node that reports the result of a command that was sent to another one: (node, command)."""
        self._sender = sender
        self._nats = nats
        self._lease = lease
        self._actions = actions
        self._grace_s = grace_s
        self._foreign = foreign
        self._waiting: dict[str, list[tuple[str, asyncio.Future[StepResult]]]] = {}

    async def perform(
        self, node: str, action: str, params: Mapping[str, Scalar], *, of: Order, part: str
    ) -> StepResult:
        """As in the port. Refused for what the table of actions does not allow; TimedOut without a result.

        When the caller is cancelled, a command that the node has accepted goes on there.
        """
        step = self._step(node, action, params, of, part)
        future: asyncio.Future[StepResult] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(step.id, []).append((node, future))
        try:
            return await self._result(step, future)
        finally:
            waiting = self._waiting[step.id]
            waiting.remove((node, future))
            if not waiting:
                del self._waiting[step.id]

    def on_result(self, result: StepResult) -> None:
        """A node's result came on the log. One that nothing waits for is ignored, and counts only from the node that was
        asked (law 15).
        """
        for node, future in self._waiting.get(result.step, ()):
            if result.node != node:
                self._foreign(result.node, result.step)
            elif not future.done():
                future.set_result(result)

    def _step(self, node: str, action: str, params: Mapping[str, Scalar], of: Order, part: str) -> Step:
        spec = self._actions.get(action)
        if spec is None or spec.where != "node":
            raise Refused(f"{action} is no action of a node")
        try:
            checked = check_params(action, params, self._actions)
        except ContractError as error:
            raise Refused(str(error)) from error
        return Step(
            id=f"{of.id}.{part}",
            run="",
            incident=of.incident,
            node=node,
            action=action,
            where="node",
            params=checked,
            timeout_s=min(spec.timeout_s, of.timeout_s),
            disrupts=spec.disrupts,
            repeat=spec.repeat,
            why=of.why,
        )

    async def _result(self, step: Step, future: asyncio.Future[StepResult]) -> StepResult:
        client, epoch = self._nats.client, self._lease.epoch
        if client is None:
            return result_of_brain(step.id, epoch, Outcome.UNREACHABLE, "there is no connection to NATS")
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + step.timeout_s + self._grace_s
        sending = asyncio.create_task(self._sender.perform(client, step, epoch), name=f"command {step.id}")
        waits: tuple[asyncio.Future[Any], ...] = (sending, future)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            answer = None if future.done() else sending.result()
            # UNKNOWN: the request may have reached the node, and then its result comes.
            if answer is not None and answer.outcome is not Outcome.UNKNOWN:
                return answer
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(deadline_s):
                    return await future
        finally:
            await end(sending)
        raise TimedOut(
            f"{step.node} took {step.action}, or may have, and reported no result within {step.timeout_s:g} s"
        )

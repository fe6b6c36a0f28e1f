"""Commands to nodes for the brain's own actions: the port `Fleet`.

An order goes out as a command with the id `<step>.<part>`, and is over when the node's `command.result` of that id
has come back on the log (`heard`). The engine knows no such step and leaves those results alone.

What may happen to a result: it comes while the command is still being sent (the order is over at once), it comes
twice or for nobody (forgotten), or it never comes (TimedOut: nobody knows). After a crash the next leader sends the
same id again; the node runs it no second time and tells its result again.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from nats.aio.client import Client

from agent.contract.actions import ACTIONS
from agent.contract.actions.spec import ActionSpec
from agent.contract.commands import Outcome, check_params
from agent.contract.errors import ContractError, Refused, TimedOut
from agent.contract.messages import Scalar
from brain.actions.base import Order
from brain.adapters.nodes import Nodes
from brain.adapters.tasks import end
from brain.core.effects import Step

GRACE_S = 15.0  # a result's way from the node onto the log, beyond the command's own time


class NodeFleet:
    """Orders to nodes by a leading brain. Nothing is kept but what waits now."""

    def __init__(
        self,
        nodes: Nodes,
        *,
        client: Callable[[], Client | None],
        epoch: Callable[[], int],
        actions: Mapping[str, ActionSpec] = ACTIONS,
        grace_s: float = GRACE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`client`: the present connection; `epoch`: of the lease that this brain holds."""
        self._nodes = nodes
        self._client = client
        self._epoch = epoch
        self._actions = actions
        self._grace_s = grace_s
        self._clock = clock
        self._waiting: dict[str, list[asyncio.Future[tuple[Outcome, str]]]] = {}

    async def order(
        self, node: str, action: str, params: Mapping[str, Scalar], *, of: Order, part: str
    ) -> tuple[Outcome, str]:
        """As in the port. Refused for what the table of actions does not allow; TimedOut without a result.

        When the caller is cancelled, a command that the node has accepted goes on there.
        """
        step = self._step(node, action, params, of, part)
        future: asyncio.Future[tuple[Outcome, str]] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(step.id, []).append(future)
        try:
            return await self._result(step, future)
        finally:
            waiting = self._waiting[step.id]
            waiting.remove(future)
            if not waiting:
                del self._waiting[step.id]

    def heard(self, command: str, outcome: Outcome, why: str) -> None:
        """A `command.result` came on the log. Results that nobody waits for are none of ours."""
        for future in self._waiting.get(command, ()):
            if not future.done():
                future.set_result((outcome, why))

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

    async def _result(self, step: Step, future: asyncio.Future[tuple[Outcome, str]]) -> tuple[Outcome, str]:
        client = self._client()
        if client is None:
            return Outcome.UNREACHABLE, "there is no connection to NATS"
        deadline_s = self._clock() + step.timeout_s + self._grace_s
        sending = asyncio.create_task(
            self._nodes.perform(client, step, self._epoch()), name=f"order {step.id}"
        )
        waits: tuple[asyncio.Future[Any], ...] = (sending, future)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            answer = None if future.done() else sending.result()
            # UNKNOWN: the request may have reached it, and then its result comes.
            if answer is not None and answer.outcome is not Outcome.UNKNOWN:
                return answer.outcome, answer.why
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, deadline_s - self._clock())):
                    return await future
        finally:
            await end(sending)
        raise TimedOut(
            f"{step.node} took {step.action}, or may have, and told no result within {step.timeout_s:g} s"
        )

"""Commands to nodes: signed, with a deadline by the node's own clock, sent until the node has answered.

Sending the same command again is harmless: a node runs one id once, ever, and answers `known` the second
time.
"""

import asyncio
import time
from collections.abc import Callable

import orjson
from nats.aio.client import Client
from nats.errors import NoRespondersError

from agent.contract import subjects
from agent.contract.commands import Answer, Command, Outcome, Reply, decode_reply
from agent.contract.errors import ContractError, Refused, Unreachable
from brain.adapters.broker import LOST
from brain.adapters.keys import Signer
from brain.adapters.liveness import Beats
from brain.core.effects import Step
from brain.core.inputs import StepResult

ANSWER_S = 2.0  # how long one request waits
ASK_S = 8.0  # how long it is tried in all
PAUSE_S = 0.5
BEGIN_S = 10.0  # a command that has not begun so long after it was signed is void


class Nodes:
    """Sends the steps of runs to agents. Nothing is kept between steps."""

    def __init__(
        self,
        cell: str,
        signer: Signer,
        beats: Beats,
        may_act: Callable[[int], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`may_act(epoch)`: does this brain still lead with that epoch? Asked before each sending."""
        self._cell = cell
        self._signer = signer
        self._beats = beats
        self._may_act = may_act
        self._clock = clock

    async def perform(self, client: Client, step: Step, epoch: int) -> StepResult | None:
        """Brings the step to its node. None: the node has it and will report, or this brain leads no more."""
        if not step.node:
            return _result(step, epoch, Outcome.REFUSED, "the step names no node")
        subject = subjects.command(self._cell, step.node)
        deadline = self._clock() + ASK_S
        maybe_heard = False
        why = ""
        session = self._beats.session(step.node)
        while self._clock() < deadline:
            if not self._may_act(epoch):
                return None
            try:
                if session is None:
                    reply = await self._ask(client, subject, b'{"hello":true}')
                    session = (reply.session, reply.mono_s)
                    continue
                reply = await self._ask(client, subject, self._envelope(step, epoch, *session))
            except NoRespondersError:
                why = "no agent listens there"
            except ContractError as error:
                maybe_heard, why = maybe_heard or session is not None, str(error)
            except LOST as error:
                maybe_heard, why = maybe_heard or session is not None, str(error) or "no answer"
            else:
                if reply.answer is not Answer.REFUSED:
                    return None
                if reply.session and reply.session != session[0]:
                    session = (reply.session, reply.mono_s)  # the agent was restarted since its last beat
                    continue
                return _result(step, epoch, Outcome.REFUSED, reply.why)
            if client.is_closed:
                return None  # the leader of the next connection asks again
            await asyncio.sleep(PAUSE_S)
            session = self._beats.session(step.node) or session
        outcome = Outcome.UNKNOWN if maybe_heard else Outcome.UNREACHABLE
        return _result(step, epoch, outcome, f"{step.node}: {why or 'its session changes all the time'}")

    async def plan(self, client: Client, step: Step, epoch: int) -> list[str]:
        """What the node would do for the step, one line each; it does nothing. Refused: it would not be done."""
        subject = subjects.command(self._cell, step.node)
        try:
            reply = await self._ask(client, subject, self._envelope(step, epoch, "", 0.0, plan=True))
        except NoRespondersError as error:
            raise Unreachable(f"{step.node}: no agent listens there") from error
        except LOST as error:
            raise Unreachable(f"{step.node}: {error or 'no answer'}") from error
        if reply.answer is Answer.REFUSED:
            raise Refused(reply.why)
        return reply.plan

    async def cancel(self, client: Client, step: Step, epoch: int, why: str) -> None:
        """Asks the node to stop the step. Its result tells whether it did; without an answer the deadline does."""
        subject = subjects.command(self._cell, step.node)
        deadline = self._clock() + ASK_S
        session = self._beats.session(step.node) or ("", 0.0)
        while self._clock() < deadline and self._may_act(epoch) and not client.is_closed:
            try:
                reply = await self._ask(client, subject, self._envelope(step, epoch, *session, cancels=why))
            except (ContractError, *LOST):  # NoRespondersError is one of LOST
                await asyncio.sleep(PAUSE_S)
                continue
            if reply.answer is not Answer.REFUSED or reply.session == session[0]:
                return
            session = (reply.session, reply.mono_s)  # the agent was restarted since its last beat

    async def _ask(self, client: Client, subject: str, body: bytes) -> Reply:
        message = await client.request(subject, body, timeout=ANSWER_S)
        try:
            return decode_reply(orjson.loads(message.data))
        except ValueError as error:
            raise ContractError(f"not a reply to a command: {error}") from error

    def _envelope(
        self, step: Step, epoch: int, session: str, mono_s: float, *, plan: bool = False, cancels: str = ""
    ) -> bytes:
        """`cancels`: why the step is not wanted any more; then the envelope asks to stop it."""
        payload = Command(
            id=f"{step.id}.cancel" if cancels else step.id,
            node=step.node,
            action=step.action,
            params=step.params,
            epoch=epoch,
            session=session,
            not_after_s=mono_s + BEGIN_S,
            timeout_s=step.timeout_s,
            why=cancels or step.why,
            plan=plan,
            cancels=step.id if cancels else "",
        ).payload()
        return orjson.dumps(
            {"payload": payload.decode(), "key": self._signer.key_id, "sig": self._signer.sign(payload)}
        )


def _result(step: Step, epoch: int, outcome: Outcome, why: str) -> StepResult:
    return StepResult(id=f"r:{step.id}:{epoch}", step=step.id, outcome=outcome, why=why)

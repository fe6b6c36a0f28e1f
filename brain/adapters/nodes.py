"""Sends commands to nodes: signed, with a deadline by the node's own clock, repeated until the node has answered.

Sending the same command again is harmless: a node runs one id only once, and answers `known` the second time.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import orjson
from nats.aio.client import Client
from nats.errors import NoRespondersError

from agent.contract.commands import Answer, Command, Outcome, Reply, decode_reply
from agent.contract.errors import ActionError, ContractError, Refused, Unreachable
from agent.shared.nats_connection import LOST
from brain.adapters.announcer import Announcer
from brain.adapters.keys import Signer
from brain.adapters.liveness import Beats
from brain.adapters.node_requests import NodeRequests
from brain.core.effects import Step
from brain.core.inputs import StepResult, result_of_brain

ANSWER_S = 2.0  # timeout of one request
RETRY_FOR_S = 8.0  # how long a request is retried in all
PAUSE_S = 0.5
BEGIN_S = 10.0  # a command that has not begun so long after it was signed expires
PREPARED_S = 0.25  # a command that was signed longer ago is signed again: the key may be another one


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A signed command that nothing was sent of."""

    step: Step
    body: bytes
    session: str
    epoch: int
    made_s: float

    def serves(self, step: Step, epoch: int, now_s: float) -> bool:
        return (self.step, self.epoch) == (step, epoch) and now_s - self.made_s <= PREPARED_S


class Nodes:
    """Sends the steps of runs to agents. It keeps no state between steps."""

    def __init__(
        self,
        requests: NodeRequests,
        signer: Callable[[], Signer],
        beats: Beats,
        may_act: Callable[[int], bool],
        clock: Callable[[], float] = time.monotonic,
        announcer: Announcer | None = None,
    ) -> None:
        """`signer`: the key of this moment. `may_act(epoch)`: does this brain still lead with that epoch? It is checked before
        each request. `announcer`: tells a node the keys that it does not know yet, so that it takes what is signed with them.
        """
        self._requests = requests
        self._signer = signer
        self._beats = beats
        self._may_act = may_act
        self._clock = clock
        self._announcer = announcer
        self._prepared: dict[str, _Prepared] = {}  # by step, the oldest first

    def prepare(self, step: Step, epoch: int) -> None:
        """Signs the command of a step whose intent is on its way to the log, so that nothing is waited for but the log: to sign,
        and to look whether the key is still the same, take as long. Sent by `perform` alone.
        """
        now_s = self._clock()
        for old, made in list(self._prepared.items()):
            if now_s - made.made_s <= PREPARED_S:
                break
            del self._prepared[old]
        session = self._beats.session(step.node)
        if session is not None and not (self._announcer is not None and self._announcer.lacks(step.node)):
            body = self._envelope(step, epoch, *session)
            self._prepared[step.id] = _Prepared(step, body, session[0], epoch, now_s)

    async def perform(self, client: Client, step: Step, epoch: int) -> StepResult | None:
        """Sends the step to its node. None: the node has it and will report, or this brain no longer leads."""
        if not step.node:
            return result_of_brain(step.id, epoch, Outcome.REFUSED, "the step names no node")
        prepared = self._prepared.pop(step.id, None)
        if prepared is not None and not prepared.serves(step, epoch, self._clock()):
            prepared = None
        if prepared is None and self._announcer is not None and self._may_act(epoch):
            await self._announcer.tell(step.node)
        deadline = self._clock() + RETRY_FOR_S
        maybe_received = False
        why = ""
        session = self._beats.session(step.node)
        while self._clock() < deadline:
            if not self._may_act(epoch):
                return None
            try:
                if session is None:
                    reply = await self._request(step.node, b'{"hello":true}')
                    session = (reply.session, reply.mono_s)
                    continue
                if prepared is not None and prepared.session == session[0]:
                    body, prepared = prepared.body, None
                else:
                    body = self._envelope(step, epoch, *session)
                reply = await self._request(step.node, body)
            except NoRespondersError:
                why = "no agent listens there"
            except ContractError as error:
                maybe_received, why = maybe_received or session is not None, str(error)
            except LOST as error:
                maybe_received, why = maybe_received or session is not None, str(error) or "no answer"
            else:
                if reply.answer is not Answer.REFUSED:
                    return None
                if reply.session and reply.session != session[0]:
                    session = (reply.session, reply.mono_s)  # the agent has restarted since its last beat
                    continue
                return result_of_brain(step.id, epoch, Outcome.REFUSED, reply.why)
            if client.is_closed:
                return None  # the leader on the next connection sends it again
            await asyncio.sleep(PAUSE_S)
            session = self._beats.session(step.node) or session
        outcome = Outcome.UNKNOWN if maybe_received else Outcome.UNREACHABLE
        return result_of_brain(
            step.id, epoch, outcome, f"{step.node}: {why or 'its session changes all the time'}"
        )

    async def plan(self, step: Step, epoch: int) -> list[str]:
        """Returns what the node would do for the step, in lines; it does nothing. Refused: it would not be done; other
        ActionErrors: the node does not say.
        """
        try:
            reply = await self._request(step.node, self._envelope(step, epoch, "", 0.0, plan=True))
        except NoRespondersError as error:
            raise Unreachable(f"{step.node}: no agent listens there") from error
        except LOST as error:
            raise Unreachable(f"{step.node}: {error or 'no answer'}") from error
        except ContractError as error:
            raise ActionError(f"{step.node}: {error}") from error
        if reply.answer is Answer.REFUSED:
            raise Refused(reply.why)
        return reply.plan

    async def cancel(self, client: Client, step: Step, epoch: int, why: str) -> None:
        """Asks the node to stop the step. The step's result shows whether it did; without an answer its deadline ends it."""
        deadline = self._clock() + RETRY_FOR_S
        session = self._beats.session(step.node) or ("", 0.0)
        while self._clock() < deadline and self._may_act(epoch) and not client.is_closed:
            try:
                reply = await self._request(step.node, self._envelope(step, epoch, *session, cancels=why))
            except (ContractError, *LOST):  # NoRespondersError is one of LOST
                await asyncio.sleep(PAUSE_S)
                continue
            if reply.answer is not Answer.REFUSED or reply.session == session[0]:
                return
            session = (reply.session, reply.mono_s)  # the agent has restarted since its last beat

    async def _request(self, node: str, body: bytes) -> Reply:
        answer = await self._requests.request(node, body, ANSWER_S)
        try:
            return decode_reply(orjson.loads(answer))
        except ValueError as error:
            raise ContractError(f"not a reply to a command: {error}") from error

    def _envelope(
        self, step: Step, epoch: int, session: str, mono_s: float, *, plan: bool = False, cancels: str = ""
    ) -> bytes:
        """Returns the signed command. `cancels`: why the step is no longer wanted; the command then asks to stop it."""
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
            incident=step.incident,
            run=step.run,
        ).payload()
        signer = self._signer()
        return orjson.dumps({"payload": payload.decode(), "key": signer.key_id, "sig": signer.sign(payload)})

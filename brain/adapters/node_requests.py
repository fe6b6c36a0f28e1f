"""Requests to nodes, and their answers.

The request goes to the node's command subject, with a reference that nobody can guess. The node offers its answer; the
leading brain takes it out of the node's lane and passes it on to `ward.<cell>.answer.<node>`, where the brain that asked
hears it. So an answer counts only from the node that was asked. A node without an agent is known at once: the server
answers for it.
"""

import asyncio
import secrets

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from agent.contract import requests, subjects
from agent.contract.errors import Unreachable
from agent.shared.nats_connection import LOST

_REFERENCE_BYTES = 12


class NodeRequests:
    """The requests of one brain. Call `serve` once for each connection."""

    def __init__(self, cell: str) -> None:
        self._cell = cell
        self._client: Client | None = None
        self._inbox = ""
        # (node, reference) → who waits.
        self._asked: dict[tuple[str, str], asyncio.Future[bytes]] = {}

    async def serve(self, client: Client) -> None:
        """Hears answers on this connection, until cancelled."""
        self._inbox = client.new_inbox()
        await client.subscribe(f"{self._inbox}.*.*", cb=self._on_nobody)
        await client.subscribe(subjects.answer(self._cell, "*"), cb=self._on_answer)
        self._client = client
        try:
            await asyncio.Event().wait()
        finally:
            self._client = None

    async def request(self, node: str, body: bytes, timeout_s: float) -> bytes:
        """Asks the node; its answer. NoRespondersError: no agent listens there; TimeoutError and others of LOST."""
        if self._client is None:
            raise ConnectionError("there is no connection to NATS")
        reference = secrets.token_hex(_REFERENCE_BYTES)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked[node, reference] = answer
        try:
            await self._client.publish(
                subjects.command(self._cell, node),
                requests.pack(reference, body),
                reply=f"{self._inbox}.{node}.{reference}",
            )
            async with asyncio.timeout(timeout_s):
                return await answer
        finally:
            del self._asked[node, reference]

    async def ask(self, node: str, body: bytes, timeout_s: float) -> bytes:
        """As `request`; Unreachable when no answer comes in time."""
        try:
            return await self.request(node, body, timeout_s)
        except LOST as error:
            raise Unreachable(f"no answer of {node}: {error or type(error).__name__}") from error

    async def _on_answer(self, message: Msg) -> None:
        found = requests.unpack(message.data)
        if found is None:
            return
        reference, body = found
        answer = self._asked.get((subjects.node_of(message.subject), reference))
        if answer is not None and not answer.done():
            answer.set_result(body)

    async def _on_nobody(self, message: Msg) -> None:
        """The server: nobody listens at the subject of the request."""
        *_, node, reference = message.subject.split(".")
        answer = self._asked.get((node, reference))
        if answer is not None and not answer.done() and (message.headers or {}).get("Status") == "503":
            answer.set_exception(NoRespondersError())

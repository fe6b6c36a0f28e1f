"""The connection to NATS of this moment, for parts that outlive it."""

import contextlib
from collections.abc import Iterator

from nats.aio.client import Client

from agent.contract.errors import Unreachable
from agent.shared.nats_connection import LOST


class CurrentClient:
    """Holds the client while a session runs. A part asks for it each time that it needs one, and keeps none."""

    def __init__(self) -> None:
        self._client: Client | None = None

    @property
    def client(self) -> Client | None:
        """The present client; None: there is no session."""
        return self._client

    def required(self) -> Client:
        """The present client. Unreachable when there is no session."""
        if self._client is None:
            raise Unreachable("there is no connection to NATS")
        return self._client

    @contextlib.contextmanager
    def established(self, client: Client) -> Iterator[None]:
        """A session runs on this client."""
        self._client = client
        try:
            yield
        finally:
            self._client = None

    async def request(self, subject: str, body: bytes, timeout_s: float) -> bytes:
        """A request that is not stored, and its answer. Unreachable when none comes in time."""
        client = self.required()
        try:
            answer = await client.request(subject, body, timeout=timeout_s)
        except LOST as error:
            raise Unreachable(f"no answer on {subject}: {error or type(error).__name__}") from error
        return bytes(answer.data)

"""The connection to NATS of this moment, for parts that outlive it."""

import contextlib
from collections.abc import Iterator

from nats.aio.client import Client

from agent.contract.errors import Unreachable


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

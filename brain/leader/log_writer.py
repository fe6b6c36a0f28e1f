"""Appends inputs to the log."""

from nats.aio.client import Client

from brain.adapters.codec import Codec
from brain.adapters.outbox import Outbox
from brain.core.inputs import Input, OperatorCommand, Reported


class LogWriter:
    """Encodes inputs and queues them in the outbox. Appending does not wait, except for `append_and_wait`."""

    def __init__(self, codec: Codec, outbox: Outbox) -> None:
        self._codec = codec
        self._outbox = outbox

    def append(self, given: Input) -> None:
        """Appends an input, on whichever connection takes it: what was done must be known."""
        what, body = self._codec.encode(given)
        self._outbox.put(what, body, given.id, keep=True)

    def append_or_drop(self, given: Input) -> None:
        """Appends an input, or drops it when the connection is lost first: only the present leader may publish it."""
        what, body = self._codec.encode(given)
        self._outbox.put(what, body, given.id, keep=False)

    async def append_and_wait(self, given: OperatorCommand | Reported) -> int:
        """Appends what somebody waits for; returns its position on the log. Unreachable when NATS does not take it in time."""
        what, body = self._codec.encode(given)
        return await self._outbox.append(what, body, given.id)

    async def send(self) -> None:
        """Sends what is queued at once, if there is a connection."""
        await self._outbox.send()

    async def serve(self, client: Client) -> None:
        """Publishes what is queued on this connection, until cancelled."""
        await self._outbox.serve(client)

"""nats-py's client, where it costs too much or bears too little.

It has a parser of its own in the place of nats-py's, and overrides two of nats-py's methods. Where a later nats-py has no such
places, everything goes its ordinary way: tests/real says so.
"""

import contextlib
import logging
import ssl
from collections.abc import Iterator
from typing import Any

from nats.aio.client import Client
from nats.aio.subscription import Subscription

from agent.contract import subjects
from agent.shared.nats_parser import MOST_MESSAGE, DirectParser, Taker

_WITH_ID = f"NATS/1.0\r\n{subjects.HEADER_ID}:".encode()
_log = logging.getLogger(__name__)


class NatsClient(Client):
    """nats-py's, which stops reading at headers that it cannot decode. A server passes on whatever bytes a publisher gives as
    headers: one node's message would end the connection of the brain that leads, and again that of the next one.

    To take headers apart is a quarter of what a message of the log costs here. Those that begin with a message id were for the
    server, which has compared it: nobody asks for them on this side.
    """

    def __init__(self, most: int = MOST_MESSAGE) -> None:
        """`most`: bytes of the longest message that is taken; a longer one ends the connection."""
        super().__init__()
        self.takers: dict[int, Taker] = {}  # by the number of the subscription
        self._ps = DirectParser(self, self.takers, self._process_headers, _WITH_ID, most)

    def _connect_command(self) -> bytes:
        """What says who we are. ssl.SSLError: the URL promises TLS, and the server has not asked for it: whoever stands between
        could say so in its place, and nats-py would go on without, and read and tell everything in plain text.
        """
        wanted = self._current_server is not None and self._current_server.uri.scheme == "tls"
        writer = getattr(self._transport, "_io_writer", None)
        if wanted and writer is not None and writer.get_extra_info("ssl_object") is None:
            writer.close()
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, "the URL says tls://, and the server does not begin TLS")
        return bytes(super()._connect_command())

    async def _process_info(self, info: Any, initial_connection: bool = False) -> None:
        """What a server says of itself. Where others of its cluster are is said by our configuration alone: nats-py would keep
        whatever addresses it names, without end, and show them who we are.
        """
        said = {key: value for key, value in dict(info).items() if key != "connect_urls"}
        await super()._process_info(said, initial_connection)

    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        """None also for those that nobody can read, or asks for."""
        if headers is None or headers.startswith(_WITH_ID):
            return None
        try:
            return await super()._process_headers(headers)
        except (IndexError, ValueError):  # where they end too soon, and of bytes that are no text
            _log.debug("a message has headers that cannot be read: %r", (headers or b"")[:80])
            return None


@contextlib.contextmanager
def passed_directly(client: Client, subscription: Subscription, take: Taker) -> Iterator[None]:
    """While the context is open, what comes for a subscription goes to `take` in the moment in which it is read: no object is
    made of it, and it waits in no queue. Where `client` is not a NatsClient it goes to the subscription's callback instead:
    one of the two gets everything.
    """
    takers = client.takers if isinstance(client, NatsClient) else {}
    number: int = getattr(subscription, "_id", -1)
    takers[number] = take
    try:
        yield
    finally:
        takers.pop(number, None)

"""The brain's connection to NATS: kept for ever, with a fresh client for each try.

A lost client is thrown away with everything that it had buffered: what must arrive is in the outbox, which
sends it again by id; what has aged (a lease, a beat) must not arrive late.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.errors import Error as JetStreamError

from agent.contract.errors import ConfigError
from brain.adapters.tasks import end
from brain.config import NatsConfig
from brain.options import secret

_log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 3
PING_S = 1  # a silent server is given up after three of them
MAX_PINGS = 2
FIRST_PAUSE_S = 0.05
MAX_PAUSE_S = 2.0
_LOOK_S = 0.2

# What a lost connection, or a server that is not ready yet, can raise out of nats-py.
LOST = (NatsError, JetStreamError, OSError, asyncio.TimeoutError)


class Broker:
    """How the brain reaches its NATS servers."""

    def __init__(self, config: NatsConfig, *, name: str, url: str = "", seed: str = "") -> None:
        """`url` and `seed` stand in for the configured ones (embedded server)."""
        self._servers = [one.strip() for one in (url or config.url).split(",") if one.strip()]
        self._seed = seed or secret(config.seed_file, "nats.seed_file")
        self._name = name
        self._tls: ssl.SSLContext | None = None
        if config.ca_file or any(one.startswith("tls:") for one in self._servers):
            try:
                self._tls = ssl.create_default_context(cafile=str(config.ca_file) if config.ca_file else None)
            except OSError as error:
                raise ConfigError(f"nats.ca_file: {config.ca_file}: {error}") from error
        self._said = ""
        self.connected = False

    async def serve(self, session: Callable[[Client], Awaitable[None]]) -> None:
        """Connects, runs `session` until the connection is lost (then it is cancelled), and again, for ever.

        What the session raises by itself comes out here, unless it is one of `LOST`.
        """
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                client = await self._connect()
            except LOST as error:
                self._say(f"{type(error).__name__}: {error}")
                await asyncio.sleep(pause_s)
                pause_s = min(MAX_PAUSE_S, pause_s * 2)
                continue
            try:
                self.connected = True
                await self._hold(client, session)
                pause_s = FIRST_PAUSE_S
            except LOST as error:
                self._say(f"{type(error).__name__}: {error}")
                pause_s = min(MAX_PAUSE_S, pause_s * 2)
            finally:
                self.connected = False
                await close(client)
            await asyncio.sleep(pause_s)

    async def _connect(self) -> Client:
        async with asyncio.timeout(CONNECT_TIMEOUT_S + 1):
            client: Client = await nats.connect(
                self._servers,
                name=self._name,
                nkeys_seed_str=self._seed or None,
                tls=self._tls,
                allow_reconnect=False,
                connect_timeout=CONNECT_TIMEOUT_S,
                ping_interval=PING_S,
                max_outstanding_pings=MAX_PINGS,
                error_cb=self._on_error,
            )
        return client

    async def _hold(self, client: Client, session: Callable[[Client], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(session(client))
        try:
            while not task.done() and not client.is_closed:
                await asyncio.wait({task}, timeout=_LOOK_S)
            if not task.done():
                self._say("connection lost")
        finally:
            await end(task)  # unlike awaiting the task, this tells its cancellation from ours
        if not task.cancelled():
            task.result()

    async def _on_error(self, error: Exception) -> None:
        self._say(f"{type(error).__name__}: {error}")

    def _say(self, error: str) -> None:
        """One line per change, not one per try."""
        if error != self._said:
            self._said = error
            _log.warning("NATS %s: %s", ",".join(self._servers), error)


async def close(client: Client) -> None:
    """Closes a client whatever state its connection is in, within a second or so."""
    with contextlib.suppress(*LOST):
        async with asyncio.timeout(1.0):
            await client.close()
    # A black-holed socket would keep its buffer and nats-py's tasks for many minutes: there is no public way.
    writer = getattr(getattr(client, "_transport", None), "_io_writer", None)
    if writer is not None:
        writer.transport.abort()

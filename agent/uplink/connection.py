"""The connection to the broker: kept for ever, one fresh client for each try.

nats-py can reconnect by itself, but then it sends what it had buffered before the outage ahead of what is
sent again, which breaks the order of events, and on a black-holed connection with a full buffer it waits
for the old socket to drain. So a lost client is thrown away with all its state, and `serve` starts anew.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nats
from nats.aio.client import Client

from agent.contract import subjects
from agent.contract.errors import ConfigError
from agent.tasks import end

_log = logging.getLogger(__name__)


CONNECT_TIMEOUT_S = 3
PING_S = 1  # a silent broker is given up after three of them
MAX_PINGS = 2
FIRST_PAUSE_S = 0.05
MAX_PAUSE_S = 2.0
_LOOK_S = 1.0

# What a lost connection can raise out of nats-py, besides its own errors (see the pitfalls that tests/real
# shows).
LOST = (nats.errors.Error, OSError, asyncio.TimeoutError)


class Connection:
    """How a node reaches its broker."""

    def __init__(self, servers: list[str], node: str, *, seed_file: str = "", ca_file: str = "") -> None:
        self._servers = servers
        self._node = node
        self._seed = _seed(seed_file)
        self._tls = _tls(servers, ca_file)
        self._peer = ""
        self._connected = False
        self._last_error = ""

    @property
    def peer(self) -> tuple[str, int] | None:
        """Host and port of the server that we are or were connected to; None before the first time."""
        parts = urlsplit(self._peer)
        return (parts.hostname, parts.port or 4222) if parts.hostname else None

    @property
    def connected(self) -> bool:
        """Is there a connection, as far as we know?"""
        return self._connected

    async def serve(self, session: Callable[[Client], Awaitable[None]]) -> None:
        """Connects, runs `session` until the connection is lost (then it is cancelled), and again, for
        ever.
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
            pause_s = FIRST_PAUSE_S
            self._peer = client.connected_url.geturl() if client.connected_url else ""
            self._say("")
            self._connected = True
            try:
                await self._hold(client, session)
            except LOST as error:
                self._say(f"{type(error).__name__}: {error}")
            finally:
                self._connected = False
                await _close(client)
            await asyncio.sleep(FIRST_PAUSE_S)

    async def _connect(self) -> Client:
        async with asyncio.timeout(CONNECT_TIMEOUT_S + 1):
            return await nats.connect(
                self._servers,
                name=f"gpuward-agent {self._node}",
                inbox_prefix=subjects.inbox(self._node),
                nkeys_seed_str=self._seed,
                tls=self._tls,
                allow_reconnect=False,
                connect_timeout=CONNECT_TIMEOUT_S,
                ping_interval=PING_S,
                max_outstanding_pings=MAX_PINGS,
                skip_subject_validation=True,  # our subjects are checked when the configuration is read
                error_cb=self._on_error,
            )

    async def _hold(self, client: Client, session: Callable[[Client], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(session(client))
        try:
            # Looked at rather than told: nats-py calls closed_cb only after draining the dead socket.
            while not task.done() and not client.is_closed:
                await asyncio.wait({task}, timeout=_LOOK_S)
            if task.done():
                task.result()
        finally:
            await end(task)

    async def _on_error(self, error: Exception) -> None:
        self._say(f"{type(error).__name__}: {error}")

    def _say(self, error: str) -> None:
        """One line per change, not one per try."""
        if error != self._last_error:
            self._last_error = error
            if error:
                _log.warning("broker %s: %s", ",".join(self._servers), error)
            else:
                _log.info("connected to %s", self._peer)


async def together(*works: Coroutine[Any, Any, None]) -> None:
    """Runs them side by side until the first one fails (its error is raised) or it is cancelled; ends all."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        await end(*tasks)


async def _close(client: Client) -> None:
    with contextlib.suppress(*LOST):
        async with asyncio.timeout(1.0):
            await client.close()
    # A black-holed socket would keep its buffer and nats-py's tasks for many minutes: there is no public way.
    writer = getattr(getattr(client, "_transport", None), "_io_writer", None)
    if writer is not None:
        writer.transport.abort()


def _seed(file: str) -> str | None:
    if not file:
        return None
    try:
        return Path(file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"nats_seed_file: {file} cannot be read: {error}") from error


def _tls(servers: list[str], ca_file: str) -> ssl.SSLContext | None:
    if not ca_file and not any(url.startswith("tls:") for url in servers):
        return None
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise ConfigError(f"nats_ca_file: {ca_file} cannot be read: {error}") from error

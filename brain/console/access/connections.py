"""How many connections the console holds at once, and for how long one may say nothing.

Each costs a descriptor, and the brain needs its own: whoever opens thousands without a credential must not cost it NATS, its
log or its lease. One that is too many is closed before its request is read.
"""

import asyncio
import logging
import resource
import time
import weakref
from typing import cast

from aiohttp import web

from brain.console_config import ConsoleConfig

IDLE_S = 30.0  # without a whole request
HANDSHAKE_S = 10.0  # of TLS
BODY_S = 15.0  # from a request's headers to the end of its body
OF_ONE_ADDRESS = 128
MOST = 1024
TOLD_EVERY_S = 60.0
_log = logging.getLogger(__name__)


def at_most(descriptors: int) -> int:
    """How many connections, where a process may have so many descriptors: a quarter of them."""
    return max(1, min(MOST, descriptors // 4))


class Connections:
    """Makes the protocol of each connection (asyncio's protocol factory)."""

    def __init__(self, server: web.Server, config: ConsoleConfig) -> None:
        self._server = server
        self._most = at_most(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self._proxies = frozenset(config.trusted_proxies)
        self._unready: weakref.WeakSet[_Arriving] = weakref.WeakSet()
        self._told_s = -TOLD_EVERY_S

    def __call__(self) -> "_Arriving":
        """Of a connection that was accepted; ConnectionRefusedError closes it."""
        if len(self._server.connections) + len(self._unready) >= self._most:
            self._tell(f"{self._most} connections are open: another one was refused")
            raise ConnectionRefusedError
        arriving = _Arriving(self)
        self._unready.add(arriving)
        return arriving

    def admit(self, arriving: "_Arriving", transport: asyncio.Transport) -> None:
        """It is ready to speak: it goes on with HTTP, unless its address has too many."""
        self._unready.discard(arriving)
        address = _address(transport)
        beside = sum(_address(one.transport) == address for one in self._server.connections)
        if beside >= OF_ONE_ADDRESS and address not in self._proxies:
            self._tell(f"{address} has {beside} connections: another one was refused")
            transport.abort()
            return
        protocol = self._server()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)

    def _tell(self, text: str) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s >= TOLD_EVERY_S:
            self._told_s = now_s
            _log.warning("console: %s", text)


class _Arriving(asyncio.Protocol):
    """A connection until its TLS handshake is done."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._connections.admit(self, cast("asyncio.Transport", transport))


def _address(transport: asyncio.BaseTransport | None) -> str:
    peer = transport.get_extra_info("peername") if transport is not None else None
    return str(peer[0]).partition("%")[0] if peer else ""

"""How many connections the console holds at once, and for how long one may say nothing.

Each costs a descriptor, and the brain needs its own: whoever opens thousands without a credential must not cost it NATS, its
log or its lease. Nor may they close the console to others: for a new connection the oldest goes that has sent no request,
then the oldest whose requests showed no credential. Who has shown one keeps their place. For whom there is none is told so.
"""

import asyncio
import logging
import resource
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import cast

from aiohttp import web

from brain.console.access.addresses import counted, is_loopback
from brain.console_config import ConsoleConfig

IDLE_S = 30.0  # without a whole request
FULL_IDLE_S = 3.0  # the same while three quarters of the places are taken
HANDSHAKE_S = 10.0  # of TLS
BODY_S = 15.0  # from a request's headers to the end of its body
OF_ONE_ADDRESS = 128
MOST = 1024
RESERVED = 1 / 16  # of the places: for this machine's own users
HANDSHAKES = 1 / 4  # of the places: for connections whose TLS handshake is not over
TOLD_EVERY_S = 60.0
_log = logging.getLogger(__name__)


def at_most(descriptors: int) -> int:
    """How many connections, where a process may have so many descriptors: a quarter of them."""
    return max(1, min(MOST, descriptors // 4))


@dataclass(slots=True, kw_only=True)
class _Visit:
    """A connection that can speak."""

    address: str
    since_s: float
    # Has it sent a whole request?
    heard: bool = False
    # Has it shown a credential, or is it a proxy that we trust?
    known: bool = False


_Visits = dict[web.RequestHandler, _Visit]


class Connections:
    """Makes the protocol of each connection (asyncio's protocol factory)."""

    def __init__(
        self, server: web.Server, config: ConsoleConfig, refuse: Callable[[asyncio.Transport, str], None]
    ) -> None:
        """`refuse`: ends a connection for which there is no place; the text says why."""
        self._server = server
        self.most = at_most(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self._proxies = frozenset(map(counted, config.trusted_proxies))
        self._visits: _Visits = {}
        self._told_s = -TOLD_EVERY_S
        self._refuse = refuse

    def __call__(self) -> "_Arriving":
        """Of a connection that was accepted."""
        return _Arriving(self)

    def admit(self, transport: asyncio.Transport) -> None:
        """It is ready to speak: it goes on with HTTP, if there is room or another one makes it."""
        address = counted(_address(transport))
        if why := self._no_room_for(address):
            self._refuse(transport, why)
            return
        protocol = self._server()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        self._visits[protocol] = _Visit(
            address=address, since_s=time.monotonic(), known=address in self._proxies
        )

    def heard(self, request: web.BaseRequest) -> None:
        """A request has come whole."""
        if (visit := self._visits.get(request.protocol)) is not None:
            visit.heard = True

    def known(self, request: web.BaseRequest) -> None:
        """It showed a credential."""
        if (visit := self._visits.get(request.protocol)) is not None:
            visit.known = True

    def _no_room_for(self, address: str) -> str:
        """Makes room for one more; why there is none; empty: there is."""
        present = self._server.connections
        self._visits = {one: self._visits[one] for one in present if one in self._visits}
        most = self.most if is_loopback(address) else self.most - int(self.most * RESERVED)
        if len(self._visits) >= 3 / 4 * most:
            self._drop_silent()
        mine = [one for one, visit in self._visits.items() if visit.address == address]
        if len(mine) >= OF_ONE_ADDRESS and address not in self._proxies and not self._drop_one(mine):
            self._tell(f"{address} has {len(mine)} connections: another one was refused")
            return f"{address} has {len(mine)} connections here, the most of one address: close some of them, or come again later"
        if len(self._visits) < most or self._drop_one(self._visits):
            return ""
        self._tell(f"{most} connections are open: another one was refused")
        return f"all {most} places for connections are taken: come again later"

    def _drop_silent(self) -> None:
        since_s = time.monotonic() - FULL_IDLE_S
        for one, visit in list(self._visits.items()):
            if not (visit.heard or visit.known) and visit.since_s < since_s:
                self._drop(one)

    def _drop_one(self, of: Collection[web.RequestHandler]) -> bool:
        """Closes one of them for a new one; False: none may be."""
        strangers = [(self._visits[one].heard, self._visits[one].since_s, one) for one in of]
        strangers = [one for one in strangers if not self._visits[one[2]].known]
        if not strangers:
            return False
        self._drop(min(strangers, key=lambda one: one[:2])[2])
        return True

    def _drop(self, protocol: web.RequestHandler) -> None:
        visit = self._visits.pop(protocol)
        self._tell(f"many connections are open: an idle one of {visit.address} was closed")
        if protocol.transport is not None:
            protocol.transport.abort()

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
        self._connections.admit(cast("asyncio.Transport", transport))


def _address(transport: asyncio.BaseTransport | None) -> str:
    peer = transport.get_extra_info("peername") if transport is not None else None
    return str(peer[0]).partition("%")[0] if peer else ""

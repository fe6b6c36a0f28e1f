"""Accepts connections one after another at a bounded pace: whoever opens thousands in a second waits in the kernel's queue.

asyncio's own server accepts a hundred each time its loop comes round, before anything else has its turn.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator

from agent.shared.tasks import Tasks
from brain.allowance import Allowance
from brain.console.access.connections import HANDSHAKE_S, HANDSHAKES, Connections

PER_S, AT_ONCE = 100.0, 50.0
_QUEUED = 128  # in the kernel
_NO_DESCRIPTOR_S = 0.5
_EVERYWHERE = "::"


async def sockets(host: str, port: int) -> list[socket.socket]:
    """The sockets of a name or address, which listen; of `::` those of IPv4, too, as of NATS. OSError: they cannot."""
    # One for each: on a socket for both, IPv4 addresses would be called ::ffff:192.0.2.7, which no trusted_proxies has.
    hosts = ("0.0.0.0", _EVERYWHERE) if host == _EVERYWHERE else (host,)
    server = await asyncio.get_running_loop().create_server(
        asyncio.Protocol, hosts, port, start_serving=False
    )
    found = [one.dup() for one in server.sockets]
    server.close()
    for one in found:
        one.setblocking(False)
        one.listen(_QUEUED)
    return found


@contextlib.asynccontextmanager
async def accepting(
    listening: list[socket.socket], connections: Connections, tls: ssl.SSLContext | None
) -> AsyncIterator[None]:
    """Accepts while it is open, then closes the sockets."""
    pace = Allowance(AT_ONCE, PER_S)
    try:
        async with Tasks() as tasks:
            for one in listening:
                tasks.start(_accept(one, connections, tls, pace, tasks), "console")
            yield
    finally:
        for one in listening:
            one.close()


async def _accept(
    listening: socket.socket,
    connections: Connections,
    tls: ssl.SSLContext | None,
    pace: Allowance,
    tasks: Tasks,
) -> None:
    loop = asyncio.get_running_loop()
    beginning: dict[asyncio.Task[None], None] = {}  # the oldest first
    while True:
        if not pace.spend(loop.time()):
            await asyncio.sleep(pace.ready_s())
            continue
        try:
            connection, _ = await loop.sock_accept(listening)
        except OSError:
            await asyncio.sleep(_NO_DESCRIPTOR_S)
            continue
        while len(beginning) >= max(8, int(connections.most * HANDSHAKES)):
            oldest = next(iter(beginning))
            del beginning[oldest]
            oldest.cancel()
        task = tasks.start(_begin(connection, connections, tls), "connection")
        beginning[task] = None
        task.add_done_callback(lambda ended: beginning.pop(ended, None))
        await asyncio.sleep(0)  # all others have their turn before the next one


async def _begin(connection: socket.socket, connections: Connections, tls: ssl.SSLContext | None) -> None:
    """TLS, where there is any, and then it speaks; nothing is said to whom is refused."""
    begun = False
    try:
        with contextlib.suppress(OSError):  # TLS's errors among them
            await asyncio.get_running_loop().connect_accepted_socket(
                connections, connection, ssl=tls, ssl_handshake_timeout=HANDSHAKE_S if tls else None
            )
            begun = True
    finally:
        if not begun:
            connection.close()

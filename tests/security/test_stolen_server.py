"""A NATS server that was taken over, or stands in the place of one: whatever it says, agents and brains go on.

Whoever has the server can keep back what is said over it. More than that it must not have: it cannot stop a process, fill its
memory, or have it show its key elsewhere.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from nats.aio.client import Client
from nats.errors import ProtocolError

from agent.commands.commander import Commander
from agent.shared import nats_parser
from agent.shared.nats_client import NatsClient, passed_directly
from agent.shared.nats_connection import NatsConnection
from agent.uplink.port import MOST_WAITING_BYTES
from tests.agent.test_nats_parser import FakeClient, direct
from tests.security.figures import Record, attacked

INFO: dict[str, Any] = {"server_id": "S", "version": "2.15.0", "max_payload": 1048576, "headers": True}
Says = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PIECE = b"x" * 32768


def info(**more: Any) -> bytes:
    """The server's first line."""
    return b"INFO " + json.dumps(INFO | more).encode() + b"\r\n"


def greeted(then: bytes, **more: Any) -> Says:
    """A server that greets as it must, waits for a subscription, and then says this."""

    async def says(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(info(**more))
        await reader.readuntil(b"PING\r\n")
        writer.write(b"PONG\r\n")
        await reader.readuntil(b"SUB ")
        writer.write(then)
        while await reader.read(65536):
            pass

    return says


@asynccontextmanager
async def server(says: Says) -> AsyncIterator[str]:
    """Where it listens."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await says(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(one, "127.0.0.1", 0)
    host, port = listening.sockets[0].getsockname()[:2]
    try:
        yield f"nats://{host}:{port}"
    finally:
        listening.close()


@pytest.mark.parametrize(
    "line",
    [
        b"PING\r\n" * 10 + b"MSG a 7 -45\r\n",
        b"PING\r\n" * 10 + b"HMSG a 7 5 -45\r\n",
        b"HMSG a 7 -5 5\r\nabcde\r\n",
        b"HMSG a 7 9 5\r\nabcde\r\n",
        b"MSG a 7 +5\r\nabcde\r\n",
        b"MSG a 7 1_0\r\n0123456789\r\n",
        b"MSG a 7 " + b"9" * 5000 + b"\r\n",
        b"MSG a -7 5\r\nabcde\r\n",
        b"MSG a 7 x y z 5\r\nabcde\r\n",
    ],
    ids=lambda line: repr(line[-30:]),
)
def test_sizes_that_no_server_says_end_the_connection(line: bytes, record_property: Record) -> None:
    """One below zero led back to what had been read: the brain took the same message for ever, and did nothing else."""
    client = FakeClient()

    async def parsed() -> None:
        await direct(client).parse(b"+OK\r\n" + line)

    with pytest.raises(ProtocolError):
        asyncio.run(parsed())
    attacked(record_property, 1)
    assert client.heard.count(("ping",)) <= 10
    assert all(one == ("ping",) for one in client.heard)


@pytest.mark.parametrize("takers", [True, False])
@pytest.mark.parametrize(
    ("begin", "most"),
    [(b"MSG a 7 99999999999\r\n", 0), (b"INFO {", nats_parser.MOST_LINE), (b"MSG", nats_parser.MOST_LINE)],
    ids=["a message", "a line", "the line of a message"],
)
def test_what_never_ends_is_not_kept(begin: bytes, most: int, *, takers: bool) -> None:
    """Of a message of a terabyte nothing is waited for; of a line so much as a server may say."""
    parser = direct(FakeClient())
    if not takers:
        parser._takers = {}

    async def parsed() -> int:
        taken = 0
        await parser.parse(begin)
        while taken <= most + 2 * len(PIECE):
            await parser.parse(PIECE)
            taken += len(PIECE)
        return taken

    with pytest.raises(ProtocolError):
        asyncio.run(parsed())
    assert len(parser.buf) + len(parser._rest) <= most + 2 * len(PIECE)


async def test_a_session_outlives_what_the_server_says(record_property: Record) -> None:
    """Also a greeting whose numbers are none: it is no server, and another one is tried, with the reason in the log."""
    for says in (
        greeted(b"PING\r\n" * 10 + b"MSG a 1 -45\r\n"),
        greeted(b"-ERR\r\n"),
        greeted(b"INFO []\r\n"),
        greeted(b"INFO {\r\n"),
        greeted(b"", max_payload="much"),
        greeted(b"", max_payload=None),
        greeted(b"", max_payload=-1),
    ):
        taken: list[bytes] = []

        async def session(client: Client, taken: list[bytes] = taken) -> None:
            async def nobody(_: object) -> None: ...

            subscription = await client.subscribe("a", cb=nobody)
            with passed_directly(client, subscription, lambda *message: taken.append(message[2])):
                while True:
                    await client.publish("b", b"hello")
                    await asyncio.sleep(0.05)

        async with server(says) as url:
            connection = NatsConnection([url], name="test", look_s=0.1, ping_s=0.1)
            serving = asyncio.ensure_future(connection.serve(session))
            began_s = time.monotonic()
            while not connection.why and time.monotonic() - began_s < 30:
                await asyncio.sleep(0.05)
            assert time.monotonic() - began_s < 30, "it is noticed"
            assert not serving.done(), "and nothing ends by it"
            serving.cancel()
            await asyncio.wait({serving})
        assert taken == []
    attacked(record_property, 7, refused=3)


async def test_nobody_is_shown_our_key_because_a_server_says_so() -> None:
    """The addresses of others are in our configuration. Those that a server names would be kept, too, 200 in each line."""
    named = [f"10.0.{number >> 8}.{number & 255}:4222" for number in range(500)]
    async with server(greeted(info(connect_urls=named), connect_urls=named)) as url:
        client = NatsClient()
        await client.connect(url, allow_reconnect=False)
        await client.subscribe("a", cb=_nothing)
        assert [one.uri.port for one in client._server_pool] == [int(url.rpartition(":")[2])]
        await client.close()


async def _nothing(_: object) -> None: ...


async def test_what_waits_for_the_agent_is_bounded() -> None:
    """A flood of commands waits while one is judged: 8 MB of it, and not the 128 MB that nats-py would keep."""
    commander = object.__new__(Commander)
    commander._subject = "ward.c.cmd.n1"
    judged, counted = asyncio.Event(), asyncio.Event()

    async def handle(_: bytes) -> Any:
        judged.set()
        await counted.wait()

    commander.handle = handle  # type: ignore[method-assign, assignment]  # as long as the test wants
    command = b"abcdefgh\n" + b"x" * 65536
    flood = (b"MSG ward.c.cmd.n1 1 %d\r\n" % len(command) + command + b"\r\n") * 400
    async with server(greeted(flood + b"PONG\r\n" * 50)) as url:
        client = NatsClient()
        await client.connect(url, allow_reconnect=False, error_cb=_nothing)
        serving = asyncio.ensure_future(commander.serve(client))
        async with asyncio.timeout(30):
            await judged.wait()
            while client.stats["in_msgs"] < 400:
                await asyncio.sleep(0.01)
        (subscription,) = client._subs.values()
        assert MOST_WAITING_BYTES // 2 < subscription._pending_size <= MOST_WAITING_BYTES
        serving.cancel()
        counted.set()
        await client.close()

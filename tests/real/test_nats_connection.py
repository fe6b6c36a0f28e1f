"""The connection that agent and brain keep to NATS, on a real server."""

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from agent.contract.errors import ConfigError
from agent.shared.nats_connection import (
    FIRST_PAUSE_S,
    MAX_PAUSE_S,
    PING_S,
    SILENT_S,
    STEADY_S,
    NatsConnection,
)
from agent.shared.rhythm import pause
from agent.uplink.connection import node_connection
from tests.real.nats import nats_server

pytestmark = pytest.mark.component("nats-server")


@contextlib.asynccontextmanager
async def kept(
    urls: Sequence[str], session: Callable[[Client], Awaitable[None]]
) -> AsyncIterator[NatsConnection]:
    """A connection with this session until the block ends."""
    connection = NatsConnection(urls, name="test", look_s=0.05)
    task = asyncio.create_task(connection.serve(session))
    try:
        yield connection
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(true: Callable[[], bool], within_s: float = 15.0) -> None:
    """Waits for a condition, with a bound."""
    async with asyncio.timeout(within_s):
        while not true():
            await asyncio.sleep(0.01)


async def forever(_: Client) -> None:
    """A session that does nothing."""
    await asyncio.Event().wait()


async def test_a_session_that_fails_at_once_is_tried_again_with_growing_pauses(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A server without a log yet, say: no storm of connections, and one line about it, not one per attempt."""
    attempts: list[float] = []

    async def session(client: Client) -> None:
        attempts.append(time.monotonic())
        await client.jetstream(timeout=0.2).stream_info("missing")

    with nats_server(tmp_path) as server, caplog.at_level(logging.INFO):
        async with kept([server.url], session):
            await until(lambda: len(attempts) >= 5)
    pauses = [after - before for before, after in itertools.pairwise(attempts)]
    assert all(pause >= FIRST_PAUSE_S * 2**number for number, pause in enumerate(pauses))
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if "NotFoundError" in line]) == 1
    assert len([line for line in lines if line.startswith("connected to")]) <= 2


async def test_a_lost_connection_is_reported_and_comes_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The session is cancelled, `connected` is false meanwhile, and the second connection is announced like the first."""
    ended = 0

    async def session(_: Client) -> None:
        nonlocal ended
        try:
            await asyncio.Event().wait()
        finally:
            ended += 1

    with nats_server(tmp_path) as server, caplog.at_level(logging.INFO):
        async with kept([server.url], session) as connection:
            before = connection.peer
            await until(lambda: connection.connected)
            assert (before, connection.peer) == (None, ("127.0.0.1", server.port))
            server.kill()
            await until(lambda: not connection.connected and ended == 1)
            assert connection.peer == ("127.0.0.1", server.port)
            # Attempts that fail in between do not add lines.
            await asyncio.sleep(FIRST_PAUSE_S * 10)
            server.start()
            await until(lambda: connection.connected)
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if line.startswith("connected to")]) == 2
    assert 1 <= len([line for line in lines if "refused" in line or "lost" in line]) <= 4


async def test_a_server_that_hangs_is_given_up(tmp_path: Path) -> None:
    """It accepts what we send and answers nothing: that is noticed without nats-py's own pings, and so is its return."""
    with nats_server(tmp_path) as server:
        async with kept([server.url], forever) as connection:
            await until(lambda: connection.connected)
            server.pause()
            stopped_s = time.monotonic()
            await until(lambda: not connection.connected)
            assert time.monotonic() - stopped_s >= PING_S, "not by the first ping that comes a moment late"
            server.resume()
            await until(lambda: connection.connected)


async def test_who_was_given_up_is_waited_for_longer(tmp_path: Path) -> None:
    """A server that is short of its processor answers late, time and again: who comes back each time makes that worse."""
    sessions = 0

    async def session(_: Client) -> None:
        nonlocal sessions
        sessions += 1
        await asyncio.Event().wait()

    with nats_server(tmp_path) as server:
        async with kept([server.url], session) as connection:
            await until(lambda: connection.connected)
            server.pause()
            await until(lambda: not connection.connected)
            server.resume()
            await until(lambda: connection.connected and sessions == 2)
            server.pause()
            await pause(SILENT_S + 1)  # as long as was too long the first time
            server.resume()
            await pause(PING_S + 0.5)
            assert (connection.connected, sessions) == (True, 2)
            server.pause()
            await until(lambda: not connection.connected)
            server.resume()


async def test_who_is_held_up_himself_does_not_blame_the_server(tmp_path: Path) -> None:
    """Something of ours takes longer than the server's patience, right after a ping: the answer lies there unread."""
    with nats_server(tmp_path) as server:
        sessions = 0

        async def session(_: Client) -> None:
            nonlocal sessions
            sessions += 1
            await asyncio.Event().wait()

        connection = NatsConnection([server.url], name="test", look_s=2.0, ping_s=2.0)
        task = asyncio.create_task(connection.serve(session))
        await until(lambda: connection.connected)
        for turns in (0, 1, 2, 3):
            await pause(2.0)  # as the looks
            for _ in range(turns):
                await asyncio.sleep(0)
            time.sleep(2.2)
        await asyncio.sleep(2.5)
        assert sessions == 1
        task.cancel()
        await asyncio.wait((task,))


async def test_a_black_hole_is_noticed_whatever_is_sent_into_it(tmp_path: Path) -> None:
    """Nothing passes any more, in either direction, and the session goes on writing: its socket is full, its pings wait."""
    with nats_server(tmp_path) as server:
        hole, ended = asyncio.Event(), 0

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(65536):
                if hole.is_set():
                    await asyncio.Event().wait()
                writer.write(data)
                await writer.drain()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            inner, outer = await asyncio.open_connection("127.0.0.1", server.port)
            await asyncio.gather(pass_on(reader, outer), pass_on(inner, writer), return_exceptions=True)

        async def flood(client: Client) -> None:
            nonlocal ended
            try:
                while True:
                    await client.publish("junk", b"x" * 60_000)
                    await asyncio.sleep(0.002)
            finally:
                ended += 1

        between = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = between.sockets[0].getsockname()[1]
        async with kept([f"nats://127.0.0.1:{port}"], flood) as connection:
            await until(lambda: connection.connected)
            await asyncio.sleep(0.5)
            hole.set()
            await until(lambda: ended > 0 and not connection.connected)
        between.close()


async def test_what_is_no_nats_server_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It greets with nonsense; a NATS server takes its place."""
    greetings = [b"INFO []\r\n", b"INFO " + b"9" * 5000 + b"\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"]

    async def nonsense(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greetings[0])
        greetings.append(greetings.pop(0))
        await writer.drain()
        writer.close()

    with nats_server(tmp_path) as server:
        server.kill()
        other = await asyncio.start_server(nonsense, "127.0.0.1", server.port)
        async with kept([server.url], forever) as connection:
            await until(lambda: "no NATS server" in caplog.text)
            await asyncio.sleep(1.0)
            other.close()
            await asyncio.sleep(0.1)
            server.start()
            await until(lambda: connection.connected)


def test_a_password_in_the_url_is_not_logged() -> None:
    """A URL that we cannot use is told without it."""
    with pytest.raises(ConfigError) as refused:
        NatsConnection(["ws://ann:s3cret@broker:443"], name="test")
    assert "ws://…@broker:443" in str(refused.value)
    assert "s3cret" not in str(refused.value)


async def test_a_lost_connection_is_noticed_between_two_looks(tmp_path: Path) -> None:
    """Not only when the state is looked at: that is seldom."""
    with nats_server(tmp_path) as server:
        connection = NatsConnection([server.url], name="test", look_s=3600.0)
        task = asyncio.create_task(connection.serve(forever))
        await until(lambda: connection.connected)
        server.kill()
        await until(lambda: not connection.connected)
        task.cancel()
        await asyncio.wait((task,))


async def test_after_a_good_session_the_pauses_begin_small_again(tmp_path: Path) -> None:
    """However long the server was away before: the next loss is not punished for it."""
    with nats_server(tmp_path) as server:
        server.kill()
        async with kept([server.url], forever) as connection:
            await asyncio.sleep(
                2 * MAX_PAUSE_S
            )  # attempts fail meanwhile, and the pauses grow to the longest
            server.start()
            await until(lambda: connection.connected)
            await asyncio.sleep(STEADY_S + 0.5)
            server.kill()
            server.start()
            await until(lambda: not connection.connected)
            lost_s = time.monotonic()
            await until(lambda: connection.connected)
            assert time.monotonic() - lost_s < MAX_PAUSE_S, "the pause that had been reached"


async def test_what_the_session_raises_by_itself_is_raised(tmp_path: Path) -> None:
    """An error that no lost connection explains ends `serve`."""

    async def session(_: Client) -> None:
        raise KeyError("a bug")

    with nats_server(tmp_path) as server:
        async with asyncio.timeout(60):
            with pytest.raises(KeyError):
                await NatsConnection([server.url], name="test").serve(session)


@pytest.mark.parametrize(
    ("files", "error"),
    [
        (
            {"seed_file": "/nowhere/seed"},
            "nats_seed_file: /nowhere/seed cannot be read.*`gpuward-agent join`",
        ),
        ({"seed_file": "/dev/null"}, "nats_seed_file: /dev/null is empty"),
        ({"jwt_file": "/nowhere/jwt"}, "nats_jwt_file: /nowhere/jwt cannot be read"),
        ({"seed_file": "/etc/passwd"}, "nats_seed_file: /etc/passwd has no NKEY seed.*`gpuward-agent join`"),
        ({"ca": lambda: "nonsense"}, "nats_ca_file: not certificates in PEM.*`gpuward-agent join`"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_key(files: dict[str, Any], error: str) -> None:
    """The agent refuses to start, and the operator knows what to correct."""
    with pytest.raises(ConfigError, match=error):
        node_connection(["nats://127.0.0.1:4222"], "gpu-1", **files)


async def test_it_goes_elsewhere(tmp_path: Path) -> None:
    """A server that answers and is of no use any more is left for the other one, and stays the last choice until then."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with nats_server(tmp_path / "one") as one, nats_server(tmp_path / "two") as two:
        async with kept([one.url, two.url], forever) as connection:
            for _ in range(5):
                await until(lambda: connection.connected)
                before = connection.peer
                assert connection.elsewhere()
                await until(partial(reached, connection, before))
            assert {before, connection.peer} == {("127.0.0.1", one.port), ("127.0.0.1", two.port)}


def reached(connection: NatsConnection, before: tuple[str, int] | None) -> bool:
    """Another server than `before`?"""
    return connection.connected and connection.peer != before


async def test_where_there_is_one_server_it_stays(tmp_path: Path) -> None:
    """To leave it would only cost time."""
    with nats_server(tmp_path) as server:
        async with kept([server.url], forever) as connection:
            assert not connection.elsewhere(), "before it is connected"
            await until(lambda: connection.connected)
            assert not connection.elsewhere()
            assert connection.connected

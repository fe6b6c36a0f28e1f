"""The connection that agent and brain keep to NATS, on a real server."""

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from nats.aio.client import Client

from agent.contract.errors import ConfigError
from agent.shared.nats_connection import FIRST_PAUSE_S, MAX_PAUSE_S, STEADY_S, NatsConnection
from agent.uplink.connection import node_connection
from tests.real.nats import nats_server

pytestmark = pytest.mark.component("nats-server")


@contextlib.asynccontextmanager
async def kept(url: str, session: Callable[[Client], Awaitable[None]]) -> AsyncIterator[NatsConnection]:
    """A connection with this session until the block ends."""
    connection = NatsConnection([url], name="test", look_s=0.05)
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
        async with kept(server.url, session):
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
        async with kept(server.url, session) as connection:
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


async def test_after_a_good_session_the_pauses_begin_small_again(tmp_path: Path) -> None:
    """However long the server was away before: the next loss is not punished for it."""
    with nats_server(tmp_path) as server:
        server.kill()
        async with kept(server.url, forever) as connection:
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
        ({"seed_file": "/nowhere/seed"}, "nats_seed_file: /nowhere/seed cannot be read"),
        ({"seed_file": "/dev/null"}, "nats_seed_file: /dev/null is empty"),
        ({"ca_file": "/nowhere/ca"}, "nats_ca_file: /nowhere/ca cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_key(files: dict[str, str], error: str) -> None:
    """The agent refuses to start, and the operator knows what to correct."""
    with pytest.raises(ConfigError, match=error):
        node_connection(["nats://127.0.0.1:4222"], "gpu-1", **files)

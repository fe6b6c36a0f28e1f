"""Spool → lane → log on a real nats-server: in order, nothing lost, nothing twice, whatever broker and brain do."""

import asyncio
import contextlib
import itertools
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from agent.contract import subjects
from agent.contract.messages import decode_beat, decode_event
from agent.host import Host
from agent.shared.nats_connection import NatsConnection
from agent.uplink import publisher as publisher_module
from agent.uplink.connection import node_connection
from agent.uplink.heartbeat import Heartbeat
from agent.uplink.publisher import Publisher
from agent.uplink.spool import Spool
from brain.leader import quotas
from tests.agent.uplink_kit import fact
from tests.real.intake_kit import intake
from tests.real.nats import client, nats_server, whole_log

NODE = "gpu-1"
BODY = b"x" * 400  # about as long as an event
pytestmark = pytest.mark.component("nats-server")


@contextlib.asynccontextmanager
async def running(url: str, session: Callable[[Client], Awaitable[None]]) -> AsyncIterator[NatsConnection]:
    """`session` on a connection that is kept, until the block ends."""
    connection = node_connection([url], NODE)
    task = asyncio.create_task(connection.serve(session))
    try:
        yield connection
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(true: Callable[[], bool], within_s: float = 60.0) -> None:
    """Waits for a condition, with a bound."""
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)


def told(bodies: list[bytes]) -> list[int]:
    """The test's numbers of the events on the log, as a reader sees them: repeats skipped by number."""
    seen, found = 0, []
    for body in bodies:
        event = decode_event(orjson.loads(body), NODE)
        if event.order[1] > seen:
            seen = event.order[1]
            found.append(int(event.data["lost"]))
    return found


async def test_events_reach_the_log_in_order_with_headers(tmp_path: Path) -> None:
    """Each event is one message on the node's subject, with kind, severity and its id in the headers, and
    leaves the spool when the log has it.
    """
    with nats_server(tmp_path, nodes=[NODE]) as server:
        spool = Spool(tmp_path / "spool.db", Host(), NODE)
        for number in range(1000):
            spool.put(fact(number), time.monotonic())
        async with intake(server.url), client(server.url) as reader:
            heard: list[Msg] = []

            async def hear(message: Msg) -> None:
                heard.append(message)

            await reader.subscribe(subjects.event("default", NODE), cb=hear)
            await reader.flush()
            async with running(server.node_url(NODE), Publisher(spool, "default", NODE).serve):
                await until(lambda: len(heard) == 1000 and spool.spooled == 0)
        assert told([message.data for message in heard]) == list(range(1000))
        headers = heard[0].headers or {}
        assert headers[subjects.HEADER_KIND] == "agent.kmsg_overrun"
        assert headers[subjects.HEADER_SEVERITY] == "warning"
        assert headers[subjects.HEADER_ID] == "e:" + orjson.loads(heard[0].data)["id"]
        assert len(await whole_log(server.url)) == 1000


async def test_the_broker_dies_under_load_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """SIGKILL of the broker twice while events flow, once while the agent restarts too."""
    with nats_server(tmp_path, nodes=[NODE]) as server:
        path, put = tmp_path / "spool.db", 0

        async def load(spool: Spool, count: int) -> None:
            nonlocal put
            for number in range(count):
                spool.put(fact(put), time.monotonic())
                put += 1
                if number % 5 == 4:
                    await asyncio.sleep(0.005)

        spool = Spool(path, Host(), NODE)
        async with (
            intake(server.url),
            running(server.node_url(NODE), Publisher(spool, "default", NODE).serve),
        ):
            await load(spool, 500)
            server.kill()
            await load(spool, 1000)
            assert spool.spooled >= 1000
            server.start()
            await load(spool, 500)
            server.kill()
            await load(spool, 200)
        spool.close()
        spool = Spool(path, Host(), NODE)
        async with (
            intake(server.url, wait=False),
            running(server.node_url(NODE), Publisher(spool, "default", NODE).serve),
        ):
            await load(spool, 200)
            server.start()
            await load(spool, 300)
            await until(lambda: spool.spooled == 0)
        bodies = await whole_log(server.url)
        assert [int(orjson.loads(body)["data"]["lost"]) for body in bodies] == list(range(put))


async def test_a_hung_broker_is_left_and_found_again(tmp_path: Path) -> None:
    """A stopped server process keeps its sockets open: the agent gives it up after missed pings, and comes
    back.
    """
    with nats_server(tmp_path, nodes=[NODE]) as server:
        spool = Spool(tmp_path / "spool.db", Host(), NODE)
        sessions = 0
        publisher = Publisher(spool, "default", NODE)

        async def session(connection: Client) -> None:
            nonlocal sessions
            sessions += 1
            await publisher.serve(connection)

        async with intake(server.url), running(server.node_url(NODE), session) as connection:
            await until(lambda: sessions == 1)
            server.pause()
            for number in range(5000):  # more than the socket's buffers take
                spool.put(fact(number, note="x" * 400), time.monotonic())
            await until(lambda: not connection.connected)
            server.resume()
            await until(lambda: sessions >= 2 and spool.spooled == 0)
        bodies = await whole_log(server.url)
        assert told(bodies) == list(range(5000))


async def test_no_brain_yet(tmp_path: Path) -> None:
    """An agent that is there before a brain leads waits with one event on the way, and then sends everything in order."""
    with nats_server(tmp_path, nodes=[NODE]) as server:
        spool = Spool(tmp_path / "spool.db", Host(), NODE)
        for number in range(700):
            spool.put(fact(number), time.monotonic())
        async with running(server.node_url(NODE), Publisher(spool, "default", NODE).serve):
            await asyncio.sleep(0.3)
            assert spool.spooled == 700
            async with intake(server.url):
                await until(lambda: spool.spooled == 0)
        assert told(await whole_log(server.url)) == list(range(700))


async def test_an_event_that_the_broker_lost_on_the_way_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message vanishes and later ones are stored (a stream's leader changed): the fact still reaches
    readers, who skip what stands behind a higher number.
    """
    monkeypatch.setattr(publisher_module, "ACK_TIMEOUT_S", 0.3)
    with nats_server(tmp_path, nodes=[NODE]) as server:
        spool = Spool(tmp_path / "spool.db", Host(), NODE)
        for number in range(20):
            spool.put(fact(number), time.monotonic())
        publisher = Publisher(spool, "default", NODE)
        eaten = 0

        async def session(connection: Client) -> None:
            really = connection.publish

            async def lossy(subject: str, body: bytes, **how: Any) -> None:
                nonlocal eaten
                if b'"lost":7,' in body.replace(b"}", b",") and eaten < 2:
                    eaten += 1
                    return
                await really(subject, body, **how)

            monkeypatch.setattr(connection, "publish", lossy)
            await publisher.serve(connection)

        async with intake(server.url), running(server.node_url(NODE), session):
            await until(lambda: spool.spooled == 0)
        seen = told(await whole_log(server.url))
        assert sorted(seen) == list(range(20))
        assert eaten == 2


async def test_it_is_quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle: from put to the reader not much longer than without the disk; busy: a good share of what the bare client
    sends in a second.
    """
    with nats_server(tmp_path, nodes=[NODE]) as server:
        monkeypatch.setattr(quotas, "PACE_BURST", 1e6)
        spool = Spool(tmp_path / "spool.db", Host(), NODE)
        async with intake(server.url), client(server.url) as reader:
            heard = asyncio.Event()

            async def hear(_: Msg) -> None:
                heard.set()

            subscription = await reader.subscribe(subjects.event("default", NODE), cb=hear)
            await reader.flush()
            async with running(server.node_url(NODE), Publisher(spool, "default", NODE).serve):
                spool.put(fact(0), time.monotonic())
                await heard.wait()
                ours: list[float] = []
                bare: list[float] = []
                for number in range(120):
                    await asyncio.sleep(0.003)
                    heard.clear()
                    started = time.perf_counter()
                    if number % 2:
                        await reader.publish(subjects.event("default", NODE), BODY)
                    else:
                        spool.put(fact(number), time.monotonic())
                    await asyncio.wait_for(heard.wait(), 60)
                    (bare if number % 2 else ours).append(time.perf_counter() - started)
                await subscription.unsubscribe()
                await until(lambda: spool.spooled == 0)
                started = time.perf_counter()
                log = reader.jetstream(publish_async_max_pending=20_000)
                for _ in range(10_000):
                    await log.publish_async(subjects.event("default", NODE), BODY)
                await log.publish_async_completed()
                bare_rate = 10_000 / (time.perf_counter() - started)
                started = time.perf_counter()
                for number in range(10_000):
                    spool.put(fact(number), time.monotonic())
                    if number % 100 == 0:
                        await asyncio.sleep(0)
                await until(lambda: spool.spooled == 0)
                rate = 10_000 / (time.perf_counter() - started)
        # Of the quickest tenth, for which neither of them waited for other tests' turns at the processor.
        ours_ms, bare_ms = (statistics.quantiles(one, n=10)[0] * 1000 for one in (ours, bare))
        print(
            f"put → received {ours_ms:.2f} ms, {rate:.0f} events/s; bare {bare_ms:.2f} ms, {bare_rate:.0f}/s"
        )
        assert ours_ms < 3 * bare_ms + 3
        assert rate > bare_rate / 20


async def test_beats(tmp_path: Path) -> None:
    """Beats tell session, clock and what waits; they come at once and then at each multiple of the interval."""
    with nats_server(tmp_path, nodes=[NODE]) as server:
        spool = Spool(tmp_path / "spool.db", Host(), NODE)
        spool.put(fact(1), time.monotonic())
        beats = Heartbeat(
            Host(), spool, cell="default", node=NODE, session="s1", version="0.1.0", interval_s=0.05
        )
        async with client(server.url) as reader:
            subscription = await reader.subscribe(subjects.lane("default", NODE, subjects.BEAT))
            await reader.flush()
            async with running(server.node_url(NODE), beats.serve):
                told = [
                    decode_beat(orjson.loads((await subscription.next_msg(5)).data), NODE) for _ in range(6)
                ]
        assert {(beat.session, beat.spooled, beat.dropped) for beat in told} == {("s1", 1, 0)}
        assert all(one.mono_s < next_one.mono_s for one, next_one in itertools.pairwise(told))
        # The second came up to one interval after the first, and up to a moment after its time.
        assert 0.15 < told[-1].mono_s - told[1].mono_s < 3

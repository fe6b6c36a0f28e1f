"""The log on a real server: in order, each message once, through backlogs and broken connections."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from agent.contract import subjects
from agent.contract.errors import Unreachable
from agent.shared.nats_client import NatsClient, passed_directly
from brain.adapters import log
from brain.adapters.broker import brain_connection
from brain.adapters.outbox import Outbox
from brain.nats_config import LogConfig, NatsConfig
from tests.real.nats import client, nats_server

pytestmark = pytest.mark.component("nats-server")
HEADERS = [{subjects.HEADER_ID: "m{}"}, {subjects.HEADER_KIND: "gpu.xid", "X-Other": "m{}"}]
SMALL = LogConfig(max_bytes=64 * 1024**2)


@contextlib.asynccontextmanager
async def served(url: str, session: Callable[[Client], Awaitable[None]]) -> AsyncIterator[None]:
    """`session` on the brain's kind of connection until the block ends."""
    task = asyncio.create_task(brain_connection(NatsConfig(), name="test", url=url).serve(session))
    try:
        yield
        if task.done():
            task.result()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(look: Callable[[], bool], what: str, within_s: float = 60.0) -> None:
    """Waits for a condition."""
    for _ in range(int(within_s / 0.01)):
        if look():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"not within {within_s} s: {what}")


@pytest.mark.parametrize("kind", [Client, NatsClient])
async def test_a_backlog_is_read_in_order_from_any_place(tmp_path: Path, kind: type[Client]) -> None:
    """Ten thousand messages, from the beginning and from the middle; the last one says that nothing is behind it. Whatever
    headers they have, and whichever way through nats-py they take.
    """
    with nats_server(tmp_path) as server:
        async with client(server.url) as publisher:
            await log.ensure(publisher, "c", SMALL)
            jetstream = publisher.jetstream()
            for number in range(10_000):
                headers = HEADERS[number % 10] if number % 10 < len(HEADERS) else None
                headers = {name: text.format(number) for name, text in headers.items()} if headers else None
                subject = subjects.event("c", f"n{number % 7}")
                await jetstream.publish_async(subject, b"%d" % number, headers=headers)
            await jetstream.publish_async_completed()
        connection = kind()
        await connection.connect(server.url)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(connection.close)
            for after in (0, 7000):
                reader = log.Reader(connection, "c", after)
                records: list[log.Record] = []
                while not records or records[-1].pending:
                    batch = await asyncio.wait_for(reader.batch(), 10)
                    assert len(batch) <= log.BATCH
                    records += batch
                await reader.close()
                assert [record.seq for record in records] == list(range(after + 1, 10_001))
                assert [int(record.body) for record in records] == list(range(after, 10_000))
                assert [record.at for record in records] == sorted(record.at for record in records)


async def test_messages_take_the_short_way_through_nats_py(tmp_path: Path) -> None:
    """In order, with their headers; and the long one when the short one has ended."""
    with nats_server(tmp_path) as server:
        connection = NatsClient()
        await connection.connect(server.url)
        long: list[bytes] = []
        short: list[tuple[bytes, bytes, bytes, object]] = []

        async def heard(message: Msg) -> None:
            long.append(message.data)

        subscription = await connection.subscribe("a", cb=heard)

        async def publish() -> None:
            await connection.publish("a", b"bare")
            await connection.publish("a", b"id", reply="b", headers={subjects.HEADER_ID: "1"})
            await connection.publish("a", b"other", headers={"X-Other": "2"})
            await connection.flush()

        with passed_directly(connection, subscription, lambda *message: short.append(message)):
            await publish()
            await until(lambda: len(short) + len(long) == 3, "all of it")
        assert short == [
            (b"a", b"", b"bare", None),
            (b"a", b"b", b"id", None),  # nobody asks for them
            (b"a", b"", b"other", {"X-Other": "2"}),
        ], "nats-py has no parser of this kind any more?"
        await publish()
        await until(lambda: len(long) == 3, "all of it")
        assert len(short) == 3
        await connection.close()


async def test_what_is_read_one_by_one_is_acknowledged_while_nothing_comes(tmp_path: Path) -> None:
    """No message waits for the acknowledgement of the one before; the server learns of all of them with its next heartbeat."""
    with nats_server(tmp_path) as server:
        async with client(server.url) as connection:
            await log.ensure(connection, "c", SMALL)
            jetstream = connection.jetstream()
            reader = log.Reader(connection, "c", 0)
            acknowledged: list[str] = []
            await connection.subscribe("$JS.ACK.>", cb=_keep(acknowledged))
            for number in range(5):
                await jetstream.publish(subjects.event("c", "n1"), b"%d" % number)
                (record,) = await asyncio.wait_for(reader.batch(), 10)
                assert record.seq == number + 1
            await connection.flush()
            assert len(acknowledged) < 5
            reading = asyncio.create_task(reader.batch())
            stream = subjects.stream("c")

            async def open_ones() -> int:
                (consumer,) = await connection.jsm().consumers_info(stream)
                return consumer.num_ack_pending or 0

            async with asyncio.timeout(20):
                while await open_ones():
                    await asyncio.sleep(0.1)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await reader.close()


def _keep(subjects_seen: list[str]) -> Callable[[Msg], Awaitable[None]]:
    async def keep(message: Msg) -> None:
        subjects_seen.append(message.subject)

    return keep


async def test_a_slow_reader_answers_its_server(tmp_path: Path) -> None:
    """Who works off a backlog for many seconds is not dropped by the server as stale, nor does its own question wait behind all
    that the server has ready: a leader would lose its lease.
    """
    with nats_server(tmp_path) as server:
        lost: list[str] = []
        waited: list[float] = []
        seen: list[log.Record] = []

        async with client(server.url) as connection:
            await log.ensure(connection, "c", SMALL)
            for number in range(30_000):
                await connection.jetstream().publish_async(subjects.event("c", "n1"), b"%600d" % number)
            await connection.jetstream().publish_async_completed()

        async def session(connection: Client) -> None:
            lost.append("connected")
            reader = log.Reader(connection, "c", seen[-1].seq if seen else 0)

            async def ask() -> None:
                while True:
                    began = time.monotonic()
                    await connection.flush(60)
                    waited.append(time.monotonic() - began)
                    await asyncio.sleep(0.2)

            async def read() -> None:
                while True:
                    seen.extend(await reader.batch())
                    time.sleep(0.12)  # an engine that is slow
                    await asyncio.sleep(0)

            await asyncio.gather(ask(), read())

        async with served(server.url, session):
            await until(lambda: len(seen) >= 30_000, "all are read")
        assert [record.seq for record in seen] == list(range(1, 30_001))
        assert lost == ["connected"]
        assert max(waited) < 5, f"{max(waited):.1f} s: as long as half of the work"


async def test_what_was_lost_on_the_way_is_read_again_though_nothing_follows(tmp_path: Path) -> None:
    """The server has sent the last messages of the log, and they never came: its heartbeats tell of them."""
    with nats_server(tmp_path) as server:
        async with client(server.url) as connection:
            await log.ensure(connection, "c", SMALL)
            reader = log.Reader(connection, "c", 0)
            for number in range(3):
                await connection.jetstream().publish(subjects.event("c", "n1"), b"%d" % number)
            read = 0
            while read < 3:
                read += len(await reader.batch())
            for number in range(3, 6):
                await connection.jetstream().publish(subjects.event("c", "n1"), b"%d" % number)
            await until(lambda: len(reader._queue) == 3, "they have come")
            reader._queue.clear()
            records = await asyncio.wait_for(reader.batch(), 30)
            assert [record.seq for record in records] == [4, 5, 6]
            await reader.close()


class Unheard(Client):
    """What it says to some subjects is lost between the servers of a cluster, while its own connection is fine."""

    lost = ""
    many = 0

    async def publish(
        self, subject: str, payload: bytes = b"", reply: str = "", headers: dict[str, Any] | None = None
    ) -> None:
        """Without those."""
        if self.lost and subject.startswith(self.lost):
            self.many += 1
            return
        await super().publish(subject, payload, reply, headers)


@pytest.mark.parametrize(
    ("lost", "size", "many"),
    [("$JS.ACK.", 100, log.IN_FLIGHT + 1000), ("$JS.FC.", 200_000, 100)],
    ids=["acknowledgements", "answers to flow control"],
)
async def test_what_is_lost_between_servers_stops_no_reader(
    tmp_path: Path, lost: str, size: int, many: int
) -> None:
    """The server waits for an answer that was given and never came: it is given again."""
    with nats_server(tmp_path) as server:
        async with client(server.url) as connection:
            await log.ensure(connection, "c", SMALL)
            for number in range(many):
                await connection.jetstream().publish(subjects.event("c", "n1"), b"%*d" % (size, number))
        unheard = Unheard()
        unheard.lost = lost
        await unheard.connect(server.url)
        reader = log.Reader(unheard, "c", 0)
        seen: list[log.Record] = []
        with contextlib.suppress(TimeoutError):
            while len(seen) < many:
                seen += await asyncio.wait_for(reader.batch(), 5)
        assert len(seen) < many, "the server waits"
        assert unheard.many
        unheard.lost = ""
        while len(seen) < many:
            seen += await asyncio.wait_for(reader.batch(), 30)
        assert [record.seq for record in seen] == list(range(1, many + 1))
        await reader.close()
        await unheard.close()


async def test_the_server_is_killed_while_brains_write_and_read(tmp_path: Path) -> None:
    """Everything that was put arrives once, and the reader sees each place of the log once, in order."""
    with nats_server(tmp_path) as server:
        outbox = Outbox("c")
        seen: list[log.Record] = []

        async def session(connection: Client) -> None:
            await log.ensure(connection, "c", SMALL)
            reader = log.Reader(connection, "c", seen[-1].seq if seen else 0)

            async def read() -> None:
                while True:
                    seen.extend(await reader.batch())

            await asyncio.gather(outbox.serve(connection), read())

        async with served(server.url, session):
            for number in range(3000):
                outbox.put("said", b"%d" % number, f"id-{number}")
                if number % 50 == 0:
                    await asyncio.sleep(0.002)
                if number in (700, 1900):
                    server.kill()
                    server.start()
            await until(lambda: len(seen) >= 3000, "all are read")
            assert len(outbox) == 0
        assert [record.seq for record in seen] == list(range(1, len(seen) + 1))
        assert sorted(int(record.body) for record in seen) == list(range(3000)), "none lost, none twice"


async def test_what_only_a_leader_may_say_does_not_outlive_its_connection(tmp_path: Path) -> None:
    """A timer or an intent that was not sent before the connection broke is never sent; a person's word is."""
    with nats_server(tmp_path) as server:
        outbox = Outbox("c")

        async def session(connection: Client) -> None:
            await log.ensure(connection, "c", SMALL)
            await outbox.serve(connection)

        async with served(server.url, session):
            await outbox.append("said", b"1", "first")
            server.kill()
            await asyncio.sleep(0.3)
            outbox.put("timer", b"t", "timer", keep=False)
            with pytest.raises(Unreachable):
                await outbox.append("said", b"2", "second", timeout_s=0.3)
            outbox.drop_unkept()
            server.start()
            await until(lambda: len(outbox) == 0, "the rest is sent")
        async with client(server.url) as connection:
            assert (await log.info(connection, "c")).last_seq == 2

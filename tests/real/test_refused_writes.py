"""The log refuses a message: it is not taken for stored, whatever position the server's answer names, and comes when it can."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from agent.contract import subjects
from agent.contract.acknowledgements import decode_acknowledgement
from agent.contract.messages import Event, Severity, encode_event
from agent.shared.tasks import end
from brain.adapters import log
from brain.adapters.outbox import Outbox
from brain.nats_config import LogConfig
from tests.real.brain_kit import Node, lab
from tests.real.intake_kit import intake
from tests.real.nats import client, nats_server, whole_log
from tests.real.test_nobody_leads import outside, told

pytestmark = pytest.mark.component("nats-server")
WITHIN_S = 60.0
LOST = Event(
    id="n1:s:1", node="n1", kind="gpu.lost", component="gpu/0000:3b:00", severity=Severity.FATAL, at="2026-01-01T00:00:00Z",
    age_s=0.0, boot="b", count=1, data={"reason": "lost"}, evidence="",
)  # fmt: skip


async def takes(bus: Client, size: int) -> None:
    """From now on the log takes messages of this size at most; -1: of any."""
    manager = bus.jsm()
    config = (await manager.stream_info(subjects.stream("default"))).config
    await manager.update_stream(config.evolve(max_msg_size=size))


@contextlib.asynccontextmanager
async def refusals(bus: Client) -> AsyncIterator[asyncio.Queue[bytes]]:
    """What the server answers to writers, where it is an error."""
    found: asyncio.Queue[bytes] = asyncio.Queue()

    async def answered(message: Msg) -> None:
        if b'"error"' in message.data and b'"stream"' in message.data:
            found.put_nowait(message.data)

    subscription = await bus.subscribe("_INBOX.>", cb=answered)
    await bus.flush()
    yield found
    await subscription.unsubscribe()


async def test_an_event_that_the_log_refuses_is_not_acknowledged(tmp_path: Path) -> None:
    """The server's error names a position, 0, as an event that is left out has."""
    told: list[tuple[str, int]] = []
    stored = asyncio.Event()

    async def acknowledged(message: Msg) -> None:
        told.extend(decode_acknowledgement(orjson.loads(message.data)))
        stored.set()

    with nats_server(tmp_path, nodes=["n1"]) as server:
        async with (
            intake(server.url),
            client(server.url) as bus,
            client(server.node_url("n1")) as node,
            refusals(bus) as refused,
        ):
            await node.subscribe(subjects.acknowledgement("default", "n1", subjects.EVENT), cb=acknowledged)
            await node.flush()
            await takes(bus, 10)
            await node.publish(
                subjects.offer("default", "n1", subjects.EVENT), orjson.dumps(encode_event(LOST))
            )
            async with asyncio.timeout(WITHIN_S):
                for _ in range(2):  # it is tried again
                    assert orjson.loads(await refused.get())["seq"] == 0
            assert told == []
            await takes(bus, -1)
            await asyncio.wait_for(stored.wait(), WITHIN_S)
        ((id_, place),) = told
        assert (id_, place > 0) == (LOST.id, True)
        assert [orjson.loads(body)["id"] for body in await whole_log(server.url)] == [LOST.id]


async def test_people_hear_that_the_log_refuses_a_part_of_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The brain leads, its pulse comes round, and only what a node says never comes: people are told, with the server's words,
    and of the end when somebody has taken the limit off.
    """
    monkeypatch.setattr("brain.leader.leader_watch.REFUSED_S", 5.0)
    with nats_server(tmp_path, nodes=["n1"]) as server:
        async with outside() as out, lab(tmp_path, nats={"url": server.url}, **out.config) as whole:
            assert whole.running is not None
            async with client(server.url) as bus, client(server.node_url("n1")) as connection:
                node = Node("n1", connection, whole.running.signer.key.verify_key)
                await node.listen()
                await takes(bus, 300)
                saying = asyncio.create_task(
                    node.event("gpu.lost", "gpu/0000:3b:00", "x" * 400, reason="lost")
                )
                await told(out, "log_refuses")
                (page,) = [one for one in out.pages if one["cause"] == "log_refuses"]
                assert "the log refuses 1 message for" in page["why_now"]
                assert "message size exceeds maximum allowed" in page["why_now"]
                assert (await whole.get("/api/v1/status"))["leads"]
                await takes(bus, -1)
                await saying
                await told(out, "log_refuses", "resolve")
        assert not out.told("nobody_leads")


async def test_what_is_larger_than_the_server_takes_does_not_end_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has lowered `max_payload`: one long word of a person waits, people are told, and faults are seen."""
    monkeypatch.setattr("brain.leader.leader_watch.REFUSED_S", 5.0)
    with nats_server(tmp_path, nodes=["n1"]) as server:
        async with outside() as out, lab(tmp_path, nats={"url": server.url}, **out.config) as whole:
            assert whole.running is not None
            server.stop()
            server.configure("max_payload: 1KB")
            server.start()
            await whole.until(lambda status: status["leads"], "it leads")
            saying = asyncio.create_task(whole.say("hold", scope="all", why="w" * 990))
            await told(out, "log_refuses")
            (page,) = [one for one in out.pages if one["cause"] == "log_refuses"]
            assert "maximum payload exceeded" in page["why_now"]
            async with client(server.node_url("n1")) as connection:
                node = Node("n1", connection, whole.running.signer.key.verify_key)
                await node.listen()
                await node.event("gpu.lost", "gpu/0000:3b:00", reason="lost")
            await whole.until(lambda found: found["incidents"], "the fault is seen", "/api/v1/incidents")
            assert (await saying)[0] == 503, "the person was told that it is not there yet"
            server.stop()
            server.configure("")
            server.start()
            await whole.until(lambda status: status["holds"], "it comes when there is room for it")
            await told(out, "log_refuses", "resolve")


async def test_an_input_that_the_log_refuses_stays_in_the_outbox(tmp_path: Path) -> None:
    """An intent, say: what it is for must not begin."""
    with nats_server(tmp_path) as server:
        async with client(server.url) as bus:
            await log.ensure(bus, "default", LogConfig(max_bytes=256 * 1024**2))
            await takes(bus, 10)
            outbox = Outbox("default")
            task = asyncio.create_task(outbox.serve(bus))
            writing = asyncio.create_task(
                outbox.append("intent", b"more than ten bytes", "i:1", timeout_s=WITHIN_S)
            )
            async with asyncio.timeout(WITHIN_S):
                while not outbox.refused:
                    await asyncio.sleep(0.05)
            assert not writing.done()
            await takes(bus, -1)
            assert await writing > 0
            await end(task)
        assert await whole_log(server.url) == [b"more than ten bytes"]

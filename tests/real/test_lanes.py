"""The lanes on a real server: what happens to one does not hold up the others."""

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamManager
from nats.js.errors import NotFoundError

from agent.contract import subjects
from brain.adapters import lanes as lane_streams
from brain.adapters.arrivals import Offer
from brain.adapters.broker import brain_connection
from brain.adapters.lanes import Lanes, lanes
from brain.nats_config import NatsConfig
from tests.real.nats import nats_server

pytestmark = pytest.mark.component("nats-server")
UNREADABLE = (
    b"\xe7ATS/1.0 404 \xff\r\n\r\n", b"NAT\x82/1.0 \xff\xff\xff\r\n\r\n", b"NATS/1\x02\xb4 \r\x89\r\n",
    b"NATS/1\xce\x11 \xc9\n|\n", b"NA\xbfS/1.0 100 Idle\xbb\nA: \xff\r\n\r\n", b"NATS/1.0 404 \xff\r\n\r\n", b"NATS/1.0", b"X",
)  # fmt: skip
MINE = subjects.lane_stream("default", subjects.lane_of("n1"))


class HalfDeaf(Client):
    """A client that, from `mute` on, gets no answer about any lane but that of n1: what a server of three does that knows no
    leader of a stream, for as long as the streams elect one.
    """

    mute = False

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 0.5,
        old_style: bool = False,
        headers: dict[str, Any] | None = None,
    ) -> Msg:
        """Without an answer for the other lanes."""
        if self.mute and ".LANE_" in subject and MINE not in subject:
            await asyncio.sleep(timeout)
            raise nats.errors.TimeoutError
        return await super().request(subject, payload, timeout, old_style, headers)


async def test_lanes_without_an_answer_do_not_hold_up_another(tmp_path: Path) -> None:
    """Each lost its consumer; that of n1 is made anew at once, though dozens before it wait for their time-outs."""
    heard: asyncio.Queue[Offer] = asyncio.Queue()
    with nats_server(tmp_path, nodes=["n1"]) as server:
        brain, node = HalfDeaf(), Client()
        await brain.connect(server.url.replace("//", "//brain:brain@"))
        await node.connect(server.node_url("n1"))
        found = Lanes(brain, "default")
        await found.ensure()
        async with found.taken(heard.put, lambda: None):
            await node.publish(subjects.offer("default", "n1", subjects.BEAT), b"1")
            await found.done(await asyncio.wait_for(heard.get(), 60))
            manager = brain.jsm()
            for lane in lanes("default"):
                with contextlib.suppress(NotFoundError):
                    await manager.delete_consumer(lane.stream, "brain")
            brain.mute = True
            await node.publish(subjects.offer("default", "n1", subjects.BEAT), b"2")
            assert (await asyncio.wait_for(heard.get(), 60)).body == b"2"
        await node.close()
        await brain.close()


class OnceDeaf(Client):
    """A client that gets no answer of the stream of one lane the first time that it asks, and counts how often it asks."""

    asked = 0

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 0.5,
        old_style: bool = False,
        headers: dict[str, Any] | None = None,
    ) -> Msg:
        """As a server of three, once, while the lane's servers elect."""
        if subject == f"$JS.API.STREAM.INFO.{MINE}":
            self.asked += 1
            if self.asked == 1:
                raise nats.errors.TimeoutError
        return await super().request(subject, payload, timeout, old_style, headers)


async def test_a_lane_of_which_nothing_was_known_gets_its_copies_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is delivered, so nothing else would look at how many servers keep it."""
    monkeypatch.setattr(lane_streams, "_AGAIN_S", 0.2)
    heard: asyncio.Queue[Offer] = asyncio.Queue()
    with nats_server(tmp_path, nodes=["n1"]) as server:
        brain = Client()
        await brain.connect(server.url.replace("//", "//brain:brain@"))
        await Lanes(brain, "default").ensure()
        await brain.close()
        again = OnceDeaf()
        await again.connect(server.url.replace("//", "//brain:brain@"))
        found = Lanes(again, "default")
        await found.ensure()
        assert again.asked == 1
        async with found.taken(heard.put, lambda: None):
            async with asyncio.timeout(60):
                while again.asked < 2:
                    await asyncio.sleep(0.05)
            await asyncio.sleep(1)  # several times as long as until it would be asked again
            assert again.asked == 2, "it was told, and is asked no more"
        await again.close()


async def test_a_lane_without_an_answer_does_not_keep_a_leader_from_the_others(tmp_path: Path) -> None:
    """A brain begins to lead while dozens of streams elect: what comes through the others is taken."""
    heard: asyncio.Queue[Offer] = asyncio.Queue()
    with nats_server(tmp_path, nodes=["n1"]) as server:
        brain, node = HalfDeaf(), Client()
        await brain.connect(server.url.replace("//", "//brain:brain@"))
        await node.connect(server.node_url("n1"))
        brain.mute = True
        found = Lanes(brain, "default")
        await found.ensure()
        async with found.taken(heard.put, lambda: None):
            await node.publish(subjects.offer("default", "n1", subjects.BEAT), b"1")
            assert (await asyncio.wait_for(heard.get(), 60)).body == b"1"
            brain.mute = False
            manager = brain.jsm()
            deadline = time.monotonic() + 60
            for lane in lanes("default"):
                while not await has_consumer(manager, lane.stream):
                    assert time.monotonic() < deadline, f"{lane.stream} is not taken when it answers again"
                    await asyncio.sleep(0.1)
        await node.close()
        await brain.close()


async def test_headers_that_nobody_can_read_end_no_connection(tmp_path: Path) -> None:
    """A node that was taken over sends what the server lets pass and nats-py cannot decode: whoever leads the cell would lose
    its connection, and with the same message the next one.
    """
    heard: asyncio.Queue[Offer] = asyncio.Queue()
    with nats_server(tmp_path, nodes=["n1"]) as server:
        url = server.url.replace("//", "//brain:brain@")
        brain = await brain_connection(NatsConfig(), name="test", url=url).connect()
        node = Client()
        await node.connect(server.node_url("n1"))
        found = Lanes(brain, "default")
        await found.ensure()
        at = subjects.offer("default", "n1", subjects.BEAT).encode()
        async with found.taken(heard.put, lambda: None):
            for number, headers in enumerate(UNREADABLE):
                body = b"%d" % number
                sizes = (len(headers), len(headers) + len(body))
                await node._send_command(b"HPUB %s %d %d\r\n%s%s\r\n" % (at, *sizes, headers, body))
                await node.publish(at.decode(), b"after %d" % number)
                bodies = [b""]
                while bodies[-1] != b"after %d" % number:
                    offer = await asyncio.wait_for(heard.get(), 60)
                    bodies.append(offer.body)
                    await found.done(offer)
                assert len(bodies) <= 3
        await node.close()
        await brain.close()


async def has_consumer(manager: JetStreamManager, stream: str) -> bool:
    """Whether somebody takes what is in it."""
    try:
        return (await manager.consumer_info(stream, "brain")).push_bound is True
    except NotFoundError:
        return False

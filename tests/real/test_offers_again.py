"""An event that its node offers again and again, while the brain is behind: it is written once, and answered."""

import asyncio
import time
from pathlib import Path

import orjson
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from agent.contract import subjects
from agent.contract.acknowledgements import decode_acknowledgement
from agent.contract.messages import Event, Severity, encode_event
from tests.real.intake_kit import intake
from tests.real.nats import nats_server

pytestmark = pytest.mark.component("nats-server")
WITHIN_S = 60.0
TIMES = 30


def body(seq: int, age_s: float) -> bytes:
    """An event of n1; each time that it is offered it is older."""
    event = Event(
        id=f"n1:s1:{seq}", node="n1", kind="link.state", component="link/eth0", severity=Severity.ERROR,
        at="2026-01-01T00:00:00Z", age_s=age_s, boot="b", count=1, data={"up": False},
    )  # fmt: skip
    return orjson.dumps(encode_event(event))


async def test_it_is_written_once_and_answered_each_time(tmp_path: Path) -> None:
    """Thirty offers of one event in a row, and again when it stands on the log: nobody writes it a second time."""
    written: list[str] = []
    answers: asyncio.Queue[tuple[str, int]] = asyncio.Queue()

    async def on_written(message: Msg) -> None:
        written.append(message.subject)

    async def on_answer(message: Msg) -> None:
        for answer in decode_acknowledgement(orjson.loads(message.data)):
            await answers.put(answer)

    with nats_server(tmp_path, nodes=["n1"]) as server:
        async with intake(server.url.replace("//", "//brain:brain@")) as brain:
            assert brain.client is not None
            await brain.client.subscribe(subjects.event("default", "n1"), cb=on_written)
            node = Client()
            await node.connect(server.node_url("n1"))
            await node.subscribe(subjects.acknowledgement("default", "n1", subjects.EVENT), cb=on_answer)
            await node.flush()
            at = subjects.offer("default", "n1", subjects.EVENT)
            for age_s in range(TIMES):
                await node.publish(at, body(1, age_s))
            event, place = await asyncio.wait_for(answers.get(), WITHIN_S)
            assert (event, place) == ("n1:s1:1", 1)
            await until_empty(brain.client)
            while not answers.empty():
                assert answers.get_nowait() == (event, place)
            await node.publish(at, body(1, 100))
            assert await asyncio.wait_for(answers.get(), WITHIN_S) == (event, place)
            await node.publish(at, body(2, 0))
            while (answer := await asyncio.wait_for(answers.get(), WITHIN_S)) != ("n1:s1:2", 2):
                assert answer == (event, place)
            assert len(written) == 2
            await node.close()


async def until_empty(client: Client) -> None:
    """Until the brain has dealt with all that waits in the lane of n1."""
    stream = subjects.lane_stream("default", subjects.lane_of("n1"))
    deadline = time.monotonic() + WITHIN_S
    while (await client.jsm().stream_info(stream)).state.messages:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)

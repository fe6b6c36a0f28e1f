"""Heartbeats of many nodes by one connection, as the brain's lanes get them.

    python -m tests.benchmarks.one_voice URL COUNT INTERVAL_S

For benchmarks of what stands behind the lanes; `beating_nodes` has a connection for each node.
"""

import asyncio
import sys
import time

import nats
import orjson

from agent.contract import subjects
from agent.contract.messages import Beat, encode_beat

CELL = "default"
MOST_AT_ONCE = 100  # beats


def name(number: int) -> str:
    """As tests.benchmarks.engine names its nodes."""
    return f"n{number}"


def _beat(node: str) -> bytes:
    beat = Beat(
        node=node, session="s", boot="b", mono_s=time.monotonic(), version="0.2.0", spooled=0, dropped=0
    )
    return orjson.dumps(encode_beat(beat))


async def _run(url: str, count: int, interval_s: float) -> None:
    client = await nats.connect(url)
    began, sent = time.monotonic(), 0
    piece = min(count, MOST_AT_ONCE)
    while True:
        for number in range(sent, sent + piece):
            node = name(number % count)
            await client.publish(subjects.lane(CELL, node, subjects.BEAT), _beat(node))
        await client.flush()
        sent += piece
        await asyncio.sleep(max(0.0, began + sent / count * interval_s - time.monotonic()))


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))

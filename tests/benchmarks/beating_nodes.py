"""Many nodes that only beat, in one process: `python -m tests.benchmarks.beating_nodes PORT COUNT INTERVAL_S`.

They speak NATS as it stands on the wire (https://docs.nats.io/reference/reference-protocols/nats-protocol), since ten thousand
clients of the library would cost more than what is measured. It prints "ready" when each is connected and subscribed.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterable
from typing import cast

import orjson

from agent.contract import subjects
from agent.contract.messages import Beat, encode_beat

CELL = "default"
AT_ONCE = 100  # connections that are being made


def names(count: int) -> list[str]:
    """The nodes' names, which are their users and passwords."""
    return [f"sim-{number:05}" for number in range(count)]


class _Node(asyncio.Protocol):
    def __init__(self, name: str) -> None:
        self._name = name
        self._transport: asyncio.Transport | None = None
        self._beats = 0
        self._head = f"PUB {subjects.offer(CELL, name, subjects.BEAT)} ".encode()
        self.ready = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        hello = {"user": self._name, "pass": self._name, "verbose": False, "lang": "bench", "protocol": 1}
        mine = (
            subjects.command(CELL, self._name),
            *(
                subjects.acknowledgement(CELL, self._name, what)
                for what in (subjects.EVENT, subjects.EVIDENCE)
            ),
        )
        wanted = "".join(f"SUB {subject} {number}\r\n" for number, subject in enumerate(mine, 1))
        self._transport.write(f"CONNECT {json.dumps(hello)}\r\n{wanted}PING\r\n".encode())

    def data_received(self, data: bytes) -> None:
        if b"PING\r\n" in data and self._transport is not None:
            self._transport.write(b"PONG\r\n")
        if b"PONG\r\n" in data:
            self.ready.set()

    def connection_lost(self, exc: Exception | None) -> None:
        sys.exit(f"{self._name} was thrown out: {exc}")

    def beat(self) -> None:
        beat = Beat(
            node=self._name,
            session="s1",
            boot="b",
            mono_s=time.monotonic(),
            version="1",
            spooled=0,
            dropped=0,
            asks=self._beats % 3 == 0,  # as an agent that has nothing to tell
        )
        self._beats += 1
        body = orjson.dumps(encode_beat(beat))
        if self._transport is not None:
            self._transport.write(self._head + b"%d\r\n%b\r\n" % (len(body), body))


async def _connected(port: int, wanted: Iterable[str]) -> list[_Node]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> _Node:
        async with places:
            _, node = await asyncio.get_running_loop().create_connection(
                lambda: _Node(name), "127.0.0.1", port
            )
            await node.ready.wait()
            return node

    return await asyncio.gather(*map(one, wanted))


async def _run(port: int, count: int, interval_s: float) -> None:
    nodes = await _connected(port, names(count))
    print("ready", flush=True)
    began, sent = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - began) / interval_s * count)
        for number in range(sent, due):
            nodes[number % count].beat()
        sent = due
        await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(_run(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))

"""Many nodes in one process: `python -m tests.benchmarks.beating_nodes PORT COUNT INTERVAL_S [EVENTS_PER_S]`.

They beat, and say so many ordinary events a second, all together. They speak NATS as it stands on the wire
(https://docs.nats.io/reference/reference-protocols/nats-protocol), since ten thousand clients of the library would cost more than
what is measured. It prints "ready" when each is connected and subscribed. A line on standard input is done by all nodes within a
second: `down` (each loses a link), `up` (it comes back). `tally` prints what was offered and acknowledged as JSON.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from agent.contract import subjects
from agent.contract.acknowledgements import LEFT_OUT, decode_acknowledgement
from agent.contract.messages import Beat, Event, Severity, encode_beat, encode_event

CELL = "default"
AT_ONCE = 100  # connections that are being made
WITHIN_S = 1.0  # all nodes do what they are told
AGAIN_S = 5.0  # an event that is not acknowledged for so long is offered again, as agents do
STEP_S = 0.01
ACKNOWLEDGED = 2  # the number of a node's subscription to what is said of its events
LINK = {"admin_up": True}
UP = LINK | {"up": True, "carrier": True, "operstate": "up"}
DOWN = LINK | {"up": False, "carrier": False, "operstate": "down"}


def names(count: int) -> list[str]:
    """The nodes' names, which are their users and passwords."""
    return [f"sim-{number:05}" for number in range(count)]


@dataclass(slots=True)
class _Waiting:
    """Events of all nodes that are not acknowledged, by their ids, in the order in which they were offered last."""

    offered: int = 0
    acknowledged: int = 0
    left_out: int = 0
    worst_s: float = 0.0  # from the first offer to the acknowledgement
    events: dict[str, tuple["_Node", bytes, float, float]] = field(default_factory=dict)

    def put(self, node: "_Node", event: Event) -> None:
        now_s = time.monotonic()
        body = orjson.dumps(encode_event(event))
        self.events[event.id] = (node, body, now_s, now_s)
        self.offered += 1
        node.offer(body)

    def on_acknowledged(self, body: bytes) -> None:
        for event, place in decode_acknowledgement(orjson.loads(body)):
            if (found := self.events.pop(event, None)) is not None:
                self.acknowledged += 1
                self.left_out += place == LEFT_OUT
                self.worst_s = max(self.worst_s, time.monotonic() - found[2])

    def again(self) -> None:
        now_s = time.monotonic()
        for event, (node, body, first_s, last_s) in list(self.events.items()):
            if now_s - last_s < AGAIN_S:
                return
            del self.events[event]
            self.events[event] = (node, body, first_s, now_s)
            node.offer(body)

    def tally(self) -> dict[str, float]:
        return {
            "offered": self.offered,
            "acknowledged": self.acknowledged,
            "left_out": self.left_out,
            "worst_s": self.worst_s,
        }


class _Node(asyncio.Protocol):
    def __init__(self, name: str, waiting: _Waiting) -> None:
        self._name = name
        self._waiting = waiting
        self._transport: asyncio.Transport | None = None
        self._beats = self._events = 0
        self._head = f"PUB {subjects.offer(CELL, name, subjects.BEAT)} ".encode()
        self._event_head = f"PUB {subjects.offer(CELL, name, subjects.EVENT)} ".encode()
        self._rest = b""
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
        data, at = self._rest + data, 0
        while (end := data.find(b"\r\n", at)) >= 0:
            words, after = data[at:end].split(), end + 2
            if words[:1] == [b"MSG"]:
                begin, after = after, after + int(words[-1]) + 2
                if len(data) < after:
                    break
                if int(words[2]) == ACKNOWLEDGED:
                    self._waiting.on_acknowledged(data[begin : after - 2])
            elif words == [b"PING"] and self._transport is not None:
                self._transport.write(b"PONG\r\n")
            elif words == [b"PONG"]:
                self.ready.set()
            at = after
        self._rest = data[at:]

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

    def offer(self, body: bytes) -> None:
        if self._transport is not None:
            self._transport.write(self._event_head + b"%d\r\n%b\r\n" % (len(body), body))

    def say(self, kind: str, component: str, severity: Severity, data: dict[str, Any]) -> None:
        self._events += 1
        event = Event(
            id=f"{self._name}:s1:{self._events}",
            node=self._name,
            kind=kind,
            component=component,
            severity=severity,
            at="2026-01-01T00:00:00Z",
            age_s=0.0,
            boot="b",
            count=1,
            data=data,
        )
        self._waiting.put(self, event)


async def _connected(port: int, wanted: Iterable[str], waiting: _Waiting) -> list[_Node]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> _Node:
        async with places:
            _, node = await asyncio.get_running_loop().create_connection(
                lambda: _Node(name, waiting), "127.0.0.1", port
            )
            await node.ready.wait()
            return node

    return await asyncio.gather(*map(one, wanted))


async def _told(nodes: list[_Node], waiting: _Waiting) -> None:
    """Does what standard input says."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async for line in lines:
        match line.strip():
            case b"tally":
                print(json.dumps(waiting.tally()), flush=True)
            case b"down" | b"up" as word:
                data, severity = (UP, Severity.INFO) if word == b"up" else (DOWN, Severity.ERROR)
                began, said = time.monotonic(), 0
                while said < len(nodes):
                    due = min(len(nodes), int((time.monotonic() - began) / WITHIN_S * len(nodes)) + 1)
                    for node in nodes[said:due]:
                        node.say("link.state", "link/eth0", severity, data)
                    said = due
                    await asyncio.sleep(STEP_S)


async def _run(port: int, count: int, interval_s: float, events_per_s: float) -> None:
    waiting = _Waiting()
    nodes = await _connected(port, names(count), waiting)
    print("ready", flush=True)
    told = asyncio.create_task(_told(nodes, waiting))
    began, beaten, said = time.monotonic(), 0, 0
    while not told.done():
        now_s = time.monotonic() - began
        due = int(now_s / interval_s * count)
        for number in range(beaten, due):
            nodes[number % count].beat()
        beaten = due
        due = int(now_s * events_per_s)
        for number in range(said, due):  # spread over the nodes
            nodes[number * 7919 % count].say(
                "service.state", "service/x.service", Severity.INFO, {"active": "active"}
            )
        said = due
        waiting.again()
        await asyncio.sleep(STEP_S)


if __name__ == "__main__":
    asyncio.run(_run(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float((*sys.argv, "0")[4])))

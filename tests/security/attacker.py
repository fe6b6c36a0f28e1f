"""One stolen node credential in the hands of somebody who knows gpuward's source: a process of its own.

    python -m tests.security.attacker URL SEED NODE CELL ATTACK SECONDS

SEED is the file of a seed or `.creds`; empty where the credential stands in URL.

It prints one line of JSON: what was tried, and what the server refused. Bodies carry MARK, by which a watcher sees where they
come out.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg

from agent.contract import requests, subjects
from agent.contract.commands import Answer, Reply, decode_command, encode_reply
from tests.real.nats import login

MARK = "stolen-credential"
VICTIM = "n2"
OFFERS = (subjects.EVENT, subjects.BEAT, subjects.ANSWER, subjects.EVIDENCE)
INPUTS = (
    *("timer", "intent", "result", "progress", "plan", "report", "jobs"),
    *("operator", "node", "leader", "delivery", "malformed", "pack"),
)
API = (
    *("INFO", "STREAM.NAMES", "STREAM.LIST"),
    *(
        f"STREAM.{verb}.{{stream}}"
        for verb in (
            "PURGE",
            "DELETE",
            "UPDATE",
            "INFO",
            "MSG.DELETE",
            "MSG.GET",
            "LEADER.STEPDOWN",
            "SNAPSHOT",
        )
    ),
    *(f"CONSUMER.{verb}.{{stream}}" for verb in ("CREATE", "NAMES", "LIST")),
    *(
        f"CONSUMER.{verb}.{{stream}}.brain"
        for verb in ("DELETE", "PAUSE", "INFO", "MSG.NEXT", "DURABLE.CREATE")
    ),
    "DIRECT.GET.{stream}",
)


def targets(cell: str) -> Iterator[str]:
    """Every subject of the brains' account that an attacker would like to write to."""
    streams = [
        subjects.stream(cell),
        f"KV_{subjects.LEASE_BUCKET}",
        subjects.evidence_stream(cell),
        *(subjects.lane_stream(cell, number) for number in (0, subjects.lane_of(VICTIM))),
    ]
    yield f"$KV.{subjects.LEASE_BUCKET}.{cell}"
    yield from (subjects.brain_input(cell, what) for what in INPUTS)
    for node in (VICTIM, "drill", "*"):
        yield subjects.command(cell, node)
        yield subjects.event(cell, node)
        yield subjects.answer(cell, node)
        yield from (subjects.acknowledgement(cell, node, what) for what in OFFERS)
        yield from (subjects.offer(cell, node, what) for what in OFFERS)
        yield from (subjects.lane(cell, node, what) for what in OFFERS)
    yield subjects.bundle_about(cell, VICTIM, "inc-1.r1.s1.a1")
    yield subjects.bundle_chunk(cell, VICTIM, "inc-1.r1.s1.a1", 0)
    for stream in streams:
        yield from (f"$JS.API.{name.format(stream=stream)}" for name in API)
        yield f"$JS.ACK.{stream}.brain.1.1.1.1.0"
        yield f"$JS.FC.{stream}.brain.x"
        yield f"$FI.{stream}"
    yield from (
        "$SYS.REQ.SERVER.PING",
        "$SYS.ACCOUNT.WARD.CONNECT",
        "$SYS.>",
        "_INBOX.>",
        "_INBOX.x",
        "_R_.x.y",
        ">",
        "*",
    )


def header_sets(cell: str) -> Iterator[dict[str, str]]:
    """Headers that mean something to the server."""
    lease = f"$KV.{subjects.LEASE_BUCKET}.{cell}"
    for id_ in ("l:1", "l:2", "l:3", f"n:{VICTIM}:1.1", f"e:{VICTIM}:s:1", f"{VICTIM}:s:1"):
        yield {"Nats-Msg-Id": id_}
    for dest in (lease, subjects.command(cell, VICTIM), subjects.brain_input(cell, "leader")):
        yield {"Nats-Trace-Dest": dest}
        yield {"Nats-Schedule": "@at 2026-01-01T00:00:00Z", "Nats-Schedule-Target": dest}
    for stream in (subjects.stream(cell), f"KV_{subjects.LEASE_BUCKET}"):
        yield {"Nats-Expected-Stream": stream}
    yield from (
        {"Nats-Rollup": "all"}, {"Nats-Rollup": "sub"}, {"Nats-TTL": "1s"}, {"Nats-TTL": "never"},
        {"Nats-Marker-Reason": "Purge"}, {"KV-Operation": "PURGE"}, {"KV-Operation": "DEL"}, {"Nats-Incr": "+1"},
        {"Nats-Batch-Id": "x", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1"}, {"Nats-Sequence": "1"},
        {"Nats-Expected-Last-Sequence": "0"}, {"Nats-Expected-Last-Subject-Sequence": "0"},
        {"Nats-Expected-Last-Msg-Id": "x"}, {"Status": "503"}, {"Status": "100", "Description": "FlowControl Request"},
        {"Ward-Severity": "fatal", "Ward-Kind": "gpu.lost"}, {"Nats-Stream-Source": "x"}, {"x": "y" * 60_000},
    )  # fmt: skip


def event(node: str, seq: int, **changes: Any) -> bytes:
    """An event that the brain can read."""
    fields: dict[str, Any] = {
        "v": 1, "id": f"{node}:{MARK.replace('-', '')}:{seq}", "node": node, "kind": "link.state", "component": "link/eth9",
        "severity": "info", "at": "", "age_s": 0, "boot": "b", "count": 1, "data": {"up": True, "text": MARK}, "evidence": MARK,
    }  # fmt: skip
    return orjson.dumps(fields | changes)


def body(node: str, what: str, seq: int) -> bytes:
    """Something of each kind."""
    if what == subjects.EVENT:
        return event(node, seq)
    if what == subjects.BEAT:
        beat = {"v": 1, "node": node, "session": MARK, "boot": "b", "mono_s": 1.0, "version": MARK}
        return orjson.dumps(beat | {"spooled": 0, "dropped": 0})
    if what == subjects.ANSWER:
        return b"a" * 24 + b"\n" + orjson.dumps({"answer": "accepted", "why": MARK})
    part = {"command": f"inc-{seq}", "file": MARK, "digest": "SHA-256=", "size": 10, "chunks": 1}
    return orjson.dumps(part) + b"\n"


GIBBERISH = (
    b"{}",
    orjson.dumps(
        encode_reply(Reply(answer=Answer.ACCEPTED, why="", session=MARK, boot="b", mono_s=1.0))
    ).replace(b'"plan":[]', b'"plan":[' + b"[" * 1000 + b"]" * 1000 + b"]"),
    b'{"answer":"a word of a later version"}',
    b"[" * 100_000,
    b"",
)


class Attack:
    """What is tried on one connection."""

    def __init__(self, client: Client, node: str, cell: str, refused: list[str]) -> None:
        self._client = client
        self._node = node
        self._cell = cell
        self.refused = refused
        self.tried = 0
        self.seq = 0
        self.held = ""  # the id of the reboot that it was told to do

    async def replies(self) -> None:
        """Each offer with each reply subject."""
        for what in OFFERS:
            for target in targets(self._cell):
                await self._offer(what, reply=target)

    async def headers(self) -> None:
        """Each offer with each set of headers, and with them a reply subject."""
        for what in OFFERS:
            for headers in header_sets(self._cell):
                await self._offer(what, headers=headers)
                await self._offer(what, headers=headers, reply=f"$KV.{subjects.LEASE_BUCKET}.{self._cell}")

    async def elsewhere(self) -> None:
        """Publishing and listening where a node has no business."""
        for target in targets(self._cell):
            if "*" not in target and ">" not in target:
                await self._client.publish(target, MARK.encode())
                self.tried += 1
            await self._client.subscribe(target)
            self.tried += 1
        await self._client.flush()

    async def words(self) -> None:
        """What JSON allows and no program expects, in each field of each offer."""
        odd: tuple[Any, ...] = (
            "\ud800",
            "\x00",
            "a" * 1000,
            "\u202e",
            10**400,
            -1,
            1.5,
            True,
            None,
            [],
            {},
            [[[[]]]],
            "NaN",
            "*.>",
        )
        whole: dict[str, dict[str, Any]] = {
            subjects.EVENT: json.loads(event(self._node, 1)),
            subjects.BEAT: json.loads(body(self._node, subjects.BEAT, 1)),
            subjects.ANSWER: {"answer": "accepted", "why": "", "session": "s", "boot": "b", "mono_s": 1.0},
            subjects.EVIDENCE: {"command": "c", "file": "f", "digest": "SHA-256=x", "size": 1, "chunks": 1},
        }
        for what, fields in whole.items():
            for name in fields:
                for value in odd:
                    self.seq += 1
                    self.tried += 1
                    offer = json.dumps(fields | {name: value}).encode() + b"\n"
                    await self._client.publish(subjects.offer(self._cell, self._node, what), offer)
            for text in (b"\xff\xfe\n", b"[" * 5000 + b"\n", b'{"command":NaN}\n', b"\n", b""):
                self.tried += 1
                await self._client.publish(subjects.offer(self._cell, self._node, what), text)

    async def foreign(self, step: str) -> None:
        """The result of another node's step."""
        data = {"command": step, "outcome": "ok", "why": MARK, "took_s": 1.0}
        self.seq += 1
        await self._publish(event(self._node, self.seq, kind="command.result", component="node", data=data))

    async def flood(self, what: str, seconds: float) -> None:
        """As fast as it goes."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in range(100):
                await self._offer(what)
            await asyncio.sleep(0)

    async def fill(self, seconds: float) -> None:
        """Its lane, which others share: the largest bodies that go in, then ever smaller ones; subjects without end; and what
        only the brain or UFM tells.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for size in (262_000, 100_000, 17_000, 16_000, 8_000, 2_000, 500, 0):
                for what in (*OFFERS, f"x{self.tried}"):
                    await self._client.publish(subjects.offer(self._cell, self._node, what), bytes(size))
                    self.tried += 1
            for kind in ("ufm.sm_changed", "node.returned"):
                self.seq += 1
                await self._publish(event(self._node, self.seq, kind=kind, component="node", data={}))
            await asyncio.sleep(0)

    async def hold(self, seconds: float) -> None:
        """One of its GPUs is lost, it says. It does all at once that it is told; of its reboot it only says that it is at it."""
        await self._client.subscribe(subjects.command(self._cell, self._node), cb=self._obey)
        await self._client.flush()
        lost = {"code": 79, "name": MARK, "known": True, "what": "", "action": ""}
        await self._say("gpu.xid", "gpu/0000:3b:00", lost)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            beat = json.loads(body(self._node, subjects.BEAT, 0)) | {"mono_s": time.monotonic()}
            await self._client.publish(
                subjects.offer(self._cell, self._node, subjects.BEAT), orjson.dumps(beat)
            )
            if self.held:
                self.tried += 1
                data = {"command": self.held, "elapsed_s": 1.0, "text": MARK}
                await self._say("command.progress", "node", data)
            await asyncio.sleep(0.5)

    async def gibberish(self, seconds: float) -> None:
        """One of its GPUs is lost, it says; whatever it is asked, it answers what no agent does."""
        await self._client.subscribe(subjects.command(self._cell, self._node), cb=self._babble)
        await self._client.flush()
        lost = {"code": 79, "name": MARK, "known": True, "what": "", "action": ""}
        await self._say("gpu.xid", "gpu/0000:3b:00", lost)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            beat = json.loads(body(self._node, subjects.BEAT, 0)) | {"mono_s": time.monotonic()}
            await self._client.publish(
                subjects.offer(self._cell, self._node, subjects.BEAT), orjson.dumps(beat)
            )
            await asyncio.sleep(0.5)

    async def _babble(self, message: Msg) -> None:
        request = requests.unpack(message.data)
        assert request is not None
        answer = GIBBERISH[self.tried % len(GIBBERISH)]
        self.tried += 1
        await self._client.publish(
            subjects.offer(self._cell, self._node, subjects.ANSWER), requests.pack(request[0], answer)
        )

    async def _obey(self, message: Msg) -> None:
        request = requests.unpack(message.data)
        assert request is not None
        reference, told = request
        reply = Reply(answer=Answer.ACCEPTED, why="", session=MARK, boot="b", mono_s=time.monotonic())
        await self._client.publish(
            subjects.offer(self._cell, self._node, subjects.ANSWER),
            requests.pack(reference, orjson.dumps(encode_reply(reply))),
        )
        payload = orjson.loads(told).get("payload")
        if payload is None:
            return
        command = decode_command(payload.encode())
        if command.action == "node.reboot":
            self.held = command.id
        else:
            data = {"command": command.id, "outcome": "ok", "why": MARK, "took_s": 0.0}
            await self._say("command.result", "node", data)

    async def _say(self, kind: str, component: str, data: dict[str, Any]) -> None:
        self.seq += 1
        message = event(self._node, self.seq, kind=kind, component=component, data=data)
        await self._client.publish(subjects.offer(self._cell, self._node, subjects.EVENT), message)

    async def _offer(self, what: str, **how: Any) -> None:
        self.seq += 1
        self.tried += 1
        subject = subjects.offer(self._cell, self._node, what)
        await self._client.publish(subject, body(self._node, what, self.seq), **how)

    async def _publish(self, message: bytes) -> None:
        self.tried += 1
        await self._client.publish(subjects.offer(self._cell, self._node, subjects.EVENT), message)


async def main(url: str, seed: str, node: str, cell: str, attack: str, more: str) -> None:
    """One attack, and the line about it."""
    refused: list[str] = []

    async def on_error(error: Exception) -> None:
        refused.append(str(error))

    client = await nats.connect(
        url,
        **(login(Path(seed)) if seed else {}),
        error_cb=on_error,
        pending_size=64 * 1024**2,
        skip_subject_validation=True,
    )
    work = Attack(client, node, cell, refused)
    work.seq = time.time_ns() // 1000 % 10**12
    if attack == "foreign":
        await work.foreign(more)
    elif attack in ("fill", "hold", "gibberish"):
        await getattr(work, attack)(float(more))
    elif attack.startswith("flood-"):
        await work.flood(attack.partition("-")[2], float(more))
    else:
        await getattr(work, attack)()
    await client.flush(60)
    await asyncio.sleep(0.2)  # what the server refuses comes after its answer to the flush
    print(json.dumps({"tried": work.tried, "refused": len(refused)}), flush=True)
    await client.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:7]))

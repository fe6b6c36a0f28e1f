"""What a message takes on NATS and in the archive: the recorded logs of drills and stories (tests/replay) on a real stream."""

import asyncio
import io
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from agent.contract import subjects
from brain.adapters import log_file
from brain.adapters.log import Record
from brain.adapters.log_file import LogFileWriter, LogName
from tests.benchmarks.figures import Figure
from tests.real.nats import client, make_log, nats_server
from tests.replay import recording


def run() -> list[Figure]:
    """One figure for each kind of message, and how fast an archive is read."""
    logs = [one.log for group in ("drills", "stories") for one in recording.load(group)[0]]
    messages = [
        (f"ward.default.{subject}", orjson.dumps(body), at)
        for log in logs
        for subject, body, at in log
        if subject != "input.pack"
    ]
    pulse = orjson.dumps({"v": 1, "id": "pulse:12.345", "epoch": 12})
    pulses = [("ward.default.input.pulse", pulse, 1.7e9 + 3 * number) for number in range(5000)]
    kinds = {
        "events of nodes": [one for one in messages if ".event." in one[0]],
        "timers, intents, results, deliveries": [one for one in messages if ".input." in one[0]],
        "pulses": pulses,
    }
    figures = []
    for what, found in kinds.items():
        stored = asyncio.run(_stored(found)) / len(found)
        packed, spent_s = _archived(found)
        figures.append(
            Figure(
                what=f"{what}, {len(found)}",
                value=f"{stored:.0f} bytes each on NATS, {packed / len(found):.0f} in the archive",
                beside=f"{1e6 * spent_s / len(found):.0f} µs each to archive",
            )
        )
    body = _file(messages)
    began_s = time.process_time()
    many = sum(isinstance(one, Record) for one in log_file.read(_pieces(body), "it"))
    figures.append(
        Figure(what="an archive is read", value=f"{many / (time.process_time() - began_s):,.0f} messages/s")
    )
    return figures


async def _stored(found: list[tuple[str, bytes, float]]) -> int:
    """Bytes that the stream takes, with the headers that a brain gives its messages."""
    with tempfile.TemporaryDirectory() as folder, nats_server(Path(folder)) as server:
        await make_log(server.url)
        async with client(server.url) as connection:
            for number, (subject, body, _) in enumerate(found):
                headers = {subjects.HEADER_ID: f"node-0001:session-12:{number}"}
                if ".event." in subject:
                    headers |= {subjects.HEADER_KIND: "gpu.xid", subjects.HEADER_SEVERITY: "error"}
                await connection.publish(subject, body, headers=headers)
                if number % 500 == 0:
                    await connection.flush()
            deadline = time.monotonic() + 60
            while (state := (await connection.jsm().stream_info("WARD_default")).state).messages < len(found):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
            return int(state.bytes)


def _file(found: list[tuple[str, bytes, float]]) -> bytes:
    sink = io.BytesIO()
    file = LogFileWriter(sink.write, LogName(cell="default", log="2026-01-01 00:00:00+00:00"), 1)
    for seq, (subject, body, at) in enumerate(found, 1):
        file.add(Record(seq, at, subject, body, 0))
    file.finish()
    return sink.getvalue()


def _archived(found: list[tuple[str, bytes, float]]) -> tuple[int, float]:
    began_s = time.process_time()
    return len(_file(found)), time.process_time() - began_s


def _pieces(body: bytes) -> Iterator[bytes]:
    return (body[at : at + 2**20] for at in range(0, len(body), 2**20))

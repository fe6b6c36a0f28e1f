"""An attacker who asks a console much, in a process of its own, and a measure of how late the brain's event loop comes."""

import asyncio
import collections
import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import orjson

from agent.shared.tasks import end

ELSEWHERE = "127.0.0.2"
SECRET = "SECRET"
_ASK = "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
_TELL = "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"


def many_incidents(file: Path, count: int) -> None:
    """Writes so many copies of the only incident, with evidence as long as events may have it, and so many notes, into a
    read model.
    """
    db = sqlite3.connect(file, timeout=30)
    (raw,) = db.execute("SELECT body FROM incidents LIMIT 1").fetchone()
    body = orjson.loads(raw)
    body["evidence"] = [body["evidence"][0] | {"text": "x" * 300} for _ in range(8)]
    rows = []
    for number in range(count):
        id_ = f"inc-{number:06}"
        rows.append((id_, "open", 1000.0 + number, orjson.dumps(body | {"id": id_, "node": f"m{number}"})))
    with db:
        db.executemany("INSERT OR REPLACE INTO incidents VALUES(?,?,?,?)", rows)
        db.executemany(
            "INSERT INTO notes(id, seq, at, kind, text, incident, run, scope, caused_by, data)"
            " VALUES(?, 0, 1.0, 'operator.hold', ?, '', '', '', '', '{}')",
            [(f"note-{number}", "x" * 800) for number in range(count)],
        )
    db.close()


async def ask_without_end(
    port: int, path: str, connections: int, for_s: float, *, token: str = "", body: str = ""
) -> dict[str, int]:
    """The answers, by status, to whoever asks for a path over and over; with a `body`, from another address on each
    connection.
    """
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, str(port), path, str(connections), str(for_s), body,
        stdout=asyncio.subprocess.PIPE, env={SECRET: token, "PYTHONPATH": "."},
    )  # fmt: skip
    said, _ = await program.communicate()
    assert program.returncode == 0
    found: dict[str, int] = orjson.loads(said)
    return found


class Gaps:
    """How long the event loop took to come round, at the longest, without what its thread waited for a processor: other
    processes of a loaded machine are not what is asked here.
    """

    longest_s = 0.0


@contextlib.asynccontextmanager
async def gaps() -> AsyncIterator[Gaps]:
    """Measures while it is open."""
    found = Gaps()

    async def measure(schedule: int) -> None:
        while True:
            before, waited_before = time.monotonic(), _waited_s(schedule)
            await asyncio.sleep(0.01)
            gap_s = time.monotonic() - before - (_waited_s(schedule) - waited_before)
            found.longest_s = max(found.longest_s, gap_s)

    schedule = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    task = asyncio.create_task(measure(schedule))
    try:
        yield found
    finally:
        await end(task)
        os.close(schedule)


def _waited_s(schedule: int) -> float:
    """How long a thread was ready to run and had no processor, since it began (proc(5), `schedstat`: the second figure, ns)."""
    return int(os.pread(schedule, 100, 0).split()[1]) / 1e9


async def _one(port: int, address: str, words: bytes, until: float, counts: collections.Counter[str]) -> None:
    while time.monotonic() < until:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
            while time.monotonic() < until:
                writer.write(words)
                status = (await reader.readline())[9:12].decode()
                counts[status or "closed"] += 1
                if not status:
                    break
                length = 0
                while (line := await reader.readline()) not in (b"\r\n", b""):
                    if line.lower().startswith(b"content-length"):
                        length = int(line.split(b":")[1])
                if b"watch" in words and status == "200":
                    await reader.read(1000)
                    break
                await reader.readexactly(length)
                if status in ("429", "503"):
                    await asyncio.sleep(0.05)  # who attacks does not wait as long as he is told
            writer.close()


async def _attack(port: int, path: str, connections: int, for_s: float, body: str) -> None:
    counts: collections.Counter[str] = collections.Counter()
    until = time.monotonic() + for_s
    if body:
        words = _TELL.format(path=path, length=len(body), body=body)
        addresses = [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(connections)]
    else:
        words = _ASK.format(path=path, token=os.environ[SECRET])
        addresses = [ELSEWHERE] * connections
    await asyncio.gather(*(_one(port, one, words.encode(), until, counts) for one in addresses))
    sys.stdout.buffer.write(orjson.dumps(counts))


if __name__ == "__main__":
    asyncio.run(_attack(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]))

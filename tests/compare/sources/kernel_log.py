"""A source of ansible-rulebook that reads the kernel log as gpuward's agent does, without a process between.

It runs in the environment of ansible-rulebook, so it imports nothing of ours. Arguments: `facility` (lines of others are left
out); `go`: a folder whose file `N.go` makes it give N events at once, the last `faults` of them faults (as the file says).
"""

import asyncio
import json
import os
import re
import time
from pathlib import Path
from typing import Any

LINE = re.compile(r"NVRM: Xid \(PCI:([0-9a-f:.]+)\): (\d+), (.*)")


def event_of(record: bytes, facility: int) -> dict[str, Any] | None:
    """The event of a record of /dev/kmsg; None: another's line, or no XID."""
    head, _, text = record.partition(b";")
    if int(head.split(b",", 1)[0]) >> 3 != facility:
        return None
    found = LINE.match(text.split(b"\n", 1)[0].decode(errors="replace"))
    return found and {"gpu": found[1], "xid": int(found[2]), "message": found[3], "node": "lab-1"}


def made(events: int, faults: int) -> list[dict[str, Any]]:
    """Application faults of 500 nodes, and a GPU of each of `faults` nodes that must be replaced at the end."""
    found = []
    for number in range(events):
        fails = number >= events - faults
        gpu = f"{number - events + faults:04x}:3b:01" if fails else "0000:3b:00"
        words = "Row Remapper Error" if fails else "an ordinary line of a hundred characters or so"
        found.append(
            {
                "gpu": gpu,
                "xid": 64 if fails else 31,
                "message": words,
                "node": f"n{number % 500}",
                "seq": number,
            }
        )
    return found


async def main(queue: asyncio.Queue[Any], args: dict[str, Any]) -> None:
    """What ansible-rulebook calls."""
    facility, go = int(args["facility"]), Path(args["go"])
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.lseek(fd, 0, os.SEEK_END)

    def on_readable() -> None:
        while True:
            try:
                record = os.read(fd, 8192)
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue
            if event := event_of(record, facility):
                queue.put_nowait(event)

    asyncio.get_running_loop().add_reader(fd, on_readable)
    (go / "reads").touch()
    while True:
        await asyncio.sleep(0.2)
        for wanted in go.glob("*.go"):
            ask = json.loads(wanted.read_text())
            wanted.unlink()
            events = made(ask["events"], ask["faults"])
            (go / "began").write_text(repr(time.time()))
            for event in events:
                await queue.put(event)
                if event["seq"] % 100 == 0:
                    await asyncio.sleep(0)

"""Runs inside User-mode Linux: its kernel log is overrun while the agent's own source follows it.

One JSON line, prefixed with GUEST: what was emitted, and what was counted as lost.
"""

import asyncio
import json
import os
from pathlib import Path

from agent.collectors.samples import Line, Overrun
from agent.host import Host
from agent.sources.kmsg import KmsgSource, KmsgSourceOptions
from tests.agent.following import following

RECORDS = 20_000


def write(*texts: str) -> None:
    fd = os.open("/dev/kmsg", os.O_WRONLY)
    for text in texts:
        os.write(fd, f"<7>{text}\n".encode())
    os.close(fd)


async def main() -> None:
    # Any number of lines from user space.
    Path("/proc/sys/kernel/printk_devkmsg").write_text("on\n")
    # What is written here has facility 1.
    source = KmsgSource(Host(), KmsgSourceOptions(kmsg_facilities=(0, 1)))
    async with following(source) as emitted:
        await emitted.until(lambda _: source.position is not None)
        write("start")
        await emitted.until(lambda h: any(isinstance(r, Line) and r.text == "start" for r in h))
        start = source.position
        # The loop does not run meanwhile: nobody reads.
        write(*(f"flood {number}" for number in range(RECORDS)))
        await emitted.until(lambda h: isinstance(h[-1], Line) and h[-1].text == f"flood {RECORDS - 1}")
    assert start is not None
    assert source.position is not None
    lines = [sample for sample in emitted if isinstance(sample, Line) and sample.seq > start[1]]
    told = {
        "records": source.position[1] - start[1],
        "lines": len(lines),
        "flood": sum(line.text.startswith("flood ") for line in lines),
        "lost": [sample.lost for sample in emitted if isinstance(sample, Overrun)],
    }
    print("GUEST", json.dumps(told), flush=True)


asyncio.run(main())

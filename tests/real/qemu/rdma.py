"""Runs in the guest: the whole agent beside a real RDMA device (rxe) whose network interface goes down and up. One JSON
line for each event that it spooled; its broker is away.
"""

import asyncio
import contextlib
import json
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

from agent import app
from agent.config import AgentConfig

PORT = Path("/sys/class/infiniband/rxe0/ports/1")
PERIOD_S = 0.1
PATIENCE_S = 100.0


def sh(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=20)


class Spooled:
    """What the agent has said so far."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "spool.db"

    def events(self) -> list[dict[str, object]]:
        with contextlib.closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as database:
            return [json.loads(body) for (body,) in database.execute("SELECT body FROM events ORDER BY seq")]

    async def until(self, kind: str, number: int) -> None:
        """Waits until it has said `kind` so often."""
        end_s = time.monotonic() + PATIENCE_S
        while sum(event["kind"] == kind for event in self.events()) < number:
            if time.monotonic() > end_s:
                raise TimeoutError(f"{kind} was not said {number} times: {self.events()}")
            await asyncio.sleep(0.05)


async def main() -> None:
    sh("modprobe", "rdma_rxe")
    sh("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1")
    sh("ip", "link", "set", "v1", "up")
    sh("ip", "link", "set", "v0", "up")
    sh("rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "v0")
    folder = Path(tempfile.mkdtemp())
    config = AgentConfig(
        node="guest",
        nats_url="nats://127.0.0.1:9",
        data_dir=folder,
        mounts=(),
        plugins={"ib_interval_s": PERIOD_S},
    )
    stop = asyncio.Event()
    agent = asyncio.create_task(app.serve(config, stop))
    spooled = Spooled(folder)
    while not (folder / "spool.db").exists():
        await asyncio.sleep(0.05)
    await spooled.until("agent.started", 1)
    await spooled.until("node.inventory", 1)
    await asyncio.sleep(5 * PERIOD_S)  # the port's first reading is a baseline
    sh("ip", "link", "set", "v0", "down")
    await spooled.until("ib.port_state", 1)
    sh("ip", "link", "set", "v0", "up")
    await spooled.until("ib.port_state", 2)
    await asyncio.sleep(5 * PERIOD_S)  # time to say too much
    stop.set()
    await agent
    for event in spooled.events():
        shown = {key: event.get(key) for key in ("kind", "component", "severity", "data")}
        print(json.dumps(shown), flush=True)


asyncio.run(main())

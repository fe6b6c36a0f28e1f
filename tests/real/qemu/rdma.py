"""Runs in the guest: the whole agent beside a real RDMA device (rxe) whose network interface goes down and up. One JSON
line for each event that it spooled; its broker is away.
"""

import asyncio
import json
import subprocess
import tempfile
from pathlib import Path

from agent import app
from agent.config import AgentConfig
from tests.real.qemu.spooled import Spooled

PORT = Path("/sys/class/infiniband/rxe0/ports/1")
PERIOD_S = 0.1


def sh(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=20)


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

"""Runs in the guest: the whole agent beside a real RDMA device (rxe) whose network interface goes down and up. One JSON
line for each event that it spooled; its broker is away.
"""

import asyncio
import subprocess
from pathlib import Path

from tests.real.qemu.spooled import agent_beside, show

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
    async with agent_beside(mounts=(), plugins={"ib_interval_s": PERIOD_S}) as spooled:
        await spooled.until("node.inventory", 1)
        await asyncio.sleep(5 * PERIOD_S)  # the port's first reading is a baseline
        sh("ip", "link", "set", "v0", "down")
        await spooled.until("ib.port_state", 1)
        sh("ip", "link", "set", "v0", "up")
        await spooled.until("ib.port_state", 2)
        await asyncio.sleep(5 * PERIOD_S)  # time to say too much
    for event in spooled.events():
        show(event)


asyncio.run(main())

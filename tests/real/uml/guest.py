"""Runs inside User-mode Linux: a bond of two veth pairs, and what the agent's own source and collector say of it.

One JSON line for each event, prefixed with GUEST.
"""

import asyncio
import json
import subprocess
import time

from agent.collectors.bond import BondCollector
from agent.collectors.readings import Reading
from agent.host import Host
from agent.sources.bond import BondSource


def ip(*argv: str) -> None:
    subprocess.run(["ip", *argv], check=True, timeout=20)


async def main() -> None:
    ip("link", "add", "bond0", "type", "bond", "mode", "active-backup", "miimon", "50")
    for name in ("va", "vb"):
        ip("link", "add", name, "type", "veth", "peer", "name", f"{name}1")
        ip("link", "set", f"{name}1", "up")
        ip("link", "set", name, "master", "bond0")
    ip("link", "set", "bond0", "up")
    collector = BondCollector()
    seen: list[str] = []

    def emit(reading: Reading) -> None:
        for draft in collector.feed(reading, 0.0):
            seen.append(draft.kind)
            print("GUEST", json.dumps({"kind": draft.kind, **draft.data}), flush=True)

    async def until(kind: str, number: int) -> None:
        deadline = time.monotonic() + 20
        while seen.count(kind) < number:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{kind} was not said {number} times: {seen}")
            await asyncio.sleep(0.02)

    # Until both slaves are up, what the bond says belongs to its making.
    deadline = time.monotonic() + 20
    while (
        "Currently Active Slave: va" not in Host().read("/proc/net/bonding/bond0")
        and time.monotonic() < deadline
    ):
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)
    following = asyncio.create_task(BondSource(Host(), period_s=0.05).run(emit))
    await asyncio.sleep(0.5)
    print("GUEST", json.dumps({"kind": "start", "said": len(seen)}), flush=True)
    ip("link", "set", "va1", "down")  # the other end of the cable
    await until("bond.active_slave", 1)
    await until("bond.slaves", 1)
    ip("link", "set", "va1", "up")
    await until("bond.slaves", 2)
    ip("link", "del", "bond0")
    await until("bond.removed", 1)
    following.cancel()


asyncio.run(main())

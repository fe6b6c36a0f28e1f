"""Runs inside User-mode Linux: a bond of two veth pairs, and what the agent's own source and collector say of it.

One JSON line for each event, prefixed with GUEST.
"""

import asyncio
import json
import subprocess
import time

from agent.actions.bond_failover import BondFailover
from agent.collectors.bond import BondCollector
from agent.collectors.samples import Sample
from agent.contract.errors import ActionError
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

    def emit(sample: Sample) -> None:
        for unsent in collector.feed(sample, 0.0):
            seen.append(unsent.kind)
            print("GUEST", json.dumps({"kind": unsent.kind, **unsent.data}), flush=True)

    async def until(kind: str, number: int) -> None:
        deadline = time.monotonic() + 60
        while seen.count(kind) < number:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{kind} was not said {number} times: {seen}")
            await asyncio.sleep(0.02)

    # Until both slaves are up, what the bond says belongs to its making.
    deadline = time.monotonic() + 60
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
    following.cancel()
    await failovers()
    following = asyncio.create_task(BondSource(Host(), period_s=0.05).run(emit))
    await asyncio.sleep(0.5)
    ip("link", "del", "bond0")
    await until("bond.removed", 1)
    following.cancel()


async def failovers() -> None:
    """bond.failover on the bond, whose slaves are both up and whose active one is vb."""
    peer = ("127.0.0.1", 4222)
    action = BondFailover(Host(), lambda: peer)

    async def tell(story: str, what: str, **params: str) -> None:
        try:
            said = str(await action.plan(params)) if what == "plan" else (await action.run(params)).text
        except ActionError as error:
            said = f"{type(error).__name__}: {error}"
        active = Host().read("/sys/class/net/bond0/bonding/active_slave")
        print(
            "GUEST", json.dumps({"kind": "story", "story": story, "said": said, "active": active}), flush=True
        )

    await tell("plan", "plan", bond="bond/bond0")
    await tell("other", "run", bond="bond/bond0")
    await tell("back", "run", bond="link/bond0", to="vb")
    await tell("already", "run", bond="bond/bond0", to="vb")
    await tell("needless", "run", bond="bond/bond0", away_from="va")
    await tell("needed", "run", bond="bond/bond0", away_from="va,vb")
    await tell("needed back", "run", bond="bond/bond0", away_from="va")
    await tell("stranger", "run", bond="bond/bond0", to="va1")
    ip("link", "set", "va1", "down")
    while Host().read("/sys/class/net/va/bonding_slave/mii_status") != "down":
        await asyncio.sleep(0.05)
    await tell("dead", "run", bond="bond/bond0", to="va")
    await tell("none", "run", bond="bond/bond0")
    await tell("no bond", "run", bond="bond/va")
    ip("link", "add", "bond1", "type", "bond", "mode", "balance-rr")
    await tell("mode", "run", bond="bond/bond1")
    ip("addr", "add", "10.4.0.1/24", "dev", "bond0")
    peer = ("10.4.0.2", 4222)
    await tell("control", "run", bond="bond/bond0", to="va")


asyncio.run(main())

"""Three NATS servers under five nodes' load, and one thing after another befalls them, each before the last is over.

    GPUWARD_CLUSTER_ROUNDS=50 GPUWARD_CLUSTER_SEED=7 pytest -s tests/real/test_nats_cluster_chaos.py

All that was acknowledged is on the log, once, each node's in its order.
"""

import asyncio
import contextlib
import os
import random
from pathlib import Path

import pytest

from tests.real.brain_kit import lab
from tests.real.nats import NatsServer
from tests.real.nats_cluster import NAMES
from tests.real.test_nats_cluster import ClusterLab, events
from tests.real.test_nats_cluster_faults import Load, all_current

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.slow]
ROUNDS = int(os.environ.get("GPUWARD_CLUSTER_ROUNDS", "4"))
SEED = int(os.environ.get("GPUWARD_CLUSTER_SEED", "1"))
NODES = ("n1", "n2", "n3", "n4", "n5")


async def trouble(found: ClusterLab, chance: random.Random) -> None:
    """One of them: a server is killed, stopped, hangs or is cut off, or the network flaps; for a while that is chance's, too."""
    name = chance.choice(NAMES)
    server: NatsServer = found.cluster.servers[name]
    what, for_s = (
        chance.choice(("killed", "stopped", "hung", "parted", "flaps")),
        chance.choice((0.5, 2.0, 5.0, 9.0)),
    )
    print(f"{name} {what} for {for_s:g} s", flush=True)
    match what:
        case "killed" | "stopped":
            server.kill() if what == "killed" else server.stop()
            await asyncio.sleep(for_s)
            server.start()
        case "hung":
            server.pause()
            await asyncio.sleep(for_s)
            server.resume()
        case "parted":
            found.cluster.part(name)
            await asyncio.sleep(for_s)
            found.cluster.join()
        case _:
            for _ in range(4):
                found.cluster.part(chance.choice(NAMES))
                await asyncio.sleep(1)
                found.cluster.join()
                await asyncio.sleep(0.3)
    await asyncio.sleep(chance.choice((0.0, 1.0, 4.0)))


async def test_one_thing_after_another(tmp_path: Path) -> None:
    """With a cluster of three; the seed says what happens."""
    chance = random.Random(SEED)
    async with lab(tmp_path, ClusterLab) as found:
        assert isinstance(found, ClusterLab)
        loads = []
        for name in NODES:
            node = await found.agent(name)
            node.again_s, node.patience_s = 1.0, 240.0
            loads.append(Load(node))
        for load in loads:
            load.task = asyncio.create_task(load.run())
        for _ in range(ROUNDS):
            await trouble(found, chance)
        await all_current(found)
        await found.until(
            lambda status: status["leads"] and not status["troubles"], "the brain leads", within_s=120
        )
        for load in loads:
            await load.goes_on()
            assert load.task is not None
            load.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await load.task
        for name, load in zip(NODES, loads, strict=True):
            stored = await events(found, name)
            assert [one for one in load.ids if one not in stored] == [], "none is lost"
            assert [one for one, count in stored.items() if count > 1] == [], "none is there twice"
            numbers = [int(one.rpartition(":")[2]) for one in stored]
            assert numbers == sorted(numbers), "in order"
            print(f"{name}: {len(load.ids)} events, the longest wait {load.longest_s:.1f} s")

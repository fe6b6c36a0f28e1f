"""How many of three servers keep what a cell needs: as many as the configuration says, whatever it said before; and who tells."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.contract import subjects
from agent.shared.nats_connection import LOST
from brain.adapters import copies, lanes
from brain.cli.checkup import broker
from brain.cli.checkup.installation import Installation
from brain.cli.checkup.lines import Health, HealthLine
from tests.real.brain_kit import lab
from tests.real.test_nats_cluster import ClusterLab
from tests.real.test_nats_cluster_faults import leader

pytestmark = pytest.mark.component("nats-server")
LANES = {one.stream for one in lanes.lanes("default")}
WITHIN_S = 180.0


def wanting(copies: int) -> Callable[[Path, dict[str, Any]], ClusterLab]:
    """A brain on three servers whose `nats.replicas` is this."""

    def made(folder: Path, more: dict[str, Any]) -> ClusterLab:
        found = ClusterLab(folder, more)
        want(found, copies)
        return found

    return made


def want(found: ClusterLab, copies: int) -> None:
    """From its next start on."""
    nats = found.config.nats.model_copy(update={"replicas": copies})
    found.config = found.config.model_copy(update={"nats": nats})


async def kept(found: ClusterLab) -> dict[str, int]:
    """Stream -> how many servers keep it; of all streams. (While servers elect who leads one, they leave it out.)"""
    client = await found.brain_client()
    counts: dict[str, int] = {}

    async def all_told() -> bool:
        counts.clear()
        with contextlib.suppress(*LOST):
            infos = await client.jsm().streams_info()
            counts.update({str(one.config.name): copies.of(one.config) for one in infos})
        return counts.keys() >= LANES

    await until(all_told, "the servers tell of every stream")
    return counts


async def until(look: Callable[[], Awaitable[object]], what: str) -> None:
    """It holds."""
    deadline = time.monotonic() + WITHIN_S
    while not await look():
        assert time.monotonic() < deadline, f"not within {WITHIN_S:g} s: {what}"
        await asyncio.sleep(0.2)


async def said(found: ClusterLab) -> list[HealthLine]:
    """What the doctor says of the copies."""
    site = Installation(
        file=None, config=found.config, warnings=(), brain=None, silent_why="", login=False, now=0.0
    )
    return [line async for line in broker.broker(site) if line.check == "copies on NATS"]


async def test_what_was_made_with_one_copy_gets_three(tmp_path: Path) -> None:
    """`replicas = 3` came later, with the second brain: the lease, the lanes and the state are as safe then as the log, and the
    server that has led the lease may die.
    """
    async with lab(tmp_path, wanting(1)) as found:
        assert isinstance(found, ClusterLab)
        await (await found.node("n1")).event("agent.started", version="1")
        assert set((await kept(found)).values()) == {1}
        (line,) = await said(found)
        assert line.text.startswith("nats.url names 3 servers, and nats.replicas is 1: when a server dies")
        want(found, 3)

        async def one_of_three() -> bool:
            return [(one.health, "the lease: 1 of 3" in one.text) for one in await said(found)] == [
                (Health.WARN, True)
            ]

        await until(one_of_three, "the doctor counts them")
        await found.stop()
        await found.start()
        node = await found.agent("n1")
        await node.event("agent.started", version="2")

        async def all_three() -> bool:
            few = {name for name, count in (await kept(found)).items() if count != 3}
            return few <= {f"OBJ_{subjects.state_bucket('default')}"}  # with its next copy

        await until(all_three, "three copies of everything")
        await until(lambda: well(found), "and all of them are there")

        (await leader(found, f"KV_{subjects.LEASE_BUCKET}")).kill()
        node.again_s = 1.0
        await node.event("agent.started", version="3")
        await found.until(lambda status: status["leads"], "it leads", within_s=WITHIN_S)


async def well(found: ClusterLab) -> bool:
    """Does the doctor find all copies?"""
    return [line.health for line in await said(found)] == [Health.OK]


async def test_a_brain_that_has_forgotten_the_key_takes_no_copy_away(tmp_path: Path) -> None:
    """The second brain of a cell: its brain.toml has no `replicas`, so it is 1 there."""
    async with lab(tmp_path, wanting(3)) as found:
        assert isinstance(found, ClusterLab)
        await (await found.node("n1")).event("agent.started", version="1")
        before = await kept(found)
        assert set(before.values()) == {3}
        want(found, 1)
        await found.stop()
        await found.start()
        await (await found.agent("n1")).event("agent.started", version="2")
        after = await kept(found)
        assert {name: after.get(name) for name in before} == before
        (line,) = await said(found)
        assert (line.health, line.text[:55]) == (
            Health.WARN, "nats.url names 3 servers, which keep 3 copies, and nats",
        )  # fmt: skip


async def test_the_doctor_says_which_server_is_away(tmp_path: Path) -> None:
    """All works with two of three; that nothing more may happen is what somebody must hear."""
    async with lab(tmp_path, ClusterLab) as found:
        assert isinstance(found, ClusterLab)
        await until(lambda: well(found), "all copies are there")
        server = await leader(found, subjects.stream("default"))
        name = next(name for name, one in found.cluster.servers.items() if one is server)
        (line,) = await said(found)
        assert line.text.endswith(f"all are there; {name} leads the log"), "who comes last in an upgrade"
        server.kill()

        async def told() -> bool:
            return [name in line.text for line in await said(found) if line.health is Health.WARN] == [True]

        await until(told, f"{name} is named")
        (line,) = await said(found)
        assert "when another one dies, the cell stands" in line.action
        server.start()
        await until(lambda: well(found), "all copies are there again")

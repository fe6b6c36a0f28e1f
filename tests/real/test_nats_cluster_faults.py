"""Three NATS servers, one of which is unwell while nodes report: nothing acknowledged is lost or twice, and it comes back."""

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from agent.contract import subjects
from tests.nightly import first
from tests.real.brain_kit import Node, lab
from tests.real.disk_kit import fill, small_disk
from tests.real.nats import NatsServer
from tests.real.nats_cluster import NAMES
from tests.real.test_lost_storage import looked_after
from tests.real.test_nats_cluster import ClusterLab, events

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.root]
WELL_WITHIN_S = 120.0


class Load:
    """A node that offers event after event, each until it is on the log."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.ids: list[str] = []
        self.longest_s = 0.0  # for which an offered event waited for its answer
        self.task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            began = time.monotonic()
            self.ids.append((await self._node.event("agent.started", version="1")).id)
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            await asyncio.sleep(0.05)

    async def goes_on(self, more: int = 20) -> None:
        """Until so many more are on the log."""
        until = len(self.ids) + more
        deadline = time.monotonic() + WELL_WITHIN_S
        while len(self.ids) < until:
            if self.task is not None and self.task.done():
                self.task.result()  # one event was not stored at all
            assert time.monotonic() < deadline, f"{len(self.ids)} of {until} events are on the log"
            await asyncio.sleep(0.1)


@contextlib.contextmanager
def disks(folder: Path) -> Iterator[None]:
    """A small disk for each server."""
    (folder / "site").mkdir()
    with contextlib.ExitStack() as undo:
        for name in NAMES:
            undo.enter_context(small_disk(folder / "site" / name))
        yield


@contextlib.asynccontextmanager
async def under_load(
    folder: Path, make: Callable[[Path, dict[str, Any]], ClusterLab] = ClusterLab
) -> AsyncIterator[tuple[ClusterLab, Load]]:
    """A brain that leads on three servers, and a node that reports; at the end all is on the log, once."""
    with disks(folder):
        async with lab(folder, make) as found:
            assert isinstance(found, ClusterLab)
            node = await found.agent("n1")
            node.again_s = 1.0
            load = Load(node)
            task = load.task = asyncio.create_task(load.run())
            await load.goes_on()
            yield found, load
            await found.until(lambda status: status["leads"] and not status["troubles"], "the brain leads")
            await load.goes_on()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            stored = await events(found)
            assert sorted(stored.keys() & set(load.ids)) == sorted(load.ids), "none is lost"
            assert [one for one in load.ids if stored[one] != 1] == [], "none is there twice"
            print(f"{len(load.ids)} events, the longest wait {load.longest_s:.1f} s")


async def leader(found: ClusterLab, stream: str) -> NatsServer:
    """The server that leads a stream."""
    client = await found.brain_client()
    info = await client.request(f"$JS.API.STREAM.INFO.{stream}", b"", 30)
    return found.cluster.servers[orjson.loads(info.data)["cluster"]["leader"]]


async def all_current(found: ClusterLab) -> None:
    """Until each server has all of the log again."""
    client = await found.brain_client()
    deadline, replicas = time.monotonic() + WELL_WITHIN_S, []
    while time.monotonic() < deadline:
        with contextlib.suppress(TimeoutError):
            info = await client.request(f"$JS.API.STREAM.INFO.{subjects.stream('default')}", b"", 5)
            replicas = orjson.loads(info.data).get("cluster", {}).get("replicas", [])
            if len(replicas) == 2 and all(one["current"] and not one.get("offline") for one in replicas):
                return
        await asyncio.sleep(0.2)
    pytest.fail(f"not current: {replicas}")


async def killed(found: ClusterLab, load: Load, server: NatsServer) -> None:
    """kill -9, and started again."""
    server.kill()
    await load.goes_on()
    server.start()


async def wiped(found: ClusterLab, load: Load, server: NatsServer) -> None:
    """Another disk."""
    server.kill()
    shutil.rmtree(server.store)
    await load.goes_on()
    server.start()


async def full(found: ClusterLab, load: Load, server: NatsServer) -> None:
    """Its disk; health.sh is beside it."""
    folder = server.store.parent
    with looked_after(server, folder):
        ballast = fill(folder)
        await load.goes_on(60)
        ballast.unlink()
        deadline = time.monotonic() + WELL_WITHIN_S
        while not (server.died or server.well):
            assert time.monotonic() < deadline, "health.sh does nothing"
            await asyncio.sleep(0.2)
    if server.died:
        server.kill()
        server.start()


async def hung(found: ClusterLab, load: Load, server: NatsServer) -> None:
    """SIGSTOP: its connections stay open, and nothing answers."""
    server.pause()
    await load.goes_on()
    server.resume()


async def of_brain(found: ClusterLab) -> NatsServer:
    """The server to which the brain is connected."""
    async with aiohttp.ClientSession() as session:
        for server in found.cluster.servers.values():
            async with session.get(f"http://127.0.0.1:{server.monitor}/connz") as answer:
                names = [str(one.get("name", "")) for one in (await answer.json())["connections"]]
            if any(name.startswith("gpuward brain") for name in names):
                return server
    raise AssertionError("the brain is not connected")


async def parted(found: ClusterLab, load: Load, server: NatsServer) -> None:
    """The others do not hear it, nor it them; brain and nodes reach all three."""
    name = next(name for name, one in found.cluster.servers.items() if one is server)
    found.cluster.part(name)
    await load.goes_on()
    assert await of_brain(found) is not server
    found.cluster.join()


@pytest.mark.parametrize(
    "trouble",
    first(
        3,
        "to the brain it is a server that does not answer, as in `killed`, and it comes back as `parted` does",
        (killed, full, parted, wiped, hung),
    ),
    ids=lambda trouble: trouble.__name__,
)
async def test_one_of_three_is_unwell(
    tmp_path: Path, trouble: Callable[[ClusterLab, Load, NatsServer], Awaitable[None]]
) -> None:
    """The one that leads the log."""
    async with under_load(tmp_path) as (found, load):
        await trouble(found, load, await leader(found, subjects.stream("default")))
        await all_current(found)


@pytest.mark.nightly(
    "`parted` cuts off a server in CI, and tests/real/test_nats_cluster_idle.py one that is left for it"
)
async def test_the_server_of_the_brain_is_cut_off(tmp_path: Path) -> None:
    """It answers, and can store nothing any more: the brain goes to another one."""
    async with under_load(tmp_path) as (found, load):
        await parted(found, load, await of_brain(found))
        await all_current(found)


@pytest.mark.nightly("each server goes as in `killed`, one after the other")
async def test_a_rolling_restart(tmp_path: Path) -> None:
    """As for an upgrade: the next one when all have everything."""
    async with under_load(tmp_path) as (found, load):
        for server in found.cluster.servers.values():
            server.stop()
            await load.goes_on()
            server.start()
            await all_current(found)

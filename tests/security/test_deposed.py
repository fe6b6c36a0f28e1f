"""A leader that was stopped in the middle of a step, and goes on when another one leads, changes nothing any more."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import nats
import pytest
from aiohttp import web

from brain.adapters.lease import Lease
from tests.real.nats import nats_server
from tests.security.deposed_brain import TTL_S
from tests.security.figures import Record, attacked

pytestmark = pytest.mark.component("nats-server")
ROOT = Path(__file__).parents[2]
WAYS = ("aiohttp", "redfish", "program")


@contextlib.asynccontextmanager
async def target(folder: Path) -> AsyncIterator[str]:
    """What is changed: a POST leaves the file `changed`."""

    async def hear(request: web.Request) -> web.Response:
        if request.method == "POST":
            (folder / "changed").touch()
        return web.json_response({})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", hear)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def exists(path: Path) -> None:
    """Waits for a file."""
    async with asyncio.timeout(60):
        while not path.exists():
            await asyncio.sleep(0.01)


async def stopped_and_deposed(folder: Path, way: str, *more: str) -> tuple[bool, str]:
    """(was anything changed, how the step ended for the brain that was deposed)."""
    with nats_server(folder) as server:
        async with target(folder) as url:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.security.deposed_brain", server.url, url, way, str(folder), *more, cwd=ROOT
            )  # fmt: skip
            try:
                await exists(folder / "looked")
                os.kill(process.pid, signal.SIGSTOP)
                client = await nats.connect(server.url)
                other = Lease("default", "the next one", TTL_S)
                serving = asyncio.create_task(other.serve(client, lambda _: None, lambda: 0))
                async with asyncio.timeout(60):
                    while not other.held:
                        await asyncio.sleep(0.01)
                (folder / "go").touch()
                os.kill(process.pid, signal.SIGCONT)
                await exists(folder / "ended")
                await process.wait()
                assert other.held
                serving.cancel()
                await client.close()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
    return (folder / "changed").exists(), (folder / "ended").read_text()


@pytest.mark.parametrize("way", WAYS)
async def test_the_world_is_not_touched(tmp_path: Path, way: str, record_property: Record) -> None:
    """And the step has no result by it: the next leader decides."""
    attacked(record_property, 1)
    assert await stopped_and_deposed(tmp_path, way) == (False, "None")


@pytest.mark.parametrize("way", WAYS)
async def test_without_the_fence_it_would_be(tmp_path: Path, way: str) -> None:
    """So the test above can fail. What notices first is chance: the look at the lease that each step has, or nothing."""
    for attempt in range(8):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        changed, _ = await stopped_and_deposed(folder, way, "unfenced")
        if changed:
            return
    pytest.fail("it never was")

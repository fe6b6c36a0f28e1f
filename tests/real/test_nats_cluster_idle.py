"""An agent that has nothing to tell, at a NATS server that is cut off from the others of its cluster."""

import asyncio
import base64
import contextlib
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import nats
import pytest

from agent.shared.nats_connection import LOST
from agent.shared.tasks import end
from brain.adapters.node_requests import NodeRequests
from tests.real.brain_kit import lab
from tests.real.nats import login
from tests.real.nats_cluster import NAMES
from tests.real.test_nats_cluster import ClusterLab, events

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
NODE = "n1"
FRESH_S = 3.0  # a beat comes each 2 s


@contextlib.contextmanager
def idle_agent(found: ClusterLab, seed: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A real agent of a machine on which nothing happens."""
    machine = found.folder / "machine"
    machine.mkdir(exist_ok=True)
    assert found.running is not None
    signer = found.running.signer
    options = [
        f"node={NODE}",
        f"root={machine}",
        f"data_dir={found.folder}/agent",
        f"nats_url={found.cluster.url}",
        f"nats_seed_file={seed}",
        f"nats_ca_file={found.cluster.ca_file}",
        "check_socket=",
        f"trusted_keys={signer.key_id}={base64.b64encode(bytes(signer.key.verify_key)).decode()}",
    ]
    command = [sys.executable, "-m", "agent", "run", *(word for one in options for word in ("--set", one))]
    with (found.folder / "agent.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)


async def place_of(found: ClusterLab, client: str, beside: str = "") -> str:
    """The name of the server (another one than `beside`) where a client with such a name is connected, once it is."""
    deadline = time.monotonic() + 60
    while not (place := await _place(found, client)) or place == beside:
        assert time.monotonic() < deadline, f"{client} is connected nowhere, or remains at {beside}"
        await asyncio.sleep(0.1)
    return place


async def _place(found: ClusterLab, client: str) -> str:
    async with aiohttp.ClientSession() as session:
        for name in NAMES:
            server = found.cluster.servers[name]
            async with session.get(f"http://127.0.0.1:{server.monitor}/connz") as answer:
                clients = [str(one.get("name", "")) for one in (await answer.json())["connections"]]
            if any(one.startswith(client) for one in clients):
                return name
    return ""


async def heard(found: ClusterLab) -> None:
    """Until the brain hears the node now, and has all that it has told."""

    def now(answer: Any) -> bool:
        (node,) = [one for one in answer["nodes"] if one["name"] == NODE] or [{"beat_age_s": None}]
        return node["beat_age_s"] is not None and node["beat_age_s"] < FRESH_S and node["spooled"] == 0

    await found.until(now, "the node is heard", "/api/v1/nodes")


async def answers(found: ClusterLab, server: str) -> bool:
    """Whether the node hears a request that is made at this server, and the brain its answer."""
    requests = NodeRequests(found.config.cell)
    client = await nats.connect(
        f"tls://127.0.0.1:{found.cluster.servers[server].port}",
        tls=ssl.create_default_context(cafile=found.cluster.ca_file),
        **login(found.brain_credential()),
    )
    task = asyncio.create_task(requests.serve(client))
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(*LOST):
                return b"session" in await requests.request(NODE, b'{"hello":true}', 5)
            await asyncio.sleep(0.1)
        return False
    finally:
        await end(task)
        await client.close()


async def test_an_idle_agent_leaves_a_server_that_is_cut_off(tmp_path: Path) -> None:
    """Before the brain takes it for silent; it has told nothing meanwhile, and hears the next command."""
    async with lab(tmp_path, ClusterLab, unreachable_after_s=20) as found:
        assert isinstance(found, ClusterLab)
        seed = await found.credential(NODE)
        brain = await place_of(found, "gpuward brain")
        with contextlib.ExitStack() as stack:
            for _ in range(30):  # which server it takes, is drawn
                stack.enter_context(idle_agent(found, seed))
                server = await place_of(found, f"gpuward-agent {NODE}")
                if server != brain:
                    break
                stack.close()
            assert server != brain
            await heard(found)
            told = await events(found)
            found.cluster.part(server)
            cut_s = time.monotonic()
            other = await place_of(found, f"gpuward-agent {NODE}", beside=server)
            print(f"it left {server} after {time.monotonic() - cut_s:.1f} s")
            await heard(found)
            assert await answers(found, other)
            assert await found.incidents("node-unreachable") == []
            assert await events(found) == told, "it was idle"
            found.cluster.join()

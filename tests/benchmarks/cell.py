"""A cell of many nodes on one broker and one brain: memory, CPU, a takeover, and what a new node costs the others.

    python -m tests.benchmarks cell                      # 10,000 nodes
    GPUWARD_CELL_NODES=1000 python -m tests.benchmarks cell

Each node has its account and its connection, and beats every 2 s as agents do. Brain, broker and all nodes share the machine.
"""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import nats
from nacl.signing import SigningKey

from tests.benchmarks.beating_nodes import names
from tests.benchmarks.figures import Figure
from tests.benchmarks.footprint import Family, watch
from tests.e2e.stack import Stack
from tests.real.brain_kit import Node

BEAT_S = 2.0  # the agents' default
WATCHED_S = 60.0
SERVER_MB, BRAIN_MB, BRAIN_CPU_PERCENT, TAKEOVER_S = 1000.0, 300.0, 50.0, 1.5


def prepared() -> int:
    """How many nodes there are to be; this process and its children may have as many open files then."""
    count = int(os.environ.get("GPUWARD_CELL_NODES", "10000"))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert most > count + 1000, (
        f"needs {count + 1000} open files, and may have {most}: GPUWARD_CELL_NODES={most - 2000}"
    )
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return count


def run() -> list[Figure]:
    """Needs as many open files as nodes, twice."""
    count = prepared()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as undo:
        whole = Stack(Path(folder), node="honest")
        undo.callback(whole.end)
        for name in names(count):
            whole.nats.add(name)
        began = time.monotonic()
        whole.nats.start()
        start_s = time.monotonic() - began
        whole.start_receiver()
        whole.write_brain_config()
        whole.start_brain()
        _beating(undo, whole.nats.port, count)
        heard_s = heard(whole, count)
        server, brain = Family(pid=whole.nats.pid), Family(pid=whole.pid("brain"))
        watch([server, brain], WATCHED_S)
        began = time.monotonic()
        whole.nats.add("newcomer")
        added_s = time.monotonic() - began
        whole.start_standby()
        takeover_s = asyncio.run(_takeover(whole))
        standby = Family(pid=whole.pid("standby"))
        heard_again_s = heard(whole, count, "standby")
        watch([server, standby], 1.0)
    of = f"{count:,} nodes"
    return [
        Figure(
            what=f"broker, {of}: memory (PSS), highest",
            value=f"{max(server.pss_mb, 0):,.0f} MB",
            beside=f"CPU {server.cpu_percent:.0f} % of a core; starts in {start_s:.1f} s",
            target=f"≤ {SERVER_MB:,.0f} MB",
            met=server.pss_mb <= SERVER_MB,
        ),
        Figure(
            what=f"brain, {of}: memory (PSS), highest in {WATCHED_S:.0f} s",
            value=f"{brain.pss_mb:,.0f} MB",
            beside=f"all nodes heard after {heard_s:.1f} s",
            target=f"≤ {BRAIN_MB:.0f} MB",
            met=brain.pss_mb <= BRAIN_MB,
        ),
        Figure(
            what="the same, CPU",
            value=f"{brain.cpu_percent:.0f} % of a core",
            beside=f"{count / BEAT_S:,.0f} beats/s",
            target=f"≤ {BRAIN_CPU_PERCENT:.0f} %",
            met=brain.cpu_percent <= BRAIN_CPU_PERCENT,
        ),
        Figure(
            what=f"leader killed → an event of a node is on the log, {of}",
            value=f"{takeover_s:.1f} s",
            beside=f"all nodes heard again after {heard_again_s:.1f} s more",
            target=f"≤ {TAKEOVER_S} s",
            met=takeover_s <= TAKEOVER_S,
        ),
        Figure(what=f"a new node joins {of}: two reloads of the broker", value=f"{added_s:.1f} s"),
    ]


def _beating(undo: ExitStack, port: int, count: int) -> None:
    """All nodes, from a process of their own, until the stack ends."""
    argv = [sys.executable, "-m", "tests.benchmarks.beating_nodes", str(port), str(count), str(BEAT_S)]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    undo.callback(process.wait)
    undo.callback(process.kill)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"


def heard(whole: Stack, count: int, brain: str = "brain") -> float:
    """Seconds until this brain has heard each node."""
    began = time.monotonic()

    def all_of_them() -> bool:
        found = whole.get("/api/v1/nodes", whole.url_of(brain)).get("nodes", ())
        return sum(node["beat_age_s"] is not None for node in found) >= count

    whole.wait_for(all_of_them, "all nodes are heard", within_s=300)
    return time.monotonic() - began


async def _takeover(whole: Stack) -> float:
    """Seconds from SIGKILL of the leader until an event of a node is acknowledged."""
    client = await nats.connect(whole.nats.node_url("honest"))
    node = Node("honest", client, SigningKey.generate().verify_key)
    await node.listen(commands=False)
    await node.event("agent.started", version="1")
    node.again_s = 0.1
    whole.kill("brain")
    began = time.monotonic()
    await node.event("agent.started", version="1")
    await client.close()
    return time.monotonic() - began

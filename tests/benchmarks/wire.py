"""What a node costs the network and the log: bytes of a beat on all its hops, of an event on the log, of a cell at rest.

In a network namespace of its own, so that what its loopback counts is ours alone. Without TLS, which adds 22 bytes to each
record.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nats

from agent.contract import subjects
from tests.benchmarks.figures import Figure
from tests.real.brain_kit import Lab, Node
from tests.real.nats import nats_server

NODES, BEATS, REST_S, EVENTS = 50, 21, 10.0, 10
LINE = (
    "[12345.678901] NVRM: Xid (PCI:0000:3b:00): 13, pid=12345, name=python3, Graphics SM Warp Exception on (GPC 3, TPC 2, SM 1): "
    "Out Of Range Address"
)


def run() -> list[Figure]:
    """Needs root, for the namespace."""
    script = f"ip link set lo up && exec {sys.executable} -m tests.benchmarks.wire"
    done = subprocess.run(["unshare", "-n", "bash", "-c", script], check=True, stdout=subprocess.PIPE)
    found = json.loads(done.stdout)
    return [
        Figure(
            what="one beat, with its way to the brain and what answers it, every third time (no TLS)",
            value=f"{found['beat']:.0f} bytes",
        ),
        Figure(what="a cell at rest: lanes, lease, pings, console", value=f"{found['rest']:.0f} bytes/s"),
        Figure(what="one event of a kernel line (XID) on the log", value=f"{found['event']:.0f} bytes"),
        Figure(what="the log of a cell in which nothing happens", value=f"{found['log_rest']:.0f} bytes/s"),
    ]


async def _measured(folder: Path) -> dict[str, float]:
    names = [f"gpu-node-{number:05}" for number in range(NODES)]
    with nats_server(folder / "nats", nodes=names) as server:
        lab = Lab(folder / "b1", {"nats": {"url": server.url}})
        await lab.start()
        assert lab.running is not None
        key = lab.running.signer.key.verify_key
        clients = [await nats.connect(server.node_url(name)) for name in names]
        nodes = [Node(name, client, key) for name, client in zip(names, clients, strict=True)]
        for node in nodes:
            await node.listen()
            await node.event("agent.started", version="1")
        reader = await nats.connect(server.url.replace("//", "//brain:brain@"))

        async def log() -> Any:
            return (await reader.jsm().stream_info(subjects.stream("default"))).state

        before, stored = _counted(), (await log()).bytes
        await asyncio.sleep(REST_S)
        rest, log_rest = _counted() - before, (await log()).bytes - stored
        before = _counted()
        for number in range(BEATS):
            for node in nodes:
                await node.beat(asks=number % 3 == 0)  # as an agent that has nothing to tell
            await asyncio.sleep(REST_S / BEATS)
        beats = _counted() - before - rest
        first = await log()
        for _ in range(EVENTS):
            for node in nodes:
                await node.event(
                    "gpu.xid", "gpu/0000:3b:00", LINE, code=13, name="GR_EXCEPTION", message=LINE[53:]
                )
        last = await log()
        for client in (*clients, reader):
            await client.close()
        await lab.stop()
    return {
        "beat": beats / BEATS / NODES,
        "rest": rest / REST_S,
        "event": (last.bytes - first.bytes) / (last.messages - first.messages),
        "log_rest": log_rest / REST_S,
    }


def _counted() -> int:
    """Bytes that the loopback of this namespace has sent, which is each byte once."""
    (line,) = (
        line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:")
    )
    return int(line.split()[9])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(asyncio.run(_measured(Path(scratch)))))

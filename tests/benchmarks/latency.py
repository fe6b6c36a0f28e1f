"""From a kernel line to the command that arrives at the node: gpuward's three processes, and the bare chain in the same run."""

import asyncio
import random
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import click
import nats
from nats.aio.msg import Msg
from nats.js.api import StorageType, StreamConfig

from agent.contract import subjects
from brain.cli.client import Client
from tests.benchmarks import bare
from tests.benchmarks.figures import Figure, percentile
from tests.e2e.stack import Stack, stack
from tests.real.kernel_log import FACILITY, HEARD

LINES = 300  # of each chain, in turn
WARM_UP_S = 1.0  # lines count from the brain's first second on
AUTO = '[[modes]]\nmode = "auto"\n'


def write(text: str) -> float:
    """Writes one record to the kernel log; its time."""
    with open("/dev/kmsg", "wb", buffering=0) as kmsg:
        began = time.perf_counter()
        kmsg.write(f"<{FACILITY << 3 | 4}>{text}\n".encode())
    return began


def fault(token: str) -> str:
    """The kernel line of a fault whose remedy begins at once, and disrupts nothing: a GPU that must be replaced.
    A lost GPU waits a second for others behind the same switch (its rule's hold-off).
    """
    return f"NVRM: Xid (PCI:{token}): 64, Row Remapper Error: (0x0000000001234000) - All reserved rows for bank are remapped"


def repair(running: Stack, within_s: float = 10.0) -> None:
    """An operator returns the node to service and closes its incidents: several GPUs of one node would be one of them. The brain
    refuses that while a run is under way there; after `within_s` it raises the refusal.
    """
    people = Client(running.url, running.ann)
    deadline = time.monotonic() + within_s
    while True:
        try:
            people.submit("return", node=running.node)
            break
        except click.ClickException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)  # before it asks again, until the deadline
    for incident in running.incidents("gpu-memory-replace"):
        people.submit("close", id=incident["id"])


async def measure(running: Stack) -> tuple[list[float], list[float]]:
    """(latencies of gpuward, of the bare chain) in ms; measured in turn."""
    arrived: dict[str, float] = {}
    client = await nats.connect(running.nats.url)

    async def bare_command(message: Msg) -> None:
        arrived[message.data.partition(bare.MARK)[2].split()[0].decode()] = time.perf_counter()

    async def gpuward_command(message: Msg) -> None:
        at = time.perf_counter()
        text = message.data.decode()
        for token in waiting:
            if token in text:
                arrived[token] = at

    waiting: list[str] = []
    await client.subscribe(bare.COMMAND, cb=bare_command)
    await client.subscribe(subjects.command("default", running.node), cb=gpuward_command)
    await client.flush()
    await asyncio.sleep(WARM_UP_S)
    gpuward_ms: list[float] = []
    bare_ms: list[float] = []
    draw = random.Random(1)
    base = uuid.uuid4().int % 0x7000
    for number in range(2 * LINES):
        # Random pauses: fixed ones fall into step with the tick at which the kernel wakes its readers.
        await asyncio.sleep(0.05 + draw.random() * 0.05)
        if number % 2:
            token = uuid.uuid4().hex
            began = write(f"{bare.MARK.decode()}{token} end")
        else:
            token = f"{base + number // 256:04x}:{number % 256:02x}:00"
            waiting[:] = [token]
            began = write(fault(token))
        deadline = time.monotonic() + 5
        while token not in arrived and time.monotonic() < deadline:
            await asyncio.sleep(0.001)
        if number % 2 == 0:
            repair(running)
        if token in arrived:
            (bare_ms if number % 2 else gpuward_ms).append((arrived[token] - began) * 1000)
    await client.close()
    return gpuward_ms, bare_ms


def run() -> list[Figure]:
    """Needs root (the kernel log)."""
    with (
        tempfile.TemporaryDirectory() as folder,
        stack(Path(folder), brain=AUTO, agent=HEARD) as running,
    ):
        asyncio.run(_make_stream(running.nats.url))
        chains = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.benchmarks.bare", part, running.nats.url],
                stdout=subprocess.PIPE,
            )
            for part in ("reader", "judge")
        ]
        try:
            for chain in chains:
                assert chain.stdout is not None
                assert chain.stdout.readline() == b"ready\n"
            gpuward_ms, bare_ms = asyncio.run(measure(running))
        finally:
            for chain in chains:
                chain.kill()
                chain.wait()
    p50, p99, bare50, bare99 = (
        percentile(values, share) for values in (gpuward_ms, bare_ms) for share in (0.5, 0.99)
    )
    return [
        Figure(
            what=f"kernel line → command at the node, p50 of {len(gpuward_ms)}",
            value=f"{p50:.1f} ms",
            beside=f"bare chain {bare50:.1f} ms: {p50 / bare50:.1f} ×",
            target="≤ 7 ms, ≤ 2 × bare",
            met=p50 <= 7 and p50 <= 2 * bare50,
        ),
        Figure(
            what="the same, p99",
            value=f"{p99:.1f} ms",
            beside=f"bare chain {bare99:.1f} ms: {p99 / bare99:.1f} ×",
            target="≤ 12 ms, ≤ 2 × bare",
            met=p99 <= 12 and p99 <= 2 * bare99,
        ),
        Figure(
            what="commands that arrived",
            value=f"{len(gpuward_ms)} of {LINES}",
            target="all",
            met=len(gpuward_ms) == LINES,
        ),
    ]


async def _make_stream(url: str) -> None:
    client = await nats.connect(url)
    await client.jetstream().add_stream(
        StreamConfig(name=bare.STREAM, subjects=[bare.SUBJECT], storage=StorageType.FILE)
    )
    await client.close()

"""From a change on the machine to its event on the bus, with a real agent and broker: a kernel line, a lost carrier, a
growing counter.
"""

import asyncio
import random
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import nats
from nats.aio.msg import Msg

from agent.contract import subjects
from tests.benchmarks import footprint
from tests.benchmarks.figures import Figure, percentile
from tests.benchmarks.latency import write
from tests.e2e.stack import Stack, stack
from tests.real.kernel_log import HEARD
from tests.real.netns import namespace

LINES = 200
CUTS = 15
COUNTS = 20
# The kernel reports changes of a carrier at most once a second (its link watch). A cut that follows its repair sooner would
# measure that limit.
REPAIRED_S = 2.3


async def measure(
    running: Stack, count: int, cause: Callable[[int], tuple[float, str]], pause_s: float = 0.03
) -> list[float]:
    """Milliseconds from each change until a subscriber has its event. `cause` makes a change; it returns its time, and a text
    that its event contains.
    """
    arrived: dict[str, float] = {}
    waiting: list[str] = []
    client = await nats.connect(running.nats.url)

    async def on_event(message: Msg) -> None:
        at, text = time.perf_counter(), message.data.decode()
        for mark in waiting:
            if mark in text:
                arrived.setdefault(mark, at)

    await client.subscribe(subjects.event("default", running.node), cb=on_event)
    await client.flush()
    draw = random.Random(2)
    times = []
    for number in range(count):
        await asyncio.sleep(pause_s + draw.random() * 0.05)
        arrived.clear()
        began, mark = cause(number)
        waiting[:] = [mark]
        deadline = time.monotonic() + 5
        while mark not in arrived and time.monotonic() < deadline:
            await asyncio.sleep(0.001)
        if mark in arrived:
            times.append((arrived[mark] - began) * 1000)
    await client.close()
    return times


def kernel_line() -> Figure:
    """A line in the kernel log."""
    base = uuid.uuid4().int % 0x7000

    def cause(number: int) -> tuple[float, str]:
        where = f"{base:04x}:{number % 256:02x}:01"
        return write(f"NVRM: Xid (PCI:{where}): 31, pid={number}, name=bench, MMU Fault"), where

    with (
        tempfile.TemporaryDirectory() as folder,
        stack(Path(folder), agent=HEARD) as running,
    ):
        times = asyncio.run(measure(running, LINES, cause))
    p99 = percentile(times, 0.99)
    return Figure(
        what=f"kernel line → event on the bus, p99 of {len(times)}",
        value=f"{p99:.1f} ms",
        beside=f"p50 {percentile(times, 0.5):.1f} ms",
        target="≤ 10 ms",
        met=p99 <= 10 and len(times) == LINES,
    )


def link_down() -> Figure:
    """One end of a veth is taken down, so that the other loses its carrier; it is repaired between two measurements."""
    with namespace() as lab, namespace() as switch, lab.inside(), tempfile.TemporaryDirectory() as folder:
        lab.ip("link", "set", "lo", "up")
        lab.ip("link", "add", "va", "type", "veth", "peer", "name", "vb", "netns", switch.name)
        switch.ip("link", "set", "vb", "up")
        lab.ip("link", "set", "va", "up")

        def cause(_: int) -> tuple[float, str]:
            subprocess.run(["ip", "-n", switch.name, "link", "set", "vb", "up"], check=True)
            time.sleep(REPAIRED_S)
            began = time.perf_counter()
            subprocess.run(["ip", "-n", switch.name, "link", "set", "vb", "down"], check=True)
            return began, '"carrier":false'

        with stack(Path(folder)) as running:
            times = asyncio.run(measure(running, CUTS, cause))
    most = max(times)
    return Figure(
        what=f"carrier lost → event on the bus, worst of {len(times)} (the `ip` command included)",
        value=f"{most:.1f} ms",
        beside=f"p50 {percentile(times, 0.5):.1f} ms",
        target="≤ 50 ms",
        met=most <= 50 and len(times) == CUTS,
    )


def counter() -> Figure:
    """An error counter of an InfiniBand port grows, at the default interval of 1 s."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = footprint.tree(folder)

        def cause(number: int) -> tuple[float, str]:
            file = root / f"mlx5_{number % footprint.DEVICES}/ports/1/counters/symbol_error"
            value = 1000 * (number + 1)
            began = time.perf_counter()
            with file.open("r+") as counter_file:  # in place, as the agent keeps the file open
                counter_file.write(f"{value}\n")
            return began, f'"value":{value}'

        with stack(_new(folder / "stack"), agent=f'ib_root = "{root}"') as running:
            times = asyncio.run(measure(running, COUNTS, cause, pause_s=0.2))
    most = max(times)
    return Figure(
        what=f"counter grows → event on the bus, worst of {len(times)}",
        value=f"{most:.0f} ms",
        beside=f"p50 {percentile(times, 0.5):.0f} ms",
        target="≤ 1,500 ms",
        met=most <= 1500 and len(times) == COUNTS,
    )


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def run() -> list[Figure]:
    """Needs root."""
    return [kernel_line(), link_down(), counter()]

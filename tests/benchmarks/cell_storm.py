"""Ten minutes of a whole cell: 10,000 nodes on one broker and one brain, with a storm in the middle.

    python -m tests.benchmarks cell_storm                # 10,000 nodes, ten minutes
    GPUWARD_CELL_NODES=2000 GPUWARD_STORM_S=120 python -m tests.benchmarks cell_storm

Each node beats every 2 s and says ordinary events; in the middle all of them lose a link within a second, and a minute later it
is back. A real agent beside them reads a kernel line each second; what is measured is the time until its symptom is shown by the
brain's API. Broker, brain, agent and all nodes share the machine.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import click

from tests import people
from tests.benchmarks import cell
from tests.benchmarks.beating_nodes import names
from tests.benchmarks.figures import Figure, percentile
from tests.benchmarks.footprint import Family, watch
from tests.benchmarks.latency import fault, repair, write
from tests.e2e.stack import Stack
from tests.real.kernel_log import HEARD

EVENTS_PER_S = 20.0  # ordinary ones, of all nodes
EVERY_S = 1.0  # a kernel line
OUTAGE_S = 60.0  # or a quarter of the run, where that is shorter
STORM_S = 30.0  # lines so long after each half of the storm count as in it
SETTLED_S = 60.0  # so long after the last line everything is acknowledged
BRAIN_MB, BRAIN_CPU_PERCENT, P99_S = 500.0, 100.0, 0.25


class _Lines:
    """Kernel lines of the agent's node, and when the brain showed their symptoms."""

    def __init__(self, whole: Stack) -> None:
        self._whole = whole
        self.written: dict[str, float] = {}  # the GPU's address → time
        self.shown: dict[str, float] = {}
        self._at = ""  # how far it has heard

    def write(self) -> None:
        address = f"{0x1000 + len(self.written):04x}:3b:00"
        self.written[address] = write(fault(address))

    def serve(self) -> None:
        """Listens to the brain until the process ends. A watcher that falls behind is sent away, and goes on where it was."""
        while True:
            with contextlib.suppress(aiohttp.ClientError, FileNotFoundError):  # or its folder is gone with it
                asyncio.run(self._listen())
            time.sleep(0.1)  # the brain is busy, or has ended

    async def _listen(self) -> None:
        headers = people.bearer(self._whole.ann) | ({"Last-Event-ID": self._at} if self._at else {})
        async with (
            aiohttp.ClientSession(self._whole.url, headers=headers) as session,
            session.get("/api/v1/watch", timeout=aiohttp.ClientTimeout(total=None)) as answer,
        ):
            async for line in answer.content:
                if line.startswith(b"id: "):
                    self._at = line.removeprefix(b"id: ").decode().strip()
                elif line.startswith(b"data: ") and b"symptom.started" in line:
                    scope = str(json.loads(line.removeprefix(b"data: "))["scope"])
                    self.shown.setdefault(scope.rpartition("/")[2], time.perf_counter())

    def waits(self, storms: list[float]) -> tuple[list[float], list[float]]:
        """Seconds of each line that was shown: outside, and within STORM_S after one of these times."""
        outside: list[float] = []
        within: list[float] = []
        for address, began in self.written.items():
            if address in self.shown:
                stormy = any(0 <= began - storm < STORM_S for storm in storms)
                (within if stormy else outside).append(self.shown[address] - began)
        return outside, within


class _Fleet:
    """The process with all nodes."""

    def __init__(self, undo: ExitStack, port: int, count: int) -> None:
        argv = [
            sys.executable,
            "-m",
            "tests.benchmarks.beating_nodes",
            str(port),
            str(count),
            str(cell.BEAT_S),
            str(EVENTS_PER_S),
        ]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        undo.callback(self._process.wait)
        undo.callback(self._process.kill)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def tell(self, word: str) -> None:
        """Says it to all nodes."""
        assert self._process.stdin is not None
        print(word, file=self._process.stdin, flush=True)

    def tally(self) -> dict[str, float]:
        """What was offered and acknowledged."""
        assert self._process.stdout is not None
        self.tell("tally")
        found: dict[str, float] = json.loads(self._process.stdout.readline())
        return found


def run() -> list[Figure]:
    """Needs root (the kernel log), and as many open files as nodes, twice."""
    count = cell.prepared()
    seconds = float(os.environ.get("GPUWARD_STORM_S", "600"))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as undo:
        whole = Stack(Path(folder), node="honest")
        undo.callback(whole.end)
        for name in names(count):
            whole.nats.add(name)
        whole.nats.start()
        whole.start_receiver()
        whole.write_brain_config()
        whole.start_brain()
        whole.write_agent_config(HEARD)
        whole.start_agent()
        fleet, lines = _Fleet(undo, whole.nats.port, count), _Lines(whole)
        cell.heard(whole, count)
        threading.Thread(target=lines.serve, daemon=True).start()
        brain, server = Family(pid=whole.pid("brain")), Family(pid=whole.nats.pid)
        storms, causes = _played(whole, fleet, lines, [brain, server], seconds)
        tally = _settled(fleet, lines)
    return list(_figures(count, seconds, lines, storms, causes, tally, brain, server))


def _played(
    whole: Stack, fleet: _Fleet, lines: _Lines, families: list[Family], seconds: float
) -> tuple[list[float], list[str]]:
    """The minutes. Returns when the storm began and ended, and the causes of the incidents that people saw before its end."""
    began = time.monotonic()
    storms: list[float] = []
    causes: list[str] = []
    halves = [(seconds / 2, "down"), (seconds / 2 + min(OUTAGE_S, seconds / 4), "up")]

    def each_second() -> None:
        if halves and time.monotonic() - began >= halves[0][0]:
            if storms:
                # Not those of the agent beside them, nor that this machine may have no time daemon.
                causes.extend(one["cause"] for one in whole.incidents() if one["node"] != whole.node)
            fleet.tell(halves.pop(0)[1])
            storms.append(time.perf_counter())
        if len(lines.written) % 2:
            # So that the next one is a fault of its own. Refused while a run is under way there: then it joins the incident.
            with contextlib.suppress(click.ClickException):
                repair(whole, within_s=0)
        lines.write()

    watch(families, seconds, each_second=each_second)
    return storms, causes


def _settled(fleet: _Fleet, lines: _Lines) -> dict[str, float]:
    """What was acknowledged once everything is acknowledged and decided, or a minute later."""
    deadline = time.monotonic() + SETTLED_S
    while True:
        tally = fleet.tally()
        there = lines.shown.keys() >= lines.written.keys()
        if (
            there and tally["offered"] - tally["acknowledged"] <= EVENTS_PER_S
        ) or time.monotonic() > deadline:
            return tally
        time.sleep(0.5)  # between two questions, until the deadline


def _figures(
    count: int,
    seconds: float,
    lines: _Lines,
    storms: list[float],
    causes: list[str],
    tally: dict[str, float],
    brain: Family,
    server: Family,
) -> Iterator[Figure]:
    of = f"{count:,} nodes, {seconds / 60:g} minutes, a storm of all of them"
    outside, within = lines.waits(storms)
    p99 = percentile(outside, 0.99)
    yield Figure(
        what=f"{of}: kernel line → decision, p99 of {len(outside)} outside the storm",
        value=f"{p99 * 1000:,.0f} ms",
        beside=f"p50 {percentile(outside, 0.5) * 1000:.0f} ms; in it {_of(within)}",
        target=f"≤ {P99_S * 1000:.0f} ms",
        met=p99 <= P99_S,
    )
    lost = len(lines.written) - len(lines.shown.keys() & lines.written.keys())
    missing = int(tally["offered"] - tally["acknowledged"] + tally["left_out"])
    yield Figure(
        what="the same: events that are on the log, and lines that were decided",
        value=f"{tally['acknowledged']:,.0f} of {tally['offered']:,.0f}, {len(lines.written) - lost} of {len(lines.written)}",
        beside=f"the last acknowledgement after {tally['worst_s']:.1f} s",
        target="all (those of the last second are on their way)",
        met=lost == 0 and missing <= EVENTS_PER_S,
    )
    yield Figure(
        what="the same: incidents of the storm",
        value=", ".join(f"{number} {cause}" for cause, number in Counter(causes).items()),
        target="one, of the cell",
        met=len(causes) == 1,
    )
    yield Figure(
        what="the same: the brain's CPU and highest memory (PSS)",
        value=f"{brain.cpu_percent:.0f} % of a core, {brain.pss_mb:,.0f} MB",
        beside=f"broker {server.cpu_percent:.0f} %, {server.pss_mb:,.0f} MB",
        target=f"≤ {BRAIN_CPU_PERCENT:.0f} %, ≤ {BRAIN_MB:.0f} MB",
        met=brain.cpu_percent <= BRAIN_CPU_PERCENT and brain.pss_mb <= BRAIN_MB,
    )


def _of(waits: list[float]) -> str:
    if not waits:
        return "none was shown"
    return f"p50 {percentile(waits, 0.5) * 1000:,.0f} ms, worst {max(waits) * 1000:,.0f} ms"

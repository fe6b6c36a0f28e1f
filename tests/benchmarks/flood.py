"""What others notice of a node that floods: from the offer of an event until the brain's decision about it is shown.

A flooding process with a stolen node's credential, broker, brain and the honest node share the machine.
"""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from agent.contract import subjects
from tests import people
from tests.benchmarks.figures import Figure, percentile
from tests.real.brain_kit import Lab, Node, lab

SECONDS = 12.0
EVERY_S = 0.1  # fewer than the faults of one node that are followed
WHAT = (subjects.EVENT, subjects.BEAT, subjects.ANSWER, subjects.EVIDENCE)
THIEF, HONEST = "thief", "honest"


async def _decisions(whole: Lab, times: dict[str, float]) -> None:
    """When a new symptom of the honest node was shown, by its component."""
    assert whole.running is not None
    async with (
        aiohttp.ClientSession(whole.running.console_url, headers=people.bearer(whole.ann)) as session,
        session.get("/api/v1/watch", timeout=aiohttp.ClientTimeout(total=None)) as answer,
    ):
        async for line in answer.content:
            if line.startswith(b"data: ") and b"symptom.started" in line:
                scope = str(json.loads(line.removeprefix(b"data: "))["scope"])
                times.setdefault(scope.rpartition("/")[2], time.perf_counter())


async def _waits(whole: Lab, honest: Node, seconds: float) -> list[float]:
    """Seconds from each offer to its decision."""
    shown: dict[str, float] = {}
    offered: dict[str, float] = {}
    watch = asyncio.create_task(_decisions(whole, shown))
    await asyncio.sleep(0.5)
    until = time.monotonic() + seconds
    tasks = []
    while time.monotonic() < until:
        address = f"{len(offered) + 0x1000:04x}:3b:00"
        offered[address] = time.perf_counter()
        tasks.append(asyncio.create_task(honest.event("gpu.lost", f"gpu/{address}", reason="lost")))
        await asyncio.sleep(EVERY_S)
    await asyncio.gather(*tasks)
    async with asyncio.timeout(60):
        while not offered.keys() <= shown.keys():
            await asyncio.sleep(0.05)
    watch.cancel()
    return [shown[address] - began for address, began in offered.items()]


async def _flooded(what: str) -> tuple[int, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        async with lab(Path(folder)) as whole:
            honest = await whole.node(HONEST)
            if not what:
                return 0, await _waits(whole, honest, SECONDS)
            assert whole.running is not None
            seed = await whole.credential(THIEF)
            attack = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.security.attacker", whole.running.nats_url, str(seed), THIEF, "default",
                f"flood-{what}", str(SECONDS), stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            waits = await _waits(whole, honest, SECONDS)
            out, _ = await attack.communicate()
            return int(json.loads(out)["tried"]), waits


def run() -> list[Figure]:
    """One row for each kind of offer."""
    _, quiet = asyncio.run(_flooded(""))
    found = []
    for what in WHAT:
        tried, waits = asyncio.run(_flooded(what))
        p99 = percentile(waits, 0.99)
        found.append(
            Figure(
                what=f"others' event → decision, p99, while a node offers {tried:,} × {what} in {SECONDS:g} s",
                value=f"{p99 * 1000:,.0f} ms",
                beside=f"p50 {percentile(waits, 0.5) * 1000:.0f} ms; without it p99 {percentile(quiet, 0.99) * 1000:.0f} ms",
                target="≤ 250 ms",
                met=p99 <= 0.25,
            )
        )
    return found

"""How long a brain takes from its start until it leads with rules, beside an empty log and with a long one.

A week of 2,000 nodes is some 300,000 events (docs/scale.md). `GPUWARD_START_EVENTS` sets another number.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks import live
from tests.benchmarks.figures import Figure, percentile
from tests.e2e.stack import Stack, stack

EVENTS = int(os.environ.get("GPUWARD_START_EVENTS", "300000"))
RUNS = 5
LEADS_S = 2.0


def _started(running: Stack, end: Callable[[], object]) -> list[float]:
    """Seconds from the start of the process until it leads, after each `end`."""
    times = []
    for _ in range(RUNS):
        end()
        began = time.perf_counter()
        running.start_brain()
        times.append(time.perf_counter() - began)
    return times


def run() -> list[Figure]:
    """The broker stays; the brain is stopped in order, or killed."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, stack(Path(folder)) as running:
        found["an empty log, stopped in order"] = _started(running, lambda: running.stop("brain"))
        _fill(running)
        found[f"{EVENTS:,} events, stopped in order"] = _started(running, lambda: running.stop("brain"))
        found[f"{EVENTS:,} events, killed"] = _started(running, lambda: running.kill("brain"))
    return [
        Figure(
            what=f"start of a brain → it leads with rules; {what}",
            value=f"{percentile(times, 0.5):.2f} s",
            beside=f"{min(times):.2f} to {max(times):.2f} s",
            target=f"≤ {LEADS_S:.0f} s",
            met=percentile(times, 0.5) <= LEADS_S,
        )
        for what, times in found.items()
    ]


def _fill(running: Stack) -> None:
    """All events are on the log and handled."""
    before = running.get("/api/v1/status")["inputs"]
    asyncio.run(live.publish(running.nats.url, EVENTS))
    running.wait_for(
        lambda: running.get("/api/v1/status").get("inputs", 0) >= before + EVENTS,
        "all events are handled",
        within_s=300,
    )

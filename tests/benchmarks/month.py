"""Llama 3's 54 days on 2,048 nodes, under gpuward and five other policies: `gpuward simulate` in a process of its own."""

import json
import resource
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.figures import Figure

GPUWARD = Path(sys.executable).parent / "gpuward"
NODES = 2048
MOST_S = 60.0


def run() -> list[Figure]:
    """By the time of its processor: others may run beside it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [GPUWARD, "simulate", "llama3-54d", "--nodes", str(NODES), "--seed", "7", "--json"],
        capture_output=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = json.loads(done.stdout)
    size = f"{found['days']:g} days of {NODES:,} nodes under {len(found['policies'])} policies"
    return [
        Figure(
            what=f"a simulated month: {size}, one core",
            value=f"{took_s:.1f} s",
            beside=f"{found['faults']['drawn']} faults, {found['faults']['look_alikes']} look-alikes",
            target=f"≤ {MOST_S:g} s",
            met=took_s <= MOST_S,
        )
    ]

"""From fault to healed with real counterparts: the shipped rules and runbooks, unchanged, on real kernels, services, schedulers.

The stories of tests/e2e/healing, three times; each figure is the median. Most of the time after a remedy is what its
verification waits for, as in `remedies`, on simulated machines.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import Figure

RUNS = int(os.environ.get("GPUWARD_HEALING_RUNS", "3"))
ROOT = Path(__file__).resolve().parents[2]


def run() -> list[Figure]:
    """One figure for each cause: seconds from the fault to the first step, the end of the remedy, and the verification."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "healings.jsonl"
        for _ in range(RUNS):
            subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "tests/e2e/healing"],
                env=os.environ | {"GPUWARD_HEALINGS": str(file)}, cwd=ROOT, check=True, stdout=sys.stderr,
            )  # fmt: skip
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["cause"], row["counterpart"]), []).append(row)
    return [_figure(cause, counterpart, same) for (cause, counterpart), same in sorted(found.items())]


def _figure(cause: str, counterpart: str, same: list[dict[str, Any]]) -> Figure:
    first, remedied, verified = (
        statistics.median(row[name] for row in same) for name in ("first_step_s", "remedied_s", "verified_s")
    )
    return Figure(
        what=f"{cause} ({counterpart})",
        value=f"first step {first:.1f} s, remedied {remedied:.1f} s, verified {verified:.1f} s",
        beside=", ".join(same[-1]["actions"]),
    )

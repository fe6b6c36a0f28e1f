"""gpuward beside other systems, one after the other, and the table of it: `python -m tests.compare [--write] [SYSTEM ...]`.

Some seven minutes, as root (the kernel log). `--write` puts the table into docs/benchmarks.md. What is not installed is named.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.compare import gpuward, prometheus, report, rulebook
from tests.compare.kit import Result

PAGE = Path(__file__).resolve().parents[2] / "docs/benchmarks.md"
# Name on the command line → (name in the table, what must be installed first, the run).
SYSTEMS: dict[str, tuple[str, Callable[[], str], Callable[[], Result]]] = {
    "gpuward": (gpuward.NAME, str, gpuward.run),
    "tuned": (prometheus.TUNED.name, prometheus.missing, partial(prometheus.run, prometheus.TUNED)),
    "shipped": (prometheus.SHIPPED.name, prometheus.missing, partial(prometheus.run, prometheus.SHIPPED)),
    "rulebook": (rulebook.NAME, rulebook.missing, rulebook.run),
}


def main() -> int:
    """Exit 1 when a line of gpuward's was not paged, 2 when it cannot run."""
    parser = argparse.ArgumentParser(prog="tests.compare", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    parser.add_argument(
        "systems", nargs="*", metavar="SYSTEM", help=f"of {', '.join(SYSTEMS)}; without one: all"
    )
    asked = parser.parse_args()
    if unknown := set(asked.systems) - SYSTEMS.keys():
        parser.error(f"there is no system {', '.join(sorted(unknown))}; there are: {', '.join(SYSTEMS)}")
    if os.geteuid() != 0:
        print("the comparison needs root: it writes to the kernel log", file=sys.stderr)
        return 2
    before = report.load_now()
    results = [_measured(name) for name in asked.systems or SYSTEMS] + [report.NODE_PROBLEM_DETECTOR]
    text = report.block(results, time.strftime("%Y-%m-%d"), (before, report.load_now()))
    print(text)
    if asked.write:
        PAGE.write_text(report.put(PAGE.read_text(), text))
    ours = next((one for one in results if one.name == gpuward.NAME), None)
    return int(ours is not None and len(ours.paged_s) < ours.lines)


def _measured(name: str) -> Result:
    title, missing, run = SYSTEMS[name]
    if why := missing():
        return Result(name=title, missing=why)
    began = time.monotonic()
    result = run()
    print(f"{title}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return result


if __name__ == "__main__":
    sys.exit(main())

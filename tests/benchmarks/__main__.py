"""Runs the benchmarks, all or the named ones, and prints their table: `python -m tests.benchmarks [NAME ...]`."""

import os
import sys
from collections.abc import Callable

from tests.benchmarks import (
    backtest,
    cell,
    cell_storm,
    console,
    console_live,
    engine,
    events,
    flood,
    footprint,
    healing,
    latency,
    live,
    log_size,
    matchers,
    month,
    remedies,
    starts,
    week,
    wire,
)
from tests.benchmarks.figures import Figure, machine, table

SUITES: dict[str, Callable[[], list[Figure]]] = {
    "backtest": backtest.run,
    "cell": cell.run,
    "cell_storm": cell_storm.run,
    "console": console.run,
    "console_live": console_live.run,
    "engine": engine.run,
    "events": events.run,
    "flood": flood.run,
    "footprint": footprint.run,
    "healing": healing.run,
    "latency": latency.run,
    "live": live.run,
    "log_size": log_size.run,
    "matchers": matchers.run,
    "month": month.run,
    "remedies": remedies.run,
    "starts": starts.run,
    "week": week.run,
    "wire": wire.run,
}
ROOT_ONLY = ("cell_storm", "events", "healing", "latency", "live", "wire")


def main() -> int:
    """Exit 1 when a target is missed."""
    names = sys.argv[1:] or list(SUITES)
    figures: list[Figure] = []
    for name in names:
        if name in ROOT_ONLY and os.geteuid() != 0:
            print(
                f"{name} is left out: it needs root for the kernel log or a network namespace",
                file=sys.stderr,
            )
            continue
        figures += SUITES[name]()
    print(machine())
    print(table(figures))
    return 1 if any(figure.met is False for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())

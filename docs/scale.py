"""docs/scale.md: what a site of any size needs, computed from what docs/benchmarks.md measured."""

from collections.abc import Callable
from math import ceil

# Measured: docs/benchmarks.md, "Cells", "What a node costs", and the first table there.
BEAT_S = 2.0
BEAT_BYTES = 670 + 4 * 22  # on all hops together, TLS records and every third answer included
REST_BYTES_S = 17_000  # of a cell
EVENT_BYTES = (
    650 + 170
)  # on the log: of a kernel line, and what rules, steps and pages add (docs/operations.md)
LOG_REST_BYTES_S = 53
BROKER_CORES = 0.87 / 10_000  # per node
BRAIN_CORES = 0.48 / 10_000
BROKER_MB = 150.0  # and per node:
BROKER_MB_NODE = 0.15
BRAIN_MB, BRAIN_MB_NODE = 81.0, 0.0058
DECISIONS_S = 21_980  # events that one brain decides in a second
AGENT_MB, AGENT_CPU = 30, 0.0023
# Assumed: a rented core with 2 GB, for a month, in US dollars; and a node has so many GPUs.
CORE_MONTH = 30.0
MACHINE_CORES = 4
GPUS = 8
# Chosen.
CELL = 5_000  # nodes of one cell, at most
EVENTS_DAY = 20  # of one node: what an ordinary fleet logs, faults and noise
KEPT_DAYS = 30
SITES = (100, 1_000, 10_000, 100_000)


def _whole(value: float) -> str:
    return f"{ceil(value):,}"


def _most(nodes: int) -> int:
    """Nodes of its largest cell."""
    return ceil(nodes / ceil(nodes / CELL))


ROWS: dict[str, Callable[[int], str]] = {
    "cells": lambda n: _whole(n / CELL),
    "nodes of one cell": lambda n: f"{_most(n):,}",
    "network of one cell, all its hops together": lambda n: (
        f"{(_most(n) / BEAT_S * BEAT_BYTES + REST_BYTES_S) * 8 / 1e6:.1f} Mbit/s"
    ),
    "the same, of one node": lambda _: f"{BEAT_BYTES / 2 / BEAT_S * 8 / 1e3:.1f} kbit/s",
    "log of one cell, 30 days": lambda n: (
        f"{(_most(n) * EVENTS_DAY * EVENT_BYTES + 86_400 * LOG_REST_BYTES_S) * KEPT_DAYS / 1e9:.1f} GB"
    ),
    "the leading brain of a cell": lambda n: (
        f"{max(0.01, _most(n) * BRAIN_CORES):.2f} cores, {BRAIN_MB + _most(n) * BRAIN_MB_NODE:.0f} MB"
    ),
    "each NATS server of a cell": lambda n: (
        f"{max(0.01, _most(n) * BROKER_CORES):.2f} cores, {BROKER_MB + _most(n) * BROKER_MB_NODE:,.0f} MB"
    ),
    "until ten events from every node of a cell are decided": lambda n: (
        f"{max(0.1, _most(n) * 10 / DECISIONS_S):.1f} s"
    ),
    "machines: three NATS servers a cell, brains on two of them": lambda n: f"{3 * ceil(n / CELL):,}",
    "the same, as a share of the nodes": lambda n: f"{300 * ceil(n / CELL) / n:.2f} %",
    "what these machines cost in a month, where a core is rented for $30": lambda n: (
        f"${3 * ceil(n / CELL) * MACHINE_CORES * CORE_MONTH:,.0f}"
    ),
    "the same, of each GPU (eight a node)": lambda n: (
        f"${3 * ceil(n / CELL) * MACHINE_CORES * CORE_MONTH / n / GPUS:.3f}"
    ),
    "agents, all nodes together": lambda n: f"{n * AGENT_CPU:,.1f} cores, {n * AGENT_MB / 1e3:,.0f} GB",
}

HEAD = """\
# Scale

One cell is one log, one leading brain and the nodes that it looks after. Above {cell:,} nodes make several: a cell is also
what one fault of a brain, one wrong rule or one stolen administrator can touch, and what a breaker and the budgets count.

| {heads} |
|---|{dashes}|
"""

TAIL = """
Computed, not measured as a whole: 10,000 nodes on one broker and one brain is the most that was
([benchmarks](benchmarks.md)). The sums take from there what a beat, an event and a node cost, {events} events of each node a
day (a fleet that logs more: the log grows with it), and a broker without a limit of its memory: a `GOMEMLIMIT` below twice of
what it takes at rest ends in a storm (decision 72). The brain's memory does not grow with time: over a simulated week of 2,000
nodes it went from 88 to 89 MB.

What it costs are machines: three small ones (4 cores, 8 GB, 20 GB of disk) for each cell, on a control network. A core for
$30 a month is an assumption; put your own price in its place. There is no licence, and the agents take of their nodes what
the last row says. Nothing of it stands between a job and its GPUs, and a node whose cell is away goes on as it is; its agent
keeps what it has to say.

## Where the cells are cut

- **Along what fails together**: a fabric, a building, a power feed. A shared cause is found within a cell; one that spans
  two cells is two incidents, and both pages come.
- A scheduler may serve several cells, and a node is in one cell only. Budgets and breakers count by cell.
- Cells may share NATS servers (`cell` is the name in every subject), people and their tokens do not reach from one into the
  other.

## Many cells under one view

`gpuward fleet` asks all of them side by side, and only reads. `~/.config/gpuward/fleet.toml`, or `/etc/gpuward/fleet.toml`:

```toml
[cells.east]
urls = ["https://brain1.east.example:8470", "https://brain2.east.example:8470"]  # the first one that answers and hears nodes
token_file = "east.token"  # of a viewer, beside this file: `gpuward token create`
ca_file = "east-ca.pem"    # the cell's cell/ca.pem

[cells.west]
urls = ["https://brain1.west.example:8470"]
token_file = "west.token"
ca_file = "west-ca.pem"
```

It shows who leads each cell, its nodes, what is open by severity, what needs a person, then the most urgent incidents of all
cells. A cell that does not answer or refuses the token, that nobody leads or that has a trouble is told by name, and the
exit status is 1:
`gpuward fleet --json` fits a check of your monitoring. What is to be done about an incident is said to its cell: `gpuward
ack INCIDENT --url URL`. In Grafana every dashboard has the cells as a variable (deploy/grafana), and Prometheus scrapes the
brains of all cells with one job.
"""


def page() -> str:
    """The page."""
    heads = " | ".join(("", *(f"{site:,} nodes" for site in SITES))).strip()
    head = HEAD.format(cell=CELL, heads=heads, dashes="|".join("---" for _ in SITES))
    rows = [f"| {what} | {' | '.join(row(site) for site in SITES)} |" for what, row in ROWS.items()]
    return (
        "<!-- Generated by `make docs`; edit docs/scale.py instead. -->\n"
        + head
        + "\n".join(rows)
        + "\n"
        + TAIL.format(events=EVENTS_DAY)
    )

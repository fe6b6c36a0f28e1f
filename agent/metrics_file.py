"""What monitoring systems see of the agent itself: a file for node_exporter's textfile collector, written anew now and then.

Prometheus' text format 0.0.4, without a library and without a listening port (docs/decisions/0034). Each line of the table is
a metric, with its row in docs/reference.md.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent import __version__
from agent.commands.runner import Runner
from agent.shared import files
from agent.shared.rhythm import pause
from agent.supervisor import Feeder, Kept
from agent.uplink.spool import Spool

Samples = Iterable[tuple[tuple[str, ...], float]]
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """The running agent."""

    node: str
    cell: str
    # Seconds since 1970, by the node's clock
    started_at: float
    spool: Spool
    connected: Callable[[], bool]
    feeder: Feeder
    # Source -> whether it runs
    sources: Mapping[str, Kept]
    runner: Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMetric:
    """One line of the table. `samples` gives the values of the labels, and a number, for each sample."""

    name: str
    help: str
    # gauge | counter
    kind: str = "gauge"
    labels: tuple[str, ...] = ()
    samples: Callable[[AgentView], Samples]


def _one(value: Callable[[AgentView], float]) -> Callable[[AgentView], Samples]:
    return lambda agent: [((), float(value(agent)))]


def _each(counts: Mapping[str, int]) -> Samples:
    return [((name,), count) for name, count in sorted(counts.items())]


def _resident(_: AgentView) -> float:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES


# Labels are bounded: kinds of events, sources and outcomes are declared in the code. The machine's name is node_exporter's.
AGENT_METRICS: tuple[AgentMetric, ...] = (
    AgentMetric(
        name="gpuward_agent",
        help="1; which agent this is.",
        labels=("node", "cell", "version"),
        samples=lambda agent: [((agent.node, agent.cell, __version__), 1)],
    ),
    AgentMetric(
        name="gpuward_agent_start_time_seconds",
        help="When this agent was started, seconds since 1970.",
        samples=_one(lambda agent: agent.started_at),
    ),
    AgentMetric(
        name="gpuward_agent_connected",
        help="1: the agent is connected to NATS.",
        samples=_one(lambda agent: agent.connected()),
    ),
    AgentMetric(
        name="gpuward_agent_spooled_events",
        help="Events that wait for the brain.",
        samples=_one(lambda agent: agent.spool.spooled),
    ),
    AgentMetric(
        name="gpuward_agent_dropped_events_total",
        help="Events that had to be dropped since the start.",
        kind="counter",
        samples=_one(lambda agent: agent.spool.dropped),
    ),
    AgentMetric(
        name="gpuward_agent_events_total",
        help="Events since the start, by kind (docs/reference.md).",
        kind="counter",
        labels=("kind",),
        samples=lambda agent: _each(agent.spool.kinds),
    ),
    AgentMetric(
        name="gpuward_agent_source_up",
        help="1: this source of facts runs. 0: it has failed and is opened again with growing pauses.",
        labels=("source",),
        samples=lambda agent: [((name,), not kept.down) for name, kept in sorted(agent.sources.items())],
    ),
    AgentMetric(
        name="gpuward_agent_failures_total",
        help="Failures since the start of sources, collectors and the spool, each cause once.",
        kind="counter",
        labels=("part",),
        samples=lambda agent: _each(agent.feeder.failures),
    ),
    AgentMetric(
        name="gpuward_agent_commands_running",
        help="Commands that run now.",
        samples=_one(lambda agent: len(agent.runner.running)),
    ),
    AgentMetric(
        name="gpuward_agent_commands_total",
        help="Commands that ended since the start, by outcome.",
        kind="counter",
        labels=("outcome",),
        samples=lambda agent: _each(agent.runner.ended),
    ),
    AgentMetric(
        name="gpuward_agent_cpu_seconds_total",
        help="Processor time of the agent's process since its start.",
        kind="counter",
        samples=_one(lambda _: time.process_time()),
    ),
    AgentMetric(
        name="gpuward_agent_resident_memory_bytes",
        help="Resident memory of the agent's process.",
        samples=_one(_resident),
    ),
)


def text(agent: AgentView) -> str:
    """The metrics of this moment."""
    return "".join(line for metric in AGENT_METRICS for line in _lines(metric, agent))


def _lines(metric: AgentMetric, agent: AgentView) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"
    for values, number in metric.samples(agent):
        pairs = (f'{label}="{_escaped(value)}"' for label, value in zip(metric.labels, values, strict=True))
        labels = ",".join(pairs)
        yield f"{metric.name}{f'{{{labels}}}' if labels else ''} {number:.17g}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


async def keep_writing(path: Path, every_s: float, agent: AgentView) -> None:
    """Writes the file each time that `every_s` is over, until cancelled; then it is removed, so that nobody takes it for new."""
    try:
        while True:
            files.write(path, text(agent).encode(), mode=0o644, whatever_umask=True)
            await pause(every_s)
    finally:
        _removed(path)


def _removed(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)

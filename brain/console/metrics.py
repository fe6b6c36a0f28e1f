"""What monitoring systems see of a brain: one table of metrics, in Prometheus' and OpenMetrics' text formats.

Labels are bounded: no node, incident or person is one. Which node it is stands in the incident, and on the page.
Every brain answers; what only the leader knows (beats of nodes) is left out elsewhere, so that sums over brains are right.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from agent import __version__
from brain.console.brain_view import BrainView, NodeBeat, TraceView
from brain.console.metric import Metric as Metric
from brain.console.metric import Samples
from brain.console.nats_metrics import NATS_METRICS
from brain.core.state import IncidentState, RunState

VERSIONS = 10  # versions of agents with a sample of their own; the rarer ones are together
OTHERS = "other"
_VERSION = re.compile(r"[0-9A-Za-z.+_-]{1,40}")
_OVER = (RunState.SUCCEEDED, RunState.EXHAUSTED, RunState.OBSERVED, RunState.CANCELLED)


def _one(value: Callable[[BrainView], float]) -> Callable[[BrainView], Samples]:
    return lambda brain: [((), float(value(brain)))]


def _each_output(value: Callable[[TraceView], float]) -> Callable[[BrainView], Samples]:
    """Of traces, by its name."""
    return lambda brain: [((one.name,), value(one)) for one in brain.trace_exports()]


def _nodes(brain: BrainView) -> Samples:
    alive = sum(node.alive for node in brain.live.state.nodes.values())
    yield ("reachable",), alive
    yield ("unreachable",), len(brain.live.state.nodes) - alive


def _incidents(brain: BrainView) -> Samples:
    open_ = (one for one in brain.live.state.incidents.values() if one.state is not IncidentState.CLOSED)
    return Counter((one.severity.value, one.cause, one.state.value) for one in open_).items()


def _runs(brain: BrainView) -> Samples:
    under_way = (run for run in brain.live.state.runs.values() if run.state not in _OVER)
    return Counter((run.runbook.name, run.state.value) for run in under_way).items()


def _undelivered(brain: BrainView) -> float:
    return sum(len(one.pages.waiting) for one in brain.live.state.incidents.values())


def _agents(brain: BrainView) -> Samples:
    counts = Counter(beat.version for beat in _beats(brain))
    # What one node alone says makes no series: it could say another version each time.
    told = Counter(
        {
            version: count
            for version, count in counts.items()
            if _VERSION.fullmatch(version) and (count > 1 or version == __version__)
        }
    )
    common = told.most_common(VERSIONS)
    rest = counts.total() - sum(count for _, count in common)
    return [((version,), count) for version, count in common] + ([((OTHERS,), rest)] if rest else [])


def _beats(brain: BrainView) -> list[NodeBeat]:
    return list(brain.newest_beats().values()) if brain.live.leads() else []


def _off(beat: NodeBeat) -> float:
    return abs(beat.clock_ahead_s or 0.0)


def _known(value: float | None) -> Samples:
    return [((), value)] if value is not None else []


METRICS: tuple[Metric, ...] = (
    Metric(
        name="gpuward_brain",
        help="1; which brain this is.",
        labels=("brain", "cell", "version"),
        samples=lambda brain: [((brain.name, brain.config.cell, __version__), 1)],
    ),
    Metric(
        name="gpuward_brain_leads",
        help="1: this brain leads its cell. The sum over a cell must be 1.",
        samples=_one(lambda brain: brain.live.leads()),
    ),
    Metric(
        name="gpuward_brain_connected",
        help="1: this brain is connected to NATS.",
        samples=_one(lambda brain: brain.connected()),
    ),
    Metric(
        name="gpuward_brain_caught_up",
        help="1: this brain has read the whole log.",
        samples=_one(lambda brain: brain.live.caught_up),
    ),
    Metric(
        name="gpuward_brain_stopped",
        help="1: an invariant is broken; this brain acts no more until a person restarts it.",
        samples=_one(lambda brain: bool(brain.live.stopped)),
    ),
    Metric(
        name="gpuward_brain_start_time_seconds",
        help="When this brain was started, seconds since 1970.",
        samples=_one(lambda brain: brain.started_at),
    ),
    Metric(
        name="gpuward_epoch",
        help="The epoch of the newest leader on the log.",
        samples=_one(lambda brain: brain.live.state.epoch),
    ),
    Metric(
        name="gpuward_log_position",
        help="The position on the log of the newest input that was handled.",
        samples=_one(lambda brain: brain.live.seq),
    ),
    Metric(
        name="gpuward_log_time_seconds",
        help="The log's time at that position, seconds since 1970.",
        samples=_one(lambda brain: brain.live.state.now),
    ),
    *NATS_METRICS,
    Metric(
        name="gpuward_archive_position",
        help="The position up to which the log is in its archive; only of the leader, where there is one.",
        samples=lambda brain: _known(brain.archive.newest_seq),
    ),
    Metric(
        name="gpuward_archive_behind_seconds",
        help="So much later than it should be is the archive; 0: all that is older than archive.segment_s is in it.",
        samples=lambda brain: _known(brain.archive.behind_s),
    ),
    Metric(
        name="gpuward_archive_files",
        help="Files of the archive that this brain has written since its start.",
        kind="counter",
        samples=_one(lambda brain: brain.archive.written),
    ),
    Metric(
        name="gpuward_archive_bytes",
        help="Their bytes.",
        kind="counter",
        samples=_one(lambda brain: brain.archive.written_bytes),
    ),
    Metric(
        name="gpuward_archive_missing",
        help="Inputs that had gone from the log before they were in the archive.",
        kind="counter",
        samples=_one(lambda brain: brain.archive.missing),
    ),
    Metric(
        name="gpuward_data_free_bytes",
        help="Space left on the disk of the brain's data folder.",
        samples=lambda brain: _known(brain.disk.free_bytes),
    ),
    Metric(
        name="gpuward_data_disk",
        help="How that disk is, as it was tried last: 1 for its state, 0 for the others.",
        labels=("state",),
        samples=lambda brain: [((state,), float(it_is)) for state, it_is in brain.disk.states.items()],
    ),
    Metric(
        name="gpuward_history_behind_inputs",
        help="Inputs that were handled and are not in the history for people yet.",
        samples=_one(lambda brain: brain.history_behind()),
    ),
    Metric(
        name="gpuward_inputs",
        help="Inputs that this brain has handled since its start.",
        kind="counter",
        samples=_one(lambda brain: brain.live.inputs),
    ),
    Metric(
        name="gpuward_inputs_busy_seconds",
        help="Time that they took.",
        kind="counter",
        samples=_one(lambda brain: brain.live.busy_s),
    ),
    Metric(
        name="gpuward_inputs_malformed",
        help="Inputs on the log that could not be read.",
        kind="counter",
        samples=_one(lambda brain: brain.live.state.malformed),
    ),
    Metric(
        name="gpuward_notes",
        help="Notes that this brain has written since its start, by kind (docs/reference.md).",
        kind="counter",
        labels=("kind",),
        samples=lambda brain: [((kind,), count) for kind, count in sorted(brain.feed.counts.items())],
    ),
    Metric(name="gpuward_nodes", help="Known nodes.", labels=("state",), samples=_nodes),
    Metric(
        name="gpuward_agents",
        help=f"Nodes that beat, by their agent's version: the {VERSIONS} most common that several have, and all others.",
        labels=("version",),
        samples=_agents,
    ),
    Metric(
        name="gpuward_beat_age_max_seconds",
        help="Age of the oldest of the nodes' newest beats.",
        samples=lambda brain: [((), max((beat.age_s for beat in _beats(brain)), default=0.0))],
    ),
    Metric(
        name="gpuward_agents_clock_off_max_seconds",
        help="The largest difference of a node's wall clock to this brain's, as its newest beat came.",
        samples=lambda brain: [((), max((_off(beat) for beat in _beats(brain)), default=0.0))],
    ),
    Metric(
        name="gpuward_agents_spooled_events",
        help="Events that wait on their nodes.",
        samples=_one(lambda brain: sum(beat.spooled for beat in _beats(brain))),
    ),
    Metric(
        name="gpuward_agents_dropped_events",
        help="Events that nodes had to drop, since their agents started.",
        samples=_one(lambda brain: sum(beat.dropped for beat in _beats(brain))),
    ),
    Metric(
        name="gpuward_incidents",
        help="Incidents that are not closed.",
        labels=("severity", "cause", "state"),
        samples=_incidents,
    ),
    Metric(name="gpuward_runs", help="Runs under way.", labels=("runbook", "state"), samples=_runs),
    Metric(
        name="gpuward_pages_undelivered",
        help="Pages that no channel has taken yet.",
        samples=_one(_undelivered),
    ),
    Metric(
        name="gpuward_trace_spans",
        help="Spans of traces that an output of `[traces]` has taken since the start.",
        kind="counter",
        labels=("output",),
        samples=_each_output(lambda one: one.spans),
    ),
    Metric(
        name="gpuward_trace_spans_rejected",
        help="Spans that it did not want.",
        kind="counter",
        labels=("output",),
        samples=_each_output(lambda one: one.rejected),
    ),
    Metric(
        name="gpuward_trace_incidents_dropped",
        help="Incidents of which something could not be told: too many waited for the output.",
        kind="counter",
        labels=("output",),
        samples=_each_output(lambda one: one.dropped),
    ),
    Metric(
        name="gpuward_trace_incidents_waiting",
        help="Incidents of which something is still to be told.",
        labels=("output",),
        samples=_each_output(lambda one: one.waiting),
    ),
    Metric(
        name="gpuward_holds", help="Holds in force.", samples=_one(lambda brain: len(brain.live.state.holds))
    ),
    Metric(
        name="gpuward_drained_nodes",
        help="Nodes that gpuward keeps out of service.",
        samples=_one(lambda brain: len(brain.live.state.drains)),
    ),
    Metric(
        name="gpuward_breaker_tripped",
        help="1: so many remedies have failed that no further one begins until a person says `gpuward reset`.",
        samples=_one(lambda brain: bool(brain.live.state.tripped)),
    ),
)


class BrainMetrics(Collector):
    """The table, of one brain, for prometheus_client."""

    def __init__(self, brain: BrainView) -> None:
        self._brain = brain

    def collect(self) -> Iterator[Family]:
        """Yields each metric with its samples of this moment."""
        for metric in METRICS:
            make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = make(metric.name, metric.help, labels=metric.labels)
            for labels, value in metric.samples(self._brain):
                family.add_metric(labels, value)
            yield family

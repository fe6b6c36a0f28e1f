"""What the dashboards of deploy/grafana show: one line for each panel. docs/dashboards.py makes Grafana's JSON of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

# Of the leader of each chosen cell: every brain answers for the whole cell, so that only one of them may be counted.
_LED = 'and on (instance) (gpuward_brain_leads == 1) and on (instance) gpuward_brain{cell=~"$cell"}'
_OF_CELL = 'and on (instance) gpuward_brain{cell=~"$cell"}'
_NODE = 'instance=~"$instance"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One line, or one number."""

    expr: str
    # How it is called; {{label}} is replaced
    legend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture."""

    title: str
    # What it means, and when to worry
    about: str
    # A number, or lines over time
    kind: Literal["stat", "lines"] = "lines"
    queries: tuple[Query, ...]
    # As Grafana names it
    unit: str = "short"
    # Of a number: red from here on; None: it is never bad
    bad_from: float | None = None
    # Columns of 24
    wide: int = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One dashboard: rows of panels."""

    title: str
    about: str
    # Variable → the query of its values
    variables: Mapping[str, str]
    rows: Mapping[str, tuple[Panel, ...]]


def _number(
    title: str, expr: str, about: str, *, bad_from: float | None = None, unit: str = "short"
) -> Panel:
    return Panel(
        title=title,
        about=about,
        kind="stat",
        queries=(Query(expr=expr),),
        bad_from=bad_from,
        unit=unit,
        wide=4,
    )


def _lines(title: str, about: str, *queries: tuple[str, str], unit: str = "short") -> Panel:
    found = tuple(Query(expr=expr, legend=legend) for expr, legend in queries)
    return Panel(title=title, about=about, queries=found, unit=unit)


def _sum(metric: str) -> str:
    """Over the chosen cells; 0 where there is none."""
    return f"sum({metric} {_LED}) or vector(0)"


_HEALING: Mapping[str, tuple[Panel, ...]] = {
    "Now": (
        _number("Nodes heard", _sum('gpuward_nodes{state="reachable"}'), "Nodes whose beats arrive."),
        _number(
            "Nodes not heard",
            _sum('gpuward_nodes{state="unreachable"}'),
            "`gpuward nodes` names them. Many at once have one cause, and no node is touched.",
            bad_from=1,
        ),
        _number(
            "Urgent incidents",
            _sum('gpuward_incidents{severity=~"P0|P1"}'),
            "Open incidents of P0 and P1: `gpuward incidents`.",
            bad_from=1,
        ),
        _number(
            "Waiting for approval",
            _sum('gpuward_runs{state="approval"}'),
            "Runs that begin when somebody says `gpuward approve`.",
            bad_from=1,
        ),
        _number(
            "Pages that reach nobody",
            _sum("gpuward_pages_undelivered"),
            "No channel of their group has taken them: `gpuward doctor` says which one fails.",
            bad_from=1,
        ),
        _number(
            "Out of service by us",
            _sum("gpuward_drained_nodes"),
            "Nodes that gpuward has drained and will give back.",
        ),
        _number("Holds", _sum("gpuward_holds"), "What people have stopped: `gpuward status`.", bad_from=1),
        _number(
            "Breaker",
            _sum("gpuward_breaker_tripped"),
            "1: so many remedies have failed that no disruptive one begins until `gpuward reset`.",
            bad_from=1,
        ),
    ),
    "Incidents and remedies": (
        _lines(
            "Open incidents by cause",
            "Those that are not closed; one fault is one incident.",
            (f"sum by (cause) (gpuward_incidents {_LED})", "{{cause}}"),
        ),
        _lines(
            "Open incidents by state",
            "`needs_human` waits for people.",
            (f"sum by (state) (gpuward_incidents {_LED})", "{{state}}"),
        ),
        _lines(
            "Runs under way",
            "Remedies by what they are doing now.",
            (f"sum by (runbook, state) (gpuward_runs {_LED})", "{{runbook}}: {{state}}"),
        ),
        _lines(
            "What the engine notes",
            "Notes per hour, by kind (docs/reference.md); incidents that open, steps that end, pages that are sent.",
            (f"sum by (kind) (rate(gpuward_notes_total[$__rate_interval]) {_LED}) * 3600", "{{kind}}"),
        ),
    ),
}

_MACHINERY: Mapping[str, tuple[Panel, ...]] = {
    "Who leads": (
        _lines(
            "Brains that lead",
            "Exactly 1 in each cell.",
            (
                'sum by (cell) (gpuward_brain_leads * on (instance) group_left (cell) gpuward_brain{cell=~"$cell"})',
                "{{cell}}",
            ),
        ),
        _lines(
            "Connected and caught up",
            "1 and 1 of each brain that could lead.",
            (f"gpuward_brain_connected {_OF_CELL}", "{{instance}} connected"),
            (f"gpuward_brain_caught_up {_OF_CELL}", "{{instance}} caught up"),
        ),
    ),
    "The log": (
        _lines(
            "Inputs",
            "What each brain reads from the log.",
            (f"rate(gpuward_inputs_total[$__rate_interval]) {_OF_CELL}", "{{instance}}"),
            unit="ops",
        ),
        _lines(
            "Busy with inputs",
            "The share of one processor that the engine takes.",
            (f"rate(gpuward_inputs_busy_seconds_total[$__rate_interval]) {_OF_CELL}", "{{instance}}"),
            unit="percentunit",
        ),
        _lines(
            "Behind the log",
            "Seconds since the newest input; the leader's pulse keeps it small.",
            (f"time() - gpuward_log_time_seconds {_OF_CELL}", "{{instance}}"),
            unit="s",
        ),
        _lines(
            "Room of the log",
            "Beyond 90 % the oldest inputs go soon: raise log.max_bytes.",
            (f"gpuward_log_bytes / gpuward_log_max_bytes {_LED}", "{{instance}}"),
            unit="percentunit",
        ),
        _lines(
            "Disk of the brain",
            "Space left for snapshot, history, and the embedded NATS.",
            (f"gpuward_data_free_bytes {_OF_CELL}", "{{instance}}"),
            unit="bytes",
        ),
        _lines(
            "Inputs that wait for the history",
            "More and more of them: the brain's disk takes nothing (the page brain_disk). Healing goes on.",
            (f"gpuward_history_behind_inputs {_OF_CELL}", "{{instance}}"),
        ),
        _lines(
            "Inputs that could not be read",
            "More of them: versions too far apart, or a node that lies.",
            (f"increase(gpuward_inputs_malformed_total[$__rate_interval]) {_OF_CELL}", "{{instance}}"),
        ),
    ),
    "NATS": (
        _lines(
            "Servers that have all of it",
            "Of each thing that the brain keeps there. Below the first line: when another server dies, the cell may stand.",
            (f"gpuward_nats_copies_wanted {_LED}", "wanted"),
            (f"gpuward_nats_copies_current {_LED}", "{{stream}}"),
        ),
        _lines(
            "Streams that a server leads",
            "One that leads all of them is no trouble; one that leads none since an hour may be away.",
            (f"gpuward_nats_server_leads {_LED}", "{{server}}"),
        ),
        _lines(
            "Streams of which a server lacks something",
            "More than 0 for minutes: it is away, or its disk does not keep up. And those that nobody leads.",
            (f"gpuward_nats_server_behind {_LED}", "{{server}}"),
            (f"gpuward_nats_leaderless_streams {_LED}", "led by nobody"),
        ),
        _lines(
            "Answer of the server",
            "Of the one that each brain is connected to; beyond 100 ms everything waits for it.",
            (f"gpuward_nats_rtt_seconds {_OF_CELL}", "{{instance}}"),
            unit="s",
        ),
        _lines(
            "Room that is taken",
            "By what is kept there; the evidence goes by itself beyond its limit.",
            (f"gpuward_nats_stream_bytes {_LED}", "{{stream}}"),
            unit="bytes",
        ),
        _lines(
            "What the account takes",
            "Of the servers' disk and memory; where the account has a limit an alert comes at 90 %.",
            (f"gpuward_nats_account_bytes {_LED}", "{{store}}"),
            unit="bytes",
        ),
        _lines(
            "Versions of the servers",
            "That brains are connected to: during an upgrade two, afterwards one.",
            (f"count by (version) (gpuward_nats_server {_OF_CELL})", "{{version}}"),
        ),
    ),
    "Nodes, as the leader hears them": (
        _lines(
            "Oldest beat",
            "Of the node that was heard longest ago.",
            (f"gpuward_beat_age_max_seconds {_LED}", "{{instance}}"),
            unit="s",
        ),
        _lines(
            "Largest clock difference",
            "Of a node's clock to the brain's: beyond 2 s tickets, leases and logs suffer.",
            (f"gpuward_agents_clock_off_max_seconds {_LED}", "{{instance}}"),
            unit="s",
        ),
        _lines(
            "Events that wait on nodes, and that were dropped",
            "Both stay near 0 while NATS and a leader are there.",
            (f"gpuward_agents_spooled_events {_LED}", "waiting"),
            (f"gpuward_agents_dropped_events {_LED}", "dropped"),
        ),
        _lines(
            "Versions of agents",
            "During an upgrade two, afterwards one.",
            (f"sum by (version) (gpuward_agents {_LED})", "{{version}}"),
        ),
    ),
}

_AGENTS: Mapping[str, tuple[Panel, ...]] = {
    "Now": (
        _number(
            "Agents that write",
            f"count(gpuward_agent{{{_NODE}}})",
            "Agents whose file node_exporter has read.",
        ),
        _number(
            "Cut off",
            f"count(gpuward_agent_connected{{{_NODE}}} == 0) or vector(0)",
            "Agents without NATS: their events wait on disk.",
            bad_from=1,
        ),
        _number(
            "Sources down",
            f"count(gpuward_agent_source_up{{{_NODE}}} == 0) or vector(0)",
            "What only these show is not seen. The list below names them.",
            bad_from=1,
        ),
        _number(
            "Oldest file",
            f'max(time() - node_textfile_mtime_seconds{{file=~".*gpuward[^/]*\\\\.prom", {_NODE}}})',
            "Beyond some minutes an agent was killed, or hangs.",
            unit="s",
            bad_from=300,
        ),
        _number(
            "Commands that run",
            f"sum(gpuward_agent_commands_running{{{_NODE}}})",
            "On all chosen machines.",
        ),
    ),
    "What they see": (
        _lines(
            "Events",
            "Facts per hour by kind (docs/reference.md).",
            (
                f"sum by (kind) (rate(gpuward_agent_events_total{{{_NODE}}}[$__rate_interval])) * 3600",
                "{{kind}}",
            ),
        ),
        _lines(
            "Sources that are down",
            "By machine.",
            (f"1 - gpuward_agent_source_up{{{_NODE}}}", "{{instance}} {{source}}"),
        ),
        _lines(
            "Waiting and dropped events",
            "By machine.",
            (f"gpuward_agent_spooled_events{{{_NODE}}}", "{{instance}} waiting"),
            (f"gpuward_agent_dropped_events_total{{{_NODE}}}", "{{instance}} dropped"),
        ),
    ),
    "What they take": (
        _lines(
            "Memory",
            "The agent promises 36 MB with its NVML child, which is not in here.",
            (f"gpuward_agent_resident_memory_bytes{{{_NODE}}}", "{{instance}}"),
            unit="bytes",
        ),
        _lines(
            "Processor",
            "Share of one core.",
            (f"rate(gpuward_agent_cpu_seconds_total{{{_NODE}}}[$__rate_interval])", "{{instance}}"),
            unit="percentunit",
        ),
    ),
}

_CELLS = {"cell": "label_values(gpuward_brain, cell)"}
# File below deploy/grafana → what is in it.
BOARDS: Mapping[str, Board] = {
    "healing.json": Board(
        title="gpuward: healing",
        about="What is wrong in the cells, and what is done about it.",
        variables=_CELLS,
        rows=_HEALING,
    ),
    "machinery.json": Board(
        title="gpuward: machinery",
        about="Whether gpuward itself works: brains, log, nodes.",
        variables=_CELLS,
        rows=_MACHINERY,
    ),
    "agents.json": Board(
        title="gpuward: agents",
        about="Agents with metrics_file, by node_exporter.",
        variables={"instance": "label_values(gpuward_agent, instance)"},
        rows=_AGENTS,
    ),
}

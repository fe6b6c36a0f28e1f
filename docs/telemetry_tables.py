"""Tables of what gpuward tells other systems of itself: metrics of brain and agent, spans and attributes of traces."""

from collections.abc import Iterable

from agent.metrics_file import AGENT_METRICS
from brain.console.metrics import METRICS
from brain.traces.spans import ATTRIBUTES, MAX_EVENTS, MAX_SPANS, MAX_TEXT, NAMES

METRICS_HEAD = """\
`GET /metrics` of each brain, in Prometheus' text format or OpenMetrics, for viewers (a token: `gpuward token create prometheus`).
`GET /healthz` answers 200 while the process lives; `GET /readyz` 503 with the reason while it could not lead. Both are open.
"""


AGENT_METRICS_HEAD = """\
Off by default. With `metrics_file` in agent.toml the agent writes them for node_exporter's textfile collector, which adds
`node_textfile_mtime_seconds`, by which a file is seen to be old. The agent removes the file when it is stopped.
"""


TRACES_HEAD = f"""\
With `[traces]` in brain.toml the leader tells each incident as one OpenTelemetry trace (docs/operations.md). Times are the
log's clock. Ids follow from the incident's: the trace is the first 32 digits of the SHA-256 of its id. At most {MAX_SPANS} spans
of a trace are told, {MAX_EVENTS} events of a span, and {MAX_TEXT} characters of a text. Attributes of the resource:
`service.name` (`gpuward`), `service.namespace` (the cell), `service.instance.id` (the brain), `service.version`.
"""


def spans() -> Iterable[str]:
    """Of traces."""
    yield "| span | what it covers |\n|---|---|"
    yield from (f"| `{name}` | {meaning} |" for name, meaning in NAMES.items())
    yield "\n| attribute | meaning |\n|---|---|"
    yield from (f"| `{name}` | {meaning} |" for name, meaning in ATTRIBUTES.items())
    yield ""


def metrics_of_agent() -> Iterable[str]:
    """Of the agent."""
    yield "| metric | type | labels | what |\n|---|---|---|---|"
    for one in AGENT_METRICS:
        yield f"| `{one.name}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} | {one.help} |"
    yield ""


def metrics() -> Iterable[str]:
    """Of the brain."""
    yield "| metric | type | labels | what |\n|---|---|---|---|"
    for one in METRICS:
        name = one.name + "_total" * (one.kind == "counter")
        yield f"| `{name}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} | {one.help} |"
    yield ""

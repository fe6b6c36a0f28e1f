"""Values of a trace, and what a span may say: each name and attribute with its meaning (docs/reference.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from agent.contract.inert import inert
from agent.contract.messages import clip

Value = str | bool | int | float
MAX_TEXT = 512  # characters of an attribute
MAX_EVENTS = 64  # of one span
MAX_SPANS = 500  # of one trace: the first ones that end, and the incident's own

# Name of a span -> what it covers. `<...>` is replaced.
NAMES: Mapping[str, str] = {
    "incident <cause>": "From when its first fact occurred until it is over, with its last page delivered and its last step "
    "ended. An error: people had to act.",
    "symptom <name>": "From when its first fact occurred until it began. Its facts are its events.",
    "fact <kind>": "From when the node saw it (its age) until it stood on the log.",
    "decide": "From when the symptoms were there until the incident was opened.",
    "hold-off": "While it settled, in case a wider cause explains it.",
    "needs human": "While gpuward did nothing more: people had to act.",
    "recovered": "While its symptoms were gone and had to stay away. An error: they came back.",
    "page <kind>": "From when a page was due until a channel took it, or another one took its place. Failed attempts are events.",
    "run <runbook>": "One execution of a runbook. An error: no rung was left.",
    "gate <gate>": "While a gate held the run.",
    "approval": "While the run waited for a person's approval.",
    "step <action>": "From its intent to its result. An error: any outcome but `ok` and `withdrawn` (by a gate, in time).",
    "verify": "From the end of a step until its symptoms were gone for long enough. An error: they were not.",
}
# Attribute -> meaning. Those without `gpuward.` are OpenTelemetry's semantic conventions.
ATTRIBUTES: Mapping[str, str] = {
    "host.name": "the node",
    "error.type": "of an error: the outcome of a step, or `not_verified`, `exhausted`, `needs_human`, `recurred`, `undelivered`",
    "gpuward.incident.id": "on every span",
    "gpuward.incident.state": "the state in which it ended",
    "gpuward.cause": "what is wrong",
    "gpuward.scope": "a GPU, a NIC, a node, a switch, ...",
    "gpuward.nodes": "how many nodes show it",
    "gpuward.severity": "P0 to P3",
    "gpuward.rule": "that opened the incident",
    "gpuward.rules.version": "of the rules in force then",
    "gpuward.why": "the reason, as in the audit notes",
    "gpuward.because": "the rule's reason",
    "gpuward.explained_by": "the incident that is its cause; a link leads to its trace",
    "gpuward.spans.left_out": f"spans beyond {MAX_SPANS} that are not told",
    "gpuward.symptom": "its name",
    "gpuward.event.id": "of the fact",
    "gpuward.event.kind": "of the fact (Event kinds)",
    "gpuward.event.component": "that the fact is about",
    "gpuward.event.text": "the kernel line, or the reading",
    "gpuward.event.age_s": "how old the fact was when it stood on the log",
    "gpuward.page.id": "of the page",
    "gpuward.page.group": "the channel group",
    "gpuward.page.channel": "the channels that took it",
    "gpuward.page.failed": "channels that were tried before them, and why they failed",
    "gpuward.page.attempts": "how often it was sent",
    "gpuward.run.id": "of the run",
    "gpuward.run.state": "the state in which it ended",
    "gpuward.run.requested_by": "who asked for it; absent: a fault led to it",
    "gpuward.runbook": "its name",
    "gpuward.gate": "that held the run",
    "gpuward.step.id": "of the step; of a node's step also the id of the command",
    "gpuward.step.action": "what is done (docs/actions.md)",
    "gpuward.step.rung": "of the runbook",
    "gpuward.step.outcome": "how it ended",
}


class SpanKind(IntEnum):
    """As OTLP has them."""

    INTERNAL = 1
    CLIENT = 3  # somebody else does it: a node, a channel, a scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """What happened at one moment of a span."""

    # seconds since 1970, by the log's clock
    at: float
    name: str
    attributes: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span that has ended. Times: seconds since 1970, by the log's clock."""

    id: str
    # empty: the trace's first one
    parent: str
    name: str
    start: float
    end: float
    kind: SpanKind = SpanKind.INTERNAL
    attributes: Mapping[str, Value] = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    # error.type; empty: no error
    error: str = ""
    # what the error says
    message: str = ""
    # incidents to whose traces it leads
    links: tuple[str, ...] = ()


def said(**given: Value) -> dict[str, Value]:
    """Attributes of ours, `run_id` for `gpuward.run.id`, without those that say nothing; texts bounded."""
    return {f"gpuward.{_NAMED.get(key, key)}": _bounded(value) for key, value in given.items() if value != ""}


def on(node: str) -> dict[str, Value]:
    """The attribute with the node; none for a wider scope."""
    return {"host.name": _bounded(node)} if node else {}


def _bounded(value: Value) -> Value:
    """Foreign text is data: kernel lines, and what nodes, jobs and people say."""
    return clip(inert(value), MAX_TEXT) if isinstance(value, str) else value


# as keyword -> as attribute
_NAMED: Mapping[str, str] = {
    name.removeprefix("gpuward.").replace(".", "_"): name.removeprefix("gpuward.")
    for name in ATTRIBUTES
    if name.startswith("gpuward.")
}

"""Traces as a collector sees them: read by OpenTelemetry's own protobuf, strictly, and looked over."""

import base64
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from brain.adapters.readmodel import ReadModel
from brain.leader.trace_export import read
from brain.traces.spans import ATTRIBUTES, MAX_EVENTS, MAX_TEXT, NAMES, Span
from brain.traces.story import spans
from tests.brain.world import Story

_IDS = ("traceId", "spanId", "parentSpanId")
ERROR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One span, as a collector has it. Times in seconds since 1970."""

    trace: str
    id: str
    parent: str
    name: str
    start: float
    end: float
    kind: int
    error: str
    attributes: dict[str, Any]
    events: tuple[tuple[float, str, tuple[tuple[str, Any], ...]], ...] = ()
    links: tuple[str, ...] = ()
    resource: dict[str, Any] = field(default_factory=dict)


def seen(body: bytes) -> list[Seen]:
    """The spans of one request in OTLP/JSON; an unknown field, or one of another type, is an error."""
    raw = json.loads(body, object_hook=_with_base64)
    request = json_format.ParseDict(raw, ExportTraceServiceRequest(), ignore_unknown_fields=False)
    return of_protobuf(request)


def of_protobuf(request: ExportTraceServiceRequest) -> list[Seen]:
    """The spans of a request."""
    return [
        Seen(
            trace=span.trace_id.hex(),
            id=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            name=span.name,
            start=span.start_time_unix_nano / 1e9,
            end=span.end_time_unix_nano / 1e9,
            kind=span.kind,
            error=(span.status.message or "?") if span.status.code == ERROR else "",
            attributes=_plain(span.attributes),
            events=tuple(
                (one.time_unix_nano / 1e9, one.name, tuple(sorted(_plain(one.attributes).items())))
                for one in span.events
            ),
            links=tuple(one.trace_id.hex() for one in span.links),
            resource=_plain(of_resource.resource.attributes),
        )
        for of_resource in request.resource_spans
        for of_scope in of_resource.scope_spans
        for span in of_scope.spans
    ]


def _with_base64(found: dict[str, Any]) -> dict[str, Any]:
    """Protobuf's JSON has bytes in base64; OTLP/JSON has its ids in hexadecimal: that is the one difference."""
    for key in _IDS:
        if key in found:
            raw = bytes.fromhex(found[key])
            assert len(raw) == (16 if key == "traceId" else 8), f"{key} {found[key]}"
            assert found[key] == raw.hex(), "lower case"
            found[key] = base64.b64encode(raw).decode()
    return found


def _plain(given: Iterable[KeyValue]) -> dict[str, Any]:
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in given}


def look_over(trace: Sequence[Seen]) -> Seen:
    """Everything that holds of a complete trace; returns its first span."""
    assert len({span.trace for span in trace}) == 1
    assert [span_id for span_id, count in Counter(span.id for span in trace).items() if count > 1] == []
    (root,) = (span for span in trace if not span.parent)
    by_id = {span.id: span for span in trace}
    for span in trace:
        assert span.start <= span.end, span
        if span.parent:
            parent = by_id[span.parent]
            assert parent.start <= span.start, (span, parent)
            assert span.end <= parent.end, (span, parent)
        for at, _, _ in span.events:
            assert span.start - 1e-6 <= at <= span.end + 1e-6, span
        assert any(_fits(span.name, name) for name in NAMES), span.name
        told = {*span.attributes, *(key for _, _, pairs in span.events for key, _ in pairs)}
        assert told <= set(ATTRIBUTES), told - set(ATTRIBUTES)
        assert span.attributes["gpuward.incident.id"] == root.attributes["gpuward.incident.id"]
        assert len(span.events) <= MAX_EVENTS
        texts = [value for value in span.attributes.values() if isinstance(value, str)]
        assert all(0 < len(text) <= MAX_TEXT for text in texts), span
        assert bool(span.error) == ("error.type" in span.attributes), span
    return root


def _fits(name: str, pattern: str) -> bool:
    fixed, _, variable = pattern.partition("<")
    return name.startswith(fixed.strip()) if variable else name == fixed


def outline(trace: Iterable[Seen]) -> list[str]:
    """The names as an indented tree, in order of begin."""
    trace = list(trace)
    ids = {span.id for span in trace}

    def below(parent: str, depth: int) -> Iterable[str]:
        own = [one for one in trace if one.parent == parent or (not parent and one.parent not in ids)]
        for span in sorted(own, key=lambda one: (one.start, one.end, one.name)):
            yield f"{'  ' * depth}{span.name}{' !' if span.error else ''}"
            yield from below(span.id, depth + 1)

    return list(below("", 0))


def history(folder: Path, story: Story, upto: int | None = None) -> ReadModel:
    """The read model of a story, as far as it has come."""
    kept = ReadModel(folder / "history.sqlite")
    kept.write(
        1,
        [(1, note) for note in story.time.notes[:upto]],
        story.time.incidents.values(),
        story.time.runs.values(),
    )
    return kept


def told(kept: ReadModel, incident: str) -> list[Span]:
    """The spans of an incident."""
    found = read(kept, incident)
    return spans(found) if found else []

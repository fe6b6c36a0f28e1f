"""Spans as OTLP/JSON: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.

Of protobuf's JSON it differs in the ids, which are hexadecimal; 64-bit integers are texts, enums are numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from agent.contract.inert import inert
from brain.traces.ids import span_id, trace_id
from brain.traces.spans import Span, SpanEvent, Value

SCOPE = "gpuward.traces"
_ERROR = 2  # STATUS_CODE_ERROR; without one a status is left unset


def request(spans: Sequence[tuple[str, Span]], resource: Mapping[str, Value], version: str) -> bytes:
    """One ExportTraceServiceRequest, also a line of the file. `spans`: pairs of incident and span; `version`: of gpuward."""
    return orjson.dumps(
        {
            "resourceSpans": [
                {
                    "resource": {"attributes": _attributes(resource)},
                    "scopeSpans": [
                        {
                            "scope": {"name": SCOPE, "version": version},
                            "spans": [_span(incident, span) for incident, span in spans],
                        }
                    ],
                }
            ]
        }
    )


def _span(incident: str, span: Span) -> dict[str, Any]:
    found: dict[str, Any] = {
        "traceId": trace_id(incident),
        "spanId": span.id,
        "name": inert(span.name),
        "kind": int(span.kind),
        "startTimeUnixNano": _nanoseconds(span.start),
        "endTimeUnixNano": _nanoseconds(span.end),
        "attributes": _attributes(span.attributes),
    }
    if span.parent:
        found["parentSpanId"] = span.parent
    if span.events:
        found["events"] = [_event(one) for one in span.events]
    if span.links:
        found["links"] = [{"traceId": trace_id(one), "spanId": span_id(one)} for one in span.links]
    if span.error:
        found["status"] = {"code": _ERROR, "message": inert(span.message)}
    return found


def _event(one: SpanEvent) -> dict[str, Any]:
    return {
        "timeUnixNano": _nanoseconds(one.at),
        "name": one.name,
        "attributes": _attributes(one.attributes),
    }


def _attributes(given: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in given.items()]


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def _nanoseconds(at: float) -> str:
    """Of whole microseconds: a float has no more."""
    return str(round(at * 1e6) * 1000)

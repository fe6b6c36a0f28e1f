"""Ids of traces and spans, which follow from the ids on the log: every brain gives the same, and a restart changes none."""

import hashlib

from brain.core import ids


def trace_id(incident: str) -> str:
    """The trace of an incident, 32 hexadecimal digits: the beginning of the SHA-256 of its id. Empty: it has none."""
    if not incident.startswith(f"{ids.INCIDENT}-"):
        return ""  # an alert group: each of its incidents has a trace
    return hashlib.sha256(incident.encode()).hexdigest()[:32]


def span_id(incident: str, *what: str) -> str:
    """A span of that trace, 16 hexadecimal digits; without `what` its first one."""
    return hashlib.sha256("|".join((incident, "span", *what)).encode()).hexdigest()[:16]

"""Translates UFM's events to our kinds of events. Pure.

The numbers are from "Supported Traps and Events" in the UFM user manual and from lists of operators. An event whose number
differs between versions is recognized by its name. Any other event is unknown: counted and noted once, never acted on.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agent.contract.messages import Scalar, Severity, clip
from brain.core.pack import ufm_kinds


class Meaning(StrEnum):
    """What an event means."""

    LINK_UP = "link_up"  # a link came up
    LINK_DOWN = "link_down"  # a link went down
    ERRORS = "errors"  # an error counter of a port grew faster than UFM's threshold
    UNHEALTHY = "unhealthy"  # UFM took a port out of the fabric: it flapped or is faulty
    HOT = "hot"  # a module or transceiver is too hot
    SM_CHANGED = "sm_changed"  # another subnet manager, or another state of it
    SWITCH_DOWN = "switch_down"  # UFM lost a switch


@dataclass(frozen=True, slots=True, kw_only=True)
class UfmEvent:
    """The fields that we need of one of UFM's events."""

    id: int
    # Its number as text
    type: str
    name: str
    # Of a port: `<guid>_<number>`
    object: str
    severity: Severity
    text: str
    stamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """An event in our terms: its kind and data."""

    kind: str
    severity: Severity
    data: Mapping[str, Scalar]


_NUMBERS: Mapping[str, tuple[Meaning, str]] = {
    "328": (Meaning.LINK_UP, ""),
    "329": (Meaning.LINK_DOWN, ""),
    "110": (Meaning.ERRORS, "symbol_error"),
    "112": (Meaning.ERRORS, "link_downed"),
    "113": (Meaning.ERRORS, "port_rcv_errors"),
    "116": (Meaning.ERRORS, "port_xmit_discards"),
    "117": (Meaning.ERRORS, "port_xmit_constraint_errors"),
    "120": (Meaning.ERRORS, "excessive_buffer_overrun_errors"),
    "121": (Meaning.ERRORS, "VL15_dropped"),
    "702": (Meaning.UNHEALTHY, ""),
    "907": (Meaning.SWITCH_DOWN, ""),
    "917": (Meaning.ERRORS, "symbol_ber"),
    "918": (Meaning.ERRORS, "symbol_ber"),
}
_NAMES: tuple[tuple[re.Pattern[str], Meaning, str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), meaning, counter)
    for pattern, meaning, counter in (
        (r"\blink error recovery\b", Meaning.ERRORS, "link_error_recovery"),
        (r"\blocal link integrity\b", Meaning.ERRORS, "local_link_integrity_errors"),
        (r"\bremote physical\b", Meaning.ERRORS, "port_rcv_remote_physical_errors"),
        (r"\b(?:module|cable|transceiver)\b.*\btemperature\b", Meaning.HOT, ""),
        (
            r"\b(?:SM|subnet manager)\b.*\b(?:fail-?over|handover|state chang\w*|changed)\b",
            Meaning.SM_CHANGED,
            "",
        ),
    )
)
_COLD = re.compile(r"\btemperature\b.*\blow\b|\blow\b.*\btemperature\b", re.IGNORECASE)
_SEVERITIES = {
    "info": Severity.INFO,
    "warning": Severity.WARNING,
    "minor": Severity.WARNING,
    "major": Severity.ERROR,
    "critical": Severity.ERROR,
}


def read(raw: Mapping[str, Any]) -> UfmEvent | None:
    """Returns the event in a record; None without a usable id. `event_type` is the number, `type` in older versions."""
    try:
        number = int(raw.get("id", ""))
    except (TypeError, ValueError):
        return None
    if not 0 <= number < 2**63:  # it is written down
        return None
    return UfmEvent(
        id=number,
        type=str(raw.get("event_type") or raw.get("type") or "?")[:20],
        name=str(raw.get("name") or "")[:80],
        object=str(raw.get("object_name") or "")[:200],
        severity=_SEVERITIES.get(str(raw.get("severity") or "").lower(), Severity.WARNING),
        text=clip(str(raw.get("description") or ""), 300),
        stamp=str(raw.get("timestamp") or "")[:40],
    )


def meaning(event: UfmEvent, more: Mapping[str, str]) -> tuple[Meaning, str] | None:
    """Returns (meaning, counter of errors); None: unknown. `more`: number → meaning, from the configuration."""
    if event.type in more:
        return Meaning(more[event.type]), event.name
    if (known := _NUMBERS.get(event.type)) is not None:
        return known
    return next(((what, counter) for pattern, what, counter in _NAMES if pattern.search(event.name)), None)


def fact(event: UfmEvent, what: Meaning, counter: str, *, side: str) -> Fact:
    """Returns the event in our terms. `side`: node or switch, the end of the cable that it is about; empty: no port."""
    common: dict[str, Scalar] = {"event": event.type, "name": event.name, "text": event.text}
    match what:
        case Meaning.LINK_UP:
            data = {"state": "ACTIVE", "before": "DOWN", "phys_state": "LinkUp"}
            return Fact(kind="ib.port_state", severity=Severity.INFO, data=data)
        case Meaning.LINK_DOWN:
            data = {"state": "DOWN", "before": "ACTIVE", "phys_state": "Polling"}
            return Fact(kind="ib.port_state", severity=Severity.WARNING, data=data)
        case Meaning.ERRORS:
            return Fact(
                kind=ufm_kinds.UFM_PORT_ERRORS,
                severity=Severity.WARNING,
                data=common | {"counter": counter, "side": side},
            )
        case Meaning.UNHEALTHY:
            return Fact(kind=ufm_kinds.UFM_UNHEALTHY, severity=Severity.ERROR, data=common | {"side": side})
        case Meaning.HOT:
            # Of a module that is too cold UFM has an alarm of its own: it is not hot.
            severity = Severity.INFO if _COLD.search(event.name) else event.severity
            return Fact(kind=ufm_kinds.UFM_HOT, severity=severity, data=common | {"side": side})
        case Meaning.SM_CHANGED:
            return Fact(kind=ufm_kinds.UFM_SM_CHANGED, severity=Severity.WARNING, data=common)
        case Meaning.SWITCH_DOWN:
            return Fact(
                kind=ufm_kinds.UFM_SWITCH_DOWN,
                severity=Severity.ERROR,
                data=common | {"switch": event.object},
            )

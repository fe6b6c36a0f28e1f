"""The health of a node through IPMI, from `ipmitool sdr elist` and `sel elist`. Pure.

Sources: IPMI 2.0, tables 42-2 and 42-3 (states of sensors by event type) and 43-13 (entities), as ipmitool prints them:

    PS1 Status       | C8h | ok  | 10.1 | Presence detected, Power Supply AC lost
    Inlet Temp       | 04h | unc | 64.1 | 41 degrees C
       2 | 11/30/2026 | 10:12:01 | Power Supply PS1 Status | Power Supply AC lost | Asserted

A discrete sensor is `ok` whatever it says, so its words decide.
"""

import re
from collections.abc import Iterable

from agent.contract.messages import clip
from brain.actions.bmc_health import (
    MAX_TEXT,
    BmcHealth,
    LogEntry,
    NodePart,
    PartKind,
    PartState,
    part,
    unique,
)

ENTRIES = 64  # of the event log, the newest
_STATES = {  # thresholds are crossed upwards (u) or downwards (l)
    "ok": PartState.WELL,
    "nc": PartState.WARNING,  # non-critical
    "cr": PartState.CRITICAL,
    "nr": PartState.CRITICAL,  # non-recoverable
}
_ENTITIES = {10: PartKind.PSU, 29: PartKind.FAN, 30: PartKind.FAN, 55: PartKind.INLET, 64: PartKind.INLET}
_MEMORY = (8, 32)
_READING = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?) (degrees C|RPM|percent|Watts|Volts|Amps)\b")
_BAD = re.compile(
    r"failure detected|ac lost|out-of-range|config(?:uration)? error|non-redundant|redundancy lost|uncorrectable ecc|"
    r"memory device disabled|ierr|thermal trip|transition to (?:critical|non-recoverable)|predictive failure|"
    r"fan (?:failure|stopped)|leak(?:age)? detected|fault\b",
    re.IGNORECASE,
)
_DOUBTFUL = re.compile(
    r"redundancy degraded|correctable ecc|logging limit reached|transition to non-critical|throttl|spare",
    re.IGNORECASE,
)
# Of the event log: what asks for people. It says of nothing else how bad it is.
_CRITICAL = re.compile(
    r"uncorrectable|non-recoverable|(?:upper|lower) critical|failure detected|ac lost|redundancy lost|non-redundant|"
    r"fatal|nmi\b|ierr|machine check|thermal trip|frb|perr|serr|leak|transition to critical|"
    r"configuration error|memory device disabled|parity",
    re.IGNORECASE,
)
_LEAK = re.compile(r"leak|liquid|coolant|moisture", re.IGNORECASE)
_INLET = re.compile(r"inlet|intake|ambient|front panel temp", re.IGNORECASE)
_FAN = re.compile(r"\bfan", re.IGNORECASE)
_PSU = re.compile(r"\b(?:psu?[0-9]*|power supply|pwr supply)\b", re.IGNORECASE)
_DIMM = re.compile(r"\bdimm|\bmemory\b", re.IGNORECASE)
_REDUNDANCY = re.compile(r"redundan", re.IGNORECASE)


def read(sensors: str, events: str, missing: Iterable[str], *, on: bool) -> BmcHealth:
    """Returns what the two outputs say. `missing`: what could not be read; `on`: the node has power."""
    return BmcHealth(
        on=on,
        parts=unique(found for line in sensors.splitlines() if (found := _part(line)) is not None),
        entries=tuple(one for line in reversed(events.splitlines()) if (one := _entry(line)) is not None)[
            :ENTRIES
        ],
        missing=tuple(missing),
    )


def _part(line: str) -> NodePart | None:
    row = [field.strip() for field in line.split("|")]
    if len(row) != 5 or row[2] == "ns":  # ns: no reading, e.g. an empty slot
        return None
    name, said = row[0], row[4]
    measured = _READING.search(said)
    reading, unit = (float(measured[1]), measured[2]) if measured else (None, "")
    state = _STATES.get(row[2][-2:], PartState.UNKNOWN)
    if measured is None and state is PartState.WELL:
        state = PartState.CRITICAL if _bad(said) else PartState.WARNING if _DOUBTFUL.search(said) else state
    kind = _kind(name, row[3], said, unit)
    if (kind is PartKind.INLET and unit != "degrees C") or (kind is PartKind.DIMM and unit):
        kind = PartKind.SENSOR  # the temperature of a module is not its errors
    kept = reading if kind in (PartKind.INLET, PartKind.FAN, PartKind.SENSOR) else None
    return part(kind, name, state, reading=kept, text=said)


def _bad(said: str) -> bool:
    """Uncorrectable holds "correctable"; "Fully Redundant" holds no bad word."""
    return _BAD.search(said) is not None


def _kind(name: str, entity: str, said: str, unit: str) -> PartKind:
    number = int(entity.partition(".")[0]) if entity.partition(".")[0].isdigit() else -1
    about = _ENTITIES.get(number)
    if _LEAK.search(name):
        return PartKind.LEAK
    if _REDUNDANCY.search(name) or (not unit and _REDUNDANCY.search(said)):
        fans = about is PartKind.FAN or _FAN.search(name)
        return PartKind.FAN_REDUNDANCY if fans else PartKind.PSU_REDUNDANCY
    if _INLET.search(name) and unit == "degrees C":
        return PartKind.INLET
    if unit and unit not in ("degrees C", "RPM", "percent"):
        return PartKind.SENSOR  # a voltage or a power of whatever part
    if unit == "degrees C":
        return PartKind.INLET if about is PartKind.INLET else PartKind.SENSOR
    if about is not None:
        return about
    if number in _MEMORY or _DIMM.search(name):
        return PartKind.DIMM
    if _FAN.search(name):
        return PartKind.FAN
    return PartKind.PSU if _PSU.search(name) else PartKind.SENSOR


def _entry(line: str) -> LogEntry | None:
    row = [field.strip() for field in line.split("|")]
    if len(row) < 5 or (len(row) > 5 and row[5].lower().startswith("deassert")):
        return None
    said = " ".join(f"{row[3]}: {row[4]}".split())
    bad = _CRITICAL.search(said) is not None
    return LogEntry(
        id=clip(f"{row[0]} {row[1]} {row[2]}", 120),
        state=PartState.CRITICAL if bad else PartState.UNKNOWN,
        text=clip(said, MAX_TEXT),
    )

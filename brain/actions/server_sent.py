"""The stream of Server-Sent Events of a BMC, as text: what of it is an event, and whether that concerns health. Pure.

Sources: WHATWG HTML, "Server-sent events" (lines, comments, an empty line ends an event); DSP0266, "Server-sent events"; DSP0268,
Event (Events: EventType, Severity, since 1.5 MessageSeverity). What an event says is believed as far as this: look now.
"""

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

MOST_EVENT = 64 * 1024  # bytes of one event that are kept
_ROWS = 64  # events in one message that are looked at
_QUIET = "metricreport"  # telemetry


class Concern(StrEnum):
    """What an event is to us."""

    NONE = "none"  # telemetry, or nothing that anybody can read
    BAD = "bad"  # something may have become unwell
    GOOD = "good"  # something may have become well; of this kind are logins, too


class ServerSentReader:
    """Cuts a stream into the data of its events. What it keeps is bounded."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data = bytearray()
        self._any = False
        self._over = False  # the event is longer than we keep
        self._returned = False  # the last piece ended in the middle of CR LF

    def feed(self, piece: bytes) -> Iterator[Concern]:
        """Takes the next bytes, and gives the concern of each event that ends in them."""
        if self._returned:
            piece = piece.removeprefix(b"\n")
        self._returned = piece.endswith(b"\r")
        parts = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for index, part in enumerate(parts):
            room = MOST_EVENT - len(self._line)
            self._over = self._over or len(part) > room
            self._line += part[: max(room, 0)]
            if index + 1 < len(parts):
                line, self._line = bytes(self._line), bytearray()
                if (found := self._ended(line)) is not None:
                    yield found

    def _ended(self, line: bytes) -> Concern | None:
        if line:
            if line.startswith(b"data:"):
                self._any = True
                self._over = self._over or len(self._data) + len(line) > MOST_EVENT
                if not self._over:
                    self._data += line[5:] + b"\n"
            return None
        data, any_data, over = bytes(self._data), self._any, self._over
        self._data, self._any, self._over = bytearray(), False, False
        if not any_data:
            return None
        return Concern.BAD if over else concern(data)


def concern(data: bytes) -> Concern:
    """What the data of one event are to us."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return Concern.NONE
    rows = found.get("Events") if isinstance(found, Mapping) else None
    if not isinstance(rows, list):
        return Concern.NONE
    each = [_of(one) for one in rows[:_ROWS] if isinstance(one, Mapping)]
    return next((one for one in (Concern.BAD, Concern.GOOD) if one in each), Concern.NONE)


def _of(row: Mapping[str, Any]) -> Concern:
    if str(row.get("EventType") or "").lower() == _QUIET:
        return Concern.NONE
    severity = str(row.get("MessageSeverity") or row.get("Severity") or "").lower()
    return Concern.GOOD if severity in ("ok", "informational") else Concern.BAD

"""The offsets of a time zone from UTC, read from the tz database once: the engine's decisions need them as data."""

from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo

from agent.contract.errors import ConfigError

FIRST, LAST = 2020, 2060  # years
_DAY_S = 86_400


@cache
def utc_offsets(zone: str) -> tuple[tuple[float, float], ...]:
    """(seconds since 1970 UTC, offset in seconds from then on) of each change of a zone's clocks; `zone` empty: UTC.

    Fixed years, not those around now: a brain that starts again gives the engine the same settings. ConfigError for a
    zone that the tz database does not have.
    """
    if not zone:
        return ()
    try:
        there = ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise ConfigError(f"the tz database has no zone {zone!r}") from error
    start = int(datetime(FIRST, 1, 1, tzinfo=UTC).timestamp())
    end = int(datetime(LAST, 1, 1, tzinfo=UTC).timestamp())
    found = [(float(start), _offset_s(there, start))]
    for day in range(start, end, _DAY_S):
        if _offset_s(there, day + _DAY_S) != found[-1][1]:
            changed = _change(there, day, day + _DAY_S)
            found.append((float(changed), _offset_s(there, changed)))
    return tuple(found)


def _change(zone: ZoneInfo, before: int, after: int) -> int:
    """The second between two moments in which the offset changes."""
    offset_s = _offset_s(zone, before)
    while after - before > 1:
        middle = (before + after) // 2
        if _offset_s(zone, middle) == offset_s:
            before = middle
        else:
            after = middle
    return after


def _offset_s(zone: ZoneInfo, at: int) -> float:
    offset = datetime.fromtimestamp(at, zone).utcoffset()
    return offset.total_seconds() if offset is not None else 0.0

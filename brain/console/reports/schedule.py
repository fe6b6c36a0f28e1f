"""When a report is due, by its zone's clocks, and which time it is about. Pure.

A time that a clock leaves out in spring is due as much later, one that it shows twice in autumn the first time: each is due once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from brain.reports_config import ReportConfig

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_BACK = timedelta(days=32)  # a report of each month is due at least once in so many days
_MOST_BACK_S = 31 * 86_400.0  # that the hand-over of a shift reaches back, however long nothing was mailed
_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Time:
    """One time at which a report is due."""

    # in seconds since 1970
    at: float
    # what brain.toml says for it, which a clock may leave out: the report before it is found by that
    local: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DueReport:
    """One report that is due. Times in seconds since 1970."""

    # when it is to be mailed
    at: float
    # the time that it is about: from then to `at`
    since: float
    # the times before it at which one was due and none was mailed, oldest first
    missed: tuple[float, ...]


def zone_of(want: ReportConfig, site: str) -> ZoneInfo:
    """By whose clocks it is due. `site`: the site's own zone; empty: UTC."""
    return ZoneInfo(want.zone or site or "UTC")


def newest(want: ReportConfig, zone: ZoneInfo, now: float) -> float | None:
    """When the newest one was due, at or before `now`; None: before there was a calendar."""
    found = _newest(want, zone, now)
    return None if found is None else found.at


def due(want: ReportConfig, zone: ZoneInfo, now: float, mailed: float) -> DueReport | None:
    """The report that is due; None: none is. `mailed`: when the newest one was due that was mailed."""
    found = _newest(want, zone, now)
    if found is None or found.at <= mailed:
        return None
    first = datetime.fromtimestamp(max(mailed, found.at - _MOST_BACK_S), zone).date()
    last = datetime.fromtimestamp(found.at, zone).date()
    missed = tuple(sorted(one.at for one in _times(want, zone, first, last) if mailed < one.at < found.at))
    return DueReport(at=found.at, since=_since(want, zone, found, mailed), missed=missed)


def _newest(want: ReportConfig, zone: ZoneInfo, now: float) -> _Time | None:
    today = datetime.fromtimestamp(now, zone).date()
    there = (one for one in _times(want, zone, today - _BACK, today) if one.at <= now)
    return max(there, key=lambda one: one.at, default=None)


def _times(want: ReportConfig, zone: ZoneInfo, first: date, last: date) -> Iterator[_Time]:
    """When it is due on the days from the first to the last."""
    for number in range((last - first).days + 1):
        day = first + timedelta(days=number)
        if _is_day(want, day):
            for clock in want.at:
                local = datetime.combine(day, time.fromisoformat(clock))
                yield _Time(at=_at(local, zone), local=local)


def _is_day(want: ReportConfig, day: date) -> bool:
    if want.month_days or (want.what == "month" and not want.days):
        return day.day in (want.month_days or (1,))
    days = want.days or (("mon",) if want.what == "week" else _DAYS)
    return _DAYS[day.weekday()] in days


def _at(local: datetime, zone: ZoneInfo) -> float:
    """What the zone's clocks show as `local`; see above for the two days a year on which they change."""
    return local.replace(tzinfo=zone, fold=0).astimezone(UTC).timestamp()


def _since(want: ReportConfig, zone: ZoneInfo, due: _Time, mailed: float) -> float:
    """A shift begins where the last report ended, so that nothing falls between two; a week and a month by the calendar."""
    local = due.local
    if want.what == "shift":
        return max(mailed, due.at - _MOST_BACK_S)
    if want.what == "week":
        return _at(local - _WEEK, zone)
    last_month = local.replace(day=1) - timedelta(days=1)
    return _at(
        local.replace(year=last_month.year, month=last_month.month, day=min(local.day, last_month.day)), zone
    )

"""Hours of the week in the site's own time. Pure: the zone's offsets from UTC are settings, which are on the log."""

from collections.abc import Sequence

from brain.core.pack.spec import Digest, Hours, Settings

DAY_S = 86_400.0
_DAYS = ("thu", "fri", "sat", "sun", "mon", "tue", "wed")  # 1 January 1970 was a Thursday
_AHEAD = 9  # days in which every hour of a week has come, also where the clock is changed


def leaves_at(settings: Settings, digest: Digest, now: float) -> float:
    """When a digest that begins to collect now is sent: after `every_s`, but not outside its hours."""
    opens = next_open(settings, digest.hours, now)
    return next_open(settings, digest.hours, now + digest.every_s) if opens <= now else opens


def next_open(settings: Settings, hours: Sequence[Hours], at: float) -> float:
    """The first moment from `at` on that lies in one of the hours; `at` itself where there are none."""
    today = int((at + offset_s(settings, at)) / DAY_S)
    found = []
    for day in range(today, today + _AHEAD):
        for entry in hours:
            if _DAYS[day % 7] in entry.days:
                begins = _utc(settings, day * DAY_S + entry.from_hour * 3600)
                ends = _utc(settings, day * DAY_S + entry.until_hour * 3600)
                if max(begins, at) < ends:
                    found.append(max(begins, at))
    return min(found, default=at)


def offset_s(settings: Settings, at: float) -> float:
    """The site's offset from UTC at a moment."""
    return next((offset for since, offset in reversed(settings.utc_offsets) if since <= at), 0.0)


def _utc(settings: Settings, local: float) -> float:
    """The moment at which the site's clocks show `local`; of two, where they are set back, the later one."""
    guess = local - offset_s(settings, local)
    return local - offset_s(settings, guess)

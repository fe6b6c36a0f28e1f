"""When a report is due and what it is about: by the zone's clocks, each time once, also on the days on which they change."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.errors import ConfigError
from brain import config
from brain.console.reports import schedule
from brain.reports_config import ReportConfig

BERLIN = ZoneInfo("Europe/Berlin")
MAIL = {"url_file": "mail.url"}


def want(what: str = "shift", **more: Any) -> ReportConfig:
    """A table of brain.toml."""
    return config.parse(
        {"reports": [{"name": "r", "what": what, **MAIL, **more}]}, "brain.toml", Path("/etc")
    ).reports[0]


def at(text: str, zone: ZoneInfo = BERLIN) -> float:
    """Seconds since 1970 of a time by the zone's clocks; with `+`, of a given offset."""
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=zone)).timestamp()


def mailed(given: ReportConfig, since: str, until: str, step_s: float = 600.0) -> list[tuple[str, float]]:
    """Each report of a brain that looks every ten minutes: when it was due by the zone's clocks, and the hours it is about."""
    now, end, known = at(since), at(until), schedule.newest(given, BERLIN, at(since))
    assert known is not None
    found = []
    while now <= end:
        due = schedule.due(given, BERLIN, now, known)
        if due is not None:
            known = due.at
            found.append(
                (
                    datetime.fromtimestamp(due.at, BERLIN).strftime("%a %d %H:%M %Z"),
                    (due.at - due.since) / 3600,
                )
            )
            assert not due.missed
        now += step_s
    return found


def test_three_shifts_a_day_and_on_working_days_only() -> None:
    """Each begins where the last one ended, so that Monday's has the weekend."""
    given = want(at=["06:00", "14:00", "22:00"], days=["mon", "tue", "wed", "thu", "fri"])
    assert mailed(given, "2026-06-05 00:00", "2026-06-08 23:00") == [
        ("Fri 05 06:00 CEST", 8.0), ("Fri 05 14:00 CEST", 8.0), ("Fri 05 22:00 CEST", 8.0),
        ("Mon 08 06:00 CEST", 56.0), ("Mon 08 14:00 CEST", 8.0), ("Mon 08 22:00 CEST", 8.0),
    ]  # fmt: skip


def test_the_days_on_which_clocks_change() -> None:
    """In spring the night's shift has seven hours, and 02:30 is told at 03:30; in autumn it has nine, and 02:30 is told once."""
    given = want(at=["22:00", "06:00"])
    assert mailed(given, "2026-03-28 21:00", "2026-03-29 23:00") == [
        ("Sat 28 22:00 CET", 16.0), ("Sun 29 06:00 CEST", 7.0), ("Sun 29 22:00 CEST", 16.0),
    ]  # fmt: skip
    assert mailed(given, "2026-10-24 21:00", "2026-10-25 23:00") == [
        ("Sat 24 22:00 CEST", 16.0), ("Sun 25 06:00 CET", 9.0), ("Sun 25 22:00 CET", 16.0),
    ]  # fmt: skip
    night = want(at=["02:30"])
    assert mailed(night, "2026-03-28 12:00", "2026-03-30 12:00") == [
        ("Sun 29 03:30 CEST", 24.0), ("Mon 30 02:30 CEST", 23.0),
    ]  # fmt: skip
    assert mailed(night, "2026-10-24 12:00", "2026-10-26 12:00") == [
        ("Sun 25 02:30 CEST", 24.0), ("Mon 26 02:30 CET", 25.0),
    ]  # fmt: skip


def test_a_week_and_a_month_by_the_calendar() -> None:
    """Seven days by the clocks, and from the same time a month before; Monday and the first where nothing else is said."""
    week = 7 * 24.0
    assert mailed(want("week"), "2026-03-20 00:00", "2026-03-31 00:00") == [
        ("Mon 23 08:00 CET", week), ("Mon 30 08:00 CEST", week - 1),
    ]  # fmt: skip
    assert mailed(want("month"), "2026-01-20 00:00", "2026-03-02 00:00") == [
        ("Sun 01 08:00 CET", 31 * 24.0), ("Sun 01 08:00 CET", 28 * 24.0),
    ]  # fmt: skip
    (fridays,) = mailed(want("month", days=["tue"]), "2026-03-25 00:00", "2026-03-31 12:00")
    assert fridays == ("Tue 31 08:00 CEST", 31 * 24.0 - 1), "the 31st: a month before is the 28th of February"


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/Nuuk", "Australia/Lord_Howe", "America/Santiago", "Africa/Cairo"]
)
@pytest.mark.parametrize("clock", ["00:00", "00:30", "01:45", "02:30", "23:30"])
@pytest.mark.parametrize("days", ["sat", "sun", "fri", "thu"])
def test_no_hour_falls_between_two_weeks(zone: str, clock: str, days: str) -> None:
    """Nor is one told twice, also where a clock leaves out the time at which it is due."""
    there, given = ZoneInfo(zone), want("week", days=[days], at=[clock])
    now, end = at("2026-01-01 00:00", there), at("2028-01-01 00:00", there)
    known = schedule.newest(given, there, now)
    assert known is not None
    while now < end:
        now += 6 * 3600
        due = schedule.due(given, there, now, known)
        if due is not None:
            assert due.since == known, datetime.fromtimestamp(due.at, there)
            known = due.at


def test_what_was_missed_is_in_the_next_one() -> None:
    """A brain that was down over three shifts: one report of all of them, which names the times."""
    given = want(at=["06:00", "14:00", "22:00"])
    due = schedule.due(given, BERLIN, at("2026-06-06 15:00"), at("2026-06-05 14:00"))
    assert due is not None
    assert (due.at, due.since) == (at("2026-06-06 14:00"), at("2026-06-05 14:00"))
    assert due.missed == (at("2026-06-05 22:00"), at("2026-06-06 06:00"))
    assert schedule.due(given, BERLIN, at("2026-06-06 21:59"), due.at) is None
    weeks = schedule.due(want("week"), BERLIN, at("2026-06-20 00:00"), at("2026-06-01 08:00"))
    assert weeks is not None
    assert (weeks.since, weeks.missed) == (at("2026-06-08 08:00"), (at("2026-06-08 08:00"),))


ZONES = st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Shanghai", "UTC"])


@given(
    zone=ZONES.map(ZoneInfo),
    clocks=st.sets(st.integers(0, 1439), min_size=1, max_size=4),
    began=st.datetimes(datetime(2021, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001 - hypothesis adds none
    gaps=st.lists(st.floats(60, 40 * 86_400), min_size=1, max_size=30),
)
def test_whenever_the_brain_looks_each_time_is_mailed_or_missed_once(
    zone: ZoneInfo, clocks: set[int], began: datetime, gaps: list[float]
) -> None:
    """Nothing twice, in order, without a gap between shifts but where nobody looked for a month; and each is of the past."""
    given = want(at=[f"{one // 60:02}:{one % 60:02}" for one in sorted(clocks)])
    now = began.replace(tzinfo=UTC).timestamp()
    known = schedule.newest(given, zone, now)
    assert known is not None
    told = [known]
    for gap in gaps:
        now += gap
        due = schedule.due(given, zone, now, known)
        if due is None:
            assert now - known <= 25.1 * 3600
            continue
        assert due.at <= now
        assert due.since == max(known, due.at - 31 * 86_400)
        told += [*due.missed, due.at]
        known = due.at
    assert told == sorted(set(told))
    if max(gaps) < 25 * 86_400:
        days = {datetime.fromtimestamp(one, zone).date() for one in told}
        assert len(days) >= (max(days) - min(days)) // timedelta(days=1)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"at": ["8:00"]}, "reports.0.at: want times as 08:00, not '8:00'"),
        ({"at": ["24:00"]}, "want times as 08:00"),
        ({"at": []}, "want times as 08:00"),
        ({"month_days": [29]}, "want days that every month has"),
        ({"month_days": [1], "days": ["mon"]}, "give `days` or `month_days`, not both"),
        ({"to": ["ann@example.org, bob@example.org"]}, "want an address as"),
        ({"to": ["ann@example.org\r\nBcc: x@y"]}, "want an address as"),
        ({"name": "a b"}, "reports.0.name"),
        ({"zone": "Mars/Olympus"}, "no zone 'Mars/Olympus'"),
        ({"language": "fr"}, "reports.0.language"),
        ({"console_url": "javascript:alert(1)"}, "reports.0.console_url"),
        ({"channel": "mail"}, "give `channel` or `url_file`"),
        ({"url_file": None, "channel": "mail"}, "there is no channel 'mail' of type apprise (have: none)"),
        ({"why": "?"}, "reports.0.why: unknown key"),
    ],
)
def test_what_is_refused(given: dict[str, Any], says: str) -> None:
    """With the key."""
    with pytest.raises(ConfigError) as caught:
        want(**given)
    assert says in str(caught.value)


def test_two_of_one_name_are_refused_and_paths_begin_at_the_file() -> None:
    table = {"name": "r", "what": "week", **MAIL}
    with pytest.raises(ConfigError, match=r"reports\.1\.name: 'r' is there already"):
        config.parse({"reports": [table, table]}, "brain.toml", Path("/etc"))
    assert want().url_file == Path("/etc/mail.url")

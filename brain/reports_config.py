"""The tables `[[reports]]` of the brain's configuration: which report is mailed, when, and to whom (docs/operations.md)."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from agent.contract import subjects
from agent.contract.errors import ConfigError
from brain.core.pack.spec import Weekday

_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_ADDRESS = re.compile(r"[^@\s,;<>\"]+@[^@\s,;<>\"]+")


class ReportConfig(BaseModel):
    """One report, again and again."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    # Its name in notes, and in the mails' Message-ID
    name: str
    # shift: since the last one, with the hand-over · week: seven days · month; these two beside the time before
    what: Literal["shift", "week", "month"]
    # HH:MM by the zone's clocks: a mail for each
    at: tuple[str, ...] = ("08:00",)
    # mon .. sun; empty: of a shift each day, of a week Monday
    days: tuple[Weekday, ...] = ()
    # 1 to 28, instead of `days`; empty: of a month the 1st
    month_days: tuple[int, ...] = ()
    # As in the tz database (Europe/Berlin); empty: that of `settings.zone`
    zone: str = ""
    # en or zh
    language: Literal["en", "zh"] = "en"
    # The channel by whose mail server it goes: of type apprise, its URL begins with mailto:// or mailtos://
    channel: str = ""
    # Or a file with such a URL, where no channel is to page by it
    url_file: Path | None = None
    # Addresses; empty: those of the URL
    to: tuple[str, ...] = ()
    # Where people open the console: what the report names leads there; empty: it leads nowhere
    console_url: str = Field(default="", pattern=r"^(https?://[^\s\"<>]+)?$")

    @field_validator("name")
    @classmethod
    def _is_a_token(cls, name: str) -> str:
        try:
            subjects.token(name, "name")
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return name

    @field_validator("at")
    @classmethod
    def _are_clocks(cls, at: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [one for one in at if not _CLOCK.fullmatch(one)]
        if wrong or not at:
            raise ValueError(f"want times as 08:00{f', not {wrong[0]!r}' if wrong else ''}")
        return at

    @field_validator("month_days")
    @classmethod
    def _are_in_each_month(cls, days: tuple[int, ...]) -> tuple[int, ...]:
        if any(not 1 <= day <= 28 for day in days):
            raise ValueError("want days that every month has: 1 to 28")
        return days

    @field_validator("to")
    @classmethod
    def _are_addresses(cls, to: tuple[str, ...]) -> tuple[str, ...]:
        for one in to:
            if not _ADDRESS.fullmatch(one) or not one.isascii():
                raise ValueError(f"{one!r}: want an address as oncall@example.org")
        return to

    @model_validator(mode="after")
    def _agrees(self) -> "ReportConfig":
        if self.days and self.month_days:
            raise ValueError("give `days` or `month_days`, not both")
        if bool(self.channel) == (self.url_file is not None):
            raise ValueError("give `channel` or `url_file`: by which mail server does it go?")
        return self


def check(reports: Sequence[ReportConfig], channels: Mapping[str, Mapping[str, Any]]) -> None:
    """ValueError, with the key: two have one name, or a channel is none for mails."""
    names: set[str] = set()
    for number, one in enumerate(reports):
        if one.name in names:
            raise ValueError(f"reports.{number}.name: {one.name!r} is there already")
        names.add(one.name)
        if one.channel and channels.get(one.channel, {}).get("type") != "apprise":
            have = ", ".join(name for name, table in channels.items() if table.get("type") == "apprise")
            raise ValueError(
                f"reports.{number}.channel: there is no channel {one.channel!r} of type apprise (have: {have or 'none'})"
            )

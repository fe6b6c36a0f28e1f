"""`[[settings.maintenance]]` of brain.toml: people write dates and times, the engine reads seconds since 1970."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from agent.contract.errors import ConfigError
from brain.core.operators import scopes
from brain.core.pack.spec import Window

_KEY = "settings.maintenance"


def in_seconds(raw: Mapping[str, Any]) -> None:
    """Replaces the times of all windows in TOML data. ConfigError, `KEY: ...`: one does not say its zone, or is a day."""
    settings = raw.get("settings")
    windows = settings.get("maintenance") if isinstance(settings, dict) else None
    for number, window in enumerate(windows if isinstance(windows, list) else ()):
        for key in ("since", "until"):
            given = window.get(key) if isinstance(window, dict) else None
            if isinstance(given, datetime) and given.tzinfo is not None:
                window[key] = given.timestamp()
            elif isinstance(given, date | str):
                raise ConfigError(
                    f"{_KEY}.{number}.{key}: want a date and time with its distance from UTC, without quotes: "
                    "2026-12-01T08:00:00+01:00, or Z for UTC itself"
                )


def check(windows: Sequence[Window]) -> None:
    """ConfigError, `KEY: ...`: one ends before it begins, or its scope is none. The doctor knows which nodes there are."""
    for number, one in enumerate(windows):
        if one.until <= one.since:
            raise ConfigError(f"{_KEY}.{number}.until: it is not after `since`")
        if wrong := scopes.form(one.scope):
            raise ConfigError(f"{_KEY}.{number}.scope: {wrong}")

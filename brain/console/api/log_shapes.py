"""What is asked of the log and of its notes as they are written."""

from typing import Literal

from pydantic import Field

from brain.console.api.base import Asked

MOST_NOTES = 1000


class WatchQuery(Asked):
    """Where to begin: now, with the last notes, or after an event that you have (its `id`; browsers send it as Last-Event-ID)."""

    after: str = Field(
        default="", max_length=2000, description="The `id` of the last event that you have; wins over `last`."
    )

    last: int = Field(
        default=0, ge=0, le=MOST_NOTES, description="How many notes that are there already to begin with."
    )

    language: Literal["en", "zh"] | None = Field(
        default=None,
        description="Of the notes' sentences; left out: as in `Accept-Language`, which a browser's event source cannot choose.",
    )


class LogQuery(Asked):
    """Which part of the log."""

    since: float = Field(default=0.0, ge=0, lt=1e11, description="In seconds since 1970.")
    until: float | None = Field(
        default=None, ge=0, lt=1e11, description="In seconds since 1970; left out: to its end."
    )

"""One record of the kernel log, whatever its encoding was. Pure."""

from dataclasses import dataclass
from enum import StrEnum

MAX_TEXT = 8192  # characters of one record; the kernel itself keeps about 1000
KERNEL, USER = 0, 1  # syslog facilities


class Clock(StrEnum):
    """The clock of a line's time."""

    MONOTONIC = "monotonic"  # seconds since the machine booted
    WALL = "wall"  # Unix seconds; a time without a zone counts as UTC, without a year as one of the year 2000
    DELTA = (
        "delta"  # seconds since the record before (`dmesg -e`, `-t -d`); `records` makes it one of the others
    )
    NONE = "none"  # the encoding has no time


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One record of the kernel log, decoded from any of its encodings."""

    # May hold line breaks: one printk of several lines is one record.
    text: str
    # Seconds by `clock`; 0.0 where the encoding has no time.
    mono_s: float
    # /dev/kmsg sequence number; -1 where there is none.
    seq: int = -1
    # 0 emerg .. 7 debug; 6 where the encoding does not have it.
    priority: int = 6
    # Programs can write lines of other facilities only.
    facility: int = KERNEL
    clock: Clock = Clock.MONOTONIC

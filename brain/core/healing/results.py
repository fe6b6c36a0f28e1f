"""What came of a rung that is to heal, as the history keeps it and people count it."""

from enum import StrEnum


class RungResult(StrEnum):
    """What came of it."""

    HELPED = "helped"  # verified, by facts newer than the step
    STILL_THERE = "still_there"  # it was done, and the fault was seen again
    FAILED = "failed"  # it could not be done
    UNKNOWN = "unknown"  # nobody knows whether it was done, or whether it helped
    NOT_TRIED = "not_tried"  # refused, not reached or withdrawn: it says nothing of the remedy

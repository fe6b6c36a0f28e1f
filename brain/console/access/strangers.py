"""How long who has shown no credential waits for an answer. Pure: the time is an argument.

All of them share one pace, so that no number of addresses takes the brain's time; an address that asks seldom (a probe, a
node that joins) does not wait for those that ask much.
"""

from brain.console.access.limits import Limits

PER_S, AT_ONCE = 50.0, 100  # answers to all strangers
SELDOM_PER_S, SELDOM_AT_ONCE = 0.2, 2  # of one address
LONGEST_S = 10.0


class Strangers:
    """The strangers of one door. Times are seconds of any clock that does not run backwards."""

    def __init__(self) -> None:
        self._all = Limits(PER_S, AT_ONCE)
        self._each = Limits(SELDOM_PER_S, SELDOM_AT_ONCE)

    def wait_s(self, address: str, now: float) -> float:
        """Counts one request; returns for how many seconds its answer is held back."""
        often = self._each.too_many(address, now)
        owed_s = self._all.owed_s("", now)
        if not often or owed_s >= LONGEST_S:
            return LONGEST_S if often else 0.0
        self._all.spent("", 1, now)
        return owed_s

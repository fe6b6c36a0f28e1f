"""Counters that grow: when is it worth an event? Not a collector; a part of some."""

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(slots=True)
class _Counter:
    # What growth is counted from.
    base: int
    since_s: float
    reported_s: float | None = None


class GrowthTracker:
    """One number for each key. The first value is history; a smaller one means that the counter was cleared.

    The window begins at once: growth is reported as soon as there is enough of it, not when the window ends.
    """

    def __init__(self) -> None:
        self._counters: dict[Hashable, _Counter] = {}

    def seed(self, key: Hashable, value: int) -> None:
        """What `key` was in an earlier run: growth since then is reported at once."""
        self._counters[key] = _Counter(value, float("-inf"))

    def base(self, key: Hashable) -> int | None:
        """What growth is counted from; None: never seen."""
        counter = self._counters.get(key)
        return None if counter is None else counter.base

    def offer(self, key: Hashable, value: int, at_s: float, *, least: int = 1, window_s: float = 0.0) -> int:
        """By how much to report that it grew; 0: nothing to report.

        `least`: growth within `window_s` that is worth an event; the next one comes a window later at the earliest.
        """
        counter = self._counters.get(key)
        if counter is None:
            self._counters[key] = _Counter(value, at_s)
            return 0
        delta = value - counter.base
        if delta >= max(1, least):
            if counter.reported_s is not None and at_s - counter.reported_s < window_s:
                return 0
            counter.base, counter.since_s, counter.reported_s = value, at_s, at_s
            return delta
        if delta < 0 or at_s - counter.since_s >= window_s:
            counter.base, counter.since_s = value, at_s
        return 0

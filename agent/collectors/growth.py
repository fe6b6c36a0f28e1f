"""Counters that grow: when is it worth a word?"""

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(slots=True)
class _Cell:
    base: int  # what growth is counted from
    since_s: float
    said_s: float | None = None


class Growth:
    """One number for each key. The first value is history; a smaller one means that somebody cleared it.

    The window starts to count at once: enough growth is said when it is there, not when the window ends.
    """

    def __init__(self) -> None:
        self._cells: dict[Hashable, _Cell] = {}

    def seed(self, key: Hashable, value: int) -> None:
        """What `key` was in an earlier run: growth since then is said at once."""
        self._cells[key] = _Cell(value, float("-inf"))

    def said(self, key: Hashable) -> int | None:
        """What growth is counted from; None: never seen."""
        cell = self._cells.get(key)
        return None if cell is None else cell.base

    def offer(self, key: Hashable, value: int, at_s: float, *, least: int = 1, window_s: float = 0.0) -> int:
        """How much to say that it grew; 0: nothing.

        `least`: growth within `window_s` that is worth a word; after it the next word comes a window later.
        """
        cell = self._cells.get(key)
        if cell is None:
            self._cells[key] = _Cell(value, at_s)
            return 0
        delta = value - cell.base
        if delta >= max(1, least):
            if cell.said_s is not None and at_s - cell.said_s < window_s:
                return 0
            cell.base, cell.since_s, cell.said_s = value, at_s, at_s
            return delta
        if delta < 0 or at_s - cell.since_s >= window_s:
            cell.base, cell.since_s = value, at_s
        return 0

"""Holds back repeats: a driver can print one fact thousands of times a second, and one event says it too."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace

from agent.contract.messages import Draft

_MOST = 1000  # facts held open at once; above, the oldest is let go with its count
_VARIETIES = 20  # details of one fact that are told apart within a window; what is above is one more


@dataclass(slots=True, kw_only=True)
class _Burst:
    until_s: float
    group: Hashable = None
    count: int = 0  # repeats not yet said
    last: Draft | None = None
    last_s: float = 0.0


class Bursts:
    """The first of equal facts passes at once, then at most one in `window_s` with how many it stands for."""

    def __init__(self, *, window_s: float) -> None:
        """`window_s`: seconds; 0 lets everything pass."""
        self._window_s = window_s
        # In the order in which their windows end, as all are equally long.
        self._open: dict[Hashable, _Burst] = {}
        self._varieties: Counter[Hashable] = Counter()  # group -> details of it that are open

    def offer(self, key: Hashable, draft: Draft, now_s: float, *, group: Hashable = None) -> list[Draft]:
        """What is to be said now that `draft` came: itself, nothing, or others whose window has ended.

        `group`: facts with one group and another key are told apart only as long as there are few of them (a crash
        of 10,000 processes is not 10,000 events).
        """
        if self._window_s <= 0:
            return [draft]
        out = self.flush(now_s)
        burst = self._open.get(key)
        if burst is None and group is not None and self._varieties[group] >= _VARIETIES:
            key, group = ("many", group), None
            burst = self._open.get(key)
        if burst is None:
            if len(self._open) >= _MOST:
                oldest = self._close(next(iter(self._open)))
                out += self._said(oldest, now_s)
            self._begin(key, group, now_s)
            return [*out, draft]
        burst.count += draft.count
        burst.last, burst.last_s = draft, now_s
        return out

    def flush(self, now_s: float) -> list[Draft]:
        """The repeats whose window has ended."""
        out: list[Draft] = []
        while self._open:
            key = next(iter(self._open))
            if now_s < self._open[key].until_s:
                break
            burst = self._close(key)
            if burst.count:
                out += self._said(burst, now_s)
                self._begin(key, burst.group, now_s)
        return out

    def _begin(self, key: Hashable, group: Hashable, now_s: float) -> None:
        self._open[key] = _Burst(until_s=now_s + self._window_s, group=group)
        if group is not None:
            self._varieties[group] += 1

    def _close(self, key: Hashable) -> _Burst:
        burst = self._open.pop(key)
        if burst.group is not None:
            self._varieties[burst.group] -= 1
            if not self._varieties[burst.group]:
                del self._varieties[burst.group]
        return burst

    @staticmethod
    def _said(burst: _Burst, now_s: float) -> list[Draft]:
        if burst.last is None:
            return []
        age_s = burst.last.age_s + now_s - burst.last_s
        return [replace(burst.last, count=burst.count, age_s=age_s)]

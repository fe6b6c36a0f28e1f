"""Holds back repeats: a driver can print one fact thousands of times a second, and one event says it too."""

from collections.abc import Hashable
from dataclasses import dataclass, replace

from agent.contract.messages import Draft

_MOST = 1000  # facts held open at once; above, the oldest is let go with its count


@dataclass(slots=True, kw_only=True)
class _Burst:
    until_s: float
    count: int = 0  # repeats not yet said
    last: Draft | None = None
    last_s: float = 0.0


class Bursts:
    """The first of equal facts passes at once, then at most one in `window_s` with how many it stands for."""

    def __init__(self, *, window_s: float) -> None:
        """`window_s`: seconds; 0 lets everything pass."""
        self._window_s = window_s
        self._open: dict[Hashable, _Burst] = {}

    def offer(self, key: Hashable, draft: Draft, now_s: float) -> list[Draft]:
        """What is to be said now that `draft` came: itself, nothing, or others whose window has ended."""
        if self._window_s <= 0:
            return [draft]
        out = self.flush(now_s)
        burst = self._open.get(key)
        if burst is None:
            if len(self._open) >= _MOST:
                oldest = next(iter(self._open))
                out += self._said(self._open.pop(oldest), now_s)
            self._open[key] = _Burst(until_s=now_s + self._window_s)
            return [*out, draft]
        burst.count += draft.count
        burst.last, burst.last_s = draft, now_s
        return out

    def flush(self, now_s: float) -> list[Draft]:
        """The repeats whose window has ended."""
        out: list[Draft] = []
        for key in [key for key, burst in self._open.items() if now_s >= burst.until_s]:
            burst = self._open.pop(key)
            if burst.count:
                out += self._said(burst, now_s)
                self._open[key] = _Burst(until_s=now_s + self._window_s)
        return out

    @staticmethod
    def _said(burst: _Burst, now_s: float) -> list[Draft]:
        if burst.last is None:
            return []
        age_s = burst.last.age_s + now_s - burst.last_s
        return [replace(burst.last, count=burst.count, age_s=age_s)]

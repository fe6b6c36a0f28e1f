"""Holds back repeats: a driver can print one fact thousands of times a second, and one event says it too."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace

from agent.contract.messages import Draft

_MOST = 1000  # facts held open at once; above, the oldest is let go with its count
_DETAILS = 20  # details (processes) of one fact that are told apart within a window; all above are one more
_FACTS = 32  # facts (codes) of one kind and component that are; likewise
Group = tuple[Hashable, ...]  # kind, component, and what else makes the fact


@dataclass(slots=True, kw_only=True)
class _Burst:
    until_s: float
    group: Group = ()
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
        self._details: Counter[Group] = Counter()  # fact -> details of it that are open
        self._facts: Counter[Group] = Counter()  # kind and component -> facts of it that are open

    def offer(self, key: Hashable, draft: Draft, now_s: float, *, group: Group = ()) -> list[Draft]:
        """What is to be said now that `draft` came: itself, nothing, or others whose window has ended.

        `group` is what the fact is without its detail. Details of one group, and groups of one kind and component
        (the first two of `group`), are told apart only as long as there are few: 10,000 processes are not 10,000
        events, and yet no storm of one code hides another code.
        """
        if self._window_s <= 0:
            return [draft]
        out = self.flush(now_s)
        burst = self._open.get(key)
        if burst is None and group:
            many: Group = ()
            if not self._details[group] and self._facts[group[:2]] >= _FACTS:
                many = group[:2]
            elif self._details[group] >= _DETAILS:
                many = group
            if many:
                key, group = ("many", many), ()
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

    def _begin(self, key: Hashable, group: Group, now_s: float) -> None:
        self._open[key] = _Burst(until_s=now_s + self._window_s, group=group)
        if group:
            self._details[group] += 1
            if self._details[group] == 1:
                self._facts[group[:2]] += 1

    def _close(self, key: Hashable) -> _Burst:
        burst = self._open.pop(key)
        if burst.group and _less(self._details, burst.group):
            _less(self._facts, burst.group[:2])
        return burst

    @staticmethod
    def _said(burst: _Burst, now_s: float) -> list[Draft]:
        if burst.last is None:
            return []
        age_s = burst.last.age_s + now_s - burst.last_s
        return [replace(burst.last, count=burst.count, age_s=age_s)]


def _less(counts: Counter[Group], group: Group) -> bool:
    """One less; was it the last?"""
    counts[group] -= 1
    if counts[group]:
        return False
    del counts[group]
    return True

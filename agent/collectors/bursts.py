"""Limits repeats: a driver can print one fact thousands of times a second, and one event with a count is enough."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace

from agent.contract.messages import UnsentEvent

_MOST = 1000  # facts whose windows are open at once; above, the oldest is closed and its count reported
_DETAILS = 20  # details (processes) of one fact that are kept apart within a window; all above are one more
_FACTS = 32  # facts (codes) of one kind and component that are kept apart; likewise
Group = tuple[Hashable, ...]  # kind, component, and what else makes the fact


@dataclass(slots=True, kw_only=True)
class _Burst:
    until_s: float
    group: Group = ()
    # Repeats that are not reported yet.
    count: int = 0
    last: UnsentEvent | None = None
    last_s: float = 0.0


class Bursts:
    """The first of equal facts passes at once, then at most one in `window_s`, with the number that it stands for."""

    def __init__(self, *, window_s: float) -> None:
        """`window_s`: seconds; 0 lets everything pass."""
        self._window_s = window_s
        # In the order in which their windows end, as all are equally long.
        self._open: dict[Hashable, _Burst] = {}
        # Fact → how many of its details are open.
        self._details: Counter[Group] = Counter()
        # Kind and component → how many of its facts are open.
        self._facts: Counter[Group] = Counter()

    def offer(
        self, key: Hashable, unsent: UnsentEvent, now_s: float, *, group: Group = ()
    ) -> list[UnsentEvent]:
        """The events to report now: `unsent` itself, none, or others whose window has ended.

        `group` is the fact without its detail. Details of one group, and groups of one kind and component (the first
        two of `group`), are kept apart only while there are few: 10,000 processes do not become 10,000 events, and yet
        no storm of one code hides another code.
        """
        if self._window_s <= 0:
            return [unsent]
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
                out += _repeats(self._close(next(iter(self._open))), now_s)
            self._begin(key, group, now_s)
            return [*out, unsent]
        burst.count += unsent.count
        burst.last, burst.last_s = unsent, now_s
        return out

    def flush(self, now_s: float) -> list[UnsentEvent]:
        """The repeats whose window has ended."""
        out: list[UnsentEvent] = []
        while self._open:
            key = next(iter(self._open))
            if now_s < self._open[key].until_s:
                break
            burst = self._close(key)
            if burst.count:
                out += _repeats(burst, now_s)
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
        if burst.group and _decrement(self._details, burst.group):
            _decrement(self._facts, burst.group[:2])
        return burst


def _repeats(burst: _Burst, now_s: float) -> list[UnsentEvent]:
    """One event for all repeats of a burst; none if there were none."""
    if burst.last is None:
        return []
    age_s = burst.last.age_s + now_s - burst.last_s
    return [replace(burst.last, count=burst.count, age_s=age_s)]


def _decrement(counts: Counter[Group], group: Group) -> bool:
    """Takes one off; was it the last?"""
    counts[group] -= 1
    if counts[group]:
        return False
    del counts[group]
    return True

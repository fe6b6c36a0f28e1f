"""Counters of congestion, summed up over a minute and reported only when they grow fast. Not a collector; a part of some."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agent.options import option

WINDOW_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CongestionOptions:
    """What an operator can set; the collectors infiniband and nic share it."""

    congestion_per_s: float = option(
        1000.0, "slower growth of a pause, PFC, CNP or ECN counter is not reported", unit="1/s", least=0.001
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FastGrowth:
    """How far one counter came in one window."""

    counter: str
    delta: int
    per_s: float
    interval_s: float


class CongestionWindow:
    """The counters of one port or interface, from the start of a window to its end."""

    def __init__(self, *, per_s: float, factors: Mapping[str, float] | None = None) -> None:
        """`per_s`: slower growth is not reported. `factors`: counter → by how much its bound is higher (its unit)."""
        self._per_s = per_s
        self._factors = factors or {}
        self._base: Mapping[str, int] = {}
        self._since_s: float | None = None

    def take(self, counters: Mapping[str, int], at_s: float) -> Iterator[FastGrowth]:
        """What grew fast, when a window ended with this sample. A counter that went down starts again."""
        if self._since_s is None:
            self._base, self._since_s = counters, at_s
            return
        interval_s = at_s - self._since_s
        if interval_s < WINDOW_S:
            return
        for counter, value in counters.items():
            delta = value - self._base.get(counter, value)
            if delta / interval_s >= self._per_s * self._factors.get(counter, 1.0) and delta > 0:
                yield FastGrowth(
                    counter=counter,
                    delta=delta,
                    per_s=round(delta / interval_s, 1),
                    interval_s=round(interval_s, 3),
                )
        self._base, self._since_s = counters, at_s

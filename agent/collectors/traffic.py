"""Ports and interfaces that are nearly full."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.samples import Sample
from agent.collectors.samples_node import Traffic
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Scalar, Severity, UnsentEvent

WINDOW_S = 300.0
LEVELS = (90, 80)  # per cent of the rate
_BELOW = 5  # so far below a level its end is told
_FASTER_THAN_IT_CAN = 1.2  # a counter that was set anew, or an interface of another rate meanwhile


@dataclass(slots=True)
class _One:
    """One port or interface."""

    before: Traffic | None = None
    # When each interval ended, and what was carried in it: per cent of the rate, received and sent.
    carried: deque[tuple[float, float, float]] = field(default_factory=deque)
    since_s: float = 0.0
    level: int = 0


class TrafficCollector(Collector):
    """link.busy when every interval of five minutes was above a level, in one direction; info when the last one is well below."""

    name: ClassVar[str] = "traffic"
    wants: ClassVar[tuple[type, ...]] = (Traffic,)
    kinds: ClassVar[tuple[str, ...]] = ("link.busy",)

    def __init__(self) -> None:
        self._known: dict[str, _One] = {}

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:
        """See Collector."""
        if not isinstance(sample, Traffic):
            return
        one = self._known.setdefault(sample.component, _One())
        before, one.before = one.before, sample
        share = _share(before, sample) if before is not None else None
        if before is None or share is None:
            one.carried.clear()
            return
        if not one.carried:
            one.since_s = before.mono_s
        one.carried.append((sample.mono_s, *share))
        while one.carried[0][0] < sample.mono_s - WINDOW_S:
            one.since_s = one.carried.popleft()[0]
        level = _level(one)
        if level > one.level or (one.level and max(share) < one.level - _BELOW):
            one.level = level
            yield from _told(sample, one, now_s)

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:
        """See Collector. One that is busy and has not been so for the whole window may soon be full."""
        one = self._known.get(sample.component) if isinstance(sample, Traffic) else None
        if not isinstance(sample, Traffic) or one is None or not one.carried:
            return
        if one.level or max(one.carried[-1][1:]) < LEVELS[-1] - _BELOW:
            yield from _told(sample, one, now_s)


def _share(before: Traffic, now: Traffic) -> tuple[float, float] | None:
    """Per cent of the rate, received and sent; None: the counters cannot be compared."""
    seconds = now.mono_s - before.mono_s
    received, sent = now.received_bytes - before.received_bytes, now.sent_bytes - before.sent_bytes
    most = now.rate_gbps * 1e9 / 8 * seconds
    if seconds <= 0 or before.rate_gbps != now.rate_gbps:
        return None
    if min(received, sent) < 0 or max(received, sent) > most * _FASTER_THAN_IT_CAN:
        return None
    return 100 * received / most, 100 * sent / most


def _level(one: _One) -> int:
    """The highest level above which one direction was in the whole window."""
    if one.carried[-1][0] - one.since_s < WINDOW_S:
        return 0
    least = max(min(row[1] for row in one.carried), min(row[2] for row in one.carried))
    return next((level for level in LEVELS if least >= level), 0)


def _told(now: Traffic, one: _One, now_s: float) -> Iterator[UnsentEvent]:
    try:
        component = components.check(now.component)
    except ContractError:
        return
    received, sent = (sum(row[n] for row in one.carried) / len(one.carried) for n in (1, 2))
    data: dict[str, Scalar] = {
        "percent": one.level,
        "direction": "received" if received >= sent else "sent",
        "received_gbps": round(received * now.rate_gbps / 100, 1),
        "sent_gbps": round(sent * now.rate_gbps / 100, 1),
        "rate_gbps": now.rate_gbps,
    }
    yield UnsentEvent(
        kind="link.busy",
        component=component,
        severity=Severity.WARNING if one.level else Severity.INFO,
        data=data,
        evidence=f"of {now.rate_gbps:g} Gb/s {data['received_gbps']} received and {data['sent_gbps']} sent over"
        f" {now.mono_s - one.since_s:.0f} s",
        age_s=max(0.0, now_s - now.mono_s),
    )

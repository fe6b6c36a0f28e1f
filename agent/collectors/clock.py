"""Facts about the wall clock. Jobs whose nodes disagree about the time fail at tickets, leases and logs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.samples import Sample
from agent.collectors.samples_node import WallClock
from agent.contract.components import NODE
from agent.contract.messages import Severity, UnsentEvent
from agent.options import option

SETTLE_S = 120.0  # how long a daemon that was restarted, or a fresh boot, may take to synchronise


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOptions:
    """What an operator can set."""

    clock_offset_s: float = option(
        0.5, "a larger offset or step of the wall clock is reported", unit="s", least=0.001
    )


class ClockCollector(Collector):
    """node.clock when the clock has been off for SETTLE_S, and when it is right again; node.clock_step at once."""

    name: ClassVar[str] = "clock"
    wants: ClassVar[tuple[type, ...]] = (WallClock,)
    kinds: ClassVar[tuple[str, ...]] = ("node.clock", "node.clock_step")
    options: ClassVar[tuple[type[Any], ...]] = (ClockOptions,)

    def __init__(self, options: ClockOptions) -> None:
        self._offset_s = options.clock_offset_s
        self._ahead_s: float | None = None
        self._off_since_s: float | None = None
        self._reported = False

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(setup.options(ClockOptions))

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if not isinstance(sample, WallClock):
            return
        step_s = sample.ahead_s - self._ahead_s if self._ahead_s is not None else 0.0
        self._ahead_s = sample.ahead_s
        if abs(step_s) > self._offset_s:
            yield UnsentEvent(
                kind="node.clock_step",
                component=NODE,
                severity=Severity.WARNING,
                data={"step_s": round(step_s, 3)},
                evidence=f"the wall clock was set {'forward' if step_s > 0 else 'back'} by {abs(step_s):.3f} s",
            )
        right = sample.synchronised and abs(sample.offset_s) <= self._offset_s
        if right:
            self._off_since_s = None
        elif self._off_since_s is None:
            self._off_since_s = sample.mono_s
        off = self._off_since_s is not None and sample.mono_s - self._off_since_s >= SETTLE_S
        if off == self._reported:
            return
        self._reported = off
        yield _clock(sample, off=off)

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector. A clock that is off for less than SETTLE_S is neither."""
        if isinstance(sample, WallClock) and (self._reported or self._off_since_s is None):
            yield _clock(sample, off=self._reported)


def _clock(clock: WallClock, *, off: bool) -> UnsentEvent:
    return UnsentEvent(
        kind="node.clock",
        component=NODE,
        severity=Severity.WARNING if off else Severity.INFO,
        data={
            "well": not off,
            "synchronised": clock.synchronised,
            "offset_s": round(clock.offset_s, 6),
            "max_error_s": round(clock.max_error_s, 6),
        },
        evidence=f"adjtimex: {'synchronised' if clock.synchronised else 'unsynchronised'},"
        f" offset {clock.offset_s:.6f} s, maximum error {clock.max_error_s:.3f} s",
    )

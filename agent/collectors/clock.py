"""Facts about the wall clock. Jobs whose nodes disagree about the time fail at tickets, leases and logs."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.readings import Reading
from agent.collectors.readings_node import Clock
from agent.contract.components import NODE
from agent.contract.messages import Draft, Severity

SETTLE_S = 120.0  # a daemon that was restarted, or a fresh boot, has that long to synchronise


class ClockCollector:
    """node.clock when it was not well for SETTLE_S, and when it is again; node.clock_step at once."""

    name: ClassVar[str] = "clock"
    wants: ClassVar[tuple[type, ...]] = (Clock,)
    kinds: ClassVar[tuple[str, ...]] = ("node.clock", "node.clock_step")

    def __init__(self, *, offset_s: float = 0.5) -> None:
        """`offset_s`: a larger offset or step is a fact, seconds."""
        self._offset_s = offset_s
        self._ahead_s: float | None = None
        self._ill_since_s: float | None = None
        self._said = False

    def feed(self, reading: Reading, now_s: float) -> Iterator[Draft]:  # noqa: ARG002  the port of collectors
        """See agent.collectors.base."""
        if not isinstance(reading, Clock):
            return
        step_s = reading.ahead_s - self._ahead_s if self._ahead_s is not None else 0.0
        self._ahead_s = reading.ahead_s
        if abs(step_s) > self._offset_s:
            yield Draft(
                kind="node.clock_step",
                component=NODE,
                severity=Severity.WARNING,
                data={"step_s": round(step_s, 3)},
                evidence=f"the wall clock was set {'forward' if step_s > 0 else 'back'} by {abs(step_s):.3f} s",
            )
        well = reading.synchronised and abs(reading.offset_s) <= self._offset_s
        if well:
            self._ill_since_s = None
        elif self._ill_since_s is None:
            self._ill_since_s = reading.mono_s
        lasted = self._ill_since_s is not None and reading.mono_s - self._ill_since_s >= SETTLE_S
        if lasted == self._said:
            return
        self._said = lasted
        yield Draft(
            kind="node.clock",
            component=NODE,
            severity=Severity.WARNING if lasted else Severity.INFO,
            data={
                "well": not lasted,
                "synchronised": reading.synchronised,
                "offset_s": round(reading.offset_s, 6),
                "max_error_s": round(reading.max_error_s, 6),
            },
            evidence=f"adjtimex: {'synchronised' if reading.synchronised else 'unsynchronised'},"
            f" offset {reading.offset_s:.6f} s, maximum error {reading.max_error_s:.3f} s",
        )

"""What the tests of the uplink share: a host with a clock that the test moves, and facts to spool."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from agent.contract.messages import Severity, UnsentEvent
from agent.host import Host
from agent.uplink.spool import Spool


@dataclass(slots=True)
class Clock:
    """The node's clocks and boot id, which the test sets."""

    mono_s: float = 1000.0
    wall: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    boot: str = "boot-1"


class FakeHost(Host):
    """A machine whose clocks stand still until the test moves them."""

    __slots__ = ("clock",)

    def __init__(self, clock: Clock, root: Path = Path("/")) -> None:
        super().__init__(root=root)
        object.__setattr__(self, "clock", clock)

    clock: Clock

    def mono_s(self) -> float:
        """The test's monotonic clock."""
        return self.clock.mono_s

    def wall(self) -> datetime:
        """The test's wall clock."""
        return self.clock.wall

    def boot_id(self) -> str:
        """The test's boot id."""
        return self.clock.boot


def fact(number: int, severity: Severity = Severity.WARNING, **data: Any) -> UnsentEvent:
    """A fact that its number tells from the others."""
    return UnsentEvent(
        kind="agent.kmsg_overrun", component="node", severity=severity, data={"lost": number, **data}
    )


def open_spool(path: Path, clock: Clock, **bounds: int) -> Spool:
    """A spool of node gpu-1."""
    return Spool(path, FakeHost(clock), "gpu-1", **bounds)


def waiting(spool: Spool) -> list[dict[str, Any]]:
    """The messages that wait, in order, as they would be sent now."""
    return [orjson.loads(spool.message(row)[1]) for row in spool.pending(0, 1_000_000)]


def numbers(spool: Spool) -> list[int]:
    """The test's own numbers of what waits, in order."""
    return [message["data"]["lost"] for message in waiting(spool)]

"""The shape of a collector: pure, one file, listed in `agent.collectors.COLLECTORS`.

A collector gets the readings that it `wants`, keeps what it must remember in itself, and returns drafts of events.
It does no I/O and reads no clock: `now_s` is the node's monotonic clock.
"""

from collections.abc import Iterable
from typing import ClassVar, Protocol

from agent.collectors.readings import Reading
from agent.contract.messages import Draft


class Collector(Protocol):
    """See the module's docstring."""

    name: ClassVar[str]
    wants: ClassVar[tuple[type, ...]]  # reading types
    kinds: ClassVar[tuple[str, ...]]  # event kinds that it may emit (law: vocabulary)

    def feed(self, reading: Reading, now_s: float) -> Iterable[Draft]:
        """The facts in one reading, in order; none for an ordinary one. Never raises on odd input."""
        ...

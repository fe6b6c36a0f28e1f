"""What the rest of the agent needs of the uplink: a place to put facts. Simulated nodes have their own."""

from typing import Protocol

from agent.contract.messages import UnsentEvent


class Uplink(Protocol):
    """Accepts facts. It never blocks and never fails: facts that it cannot keep are counted."""

    def put(self, unsent: UnsentEvent, mono_s: float) -> None:
        """One fact, seen when the node's monotonic clock showed `mono_s` seconds (its `age_s` is added)."""
        ...

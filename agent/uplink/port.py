"""What the rest of an agent needs of the way up: a place to put facts. Simulated nodes bring their own."""

from typing import Protocol

from agent.contract.messages import Draft


class Uplink(Protocol):
    """Takes facts; it never blocks and never fails: what it cannot keep it counts."""

    def put(self, draft: Draft, mono_s: float) -> None:
        """One fact, seen when the node's monotonic clock said `mono_s` seconds (its `age_s` comes on top)."""
        ...

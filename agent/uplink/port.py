"""What the rest of the agent needs of the uplink: a place to put facts. Simulated nodes have their own."""

from typing import Protocol

from agent.contract.messages import UnsentEvent

# Bytes that wait for one subscription, which a brain or a server that was taken over fills up; the agent's unit has 160 MB. What
# comes beyond them is left out, as by a server that does not deliver it.
MOST_WAITING_BYTES = 8 * 1024**2


class Uplink(Protocol):
    """Accepts facts. It never blocks and never fails: facts that it cannot keep are counted."""

    def put(self, unsent: UnsentEvent, mono_s: float) -> None:
        """One fact, seen when the node's monotonic clock showed `mono_s` seconds (its `age_s` is added)."""
        ...

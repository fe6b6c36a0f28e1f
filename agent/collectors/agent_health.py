"""Facts about the agent's own hearing."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.readings import Overrun, Reading
from agent.contract.components import NODE
from agent.contract.messages import Draft, Severity


class AgentHealthCollector:
    """Says that kernel log records were lost: their absence must not be taken for health."""

    name: ClassVar[str] = "agent_health"
    wants: ClassVar[tuple[type, ...]] = (Overrun,)
    kinds: ClassVar[tuple[str, ...]] = ("agent.kmsg_overrun",)

    def feed(self, reading: Reading, now_s: float) -> Iterator[Draft]:  # noqa: ARG002  the port of collectors
        """See agent.collectors.base."""
        if isinstance(reading, Overrun):
            yield Draft(
                kind="agent.kmsg_overrun",
                component=NODE,
                severity=Severity.WARNING,
                data={"lost": reading.lost},
                evidence=f"/dev/kmsg: {reading.lost} records were overwritten before they were read",
            )

"""Facts about what the agent itself has missed."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.samples import Overrun, Sample
from agent.contract.components import NODE
from agent.contract.messages import Severity, UnsentEvent


class AgentHealthCollector(Collector):
    """Reports that kernel log records were lost: that nothing was read must not be taken for health."""

    name: ClassVar[str] = "agent_health"
    wants: ClassVar[tuple[type, ...]] = (Overrun,)
    kinds: ClassVar[tuple[str, ...]] = ("agent.kmsg_overrun",)
    one_off: ClassVar[str] = "kernel log records that were lost"

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if isinstance(sample, Overrun):
            yield UnsentEvent(
                kind="agent.kmsg_overrun",
                component=NODE,
                severity=Severity.WARNING,
                data={"lost": sample.lost},
                evidence=f"/dev/kmsg: {sample.lost} records were overwritten before they were read",
            )

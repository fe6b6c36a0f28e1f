"""An event before it leaves its node."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.contract.messages import Event, Scalar, Severity
from brain.core.inputs import (
    EventSeen,
)


@dataclass(slots=True, kw_only=True)
class Unsent:
    """An event that has no number yet: a spool is sent in its order, so an event gets its number when it leaves."""

    node: str
    kind: str
    component: str
    data: Mapping[str, Scalar]
    age_s: float
    boot: str

    def numbered(self, seq: int) -> EventSeen:
        """As it is sent."""
        return EventSeen(
            event=Event(
                id=f"{self.node}:s:{seq}",
                node=self.node,
                kind=self.kind,
                component=self.component,
                severity=Severity.ERROR,
                at="",
                age_s=self.age_s,
                boot=self.boot,
                count=1,
                data=dict(self.data),
                evidence=f"{self.kind} on {self.component}",
            )
        )

"""What is not yet in the read model: each incident and run once, in its newest form."""

from dataclasses import dataclass, field

from agent.contract.messages import Event
from brain.adapters.readmodel import Reconciled
from brain.core.effects import Note
from brain.core.state import Incident, Run

MOST_OWN = 1000  # notes of the brain itself that wait; the log file of its service has all


@dataclass(slots=True, kw_only=True)
class PendingHistory:
    """It is collected between two writes."""

    # (position on the log, note)
    notes: list[tuple[int, Note]] = field(default_factory=list)
    incidents: dict[str, Incident] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    # (position, when, event)
    told: list[tuple[int, float, Event]] = field(default_factory=list)
    # Notes of the brain itself, and whether watchers have heard them
    own: list[tuple[Note, bool]] = field(default_factory=list)
    # What the engine has after a replay by other code
    reconciled: Reconciled | None = None

    @property
    def size(self) -> int:
        """So many rows."""
        rows = len(self.notes) + len(self.incidents) + len(self.runs) + len(self.told) + len(self.own)
        return rows + (self.reconciled is not None)

    def add_own(self, note: Note, *, told: bool) -> None:
        """A note of the brain itself; too many push out the oldest."""
        self.own.append((note, told))
        del self.own[:-MOST_OWN]

    def followed_by(self, newer: "PendingHistory") -> "PendingHistory":
        """This, which was not taken, and what has come since."""
        return PendingHistory(
            notes=self.notes + newer.notes,
            incidents=self.incidents | newer.incidents,
            runs=self.runs | newer.runs,
            told=self.told + newer.told,
            own=(self.own + newer.own)[-MOST_OWN:],
            reconciled=newer.reconciled or self.reconciled,
        )

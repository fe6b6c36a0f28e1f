"""What is remembered of events, in files, is written when they have been sent: to replace a file takes as long as to tell the
brain, which waits for them.
"""

import asyncio
from collections.abc import Callable, Sequence

from agent.contract.messages import UnsentEvent

AFTER_S = 0.02  # they leave in the next turns of the event loop


class Afterwards:
    """Passes events on a moment later, in their order."""

    def __init__(self, note: Callable[[Sequence[UnsentEvent]], None]) -> None:
        """`note` gets all events of that moment."""
        self._note = note
        self._waiting: list[UnsentEvent] = []
        self._due: asyncio.TimerHandle | None = None

    def note(self, unsent_events: Sequence[UnsentEvent]) -> None:
        """These are in the spool now. Call it where an event loop runs."""
        self._waiting += unsent_events
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(AFTER_S, self.now)

    def now(self) -> None:
        """Passes on what waits, e.g. at the end."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._note(waiting)

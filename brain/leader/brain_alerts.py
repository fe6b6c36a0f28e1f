"""Pages about the brain itself. They need neither the log nor the lease."""

import asyncio
import time

from agent.shared.tasks import Tasks
from brain.core.effects import PageSubject, SendPage
from brain.core.pack.spec import Priority
from brain.core.state import IncidentState
from brain.leader.notes import BrainNotes
from brain.notify.compose import compose
from brain.notify.notifier import ONCALL, Notifier

FIRST_PAUSE_S = 5.0  # after a page that no channel took
MAX_PAUSE_S = 300.0


class BrainAlerts:
    """Opens one alert for each cause, until that is cleared."""

    def __init__(self, *, brain: str, notifier: Notifier, notes: BrainNotes, background: Tasks) -> None:
        self._brain = brain
        self._notifier = notifier
        self._notes = notes
        self._background = background
        self._open: set[str] = set()

    def open(self, cause: str, text: str) -> None:
        """Pages the people on call, unless they were paged for this cause since it was last cleared."""
        if cause in self._open:
            return
        self._open.add(cause)
        self._notes.write(cause.replace("brain_", "brain."), text)
        self._background.start(self._send(cause, text), cause)

    def clear(self, cause: str) -> None:
        """The cause is gone: the next time people are paged again."""
        self._open.discard(cause)

    async def _send(self, cause: str, text: str) -> None:
        now = time.time()
        subject = PageSubject(
            id=f"{cause}-{self._brain}-{int(now)}",
            severity=Priority.P1,
            cause=cause,
            state=IncidentState.NEEDS_HUMAN,
            scope="cell",
            node="",
            because=text,
            since=now,
        )
        page = SendPage(id=f"{subject.id}.p1", subject=subject, what="open", to=ONCALL, text=text)
        message = compose(page)
        pause_s = FIRST_PAUSE_S
        while not (await self._notifier.send(message))[0]:
            await asyncio.sleep(pause_s)
            pause_s = min(MAX_PAUSE_S, pause_s * 2)

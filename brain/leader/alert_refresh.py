"""Refreshes open alerts at receivers that would close them otherwise, while this brain leads."""

import asyncio
import time

from brain.leader.leadership import Leadership
from brain.leader.notes import BrainNotes
from brain.leader.replica import Replica
from brain.notify.notifier import Notifier

CHECK_S = 1.0


class AlertRefresh:
    """Sends the open alerts to such channels again and again."""

    def __init__(
        self, *, notifier: Notifier, replica: Replica, leadership: Leadership, notes: BrainNotes
    ) -> None:
        self._notifier = notifier
        self._replica = replica
        self._leadership = leadership
        self._notes = notes

    async def serve(self) -> None:
        """Refreshes, until cancelled. Failures are noted once, until a refresh succeeds."""
        failed = False
        while True:
            await asyncio.sleep(CHECK_S)
            if self._leadership.leads():
                errors = await self._notifier.refresh(lambda: self._replica.state, time.monotonic())
                if errors and not failed:
                    self._notes.write("page.refresh_failed", "; ".join(errors))
                failed = bool(errors)

"""Publishes the engine's timers when they are due, while this brain leads."""

import asyncio

from brain.adapters.timers import Timers
from brain.leader.leadership import Leadership
from brain.leader.log_writer import LogWriter
from brain.leader.replica import Replica


class TimerService:
    """Publishes each due timer to the log, where it becomes an input."""

    def __init__(
        self, *, timers: Timers, replica: Replica, leadership: Leadership, writer: LogWriter, poll_s: float
    ) -> None:
        """`poll_s`: how often a brain that does not lead checks whether it does."""
        self._timers = timers
        self._replica = replica
        self._leadership = leadership
        self._writer = writer
        self._poll_s = poll_s

    def restart(self) -> None:
        """Begins with all timers of the state: this brain has begun to lead."""
        self._timers.reset(self._replica.state.timers)

    async def serve(self) -> None:
        """Publishes, until cancelled."""
        while True:
            if self._leadership.leads():
                for given in self._timers.due(self._replica.state.timers):
                    self._writer.append_or_drop(given)
                await self._timers.wait()
            else:
                await asyncio.sleep(self._poll_s)

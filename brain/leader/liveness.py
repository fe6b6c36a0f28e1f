"""Publishes which nodes have become unreachable or have come back, while this brain leads."""

import asyncio

from brain.adapters.liveness import SWEEP_S, Liveness
from brain.leader.leadership import Leadership
from brain.leader.log_writer import LogWriter
from brain.leader.replica import Replica


class LivenessService:
    """Sweeps over the beats and publishes each change to the log, where it becomes an input."""

    def __init__(
        self, *, liveness: Liveness, replica: Replica, leadership: Leadership, writer: LogWriter
    ) -> None:
        self._liveness = liveness
        self._replica = replica
        self._leadership = leadership
        self._writer = writer

    def restart(self) -> None:
        """Beats are received without interruption from now on: a new connection, or this brain has begun to lead."""
        self._liveness.restart()

    async def serve(self) -> None:
        """Sweeps, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S)
            if self._leadership.leads():
                changes = list(self._liveness.sweep(self._replica.state.nodes, self._leadership.epoch))
                for given in changes:
                    self._writer.append_or_drop(given)

"""Writes a pulse to the log while this brain leads and nothing else moves, so that every brain knows that inputs go round."""

import asyncio
import time

from brain.core.inputs import Pulse
from brain.leader.leadership import Leadership
from brain.leader.log_writer import LogWriter
from brain.leader.loop import LiveLoop

PULSE_S = 3.0
CHECK_S = 0.5


class PulseService:
    """Call `serve` once for each connection."""

    def __init__(self, *, loop: LiveLoop, leadership: Leadership, writer: LogWriter) -> None:
        self._loop = loop
        self._leadership = leadership
        self._writer = writer
        self._count = (
            time.time_ns()
        )  # no two pulses have the same id, also those of another process with this epoch

    async def serve(self) -> None:
        """Writes pulses, until cancelled. The outbox repeats one that the log does not take: the next one waits for it."""
        sent_s = 0.0
        while True:
            await asyncio.sleep(CHECK_S)
            moved_s = self._loop.moved_s
            if self._leadership.leads() and sent_s <= moved_s <= time.monotonic() - PULSE_S:
                self._count += 1
                sent_s = time.monotonic()
                self._writer.append_or_drop(Pulse(id=f"pulse:{self._leadership.epoch}.{self._count}"))

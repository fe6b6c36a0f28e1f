"""gpuward's month as the log that a brain would have: a file of `gpuward log export`, for backtests and `--learn`."""

from collections.abc import Callable

from agent.contract import subjects
from brain.adapters.codec import Codec, encode_event_body
from brain.adapters.log_file import LogFileWriter, LogName
from brain.adapters.log_record import Record
from brain.core.effects import Effect
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, Input
from brain.core.pack.actions import ACTIONS

CELL = "simulated"


class LoggedEngine(Engine):
    """An engine whose inputs are written down as they come. `finish` ends the file."""

    def __init__(self, sink: Callable[[bytes], object], *, seed: int, packed: bool = False) -> None:
        """`sink`: where the bytes go; `packed`: compressed."""
        super().__init__(actions=ACTIONS)
        self._codec = Codec(CELL)
        self._seq = 0
        self._writer = LogFileWriter(sink, LogName(cell=CELL, log=f"seed {seed}"), 1, packed=packed)

    def handle(self, given: Input, now: float) -> list[Effect]:
        """As the engine."""
        self._seq += 1
        if isinstance(given, EventSeen):
            subject, body = subjects.event(CELL, given.event.node), encode_event_body(given)
        else:
            what, body = self._codec.encode(given)
            subject = subjects.brain_input(CELL, what)
        self._writer.add(Record(self._seq, now, subject, body, 0))
        return super().handle(given, now)

    def finish(self) -> None:
        """Writes the end."""
        self._writer.finish()

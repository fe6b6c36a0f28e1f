"""The live loop: the engine handles the log batch by batch, and its effects are recorded and executed.

Every brain of a cell runs it; only the leader acts. Inputs that are read again after a restart are not acted on again:
effects are executed only while this brain leads. That begins when the engine handles this brain's own `Leader` input,
and then the engine asks again for everything that is outstanding.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from brain.adapters.codec import Codec, malformed
from brain.adapters.log import LogClock, Record
from brain.adapters.quarantine import MAX_CRASHES
from brain.core.inputs import EventSeen, Input, Leader, Reported, TimerFired, result_of_node
from brain.leader.awaited_commands import AwaitedCommands
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.executor import EffectExecutor
from brain.leader.history import HistoryWriter
from brain.leader.leadership import Leadership
from brain.leader.replica import Replica
from brain.ufm.events import UfmListener

_log = logging.getLogger(__name__)

EARLY_S = 1.0  # a timer counts as due up to so long before its due time: clocks differ


class Batches(Protocol):
    """Where the messages of the log come from (brain.adapters.log.Reader)."""

    async def batch(self) -> Sequence[Record]:
        """Waits for the next messages: at least one, in order."""
        ...


class LiveLoop:
    """Reads the log in order, lets the replica handle each input, and passes its effects on."""

    def __init__(
        self,
        *,
        codec: Codec,
        clock: LogClock,
        replica: Replica,
        history: HistoryWriter,
        leadership: Leadership,
        executor: EffectExecutor,
        commands: AwaitedCommands,
        listeners: Sequence[UfmListener],
        alerts: BrainAlerts,
        when_leading: Sequence[Callable[[], None]],
    ) -> None:
        """`commands` wait for results of nodes; `listeners` learn which reports are on the log; `when_leading` is called
        each time this brain begins to lead.
        """
        self._codec = codec
        self._clock = clock
        self._replica = replica
        self._history = history
        self._leadership = leadership
        self._executor = executor
        self._commands = commands
        self._listeners = listeners
        self._alerts = alerts
        self._when_leading = when_leading
        self.moved_s = (
            time.monotonic()
        )  # when the newest input was handled; at first: since when one is awaited
        self.inputs = 0  # handled so far
        self.busy_s = 0.0  # time spent on them

    async def serve(self, reader: Batches) -> None:
        """Handles what `reader` delivers, until cancelled."""
        while True:
            self._handle(await reader.batch())
            await asyncio.sleep(0)  # lets the other tasks run, however long the backlog

    def _handle(self, records: Sequence[Record]) -> None:
        """Handles one batch, in order. Raises what the engine raises; the inputs before that one are handled."""
        began = time.perf_counter()
        try:
            for record in records:
                self._one(record)
        finally:
            self.busy_s += time.perf_counter() - began
            self.moved_s = time.monotonic()
        if records[-1].pending == 0:
            self._clock.calibrate(records[-1].at)
            self._replica.end_of_log()

    def _one(self, record: Record) -> None:
        given = self._read(record)
        now = record.at
        if isinstance(given, TimerFired):
            now = max(now, min(given.due, now + EARLY_S))
        effects = self._replica.handle(given, record.seq, now)
        self.inputs += 1
        self._history.collect(record.seq, effects)
        self._executor.execute(effects)
        self._pass_on(given)

    def _read(self, record: Record) -> Input:
        """Decodes a message. A quarantined input counts as malformed."""
        if not self._replica.quarantined(record.seq):
            return self._codec.decode(record.subject, record.body, record.seq)
        if record.seq > self._history.written:
            self._alerts.open(
                "brain_quarantine",
                f"input {record.seq} ({record.subject}) crashed the brain {MAX_CRASHES} times: quarantined",
            )
        why = f"quarantined: handling it crashed this brain {MAX_CRASHES} times"
        return malformed(record.subject, "", why, record.seq)

    def _pass_on(self, given: Input) -> None:
        """Passes an input on to the other parts that wait for it."""
        if isinstance(given, EventSeen) and (result := result_of_node(given.event)) is not None:
            self._commands.on_result(result)
        elif isinstance(given, Reported):
            for listener in self._listeners:
                listener.mark_published(given)
        elif isinstance(given, Leader) and self._leadership.leads():
            _log.info("this brain leads with epoch %d", self._leadership.epoch)
            for begin in self._when_leading:
                begin()

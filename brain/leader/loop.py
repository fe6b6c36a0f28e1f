"""The live loop: the engine handles the log batch by batch, and its effects are recorded and executed.

Every brain of a cell runs it; only the leader acts. Inputs that are read again after a restart are not acted on again:
effects are executed only while this brain leads. That begins when the engine handles this brain's own `Leader` input,
and then the engine asks again for everything that is outstanding.
"""

import gc
import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from brain.adapters.codec import Codec, handled_at, malformed
from brain.adapters.log import SET_BACK_S, LogClock, Record
from brain.adapters.quarantine import MAX_CRASHES
from brain.core.inputs import EventSeen, Input, Leader, PackLoaded, Reported, result_of_node
from brain.core.state import STANDS_STILL_S
from brain.leader.awaited_commands import AwaitedCommands
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.executor import EffectExecutor
from brain.leader.history import HistoryWriter
from brain.leader.leadership import Leadership
from brain.leader.replica import Replica

_log = logging.getLogger(__name__)
JUMP_AGAIN_S = 3600.0  # a clock that goes to and fro is told so often


class Batches(Protocol):
    """Where the messages of the log come from (brain.adapters.log.Reader)."""

    async def batch(self) -> Sequence[Record]:
        """Waits for the next messages: at least one, in order."""
        ...


class ReportListener(Protocol):
    """Publishes what another system reports of nodes."""

    async def run(self) -> None:
        """Until cancelled; it asks only while this brain leads."""
        ...

    def mark_published(self, given: Reported) -> None:
        """Takes a report from the log, of whichever brain leads and from whichever system."""
        ...

    async def close(self) -> None:
        """Closes connections."""
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
        listeners: Sequence[ReportListener],
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
        self._jump_told_s = -math.inf
        self._settled = False  # what is in memory stays there
        self.inputs = 0  # handled so far
        self.busy_s = 0.0  # time spent on them

    async def serve(self, reader: Batches) -> None:
        """Handles what `reader` delivers, until cancelled."""
        while True:
            records = await reader.batch()
            try:
                self._handle(records)
            finally:
                await self._executor.finish()  # which also lets the other tasks run, however long the backlog
            await self._history.room()

    def _handle(self, records: Sequence[Record]) -> None:
        """Handles one batch, in order. Raises what the engine raises; the inputs before that one are handled."""
        began = time.perf_counter()
        live = (
            self._replica.caught_up
        )  # else these were on the log when it was opened: nobody knows for how long
        try:
            for record in records:
                self._one(record)
        finally:
            self.busy_s += time.perf_counter() - began
            self.moved_s = time.monotonic()
        if records[-1].pending == 0:
            if live:
                self._tell_of_jump(self._clock.ahead_s(records[-1].at))
                self._clock.calibrate(records[-1].at)
            self._tell_of_time(records[-1].at)
            self._replica.end_of_log()
            self._settle()

    def _settle(self) -> None:
        """What the rules and the log have left in memory stays there: the collector would look at all of it again and again, and
        hold up everything for a tenth of a second each time. It does so once, now, and once after each change of the rules.
        """
        if not self._settled:
            self._settled = True
            gc.unfreeze()
            gc.collect()
            gc.freeze()

    def _one(self, record: Record) -> None:
        given = self._read(record)
        effects = self._replica.handle(given, record.seq, handled_at(given, record.at, self._replica.state))
        self.inputs += 1
        self._history.collect(record.seq, effects, given, self._replica.state.now)
        self._executor.execute(effects)
        self._pass_on(given)

    def _tell_of_jump(self, ahead_s: float) -> None:
        """Pages when the server's clock has jumped ahead: the log's time goes with it, so that what waited has ended."""
        now_s = time.monotonic()
        if ahead_s > SET_BACK_S and now_s >= self._jump_told_s + JUMP_AGAIN_S:
            self._jump_told_s = now_s
            self._alerts.tell(
                "log_jumped",
                f"the clock of the NATS server jumped ahead by {ahead_s:.0f} s: holds, approvals and whatever else was to last "
                "until a time in between has ended at once",
            )

    def _tell_of_time(self, stamp: float) -> None:
        """Pages while the log's time is ahead of the server's, and says when it is not any more."""
        ahead_s = self._replica.state.now - stamp
        if ahead_s > SET_BACK_S:
            self._alerts.open(
                "log_time",
                f"the clock of the NATS server was set back by {ahead_s:.0f} s: until it is what it was, what waits takes up to "
                "twice as long, and the times that gpuward shows are ahead",
            )
        elif ahead_s <= STANDS_STILL_S:
            self._alerts.clear("log_time")

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
        elif isinstance(given, PackLoaded):
            self._settled = False
        elif isinstance(given, Leader) and self._leadership.leads():
            _log.info("this brain leads with epoch %d", self._leadership.epoch)
            for begin in self._when_leading:
                begin()

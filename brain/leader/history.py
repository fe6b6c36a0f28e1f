"""Writes what the engine decides to the read model, beside the event loop: a disk that hangs costs history, and no healing."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence

from agent.contract.messages import Event
from agent.shared.tasks import abandonable
from brain.adapters.history_queries import is_damage
from brain.adapters.parts import INVENTORY
from brain.adapters.readmodel import HistoryBatch, ReadModel, Reconciled, batch
from brain.console.feed import Feed
from brain.core.effects import Effect, Note, ShowIncident, ShowRun
from brain.core.inputs import EventSeen, Input, OperatorCommand
from brain.core.state import State
from brain.leader.pending_history import PendingHistory

_log = logging.getLogger(__name__)

WRITE_AFTER_S = 0.02
RETRY_S = 1.0  # pause after a failed write
CLOSE_S = 5.0  # so long the end of the brain waits for a write under way
# Rows that wait for the disk. Beyond them nothing is collected: the log has it all, and is read again once the disk is well.
MOST_WAITING = 50_000
ROOM_S = 1.0  # the live loop waits so long for a disk that is slower than the log; then it goes on without its history


class HistoryLost(Exception):
    """The read model was damaged and is empty now, or too much waited for it: the brain reads the log again, or shows what its
    snapshot has.
    """


class HistoryWriter:
    """Collects notes, incidents and runs, and writes them a moment later in one transaction: commands go out first.

    A thread writes, one transaction at a time, which may take for ever. A read model that turns out to be damaged is set aside;
    nothing is written then until it is opened again, so that it is seen to be behind the snapshot and made from the log.
    """

    def __init__(self, readmodel: ReadModel, feed: Feed) -> None:
        self._readmodel = readmodel
        self._feed = feed
        self._listeners: list[Callable[[str], None]] = []
        self._handled = 0  # position on the log of the newest input that was collected
        self._written = 0  # up to this position the read model is complete
        # What was written before is of another log than the one that was opened.
        self.of_another_log = False
        self.refused = ""  # why the disk takes nothing; empty: it does
        self._pending = PendingHistory()
        self._overflowed = False
        self._boots: dict[str, str] = {}  # node -> boot id of its newest event
        self._unwritten = asyncio.Event()
        self._progress = asyncio.Event()
        self._lost = asyncio.Event()
        self._lost_why = ""
        self._under_way: asyncio.Task[bool] | None = None
        self._identity = ""  # of the log that was opened
        self._opened = 0  # counts; what was begun before is of no account afterwards
        self._first = asyncio.Event()  # it was opened once

    @property
    def written(self) -> int:
        """Up to this position on the log the read model is complete."""
        return self._written

    @property
    def behind(self) -> int:
        """How many inputs were handled and are not in the read model."""
        return max(0, self._handled - self._written)

    def listen(self, listener: Callable[[str], None]) -> None:
        """`listener` is called, and must not wait, with the incident of each note that is in the read model from now on."""
        self._listeners.append(listener)

    def open(self, identity: str) -> int:
        """Opens the history of the log with this identity; returns the position up to which it is complete. While a write is
        under way this waits for it: see `idle`.
        """
        try:
            position = self._open(identity)
        except (sqlite3.DatabaseError, ValueError) as error:
            if not is_damage(error):
                raise
            self._readmodel.set_aside(error)
            position = self._open(identity)
        self._lost.clear()
        return position

    def _open(self, identity: str) -> int:
        self._anew()
        self.of_another_log = self._readmodel.is_of_another(identity)
        if self.of_another_log:
            self._feed.end()
        self._readmodel.begin(identity)
        self._identity = identity
        self._written = self._readmodel.position(identity)
        return self._written

    async def until_open(self) -> None:
        """Waits until it belongs to a log: what is noted before may go when it is made from the log again."""
        await self._first.wait()

    def _anew(self) -> None:
        self._opened += 1
        self._first.set()
        self._pending = PendingHistory(own=self._pending.own)
        self._overflowed = False
        self._boots.clear()

    def clear(self, identity: str) -> None:
        """Empties the read model, to make it from the log again."""
        self._feed.end()
        try:
            self._readmodel.clear()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise
            self._readmodel.set_aside(error)
        self._anew()
        self._readmodel.begin(identity)
        self._identity = identity
        self._written = 0

    def resume(self, seq: int) -> None:
        """The snapshot includes the inputs up to this position."""
        self._handled = seq

    def rewind(self, seq: int) -> None:
        """The log was cut to this position: other inputs follow."""
        self._anew()
        self._handled = self._written = seq
        self._feed.end()

    def note(self, note: Note) -> None:
        """Collects a note of the brain itself. While the disk takes nothing watchers hear it at once."""
        told = bool(self.refused) or self._overflowed
        if told:
            self._feed.publish(note, 0)
        self._pending.add_own(note, told=told)
        self._unwritten.set()

    def collect(
        self, seq: int, effects: Sequence[Effect], given: Input | None = None, at: float = 0.0
    ) -> None:
        """Collects an input's notes, incidents and runs from its effects, and what a node tells in it of its parts. `at`: when it
        was handled, in seconds since 1970.
        """
        self._handled = seq
        if self._overflowed:
            return
        self._unwritten.set()  # the position, at least
        told = given.event if isinstance(given, EventSeen) and self._tells_of_parts(given.event) else None
        if not effects and told is None:  # most inputs
            return
        pending = self._pending
        if pending.size >= MOST_WAITING:
            self._overflow()
            return
        if told is not None:
            pending.told.append((seq, at, told))
        who = given.who if isinstance(given, OperatorCommand) else ""
        for effect in effects:
            match effect:
                case Note():
                    pending.notes.append((seq, effect.by(who) if who else effect))
                case ShowIncident(incident=incident):
                    pending.incidents[incident.id] = incident
                case ShowRun(run=run):
                    pending.runs[run.id] = run
                case _:
                    continue

    def _tells_of_parts(self, event: Event) -> bool:
        """Whether a node tells of its parts, or that it has started anew."""
        if event.kind.startswith(INVENTORY) or self._boots.get(event.node) != event.boot:
            self._boots[event.node] = event.boot
            return True
        return False

    def _overflow(self) -> None:
        _log.error(
            "the history is %d inputs behind, and no more are kept in memory: once the disk takes it, it is made from the log",
            self.behind,
        )
        self._overflowed = True
        self._pending = PendingHistory(own=self._pending.own)

    async def room(self) -> None:
        """Waits while much waits for the disk; not for one that takes nothing."""
        if self._pending.size < MOST_WAITING // 2 or self.refused or self._overflowed:
            return
        self._progress.clear()
        try:
            async with asyncio.timeout(ROOM_S):
                await self._progress.wait()
        except TimeoutError:
            return

    async def serve(self) -> None:
        """Writes what is collected, until cancelled."""
        while True:
            await self._unwritten.wait()
            await asyncio.sleep(WRITE_AFTER_S)
            if not await self.write_out():
                await asyncio.sleep(RETRY_S)
                self._unwritten.set()

    async def write_out(self) -> bool:
        """Writes what is collected, in a thread, and publishes the notes to the watchers; first waits for the write under way.

        False: the disk refuses, and it is kept for the next time. Healing goes on without its history.
        """
        if (before := self._under_way) is not None and not before.done():
            await asyncio.shield(before)
        if (work := self._begin()) is None:
            return not self._lost.is_set()
        self._under_way = asyncio.create_task(self._beside(*work))
        return await asyncio.shield(self._under_way)

    async def written_up_to(self, seq: int, within_s: float) -> bool:
        """Waits until the read model has this position, and writes what is missing; False: not in time, or the disk refuses."""
        try:
            async with asyncio.timeout(within_s):
                while self._written < seq:
                    if not await self.write_out():
                        return False
        except TimeoutError:
            return False
        return True

    async def idle(self) -> None:
        """Waits until no write is under way."""
        while (before := self._under_way) is not None and not before.done():
            await asyncio.shield(before)

    async def close(self) -> None:
        """Writes what is left, and closes the read model. A disk that takes too long is left alone."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.write_out()
        except TimeoutError:
            _log.error(
                "the disk does not take the history: its end is read from the log after the next start"
            )
            return
        self._readmodel.close()

    def flush(self) -> bool:
        """As `write_out`, where nothing else goes on meanwhile, e.g. as a log is read from files."""
        work = self._begin()
        if work is None:
            return not self._lost.is_set()
        pending, given = work
        error: Exception | None = None
        try:
            self._readmodel.put(given, pending.reconciled)
        except (sqlite3.Error, UnicodeDecodeError) as refused:
            error = refused
        return self._end(pending, given, error)

    async def _beside(self, pending: PendingHistory, given: HistoryBatch) -> bool:
        opened, error = self._opened, None

        def put() -> bool:
            if self.refused:  # by a file system that is mounted anew since, perhaps
                self._readmodel.reopen()
                if self._readmodel.position(self._identity) != self._written:
                    return False
            self._readmodel.put(given, pending.reconciled)
            return True

        try:
            if not await abandonable(put, "history") and opened == self._opened:
                self._be_lost(
                    "the folder is another one than before: what is not in its history is read from the log"
                )
                return False
        except (sqlite3.Error, UnicodeDecodeError) as refused:
            error = refused
        return opened == self._opened and self._end(pending, given, error)

    def _begin(self) -> tuple[PendingHistory, HistoryBatch] | None:
        """Takes what waits; None: nothing does, or the read model is damaged."""
        self._unwritten.clear()
        if self._lost.is_set():
            return None
        if met := self._readmodel.met_damage:
            self._lose(met)
            return None
        pending, self._pending = self._pending, PendingHistory()
        # Once too much has waited this says, without a word of its own, whether the disk takes anything again.
        seq = self._written if self._overflowed else self._handled
        if seq <= self._written and not pending.size and not self._overflowed:
            return None
        notes = [(0, note) for note, _ in pending.own]
        notes += [pair for pair in pending.notes if pair[0] > self._written]
        told = [one for one in pending.told if one[0] > self._written]
        return pending, batch(
            max(seq, self._written), notes, pending.incidents.values(), pending.runs.values(), told
        )

    def _end(self, pending: PendingHistory, given: HistoryBatch, error: Exception | None) -> bool:
        if error is not None:
            if self._overflowed:
                self._pending.own[:0] = pending.own
            else:
                self._pending = pending.followed_by(self._pending)
            if is_damage(error):
                self._lose(error)
            elif not self.refused:
                _log.error("the read model cannot be written: %s", error)
                self.refused = str(error)
            return False
        if self.refused:
            _log.info("the read model is written again")
            self.refused = ""
        self._written = given.seq or 0
        for note, told in pending.own:
            if not told:
                self._feed.publish(note, 0)
        for seq, note in given.notes:
            if seq:
                self._feed.publish(note, seq)
                if note.incident:
                    for listener in self._listeners:
                        listener(note.incident)
        if self._overflowed:
            self._be_lost("too much waited for the disk: what is not in the history is read from the log")
        self._progress.set()
        return True

    def reconcile(self, state: State, why: str) -> None:
        """Closes, with the next write, the incidents and runs in the read model that the engine does not have now."""
        shown = batch(None, (), state.incidents.values(), state.runs.values())
        self._pending.reconciled = Reconciled(shown=shown, why=why, now=state.now)
        self._unwritten.set()

    async def until_lost(self) -> None:
        """Waits until the read model has turned out to be damaged, or too much waited for it, and raises HistoryLost."""
        await self._lost.wait()
        raise HistoryLost(self._lost_why)

    def _lose(self, error: Exception | str) -> None:
        self._readmodel.set_aside(error)
        self._feed.end()
        self._be_lost("the read model was damaged: the log is read again")

    def _be_lost(self, why: str) -> None:
        self._lost_why = why
        self._lost.set()

    async def reached(self, seq: int, timeout_s: float) -> bool:
        """Waits until the input at `seq` is handled and written; False on a timeout."""
        deadline = time.monotonic() + timeout_s
        while min(self._handled, self._written) < seq:
            self._progress.clear()
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    await self._progress.wait()
            except TimeoutError:
                return False
        return True

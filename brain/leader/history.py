"""Writes what the engine decides to the read model."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence

from agent.contract.messages import Event
from brain.adapters.history_queries import OWN, is_damage
from brain.adapters.parts import INVENTORY
from brain.adapters.readmodel import ReadModel
from brain.console.feed import Feed
from brain.core.effects import Effect, Note, ShowIncident, ShowRun
from brain.core.inputs import EventSeen, Input, OperatorCommand
from brain.core.state import Incident, Run, State

_log = logging.getLogger(__name__)

WRITE_AFTER_S = 0.02
RETRY_S = 1.0  # pause after a failed write
TELL_AFTER_S = 10.0


class HistoryLost(Exception):
    """The read model was damaged and is empty now: the brain reads the log again, or shows what its snapshot has."""


class HistoryWriter:
    """Collects notes, incidents and runs, and writes them a moment later in one transaction: commands go out first.

    A read model that turns out to be damaged is set aside; nothing is written then until it is opened again, so that it is
    seen to be behind the snapshot and made from the log.
    """

    def __init__(
        self, readmodel: ReadModel, feed: Feed, tell: Callable[[str], object] = lambda _: None
    ) -> None:
        """`tell`: people hear why nothing is written, when that lasts; empty: it is written."""
        self._tell = tell
        self._refused_s: float | None = None  # since when the disk takes nothing
        self._readmodel = readmodel
        self._feed = feed
        self._listeners: list[Callable[[str], None]] = []
        self._handled = 0  # position on the log of the newest input that was collected
        self._written = 0  # up to this position the read model is complete
        # What was written before is of another log than the one that was opened.
        self.of_another_log = False
        self._pending = _Pending()
        self._boots: dict[str, str] = {}  # node -> boot id of its newest event
        self._unwritten = asyncio.Event()
        self._progress = asyncio.Event()
        self._lost = asyncio.Event()

    @property
    def written(self) -> int:
        """Up to this position on the log the read model is complete."""
        return self._written

    def listen(self, listener: Callable[[str], None]) -> None:
        """`listener` is called, and must not wait, with the incident of each note that is in the read model from now on."""
        self._listeners.append(listener)

    def open(self, identity: str) -> int:
        """Opens the history of the log with this identity; returns the position up to which it is complete."""
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
        self._pending = _Pending()
        self.of_another_log = self._readmodel.is_of_another(identity)
        if self.of_another_log:
            self._feed.end()
        self._boots.clear()
        self._readmodel.begin(identity)
        self._written = self._readmodel.position(identity)
        return self._written

    def clear(self, identity: str) -> None:
        """Empties the read model, to make it from the log again."""
        self._feed.end()
        try:
            self._readmodel.clear()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise
            self._readmodel.set_aside(error)
        self._boots.clear()
        self._readmodel.begin(identity)
        self._written = 0

    def resume(self, seq: int) -> None:
        """The snapshot includes the inputs up to this position."""
        self._handled = seq

    def rewind(self, seq: int) -> None:
        """The log was cut to this position: other inputs follow."""
        self._handled = self._written = seq
        self._boots.clear()
        self._feed.end()

    def collect(
        self, seq: int, effects: Sequence[Effect], given: Input | None = None, at: float = 0.0
    ) -> None:
        """Collects an input's notes, incidents and runs from its effects, and what a node tells in it of its parts. `at`: when it
        was handled, in seconds since 1970.
        """
        pending = self._pending
        who = given.who if isinstance(given, OperatorCommand) else ""
        if isinstance(given, EventSeen):
            event = given.event
            if event.kind.startswith(INVENTORY) or self._boots.get(event.node) != event.boot:
                self._boots[event.node] = event.boot
                pending.told.append((seq, at, event))
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
        self._handled = seq
        self._unwritten.set()

    async def serve(self) -> None:
        """Writes what is collected, until cancelled."""
        while True:
            await self._unwritten.wait()
            await asyncio.sleep(WRITE_AFTER_S)
            if not self.flush():
                await asyncio.sleep(RETRY_S)
                self._unwritten.set()

    def flush(self) -> bool:
        """Writes what is collected, unless the read model already has it, and publishes the notes to the watchers.

        False: the disk refuses, and it is kept for the next time. Healing goes on without its history.
        """
        self._unwritten.clear()
        if self._lost.is_set():
            return False
        if met := self._readmodel.met_damage:
            self._lose(met)
            return False
        pending = self._pending
        if self._handled > self._written:
            notes = [pair for pair in pending.notes if pair[0] > self._written]
            try:
                told = [one for one in pending.told if one[0] > self._written]
                self._readmodel.write(
                    self._handled, notes, pending.incidents.values(), pending.runs.values(), told
                )
            except (sqlite3.Error, UnicodeDecodeError) as error:
                if is_damage(error):
                    self._lose(error)
                else:
                    self._refuse(error)
                return False
            self._taken()
            self._written = self._handled
            for seq, note in notes:
                self._feed.publish(note, seq)
                if note.incident:
                    for listener in self._listeners:
                        listener(note.incident)
        self._pending = _Pending()
        self._progress.set()
        return True

    def _refuse(self, error: Exception) -> None:
        """The disk takes nothing: said once, and paged when it lasts."""
        now_s = time.monotonic()
        if self._refused_s is None:
            self._refused_s = now_s
            _log.error("the read model cannot be written: %s", error)
        if now_s - self._refused_s >= TELL_AFTER_S:
            self._tell(
                f"the history cannot be written ({error}): healing goes on, what people are shown is as it was before, and no "
                "snapshot of the state is kept",
            )

    def _taken(self) -> None:
        if self._refused_s is not None:
            self._refused_s = None
            _log.info("the read model is written again")
        self._tell("")

    def reconcile(self, state: State, why: str) -> None:
        """Closes the incidents and runs in the read model that the engine no longer has."""
        try:
            self._readmodel.reconcile(
                list(state.incidents.values()), list(state.runs.values()), why, state.now
            )
        except (sqlite3.DatabaseError, *OWN) as error:
            if not is_damage(error):
                raise
            self._lose(error)

    async def until_lost(self) -> None:
        """Waits until the read model has turned out to be damaged, and raises HistoryLost."""
        await self._lost.wait()
        raise HistoryLost("the read model was damaged: the log is read again")

    def _lose(self, error: Exception | str) -> None:
        self._readmodel.set_aside(error)
        self._feed.end()
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


class _Pending:
    """What is not yet in the read model: each incident and run once, in its newest form."""

    __slots__ = ("incidents", "notes", "runs", "told")

    def __init__(self) -> None:
        self.notes: list[tuple[int, Note]] = []
        self.incidents: dict[str, Incident] = {}
        self.runs: dict[str, Run] = {}
        self.told: list[tuple[int, float, Event]] = []

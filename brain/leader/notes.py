"""Notes of the brain itself, beside those of the engine."""

import contextlib
import logging
import sqlite3
import time

from brain.adapters.log import LogClock
from brain.adapters.readmodel import ReadModel
from brain.console.feed import Feed
from brain.core.effects import Note

_log = logging.getLogger(__name__)


class BrainNotes:
    """Writes a note to the log file, to the read model and to the console's watchers."""

    def __init__(self, brain: str, clock: LogClock, readmodel: ReadModel, feed: Feed) -> None:
        self._brain = brain
        self._clock = clock
        self._readmodel = readmodel
        self._feed = feed

    def write(self, kind: str, text: str, who: str = "") -> None:
        """One note. `who` did what it says; empty: nobody, or a node."""
        _log.warning("%s: %s", kind, text)
        note = Note(id=f"brain:{self._brain}:{time.time_ns()}", at=self._clock.now(), kind=kind, text=text)
        if who:
            note = note.by(who)
        # The disk is full, or the file is damaged: the log file above has it.
        with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):
            self._readmodel.note(note)
        self._feed.publish(note, 0)

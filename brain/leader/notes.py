"""Notes of the brain itself, beside those of the engine."""

import logging
import time

from brain.adapters.log import LogClock
from brain.core.effects import Note
from brain.leader.history import HistoryWriter

_log = logging.getLogger(__name__)


class BrainNotes:
    """Writes a note to the log file, to the read model and to the console's watchers."""

    def __init__(self, brain: str, clock: LogClock, history: HistoryWriter | None = None) -> None:
        """`history`: None until `begin`, as the read model cannot be opened yet."""
        self._brain = brain
        self._clock = clock
        self._history = history
        self._early: list[Note] = []  # of before there was a history

    def begin(self, history: HistoryWriter) -> None:
        """The history is there: it gets what was noted before, too."""
        self._history = history
        for note in self._early:
            history.note(note)
        self._early.clear()

    def write(self, kind: str, text: str, who: str = "") -> None:
        """One note. `who` did what it says; empty: nobody, or a node."""
        _log.warning("%s: %s", kind, text)
        note = Note(id=f"brain:{self._brain}:{time.time_ns()}", at=self._clock.now(), kind=kind, text=text)
        if who:
            note = note.by(who)
        if self._history is None:
            self._early.append(note)
        else:
            self._history.note(note)

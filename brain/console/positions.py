"""Where a watcher of the notes is, by the log's positions: it may go on at this brain after a restart, or at another one. Pure.

Notes of the engine have the position on the log of the input that caused them, and the same id at every brain. Notes of a brain
itself have none (0): only that brain has them, and they are told when they are new to the watcher.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

OWN_REMEMBERED = 4000  # notes of the brain itself: more than wait for one watcher
_OWN, _ENGINE = "own", "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Everything up to this note has been told."""

    # Which log: positions of another one mean nothing
    log: str
    # on that log: of the newest input of which something was told
    seq: int
    # The id of the last note that was told; empty: none
    note: str
    # Is that a note of the brain itself?
    own: bool

    def text(self) -> str:
        """Returns it as the id of a server-sent event."""
        return f"{self.log}/{self.seq}/{_OWN if self.own else _ENGINE}/{quote(self.note, safe='')}"


def parse(text: str) -> Position | None:
    """Returns the position that `text` stands for; None: it is none."""
    if not text.isascii():
        return None
    log, *rest = text.split("/")
    if len(rest) != 3 or not rest[0].isdecimal() or len(rest[0]) > 18 or rest[1] not in (_OWN, _ENGINE):
        return None
    return Position(log=log, seq=int(rest[0]), note=unquote(rest[2]), own=rest[1] == _OWN)


def short(identity: str) -> str:
    """Returns a short name for the identity of a log."""
    return hashlib.blake2b(identity.encode(), digest_size=6).hexdigest()


class Heard:
    """What one watcher has been told. Each note is new once, whether a brain's file or its feed brings it: all notes of one
    position on the log come together, and positions come in their order.
    """

    def __init__(
        self,
        log: str,
        seq: int,
        *,
        whole: bool = False,
        here: Iterable[str] = (),
        skip_to: str = "",
        own: Iterable[str] = (),
    ) -> None:
        """Heard was all before `seq`, and of `seq` all (`whole`), these (`here`), or those up to one (`skip_to`); of the brain's
        own notes `own`.
        """
        self._log = log
        self._seq = seq
        self._whole = whole
        self._here = set(here)
        self._skip_to = skip_to
        self._own: OrderedDict[str, None] = OrderedDict.fromkeys(own)

    def is_new(self, seq: int, note: str) -> bool:
        """Is this note to be told? From then on it was."""
        if not seq:
            return self._is_new_own(note)
        if seq > self._seq:
            self._seq, self._here, self._skip_to, self._whole = seq, {note}, "", False
            return True
        if seq < self._seq or self._whole or note in self._here:
            return False
        self._here.add(note)
        if not self._skip_to:
            return True
        if note == self._skip_to:
            self._skip_to = ""
        return False

    def _is_new_own(self, note: str) -> bool:
        if note in self._own:
            return False
        self._own[note] = None
        if len(self._own) > OWN_REMEMBERED:
            self._own.popitem(last=False)
        return True

    def at(self, seq: int, note: str) -> Position | None:
        """Returns the position after this note, which was new; None: as before it, as the brain is not yet as far on the log as
        the watcher is.
        """
        if self._skip_to:
            return None
        return Position(log=self._log, seq=self._seq, note=note, own=not seq)

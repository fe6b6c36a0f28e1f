"""What people said while NATS took nothing: kept on disk, so that a hold does not end with the brain that heard it.

A hold, and its release, are sent however late: to stop is always right. Other words are about what their person saw: after
OTHERS_S they are not said for them any more, and a note tells who must say them again.
"""

import base64
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from agent.shared import files

_log = logging.getLogger(__name__)

LASTING = ("hold", "release")  # words that hold whenever they arrive
OTHERS_S = 600.0
MOST = 1000  # words kept; more are not promised to anybody


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsentWord:
    """An operator command that is not on the log yet."""

    id: str
    # what the log's subject is made of, and the message
    what: str
    body: bytes
    who: str
    verb: str
    # seconds since 1970 by this machine's clock
    said_at: float

    def lapsed(self, now: float) -> bool:
        """Whether it is too old to be said for its person."""
        return self.verb not in LASTING and now - self.said_at > OTHERS_S


class UnsentWords:
    """The file of one brain. What is in it is also in the outbox while the brain runs."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        """Reads the file. One that cannot be read is set aside with a line in the log, and keeps no brain from starting."""
        self._path = path
        self._now = now
        self._words: dict[str, UnsentWord] = {}
        self._one_at_a_time = threading.Lock()
        if path.exists():
            try:
                self._words = {word.id: word for word in map(_word, orjson.loads(files.read(path)))}
            except (OSError, ValueError, KeyError, TypeError) as error:
                _log.error("%s: %s: what people said last before the brain ended is not known", path, error)

    def has(self, id_: str) -> bool:
        """Is a word kept under this id?"""
        return id_ in self._words

    def keep(self, word: UnsentWord) -> bool:
        """Writes it down. False: the disk does not take it, or there are MOST already; then only this run of the brain has it."""
        with self._one_at_a_time:
            if len(self._words) >= MOST:
                return False
            self._words[word.id] = word
            try:
                self._write()
            except OSError as error:
                _log.error("%s: %s: %s of %s is not kept", self._path, error, word.verb, word.who)
                del self._words[word.id]
                return False
            return True

    def sent(self, id_: str) -> None:
        """It is on the log. A word that is sent twice after all has its id, and counts once."""
        with self._one_at_a_time:
            if self._words.pop(id_, None) is not None:
                try:
                    self._write()
                except OSError as error:
                    _log.error("%s: %s", self._path, error)

    def left(self) -> tuple[list[UnsentWord], list[UnsentWord]]:
        """What the brain that ran before did not send: the words to say now, and those that have lapsed, which are forgotten."""
        words, now = list(self._words.values()), self._now()
        lapsed = [word for word in words if word.lapsed(now)]
        for word in lapsed:
            self.sent(word.id)
        return [word for word in words if word not in lapsed], lapsed

    def _write(self) -> None:
        if self._words:
            body = orjson.dumps([_row(word) for word in self._words.values()])
            files.write(self._path, body, mode=0o600, sync=True)
        else:
            self._path.unlink(missing_ok=True)


def _row(word: UnsentWord) -> dict[str, Any]:
    return {
        "id": word.id,
        "what": word.what,
        "body": base64.b64encode(word.body).decode(),
        "who": word.who,
        "verb": word.verb,
        "said_at": word.said_at,
    }


def _word(row: dict[str, Any]) -> UnsentWord:
    return UnsentWord(
        id=str(row["id"]),
        what=str(row["what"]),
        body=base64.b64decode(row["body"], validate=True),
        who=str(row["who"]),
        verb=str(row["verb"]),
        said_at=float(row["said_at"]),
    )
